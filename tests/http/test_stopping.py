"""A server that is told to stop: what it still answers, and whom it turns away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.test_serving import children
from tests.http.wire import request
from tests.server import ROOT, Server

MakeServer = Callable[..., Server]


def test_a_draining_server_is_not_ready_but_serves(make_server: MakeServer) -> None:
    """Load balancers see 503, requests still succeed, and every answer asks for its connection to be closed."""
    server = make_server(settings={"DRAIN": "3"})
    assert server.process is not None
    server.process.terminate()
    deadline = time.monotonic() + 2
    while request(server, "GET", "/health/ready").status == 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    refused = request(server, "GET", "/health/ready")
    assert refused.status == 503 and b"told to stop" in refused.body
    time.sleep(0.2)
    served = request(server, "GET", "/v1/config")
    assert served.status == 200 and served.header("Connection") == "close"
    assert server.process.wait(10) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_signal_does_not_wait(make_server: MakeServer, workers: int) -> None:
    """An operator in a hurry sends it twice; one process or several make no difference."""
    server = make_server(settings={"DRAIN": "60"}, workers=workers)
    assert server.process is not None
    server.process.terminate()
    time.sleep(0.5)
    server.process.terminate()
    assert server.process.wait(10) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_stop_told_to_a_whole_group_is_one_stop(make_server: MakeServer, number: signal.Signals) -> None:
    """A terminal and systemd tell the workers too, and the supervisor tells them once more: they drain all the same."""
    server = make_server(settings={"DRAIN": "2"}, workers=2)
    assert server.process is not None
    began = time.monotonic()
    for pid in [*children(server), server.pid]:
        os.kill(pid, number)
    assert server.process.wait(20) == 0
    assert time.monotonic() - began >= 2


def test_a_stop_that_comes_before_the_server_hears_is_kept(tmp_path: Path) -> None:
    """Between the start of the process and its event loop a signal waits; it may be the only one that is ever sent."""
    script = (
        "import os, signal, sys\n"
        "from app.cli import main, serving\n"
        "ran = serving.LeavingServer.run\n"
        "def run(self, sockets=None):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    ran(self, sockets)\n"
        "serving.LeavingServer.run = run\n"
        "sys.exit(main(['serve', '--home', sys.argv[1], '--port', '0']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "home")], cwd=ROOT, timeout=20, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_stop_meets_no_thread_of_the_preparations(tmp_path: Path) -> None:
    """One that is still leaving blocks no signals, and the stop that it gets would end the process at once."""
    script = (
        "import os, signal, sys, threading, time\n"
        "from app.cli import main, serving\n"
        "prepared, told = serving.prepare, serving.banner\n"
        "def prepare(settings):\n"
        "    prepared(settings)\n"
        "    threading.Thread(target=time.sleep, args=(0.3,)).start()\n"
        "def banner(*args):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return told(*args)\n"
        "serving.prepare, serving.banner = prepare, banner\n"
        "sys.exit(main(['serve', '--home', sys.argv[1], '--port', '0']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "home")], cwd=ROOT, timeout=20, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_told_twice_in_a_hurry_leaves_no_traceback(make_server: MakeServer, workers: int) -> None:
    """SIGINT after another signal makes uvicorn drop everything, its application too."""
    server = make_server(workers=workers)
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    for pid in [*children(server), server.pid]:
        os.kill(pid, signal.SIGINT)
    assert server.process.wait(20) == 0
    assert "Traceback" not in server.output()


def test_connections_that_were_accepted_are_answered(make_server: MakeServer) -> None:
    """Clients that connect anew for every request meet an answer or a refused connection.

    One that comes in the microseconds in which the listener closes is reset by the kernel, whatever a process does.
    """
    for _ in range(2):
        server = make_server()
        stop, broken, answered = threading.Event(), [], []

        def knock() -> None:
            while not stop.is_set():  # noqa: B023
                try:
                    connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)  # noqa: B023
                except ConnectionRefusedError:
                    return
                except OSError as error:
                    # The kernel may still be in the middle of a handshake when the listener goes: nothing was sent.
                    if isinstance(error, ConnectionResetError):
                        return
                    raise
                with connection:
                    try:
                        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                        head = connection.recv(64)
                    except OSError as error:
                        broken.append(repr(error))  # noqa: B023
                        continue
                    (answered if head.startswith(b"HTTP/1.1 200") else broken).append(head)  # noqa: B023

        threads = [threading.Thread(target=knock) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        server.stop()
        stop.set()
        for thread in threads:
            thread.join()
        assert len(answered) > 50 and len(broken) <= 1


def test_a_running_request_is_finished(make_server: MakeServer) -> None:
    """A change whose body is still arriving when the signal comes is done and answered."""
    server = make_server()
    body = b'{"namespace": ["late"]}'
    head = f"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body[:9])
        time.sleep(0.3)
        assert server.process is not None
        server.process.terminate()
        time.sleep(0.5)
        connection.sendall(body[9:])
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200") and b'"late"' in answer
    assert server.process.wait(20) == 0
