"""A real PostgreSQL for tests: the machine's own binaries, a cluster in a fresh folder, a free loopback port."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from app.store import migrate
from app.store.schema import metadata

TEMPLATE = "icekeel_template"


class CannotStart(Exception):
    """Why there is no PostgreSQL here; tests skip with this text."""


class Postgres:
    """A running cluster with a migrated template database."""

    def __init__(self, program: Path, data: Path, port: int, account: str | None, *, durable: bool = False) -> None:
        self._program = program
        self._data = data
        self._port = port
        self._account = account
        self._durable = durable
        self._numbers = count(1)
        self._reused: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str, *, port: int | None = None) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self._port}/{database}"

    @property
    def port(self) -> int:
        return self._port

    def empty_database(self) -> str:
        """A new database without tables; its URL."""
        return self._create("template0")

    def database(self) -> str:
        """A new database with the catalog's tables; its URL."""
        return self._create(TEMPLATE)

    def emptied_database(self) -> str:
        """One database that every caller empties first: making one for each test costs more than most tests."""
        if self._reused is None:
            self._reused = self.database()
        children_first = "; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables))
        self.execute(children_first, self._reused.rpartition("/")[2])
        return self._reused

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        return self.url(name)

    def account_of(self) -> dict[str, Any]:
        """What lets another process run under the server's account."""
        return _as(self._account)

    def execute(self, sql: str, database: str = "postgres") -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.url(database))
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        asyncio.run(run())

    def start(self) -> None:
        log = (self._data.parent / "log").open("ab")
        self._process = subprocess.Popen(
            [
                self._program / "postgres", "-D", self._data, "-p", str(self._port),
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
                "-c", "max_connections=200", "-c", "deadlock_timeout=200ms",
                *(() if self._durable else ("-c", "fsync=off", "-c", "full_page_writes=off")),
                "-c", f"shared_buffers={'128MB' if self._durable else '32MB'}",
            ],
            stdout=log, stderr=log, cwd=self._data, start_new_session=True, **_as(self._account),
        )  # fmt: skip
        log.close()
        self._await()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT disconnects everybody and shuts down cleanly; SIGQUIT is a crash."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)
        self._process = None

    def prepare(self) -> None:
        self.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'")
        migrate(self.url(TEMPLATE))

    def _await(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self.execute("SELECT 1")
                return
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    tail = (self._data.parent / "log").read_text(errors="replace")[-400:]
                    raise CannotStart(f"PostgreSQL did not come up: {error}; {tail}") from error
            time.sleep(0.05)


def _as(account: str | None) -> dict[str, Any]:
    return {} if account is None else {"user": account, "group": pwd.getpwnam(account).pw_gid, "extra_groups": []}


def _binaries() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    on_path = shutil.which("initdb")
    for folder in [*installed, *([Path(on_path).parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise CannotStart("no PostgreSQL: neither /usr/lib/postgresql/*/bin/initdb nor initdb on the PATH")


def _account() -> str | None:
    """PostgreSQL refuses to run as root: the account it may run as here, None for our own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise CannotStart("no PostgreSQL: running as root, and there is no account to run it as")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """Run a cluster while the context lasts. CannotStart, with the reason, when there is none to run.

    Tests do without fsync; with `durable` a commit is on disk when it is acknowledged.
    """
    program, account = _binaries(), _account()
    # Not below pytest's own folder: that is closed to the account the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="icekeel-postgres-"))
    try:
        if account is not None:
            shutil.chown(folder, account)
        data = folder / "data"
        made = subprocess.run(
            [program / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
            capture_output=True, text=True, cwd=folder, check=False, **_as(account),
        )  # fmt: skip
        if made.returncode != 0:
            raise CannotStart(f"initdb failed: {made.stderr[-400:]}")
        server = Postgres(program, data, free_port(), account, durable=durable)
        server.start()
        try:
            server.prepare()
            yield server
        finally:
            server.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
