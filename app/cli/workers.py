"""Several server processes on one listening socket."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

COULD_NOT = 2

_STOPS = {signal.SIGTERM, signal.SIGINT}
_WAKES = {*_STOPS, signal.SIGCHLD}
_YOUNG_S = 2.0


def supervise(count: int, run: Callable[[], int]) -> int:
    """Keep `count` forked processes running `run()` until SIGTERM or SIGINT, which they get too; the exit code.

    A process that ends by itself is replaced. One that ends within two seconds of its start will do so again: then
    all stop. When the supervisor itself is killed, the processes notice and stop in good order.
    """
    # Blocked signals wait for sigwait, so none is lost between two looks.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKES)
    lifeline = os.pipe()
    born: dict[int, float] = {}
    for _ in range(count):
        born[_fork(run, lifeline)] = time.monotonic()
    while True:
        if signal.sigwait(_WAKES) in _STOPS:
            return _stop(born)
        for pid in _ended(born):
            if time.monotonic() - born.pop(pid) < _YOUNG_S:
                print("icekeel: a server process ended as soon as it was started; stopping", file=sys.stderr)
                _stop(born)
                return COULD_NOT
            print(f"icekeel: server process {pid} ended; starting another", file=sys.stderr)
            born[_fork(run, lifeline)] = time.monotonic()


def _fork(run: Callable[[], int], lifeline: tuple[int, int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = COULD_NOT
    try:
        os.close(lifeline[1])
        threading.Thread(target=_follow, args=(lifeline[0],), daemon=True, name="lifeline").start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKES)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _follow(lifeline: int) -> None:
    """Stop this process when the other end of the pipe is gone, which only the supervisor holds."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _ended(born: dict[int, float]) -> list[int]:
    return [pid for pid in born if os.waitpid(pid, os.WNOHANG)[0] == pid]


def _stop(born: dict[int, float]) -> int:
    """Tell every process to stop and wait for it; each has a limit of its own for running requests."""
    for pid in born:
        os.kill(pid, signal.SIGTERM)
    for pid in born:
        os.waitpid(pid, 0)
    return 0
