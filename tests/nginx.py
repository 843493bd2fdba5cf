"""The nginx of `docs/nginx.conf` in front of test replicas, where the machine has one."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.postgres import free_port
from tests.server import ROOT


class CannotStart(Exception):
    """Why there is no nginx here; tests skip with this text."""


class Nginx:
    """A running nginx. `serve(ports, down)` writes the configuration again and reloads it."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, ports: Sequence[int], down: Sequence[int] = ()) -> None:
        self._write(ports, down)
        if self._process is None:
            self._start()
            return
        self._run("-s", "reload")
        # Workers of the old configuration take no new connections once the new ones listen.
        time.sleep(0.5)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def _write(self, ports: Sequence[int], down: Sequence[int]) -> None:
        shipped = (ROOT / "docs" / "nginx.conf").read_text()
        lines = [
            f"server 127.0.0.1:{port}{' down' if port in down else ' max_fails=2 fail_timeout=2s'};" for port in ports
        ]
        text = re.sub(r"server icekeel-1:.*;\n\s*server icekeel-2:.*;", "\n        ".join(lines), shipped)
        assert text != shipped
        text = text.replace("listen 8181;", f"listen 127.0.0.1:{self.port};").replace(
            "worker_processes auto", "worker_processes 1"
        )
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            text = text.replace("http {", f"http {{\n    {kind}_temp_path {self._folder}/{kind};", 1)
        head = f"daemon off;\npid {self._folder}/pid;\nerror_log {self._folder}/error.log warn;\n"
        (self._folder / "nginx.conf").write_text(head + text)

    def _run(self, *arguments: str) -> None:
        done = subprocess.run([*self._command(), *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotStart(f"nginx refused its configuration: {done.stderr[-400:]}")

    def _command(self) -> list[str]:
        return [self._program, "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")]

    def _start(self) -> None:
        self._run("-t")
        self._process = subprocess.Popen(self._command(), start_new_session=True)
        deadline = time.monotonic() + 15
        while True:
            try:
                httpx.get(f"{self.url}/health/live", trust_env=False)
                return
            except httpx.TransportError as error:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise CannotStart(f"nginx did not come up: {error}") from error
            time.sleep(0.05)


@contextmanager
def nginx(folder: Path) -> Iterator[Nginx]:
    """CannotStart, with the reason, where there is none to run."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise CannotStart("no nginx: not on the PATH and not in /usr/sbin (Debian package nginx-light)")
    folder.mkdir(parents=True, exist_ok=True)
    made = Nginx(program, folder)
    try:
        yield made
    finally:
        made.stop()
