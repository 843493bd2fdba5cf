"""A real server process for black-box tests: `icekeel serve` on a free port with a home of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import httpx

from tests.backends import chosen

ROOT = Path(__file__).resolve().parent.parent
_URL = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):(\d+)")


class Server:
    """One `icekeel serve` process; it can be stopped, killed and started again on the same home and port.

    `settings` become `ICEKEEL_*` environment variables (`{"TOKEN": "x"}`), `args` are appended to the command line.
    `program` runs another installation than this checkout, from a folder outside it.
    The variable TEST_BACKEND puts every server on another database and store than its home (`tests/backends.py`).
    Standard output and error go to `<home>.log`, outside the home, so that the home holds only what the server wrote.
    """

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        port: int = 0,
        workers: int = 1,
        token: str | None = None,
        program: Sequence[str] | None = None,
    ) -> None:
        self.home = home
        self.settings = {**chosen(home / "warehouse"), **(settings or {})}
        self.args = tuple(args)
        self.port = port
        self.workers = workers
        self.token = token
        if token is not None:
            self.settings["TOKEN"] = token
        self.program = tuple(program) if program is not None else (sys.executable, "-m", "app.cli")
        self.folder = ROOT if program is None else home.parent
        self.log = home.with_name(home.name + ".log")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base address without a trailing slash; engines take it as the catalog URI."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def warehouse(self) -> Path:
        """The folder of the default warehouse."""
        return self.home / "warehouse"

    def client(self, timeout: float = 30.0) -> httpx.Client:
        """A client whose requests carry the token, if there is one."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False)

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it to answer."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ICEKEEL_")}
        environment = {**inherited, **{f"ICEKEEL_{k}": v for k, v in self.settings.items()}}
        environment.setdefault("PYTHONUNBUFFERED", "1")
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.program,
                    "serve",
                    "--home",
                    str(self.home),
                    "--port",
                    str(self.port),
                    "--workers",
                    str(self.workers),
                    *self.args,
                ],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        return self.process

    def start(self, timeout: float = 30.0) -> Server:
        """Start and wait until `/health/ready` answers 200; RuntimeError with the log if it does not."""
        mark = self.log.stat().st_size if self.log.exists() else 0
        process = self.spawn()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError(f"server ended with {process.returncode}:\n{self.output()}")
            if self.port == 0:
                found = _URL.search(self.output()[mark:])
                if found:
                    self.port = int(found.group(1))
            if self.port and self._ready():
                return self
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"server was not ready after {timeout} s:\n{self.output()}")

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/ready", timeout=2.0, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def output(self) -> str:
        """Everything the process printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def line(self, containing: str, timeout: float = 20.0) -> str:
        """The first whole printed line with that text; AssertionError if none comes within `timeout` seconds.

        An answer reaches its client before the line about it is written.
        """
        deadline = time.monotonic() + timeout
        while True:
            for line in self.output().splitlines(keepends=True):
                if containing in line and line.endswith("\n"):
                    return line.rstrip("\n")
            if time.monotonic() > deadline:
                raise AssertionError(f"nothing printed with {containing!r}:\n{self.output()}")
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def stop(self, timeout: float = 20.0) -> int:
        """SIGTERM, wait, and return the exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        code = self.process.returncode
        self.process = None
        return code

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to finish anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self, *, kill: bool = False) -> Server:
        """Stop (or kill -9) and start again on the same home and port."""
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
