"""`icekeel serve`: one command that makes the home, migrates, binds, tells, and serves."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import tempfile
import time
from typing import Annotated
from urllib.parse import urlsplit

import typer
import uvicorn

from app import __version__
from app.cli.codes import COULD_NOT
from app.cli.stopping import STOPS, LeavingServer
from app.cli.workers import supervise
from app.edge import logs
from app.edge.metrics import forget_process
from app.edge.protocol import Protocol
from app.errors import BadSettings
from app.main import check_exposure, create_app, prepare
from app.settings import Settings, read_settings

_BACKLOG = 2048
_THREADS = "/proc/self/task"
_LEAVING_S = 1.0

app = typer.Typer()


@app.command("serve", epilog="Every setting is also an ICEKEEL_* environment variable; the command line wins.")
def serve(
    home: Annotated[
        str | None, typer.Option(help="folder of the embedded database and warehouse (default: ~/.icekeel)")
    ] = None,
    host: Annotated[str | None, typer.Option(help="address to listen on (default: 127.0.0.1)")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on; 0 takes a free one (default: 8181)")] = None,
    workers: Annotated[int | None, typer.Option(help="server processes (default: 1)")] = None,
    allow_anonymous: Annotated[
        bool | None, typer.Option("--allow-anonymous", help="serve other machines without a token")
    ] = None,
) -> None:
    """Serve the catalog."""
    given = {"home": home, "host": host, "port": port, "workers": workers, "allow_anonymous": allow_anonymous}
    settings = read_settings(given)
    check_exposure(settings)
    logs.configure(settings.log_level, settings.log_format)
    settings.make_home()
    prepare(settings)
    listeners = bind(settings.host, settings.port, settings.workers)
    # A stop that comes before the server can hear it waits until then; ignored, it would have been the only one.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    _await_threads()
    print(banner(settings, listeners[0].getsockname()[1]), flush=True)
    if settings.workers == 1:
        raise typer.Exit(run(settings, listeners[0]))
    with tempfile.TemporaryDirectory(prefix="icekeel-metrics-") as directory:
        code = supervise(
            listeners,
            lambda listener: run(settings, listener, directory),
            ended=lambda pid: forget_process(directory, pid),
        )
    raise typer.Exit(code)


def _await_threads() -> None:
    """Wait until threads of the preparations are gone. They block no signals: a stop that met one would end us at once.

    Joined threads too take a moment to leave. Only Linux tells; elsewhere the moment is taken for over.
    """
    deadline = time.monotonic() + _LEAVING_S
    while os.path.isdir(_THREADS) and len(os.listdir(_THREADS)) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)


def bind(host: str, port: int, count: int = 1) -> list[socket.socket]:
    """`count` listening sockets of one address; BadSettings when the port is taken or the address is not ours.

    On Linux each has a queue of its own and the kernel spreads connections over them: from a single queue the process
    that wakes first takes all there is, and of eight clients seven sit in one process. Elsewhere they are one socket.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        first = socket.socket(family, kind, protocol)
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(address)
        listeners = [first]
        spread = count > 1 and sys.platform == "linux"
        if spread:
            # Only now: another server on this port must have met an error above.
            first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listeners += [_beside(first) if spread else first for _ in range(1, count)]
        for listener in listeners:
            listener.listen(_BACKLOG)
    except OSError as error:
        other = "; choose another one with --port" if error.errno == errno.EADDRINUSE else ""
        raise BadSettings(f"Cannot listen on {host}:{port}: {error.strerror}{other}") from None
    except UnicodeError:
        # From the IDNA codec, which host names pass through.
        raise BadSettings(f"Cannot listen on {host}:{port}: that is no host name") from None
    return listeners


def _beside(first: socket.socket) -> socket.socket:
    listener = socket.socket(first.family, first.type, first.proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(first.getsockname())
    return listener


def run(settings: Settings, listener: socket.socket, metrics_directory: str | None = None) -> int:
    """Serve until told to stop; the exit code."""
    catalog = create_app(settings, metrics_directory)
    config = uvicorn.Config(
        catalog,
        http=Protocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    server = LeavingServer(config, drain_s=settings.drain, draining=lambda: setattr(catalog.state, "draining", True))
    for number in STOPS:
        # uvicorn raises the signal again once it has stopped in good order; then it means nothing any more.
        signal.signal(number, _ignore)
    try:
        server.run([listener])
    except SystemExit:
        return COULD_NOT
    return 0


def _ignore(number: int, frame: object) -> None:
    """A stop that has been heard already."""


def banner(settings: Settings, port: int) -> str:
    """What a newcomer needs: where the data is, the address, and a line to paste."""
    shown = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
    token = ', token="<ICEKEEL_TOKEN>"' if settings.token else ""
    paste = f'catalog = load_catalog("icekeel", type="rest", uri="{url}"{token})'
    lines = [
        f"Icekeel {__version__}",
        f"  data       {_database(settings)}, tables in {settings.warehouse_location}",
        f"  url        {url}",
        f"  docs       {url}/docs",
        f"  PyIceberg  from pyiceberg.catalog import load_catalog; {paste}",
    ]
    if settings.token is None:
        lines.append(
            "  access     anyone who reaches this address"
            if settings.allow_anonymous
            else "  access     this machine, no token"
        )
    return "\n".join(lines)


def _database(settings: Settings) -> str:
    """Where the data is; of a database URL only host and name, for the rest may hold passwords."""
    if settings.embedded:
        return str(settings.home) if settings.database_url is None else settings.database
    parts = urlsplit(settings.database)
    return f"PostgreSQL {parts.hostname or 'localhost'}{parts.path}"
