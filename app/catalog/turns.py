"""Turns of the writers that fight over one table: who loads it to commit next is let alone until it has.

A commit that names the snapshot it builds on is lost as soon as another one lands between its load and itself, and a
client that lost backs off ever longer while those that won start over at once: most of the work is thrown away, and
some clients never get through. So where a commit was lost, the loads of that table's writers wait for each other: one
loads, commits, and the next one sees what it made. Readers never wait, nor do commits. A turn is a courtesy, not a
lock: it ends by itself, and whether a commit stands is decided where the pointer is swapped, as always.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from app.errors import CommitFailed

# A client's connection: its host and port.
Peer = tuple[str, int]

# How long after a lost commit, or after somebody waited, the writers of a table take turns.
_PEACE_S: Final = 5.0
# The longest that one load waits. Clients that lost back off for as long anyway.
_WAIT_S: Final = 2.0
# A turn lasts some times what its writer usually needs between load and commit, within these bounds. One that needs
# longer than the upper one takes no turns: all others would wait for it.
_PATIENCE: Final = 4.0
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 0.5
_FIRST_GUESS_S: Final = 0.025
# How much the last time says about a writer's next one.
_WEIGHT: Final = 0.5
# Bounds of memory. Tables beyond the first are fought over as before, writers before the second are forgotten.
_CONTESTS: Final = 1_024
_WRITERS: Final = 1_024


@dataclass(slots=True)
class _Writer:
    loaded_at: float | None = None
    pace_s: float = _FIRST_GUESS_S
    reads: bool = False

    @property
    def turn_s(self) -> float:
        return min(max(_PATIENCE * self.pace_s, _SHORTEST_S), _LONGEST_S)

    def arrived(self, now: float) -> None:
        self.reads = False
        if self.loaded_at is not None:
            self.pace_s += _WEIGHT * (min(now - self.loaded_at, 2 * _LONGEST_S) - self.pace_s)
            self.loaded_at = None


@dataclass(slots=True)
class _Contest:
    until: float
    writers: dict[Peer, _Writer] = field(default_factory=dict)
    waiting: deque[tuple[Peer, asyncio.Future[None]]] = field(default_factory=deque)
    holder: Peer | None = None
    over: asyncio.TimerHandle | None = None

    def enter(self, address: Peer | None) -> None:
        """Count the connection among the writers, as the latest one."""
        if address is not None:
            self.writers[address] = self.writers.pop(address) if address in self.writers else _Writer()
            if len(self.writers) > _WRITERS:
                del self.writers[next(iter(self.writers))]


class Turns:
    """The contests of this process, one per table that was fought over within the last seconds."""

    __slots__ = ("_contests",)

    def __init__(self) -> None:
        self._contests: dict[Hashable, _Contest] = {}

    def __len__(self) -> int:
        return len(self._contests)

    async def take(self, key: Hashable, address: Peer | None) -> None:
        """Wait for the turn of the writer at `address`; at once for everybody else and where nobody fights."""
        contest = self._contests.get(key)
        if contest is None or address is None:
            return
        writer = contest.writers.get(address)
        if writer is None:
            return
        loop = asyncio.get_running_loop()
        if not writer.reads and writer.pace_s <= _LONGEST_S:
            await self._turn(contest, address)
        writer.loaded_at = loop.time()

    async def _turn(self, contest: _Contest, address: Peer) -> None:
        loop = asyncio.get_running_loop()
        if contest.holder is None:
            self._give(contest, address)
        elif contest.holder != address:
            contest.until = loop.time() + _PEACE_S
            turn: asyncio.Future[None] = loop.create_future()
            contest.waiting.append((address, turn))
            try:
                await asyncio.wait([turn], timeout=_WAIT_S)
            except asyncio.CancelledError:
                if turn.done() and contest.holder == address:
                    self._next(contest)
                raise
            finally:
                turn.cancel()
                with suppress(ValueError):
                    contest.waiting.remove((address, turn))

    @contextmanager
    def commit(self, keys: Sequence[Hashable], address: Peer | None) -> Iterator[None]:
        """Around a commit to these tables by `address`: what it comes to decides whose turn is next."""
        self._arrived(keys, address)
        try:
            yield
        except CommitFailed:
            self._lost(keys, address)
            raise
        except BaseException:
            for contest, _ in self._known(keys, address):
                self._leave(contest, address)
            raise
        self._landed(keys, address)

    def _arrived(self, keys: Sequence[Hashable], address: Peer | None) -> None:
        for contest, writer in self._known(keys, address):
            writer.arrived(asyncio.get_running_loop().time())
            if contest.holder == address and contest.over is not None:
                # It has used its turn, which now lasts until the commit is through.
                contest.over.cancel()

    def _landed(self, keys: Sequence[Hashable], address: Peer | None) -> None:
        """Whoever loaded these tables before has lost by that, so the turn is over, whosever it was."""
        for key in keys:
            contest = self._contests.get(key)
            if contest is not None:
                contest.enter(address)
                self._next(contest)

    def _lost(self, keys: Sequence[Hashable], address: Peer | None) -> None:
        for key in keys:
            contest = self._contests.get(key) or self._begin(key)
            if contest is not None:
                contest.until = asyncio.get_running_loop().time() + _PEACE_S
                contest.enter(address)
                self._leave(contest, address)

    def _leave(self, contest: _Contest, address: Peer | None) -> None:
        if address is not None and contest.holder == address:
            self._next(contest)

    def _known(self, keys: Sequence[Hashable], address: Peer | None) -> Iterator[tuple[_Contest, _Writer]]:
        if address is not None:
            for key in keys:
                contest = self._contests.get(key)
                if contest is not None and (writer := contest.writers.get(address)) is not None:
                    yield contest, writer

    def _begin(self, key: Hashable) -> _Contest | None:
        if len(self._contests) >= _CONTESTS:
            return None
        loop = asyncio.get_running_loop()
        contest = self._contests[key] = _Contest(loop.time() + _PEACE_S)
        loop.call_later(_PEACE_S, self._forget, key, contest)
        return contest

    def _forget(self, key: Hashable, contest: _Contest) -> None:
        loop = asyncio.get_running_loop()
        left = contest.until - loop.time()
        if left > 0:
            loop.call_later(left, self._forget, key, contest)
        else:
            del self._contests[key]
            while contest.holder is not None:
                self._next(contest)

    def _give(self, contest: _Contest, address: Peer) -> None:
        writer = contest.writers.get(address) or _Writer()
        contest.holder = address
        contest.over = asyncio.get_running_loop().call_later(writer.turn_s, self._unused, contest, address)

    def _unused(self, contest: _Contest, address: Peer) -> None:
        """The turn went by without a commit: for all that is known its writer only reads, until it commits again."""
        writer = contest.writers.get(address)
        if writer is not None:
            writer.reads = True
        self._next(contest)

    def _next(self, contest: _Contest) -> None:
        if contest.over is not None:
            contest.over.cancel()
        contest.holder = contest.over = None
        while contest.waiting:
            address, turn = contest.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._give(contest, address)
                return
