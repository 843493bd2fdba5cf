"""What goes on beside the requests: purge jobs, usage on its way to the store, expired keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from app.catalog import purges
from app.catalog.context import Context
from app.errors import Unavailable

log = logging.getLogger(__name__)

PURGE_EVERY_S = 30.0
FLUSH_EVERY_S = 5.0
EXPIRE_EVERY_S = 300.0
_DRAIN_S = 10.0
_FLUSH_S = 5.0


class Background:
    """The periodic work of one process. Several processes may run it on one store: every step is idempotent."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._purging(), name="purges"),
            asyncio.create_task(_every(FLUSH_EVERY_S, self.flush), name="usage"),
            asyncio.create_task(_every(EXPIRE_EVERY_S, self._expire_keys), name="expired keys"),
        ]

    async def stop(self) -> None:
        """End the periodic work, let running commits finish, and hand over what was observed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ctx.caches.tasks.drain(), _DRAIN_S)
        # Numbers that a database does not take in time are lost, which is better than to be killed over them.
        with suppress(TimeoutError):
            await asyncio.wait_for(_attempt(self.flush), _FLUSH_S)

    async def flush(self) -> int:
        return await self._ctx.caches.usage.flush(self._ctx.store)

    async def _expire_keys(self) -> int:
        return await self._ctx.store.expire_keys(self._ctx.clock.now_ms())

    async def _purging(self) -> None:
        """At once after a start (jobs of a crashed process), when a drop of this process asks, and now and then."""
        wanted = self._ctx.caches.purge_wanted
        while True:
            wanted.clear()
            await _attempt(lambda: purges.work(self._ctx))
            with suppress(TimeoutError):
                await asyncio.wait_for(wanted.wait(), PURGE_EVERY_S)


async def _every(seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await _attempt(work)


async def _attempt(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except Unavailable as away:
        log.warning("background work has to wait: %s", away.message)
    except Exception:
        log.exception("background work failed and will be tried again")
