"""Servers under measurement: started here, or running somewhere and named by URL."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bench import processes

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
_LATER_STARTS = 3
_URL = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Target:
    """An Iceberg REST server at `url`. `pid` is the root of its processes, None when they cannot be seen from here."""

    def __init__(self, name: str, url: str, pid: int | None, *, jvm: bool = False) -> None:
        parts = urlsplit(url)
        self.name = name
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 80
        self.base = parts.path.rstrip("/")
        self.pid = pid
        self.jvm = jvm
        self.start: Json = {}
        self.prefix = ""
        self.round = 0
        self.note = ""
        """What is different about it, for the report."""
        self.history = True
        """Whether it keeps the snapshots of a table; the seed finds out."""

    @classmethod
    def at(cls, name: str, url: str) -> Target:
        """A server that somebody else runs; its processes are found when they are on this machine."""
        target = cls(name, url, None)
        if target.host in ("127.0.0.1", "localhost"):
            target.pid = processes.listener(target.port)
            target.jvm = target.pid is not None and "java" in Path(f"/proc/{target.pid}/comm").read_text()
        return target

    def connect(self) -> Target:
        """Ask for the configuration, which tells the prefix of all other paths."""
        status, answer = self.call("GET", f"{self.base}/v1/config")
        if status != 200:
            raise RuntimeError(f"{self.name}: /v1/config answered {status}")
        told = {**(answer.get("defaults") or {}), **(answer.get("overrides") or {})}
        self.prefix = f"/{quote(told['prefix'], safe='')}" if told.get("prefix") else ""
        return self

    def path(self, rest: str) -> str:
        return f"{self.base}/v1{self.prefix}/{rest}"

    def call(self, method: str, path: str, body: Json | None = None, timeout: float = 300.0) -> tuple[int, Json]:
        """One request outside any measurement."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, {"Content-Type": "application/json"} if payload else {})
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if data[:1] in (b"{", b"[") else {}
        finally:
            connection.close()

    def header(self, path: str, name: str, sent: Mapping[str, str] | None = None) -> str | None:
        """A header of the answer to a GET."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("GET", path, headers=dict(sent or {}))
            answer = connection.getresponse()
            answer.read()
            return answer.headers.get(name)
        finally:
            connection.close()

    def must(self, method: str, path: str, body: Json | None = None) -> Json:
        status, answer = self.call(method, path, body)
        if status not in (200, 204):
            raise RuntimeError(f"{self.name}: {method} {path} answered {status}: {json.dumps(answer)[:400]}")
        return answer

    def resident_mb(self) -> float | None:
        return None if self.pid is None else round(processes.resident_mb(processes.tree(self.pid)), 1)

    def stop(self) -> None:
        """Nothing to do for a server that we did not start."""


class Started(Target):
    """A server that this process started and will stop, and with it what runs `beside` it and is not measured."""

    def __init__(self, name: str, port: int, process: subprocess.Popen[bytes], folder: Path, *, jvm: bool) -> None:
        super().__init__(name, f"http://127.0.0.1:{port}", process.pid, jvm=jvm)
        self.process = process
        self.folder = folder
        self.beside = ExitStack()

    def end(self) -> None:
        """End the process and keep its folder."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self.end()
        self.beside.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def scratch(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"bench-{name}-"))


def launch(
    name: str,
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str],
    port: int = 0,
    jvm: bool = False,
    probe: str = "/v1/config",
    timeout: float = 60.0,
) -> Started:
    """Start a server, wait for its first 200 on `probe`, and note wall seconds, CPU seconds and idle memory.

    With `port` 0 the server must print its URL. RuntimeError, with what it printed, when it does not come up.
    """
    output = folder / "output"
    with output.open("wb") as sink:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL
        )
    target = Started(name, port, process, folder, jvm=jvm)
    try:
        _wait(target, output, probe, began + timeout)
    except BaseException:
        target.stop()
        raise
    pids = processes.tree(process.pid)
    target.start = {
        "wall_s": round(time.monotonic() - began, 3),
        "cpu_s": round(processes.cpu_seconds(pids), 3),
        "idle_rss_mb": round(processes.resident_mb(pids), 1),
    }
    return target


def _wait(target: Started, output: Path, probe: str, until: float) -> None:
    """Return at the first 200 on `probe`; RuntimeError when the server ends or `until` has come."""
    while True:
        if not target.port or target.port == 80:
            found = _URL.search(output.read_text(errors="replace"))
            target.port = int(found.group(1)) if found else 0
        try:
            if target.port and target.call("GET", probe, timeout=5)[0] == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        if target.process.poll() is not None or time.monotonic() > until:
            told = output.read_text(errors="replace")[-1500:]
            raise RuntimeError(f"{target.name} did not come up:\n{told}")
        time.sleep(0.005)


def icekeel(name: str = "icekeel", settings: Mapping[str, str] | None = None, arguments: Sequence[str] = ()) -> Started:
    """`icekeel serve` on SQLite and local files in a home of its own; its start is the quickest of three later ones.

    The first makes the home, migrates its database and, in a fresh checkout, compiles every module.
    """
    folder = scratch(name)
    command = [sys.executable, "-m", "app.cli", "serve", "--home", str(folder / "home"), "--port", "0", *arguments]
    environment = {"PYTHONUNBUFFERED": "1", **{f"ICEKEEL_{key}": value for key, value in (settings or {}).items()}}
    target = launch(name, command, folder, environment=environment)
    later = []
    for _ in range(_LATER_STARTS):
        target.end()
        target = launch(name, command, folder, environment=environment)
        later.append(target.start)
    target.start = min(later, key=lambda start: float(start["wall_s"]))
    return target


def floor(*, select: bool) -> Started:
    """The least that a Python server can do: a bare ASGI callable on the same uvicorn (`bench/floor.py`)."""
    name = "floor" if select else "floor-bare"
    folder = scratch(name)
    command = [sys.executable, "-m", "bench.floor", str(folder / "floor.db"), *([] if select else ["--bare"])]
    return launch(name, command, folder, environment={"PYTHONUNBUFFERED": "1"}, probe="/200")
