"""Several server processes on one listening socket."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

_STOPS = {signal.SIGTERM, signal.SIGINT}
_WAKES = {*_STOPS, signal.SIGCHLD}
_YOUNG_S = 2.0
_LOOK_S = 5.0
COULD_NOT = 2


def supervise(count: int, run: Callable[[], int]) -> int:
    """Keep `count` forked processes running `run()` until SIGTERM or SIGINT, which they get too; the exit code.

    A process that ends by itself is replaced. One that ends within two seconds of its start will do so again: then
    all stop.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKES)
    born: dict[int, float] = {}
    for _ in range(count):
        born[_fork(run)] = time.monotonic()
    while True:
        woken = signal.sigtimedwait(_WAKES, _LOOK_S)
        if woken is not None and woken.si_signo in _STOPS:
            return _stop(born)
        for pid in _ended(born):
            if time.monotonic() - born.pop(pid) < _YOUNG_S:
                print("icekeel: a server process ended as soon as it was started; stopping", file=sys.stderr)
                _stop(born)
                return COULD_NOT
            print(f"icekeel: server process {pid} ended; starting another", file=sys.stderr)
            born[_fork(run)] = time.monotonic()


def _fork(run: Callable[[], int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = COULD_NOT
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKES)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(born: dict[int, float]) -> list[int]:
    return [pid for pid in born if os.waitpid(pid, os.WNOHANG)[0] == pid]


def _stop(born: dict[int, float]) -> int:
    """Tell every process to stop and wait for it; each has a limit of its own for running requests."""
    for pid in born:
        os.kill(pid, signal.SIGTERM)
    for pid in born:
        os.waitpid(pid, 0)
    return 0
