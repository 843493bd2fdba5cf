"""Queues of this process, one per thing: commits to one table line up instead of fighting over the swap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from app.errors import TooManyRequests


@dataclass(slots=True)
class _Line:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    members: int = 0


class KeyedLocks:
    """Keyed locks with a bounded number of waiters. An idle key costs nothing."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @asynccontextmanager
    async def stand(self, keys: Iterable[tuple[object, ...]], longest: int) -> AsyncIterator[None]:
        """Hold every key at once; TooManyRequests when `longest` others already stand in one of the lines.

        Keys are taken in sorted order, so that two holders of several keys never wait for each other.
        """
        wanted = sorted(set(keys), key=repr)
        if any(line.members > longest for key in wanted if (line := self._lines.get(key)) is not None):
            raise TooManyRequests("Too many commits wait for this table; nothing was done. Try again.")
        async with AsyncExitStack() as held:
            for key in wanted:
                await held.enter_async_context(self._hold(key))
            yield

    @asynccontextmanager
    async def _hold(self, key: tuple[object, ...]) -> AsyncIterator[None]:
        line = self._lines.setdefault(key, _Line())
        line.members += 1
        try:
            async with line.lock:
                yield
        finally:
            line.members -= 1
            if line.members == 0:
                del self._lines[key]
