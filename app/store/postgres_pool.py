"""A small pool of connections to PostgreSQL.

asyncpg's own costs as much CPU for each loan as a statement does (a proxy, two timeouts, a shielded task), for features
that have no use here: no statement leaves session state behind, so there is nothing to reset.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types

IDLE_S: Final = 300.0
"""A connection idle for longer is not used any more: what lies in between may have forgotten it without a word."""

_Connection = Any  # asyncpg ships no types


class Pool:
    """At most `size` connections, made by `connect` when they are needed; the last used is lent first.

    `acquire` waits `wait_s` at most for one to come free. A pool belongs to one event loop.
    """

    def __init__(self, connect: Callable[[], Awaitable[_Connection]], size: int, *, wait_s: float) -> None:
        self._connect = connect
        self._room = size
        self._wait_s = wait_s
        self._free: deque[tuple[float, _Connection]] = deque()
        self._lent: set[_Connection] = set()
        # Each in it is given a connection, or None: the room to make one.
        self._line: deque[asyncio.Future[_Connection | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._returned: asyncio.Event | None = None

    async def acquire(self) -> _Connection:
        """A connection of one's own until `release`.

        What `connect` raises; TimeoutError when none comes free in time; InterfaceError once the pool is closed.
        """
        self._check_open()
        connection = self._take()
        if connection is None:
            if self._room:
                self._room -= 1
            else:
                connection = await self._wait()
        if connection is None:
            connection = await self._make()
        self._lent.add(connection)
        return connection

    def release(self, connection: _Connection) -> None:
        """Give a connection back. One that is closed makes room for another."""
        self._lent.discard(connection)
        if self._returned is not None or connection.is_closed():
            self._drop(connection)
        elif not self._call(connection):
            now = self._loop.time()
            self._free.append((now, connection))
            while now - self._free[0][0] > IDLE_S:
                self._drop(self._free.popleft()[1])
        if self._returned is not None and not self._lent:
            self._returned.set()

    def doubt(self, connection: _Connection) -> None:
        """A lent connection brought no answer in time: cut it, and every idle one.

        When the way to the server was lost without a word they are all dead, and each would cost its next user the
        whole wait again; making new ones costs milliseconds. Those that are lent are their users' to judge.
        """
        connection.terminate()
        idle = [each for _, each in self._free]
        self._free.clear()
        for each in idle:
            self._drop(each)

    async def close(self) -> None:
        """Lend nothing more, wait for what is lent, and close everything in good order."""
        self._returned = self._returned or asyncio.Event()
        while self._call(None):
            pass
        free = [connection for _, connection in self._free]
        self._free.clear()
        await asyncio.gather(*(connection.close() for connection in free), return_exceptions=True)
        if self._lent:
            await self._returned.wait()

    def terminate(self) -> None:
        """Cut every connection now."""
        for connection in [*self._lent, *(connection for _, connection in self._free)]:
            connection.terminate()

    def _check_open(self) -> None:
        if self._returned is not None:
            raise asyncpg.InterfaceError("the pool is closed")

    def _take(self) -> _Connection | None:
        while self._free:
            since, connection = self._free.pop()
            if not connection.is_closed() and self._loop.time() - since <= IDLE_S:
                return connection
            self._drop(connection)
        return None

    async def _wait(self) -> _Connection | None:
        turn: asyncio.Future[_Connection | None] = self._loop.create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout(self._wait_s):
                connection = await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                # It came in the moment of giving up.
                given = turn.result()
                if given is None:
                    self._make_room()
                else:
                    self.release(given)
            raise
        if self._returned is not None:
            if connection is not None:
                self.release(connection)
            self._check_open()
        return connection

    async def _make(self) -> _Connection:
        """Call with room for one."""
        try:
            return await self._connect()
        except BaseException:
            self._make_room()
            raise

    def _drop(self, connection: _Connection) -> None:
        connection.terminate()
        self._make_room()

    def _make_room(self) -> None:
        if not self._call(None):
            self._room += 1

    def _call(self, given: _Connection | None) -> bool:
        """Give to whoever waits longest; False when nobody waits."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(given)
                return True
        return False
