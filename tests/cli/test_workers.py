"""The supervisor of several server processes."""

from __future__ import annotations

import subprocess
import sys

from tests.server import ROOT

_ALL_FAIL = """
import socket
from app.cli.workers import supervise

listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
raise SystemExit(supervise(listeners, lambda listener: 2))
"""


def test_processes_that_all_fail_at_once_end_the_server() -> None:
    """With one line and exit code 2, however many are gone already when the first is looked at."""
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", _ALL_FAIL], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 2
        assert done.stderr == "icekeel: a server process ended as soon as it was started; stopping\n"
