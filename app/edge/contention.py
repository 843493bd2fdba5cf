"""Turns of the writers that fight over one table: who loads it to commit next is let alone until it has.

A commit that names the snapshot it builds on is lost as soon as another one lands between its load and itself, and a
client that lost backs off ever longer while those that won start over at once: most of the work is thrown away, and
some clients never get through. So where a commit was lost, the loads of that table's writers wait for each other: one
loads, commits, and the next one sees what it made. Connections that never committed there do not wait, nor do commits.
A turn is a courtesy, not a lock: it ends by itself, and whether a commit stands is decided where the pointer is
swapped, as always.

Turns cost what they last. So they are for loads that a commit will follow, one connection has one turn at a time, and
the next one is whose waiting is longest for what its turn will take: a slow writer does not hold up a dozen quick ones
each time around.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from starlette.requests import Request

from app.errors import CommitFailed

# Headers that say: this connection is a proxy's.
_OF_PROXIES: Final = frozenset({b"x-forwarded-for", b"x-real-ip", b"forwarded", b"via"})

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
# A connection on which more than three loads come for each commit mostly reads: only when a commit of its was lost is
# its next load sure to be a writer's.
_HABIT: Final = 0.55
# Who has waited that long is next, however slow: soon it would go on without a turn, and lose.
_OVERDUE_S: Final = 1.5
# Bounds of memory. Tables beyond the first are fought over as before, writers before the second are forgotten.
_CONTESTS: Final = 1_024
_WRITERS: Final = 1_024


@dataclass(slots=True)
class _Writer:
    """`habit` is near 1 when commits follow its loads, near 0 when they do not; both are averages of late."""

    loaded_at: float | None = None
    measured_s: float | None = None
    habit: float = 1.0

    @property
    def pace_s(self) -> float:
        return _FIRST_GUESS_S if self.measured_s is None else self.measured_s

    @property
    def turn_s(self) -> float:
        return min(max(_PATIENCE * self.pace_s, _SHORTEST_S), _LONGEST_S)

    @property
    def takes_turns(self) -> bool:
        return self.pace_s <= _LONGEST_S and self.habit >= _HABIT

    def loads(self) -> None:
        if self.loaded_at is not None:
            self.habit *= 1 - _WEIGHT
            self.loaded_at = None

    def arrived(self, now: float) -> None:
        if self.loaded_at is not None:
            self.habit += _WEIGHT * (1 - self.habit)
            took = min(now - self.loaded_at, 2 * _LONGEST_S)
            self.measured_s = took if self.measured_s is None else self.pace_s + _WEIGHT * (took - self.pace_s)
            self.loaded_at = None


class _Waiting(NamedTuple):
    peer: Peer
    turn: asyncio.Future[None]
    since: float
    pace_s: float

    def urgency(self, now: float) -> tuple[bool, float]:
        """How many times its own turn it has waited; above all that, if it is overdue, how long."""
        waited = now - self.since
        return (True, waited) if waited >= _OVERDUE_S else (False, waited / max(self.pace_s, _SHORTEST_S))


@dataclass(slots=True)
class _Contest:
    until: float
    writers: dict[Peer, _Writer] = field(default_factory=dict)
    waiting: list[_Waiting] = field(default_factory=list)
    holder: Peer | None = None
    over: asyncio.TimerHandle | None = None

    def enter(self, peer: Peer | None) -> None:
        """Count the connection among the writers, as the latest one."""
        if peer is not None:
            self.writers[peer] = self.writers.pop(peer) if peer in self.writers else _Writer()
            if len(self.writers) > _WRITERS:
                del self.writers[next(iter(self.writers))]


class Contention:
    """The contests of this process, one per table that was fought over within the last seconds."""

    __slots__ = ("_contests", "_turns")

    def __init__(self) -> None:
        self._contests: dict[Hashable, _Contest] = {}
        self._turns: dict[Peer, _Contest] = {}

    def __len__(self) -> int:
        return len(self._contests)

    async def take(self, key: Hashable, peer: Peer | None) -> None:
        """Wait for the turn of the writer of `peer`; at once for everybody else and where nobody fights."""
        contest = self._contests.get(key)
        if contest is None or peer is None:
            return
        writer = contest.writers.get(peer)
        if writer is None:
            return
        writer.loads()
        # With a turn elsewhere it is about to commit to several tables: waiting here, it would hold up all those there.
        if writer.takes_turns and peer not in self._turns:
            await self._turn(contest, peer, writer.pace_s)
        writer.loaded_at = asyncio.get_running_loop().time()

    async def _turn(self, contest: _Contest, peer: Peer, pace_s: float) -> None:
        loop = asyncio.get_running_loop()
        if contest.holder is None:
            self._give(contest, peer)
        else:
            now = loop.time()
            contest.until = now + _PEACE_S
            turn: asyncio.Future[None] = loop.create_future()
            contest.waiting.append(_Waiting(peer, turn, now, pace_s))
            try:
                await asyncio.wait([turn], timeout=_WAIT_S)
            except asyncio.CancelledError:
                if turn.done() and contest.holder == peer:
                    self._next(contest)
                raise
            finally:
                if not turn.done():
                    contest.waiting = [one for one in contest.waiting if one.turn is not turn]
                    turn.cancel()

    @contextmanager
    def commit(self, keys: Sequence[Hashable], peer: Peer | None) -> Iterator[None]:
        """Around a commit to these tables by `peer`: what it comes to decides whose turn is next."""
        self._arrived(keys, peer)
        try:
            yield
        except CommitFailed:
            self._lost(keys, peer)
            raise
        except BaseException:
            for contest, _ in self._known(keys, peer):
                self._leave(contest, peer)
            raise
        self._landed(keys, peer)

    def _arrived(self, keys: Sequence[Hashable], peer: Peer | None) -> None:
        for contest, writer in self._known(keys, peer):
            writer.arrived(asyncio.get_running_loop().time())
            if contest.holder == peer and contest.over is not None:
                # It has used its turn, which now lasts until the commit is through.
                contest.over.cancel()

    def _landed(self, keys: Sequence[Hashable], peer: Peer | None) -> None:
        """Whoever loaded these tables before has lost by that, so the turn is over, whosever it was."""
        for key in keys:
            contest = self._contests.get(key)
            if contest is not None:
                contest.enter(peer)
                if contest.holder is not None and (holder := contest.writers.get(contest.holder)) is not None:
                    # Its load came to nothing by no fault of its own; or this is its commit, on another connection.
                    holder.loaded_at = None
                self._next(contest)

    def _lost(self, keys: Sequence[Hashable], peer: Peer | None) -> None:
        for key in keys:
            contest = self._contests.get(key) or self._begin(key)
            if contest is not None:
                contest.until = asyncio.get_running_loop().time() + _PEACE_S
                contest.enter(peer)
                if peer is not None:
                    contest.writers[peer].habit = 1.0
                self._leave(contest, peer)

    def _leave(self, contest: _Contest, peer: Peer | None) -> None:
        if peer is not None and contest.holder == peer:
            self._next(contest)

    def _known(self, keys: Sequence[Hashable], peer: Peer | None) -> Iterator[tuple[_Contest, _Writer]]:
        if peer is not None:
            for key in keys:
                contest = self._contests.get(key)
                if contest is not None and (writer := contest.writers.get(peer)) is not None:
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

    def _give(self, contest: _Contest, peer: Peer) -> None:
        writer = contest.writers.get(peer) or _Writer()
        contest.holder = peer
        self._turns[peer] = contest
        contest.over = asyncio.get_running_loop().call_later(writer.turn_s, self._next, contest)

    def _next(self, contest: _Contest) -> None:
        if contest.over is not None:
            contest.over.cancel()
        if contest.holder is not None and self._turns.get(contest.holder) is contest:
            del self._turns[contest.holder]
        contest.holder = contest.over = None
        contest.waiting = [one for one in contest.waiting if not one.turn.done()]
        if contest.waiting:
            now = asyncio.get_running_loop().time()
            chosen = max(contest.waiting, key=lambda one: one.urgency(now))
            contest.waiting.remove(chosen)
            chosen.turn.set_result(None)
            self._give(contest, chosen.peer)


def peer_of(request: Request) -> Peer | None:
    """The connection, None where it is a proxy's: on that come anybody's requests."""
    if any(name in _OF_PROXIES for name, _ in request.scope["headers"]):
        return None
    peer: Peer | None = request.scope.get("client")
    return peer


async def load_turn(request: Request, *table: Hashable) -> None:
    """Wait for the turn of a load of `table` (warehouse, levels, name), where its writers take turns."""
    contention: Contention = request.app.state.contention
    if contention:
        await contention.take(table, peer_of(request))


def commit_turn(request: Request, tables: Sequence[Hashable]) -> AbstractContextManager[None]:
    """Around a commit to `tables`."""
    contention: Contention = request.app.state.contention
    return contention.commit(tables, peer_of(request))
