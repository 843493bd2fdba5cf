"""Several server processes on one address.

uvicorn has a supervisor too (0.54), and it fails two tests of ours that a user would feel. A second stop signal is put
into a queue that nobody reads while the workers drain, so an operator in a hurry waits for the whole drain
(`test_a_second_signal_does_not_wait`). When the supervisor itself is killed its workers stay, keep the port and serve
on with nobody to stop them (`test_a_worker_that_dies_is_replaced`).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence

from app.cli.codes import COULD_NOT

_STOPS = {signal.SIGTERM, signal.SIGINT}
_WAKES = {*_STOPS, signal.SIGCHLD}
_YOUNG_S = 2.0
_KILLED_EARLY = 2


def supervise(
    listeners: Sequence[socket.socket],
    run: Callable[[socket.socket], int],
    ended: Callable[[int], None] = lambda pid: None,
) -> int:
    """Keep a forked process running `run(listener)` for each listener until SIGTERM or SIGINT, which they get too; the
    exit code. One socket may be in the list several times. `ended` is told of each process that is gone.

    A process that ends is replaced. One that ends by itself within two seconds of its start will do so again: then all
    stop. One that was killed so early says nothing of the kind, unless that comes three times in a row. A stop that is
    told again is passed on again, so that it ends the draining of each. When the supervisor itself is killed, the
    processes notice and stop in good order. It holds every listener open, so that what waits in the queue of a process
    that ended is served by the next one.
    """
    # Blocked signals wait for sigwait, so none is lost between two looks.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKES)
    lifeline = os.pipe()
    born: dict[int, tuple[float, int]] = {}
    killed_early = dict.fromkeys(range(len(listeners)), 0)

    def start(place: int) -> None:
        born[_fork(run, listeners, place, lifeline)] = time.monotonic(), place

    for place in range(len(listeners)):
        start(place)
    while True:
        if signal.sigwait(_WAKES) in _STOPS:
            return _stop(born, listeners)
        # All of them first: `_stop` must not tell one that is gone.
        gone = [(pid, killed, *born.pop(pid)) for pid, killed in _ended(born)]
        for pid, killed, since, place in gone:
            ended(pid)
            young = time.monotonic() - since < _YOUNG_S
            killed_early[place] = killed_early[place] + 1 if young and killed else 0
            if (young and not killed) or killed_early[place] > _KILLED_EARLY:
                print("icekeel: a server process ended as soon as it was started; stopping", file=sys.stderr)
                _stop(born, listeners)
                return COULD_NOT
            print(f"icekeel: server process {pid} ended; starting another", file=sys.stderr)
            start(place)


def _fork(
    run: Callable[[socket.socket], int], listeners: Sequence[socket.socket], place: int, lifeline: tuple[int, int]
) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = COULD_NOT
    try:
        os.close(lifeline[1])
        own = listeners[place]
        for listener in listeners:
            if listener is not own:
                listener.close()
        threading.Thread(target=_follow, args=(lifeline[0],), daemon=True, name="lifeline").start()
        # A stop waits until the server hears it (`stopping.LeavingServer`), or it would be lost on the way there.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKES - _STOPS)
        code = run(own)
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


def _ended(born: Iterable[int]) -> list[tuple[int, bool]]:
    """Processes that have ended, and whether a signal ended them."""
    looked = [os.waitpid(pid, os.WNOHANG) for pid in born]
    return [(pid, os.WIFSIGNALED(status)) for pid, status in looked if pid]


def _stop(born: Iterable[int], listeners: Sequence[socket.socket]) -> int:
    """Tell every process to stop and wait for it; each has a limit of its own for running requests.

    From here on a listener is closed when its process closes it: nobody shall wait in a queue that is not served.
    """
    for listener in listeners:
        listener.close()
    running = set(born)
    told = True
    while True:
        if told:
            for pid in running:
                os.kill(pid, signal.SIGTERM)
        running -= {pid for pid, _ in _ended(running)}
        if not running:
            return 0
        told = signal.sigwait(_WAKES) in _STOPS
