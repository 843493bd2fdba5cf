"""`icekeel serve` as an operator meets it: starting, refusing to start, stopping, several processes."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.http.conftest import MakeServer
from tests.http.samples import fresh, namespace, set_property, table
from tests.postgres import Postgres
from tests.server import ROOT, Server


def serve(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a serve that is expected to end by itself."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ICEKEEL_")}
    environment |= {f"ICEKEEL_{name}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "serve", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@LOCAL_ONLY
def test_it_tells_where_everything_is(server: Server) -> None:
    """Data, URL and a line to paste into Python."""
    assert server.line(f'load_catalog("icekeel", type="rest", uri="{server.url}")')
    told = server.output()
    assert str(server.home) in told and server.url in told


def test_the_home_is_private(server: Server) -> None:
    """Nobody else on the machine reads the database."""
    assert server.home.stat().st_mode & 0o077 == 0


def test_a_wrong_setting_stops_the_start_with_one_line(tmp_path: Path) -> None:
    """Exit code 2 and one clear line, without a traceback and without the value of a secret."""
    done = serve("--home", str(tmp_path / "home"), TOKN="secret")
    assert done.returncode == 2
    assert done.stderr == "icekeel: ICEKEEL_TOKN: no such setting; did you mean ICEKEEL_TOKEN?\n"


def test_a_taken_port_is_one_line(server: Server, tmp_path: Path) -> None:
    """The usual mistake on a developer's machine."""
    done = serve("--home", str(tmp_path / "home"), "--port", str(server.port))
    assert done.returncode == 2
    told = f"Cannot listen on 127.0.0.1:{server.port}: Address already in use; choose another one with --port"
    assert done.stderr == f"icekeel: {told}\n"


@LOCAL_ONLY
def test_a_database_of_a_newer_server_stops_the_start(make_server: MakeServer) -> None:
    """One clear line instead of damage."""
    server = make_server()
    server.stop()
    with closing(sqlite3.connect(server.home / "icekeel.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()
    done = serve("--home", str(server.home), "--port", "0")
    assert done.returncode == 2 and "newer than this server" in done.stderr and done.stderr.count("\n") == 1


def test_everyone_may_be_served_when_that_is_meant(make_server: MakeServer) -> None:
    """--allow-anonymous opens a host to others."""
    server = make_server(args=["--host", "0.0.0.0", "--allow-anonymous"])
    answer = httpx.get(f"{server.url}/v1/config", headers={"host": "catalog.internal"}, trust_env=False)
    assert answer.status_code == 200


def test_two_servers_share_one_postgresql(make_server: MakeServer, postgres_server: Postgres) -> None:
    """Replicas over one database: what one answered, the other sees at once. An empty database is refused."""
    empty = serve("--port", "0", DATABASE_URL=postgres_server.empty_database())
    assert empty.returncode == 2 and "icekeel db upgrade" in empty.stderr and empty.stderr.count("\n") == 1
    settings = {"DATABASE_URL": postgres_server.database() + "?application_name=hunter2"}
    first = make_server(settings=settings)
    second = make_server(settings=settings | {"WAREHOUSE": str(first.warehouse)})
    assert first.line("PostgreSQL 127.0.0.1/") and "hunter2" not in first.output()
    with first.client() as one, second.client() as two:
        ns = namespace(one)
        made = table(one, ns)
        set_property(one, ns, made["name"], "k", "v")
        assert two.get(f"/v1/namespaces/{ns}/tables/{made['name']}").json()["metadata"]["properties"]["k"] == "v"


def test_sigterm_lets_running_requests_finish(make_server: MakeServer) -> None:
    """A stop drains: what was begun is answered, and the exit code is 0."""
    server = make_server()
    name = fresh("drained")
    body = f'{{"namespace":["{name}"]}}'.encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body[:5]
        )
        time.sleep(0.3)
        os.kill(server.pid, signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body[5:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    assert server.stop() == 0
    server.start()
    with server.client() as http:
        assert http.head(f"/v1/namespaces/{name}").status_code == 204


def test_data_survives_kill_and_restart(make_server: MakeServer) -> None:
    """What was answered is there after kill -9."""
    server = make_server()
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns)
        committed = set_property(http, ns, made["name"], "k", "v").json()
    server.restart(kill=True)
    with server.client() as http:
        assert http.get(f"/v1/namespaces/{ns}/tables/{made['name']}").json()["metadata"] == committed["metadata"]


def test_a_dropped_table_is_purged_after_a_restart(make_server: MakeServer) -> None:
    """The job is durable: a server killed right after the answer goes on when it is back."""
    server = make_server()
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns)
        assert http.delete(f"/v1/namespaces/{ns}/tables/{made['name']}?purgeRequested=true").status_code == 204
    server.restart(kill=True)
    location = Path(made["metadata"]["location"].removeprefix("file://"))
    deadline = time.monotonic() + 20
    while location.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not location.exists()


def test_several_workers_share_one_sqlite_file(make_server: MakeServer) -> None:
    """Commits from many clients through two processes: none is lost, none fails because the file is busy."""
    server = make_server(workers=2)
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns)
    codes: list[int] = []

    def commit(number: int) -> None:
        with server.client() as http:
            for step in range(5):
                while (answer := set_property(http, ns, made["name"], f"k{number}_{step}", "v")).status_code == 409:
                    pass
                codes.append(answer.status_code)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) == {200}
    with server.client() as http:
        properties = http.get(f"/v1/namespaces/{ns}/tables/{made['name']}").json()["metadata"]["properties"]
    assert sum(name.startswith("k") for name in properties) == 40
    assert server.stop() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the workers share one queue of connections")
def test_connections_are_spread_over_the_workers(make_server: MakeServer) -> None:
    """No process sits idle while another has nearly all clients."""
    server = make_server(workers=2)
    served: dict[str, int] = {}
    with ExitStack() as open_ones:
        for _ in range(40):
            http = open_ones.enter_context(server.client())
            process, _, _ = http.get("/health/live").headers["X-Request-Id"].partition("-")
            served[process] = served.get(process, 0) + 1
    assert len(served) == 2 and min(served.values()) >= 5, served


def test_a_port_taken_by_workers_is_taken(make_server: MakeServer, tmp_path: Path) -> None:
    """Two servers with several workers never share a port by accident; once stopped, nobody listens."""
    server = make_server(workers=2)
    done = serve("--home", str(tmp_path / "other"), "--port", str(server.port), "--workers", "2")
    assert done.returncode == 2 and "Address already in use" in done.stderr
    assert server.stop() == 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=2)


def children(server: Server) -> set[int]:
    """Process ids of a server's workers."""
    text = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return {int(pid) for pid in text.split()}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="worker processes are found through /proc")
def test_a_worker_that_dies_is_replaced(make_server: MakeServer) -> None:
    """The others go on, and soon there are as many as before; killing the supervisor ends them all."""
    server = make_server(workers=2)
    before = children(server)
    time.sleep(2.1)
    os.kill(min(before), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (len(children(server)) < 2 or children(server) == before) and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = children(server)
    assert len(workers) == 2 and workers != before
    with server.client() as http:
        assert http.get("/v1/config").status_code == 200
    server.kill()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=2)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="worker processes are found through /proc")
def test_a_worker_that_is_killed_young_is_replaced(make_server: MakeServer) -> None:
    """What killed it (an operator, the kernel for want of memory) says nothing of the others: they go on."""
    server = make_server(workers=2)
    for _ in range(2):
        before = children(server)
        victim = max(before)
        os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while (len(children(server)) < 2 or victim in children(server)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(children(server)) == 2
    assert server.process is not None and server.process.poll() is None
    with server.client() as http:
        assert http.get("/v1/config").status_code == 200
    assert server.stop() == 0


def test_the_log_is_json_when_asked(make_server: MakeServer) -> None:
    """Every request, when the sample is 1, with its id."""
    server = make_server(settings={"LOG_FORMAT": "json", "LOG_SAMPLE": "1"})
    with server.client() as http:
        http.get("/v1/config", headers={"x-request-id": "look-for-me"})
    line = server.line("look-for-me")
    assert line.startswith("{") and '"message": "GET /v1/config 200"' in line
