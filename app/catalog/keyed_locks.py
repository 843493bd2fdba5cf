"""Locks of this process, one per key: commits to one table wait for each other instead of fighting over the swap.
Nothing here knows what a key stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from app.errors import TooManyRequests


@dataclass(slots=True)
class _KeyedLock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class KeyedLocks:
    """Keyed locks with a bounded number of waiters. An idle key costs nothing."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[Hashable, _KeyedLock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def hold(self, keys: Iterable[tuple[object, ...]], longest: int) -> AsyncIterator[None]:
        """Hold every key at once; TooManyRequests when `longest` others already hold or await one of them.

        Keys are taken in sorted order, so that two holders of several keys never wait for each other.
        """
        wanted = sorted(set(keys), key=repr)
        if any(entry.users > longest for key in wanted if (entry := self._locks.get(key)) is not None):
            raise TooManyRequests("Too many commits wait for this table; nothing was done. Try again.")
        async with AsyncExitStack() as held:
            for key in wanted:
                await held.enter_async_context(self._hold_one(key))
            yield

    @asynccontextmanager
    async def _hold_one(self, key: tuple[object, ...]) -> AsyncIterator[None]:
        entry = self._locks.setdefault(key, _KeyedLock())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._locks[key]
