"""Work that must not stop half-way when the request that began it is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class Tasks:
    """Running work of this process: shielded from cancelled requests, awaited at shutdown."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`; a cancelled caller leaves, but the work goes on to its end."""
        task = asyncio.ensure_future(work)
        self._keep(task)
        try:
            return await asyncio.shield(task)
        finally:
            # A failure knows this frame, and the task knows the failure: a cycle that would keep all that was read.
            del task

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside the request. Its failure is logged and reaches nobody."""
        self._keep(asyncio.create_task(self._quietly(work, name), name=name))

    async def drain(self) -> None:
        """Wait until everything that runs has ended."""
        while self._running:
            await asyncio.wait(set(self._running))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._running.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # Asking for the exception keeps asyncio from reporting one whose caller has left.
        if not task.cancelled():
            task.exception()

    async def _quietly(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception:
            log.exception("%s failed", name)
