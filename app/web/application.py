"""The FastAPI application with our own layers around its router, and a start that fails in one line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import IcekeelError

Layers = Callable[[ASGIApp], ASGIApp]
Lifetime = Callable[[], AbstractAsyncContextManager[None]]


class Application(FastAPI):
    """`layers` are put around the router in place of FastAPI's own middlewares, which nothing here needs.

    Every endpoint is a lean route and every failure is rendered by the envelope layer, so the exit stacks and
    exception handlers that FastAPI stacks up per request would only cost time.
    """

    def __init__(self, *, layers: Layers, lifetime: Lifetime, **options: Any) -> None:
        super().__init__(openapi_url=None, redirect_slashes=False, **options)
        self._layers = layers
        self._lifetime = lifetime

    def build_middleware_stack(self) -> ASGIApp:
        return self._layers(self.router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        scope["app"] = self
        await self.middleware_stack(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan protocol. A failure that is ours is told by its message, any other by its traceback."""
        await receive()
        started = False
        try:
            async with self._lifetime():
                await send({"type": "lifespan.startup.complete"})
                started = True
                await receive()
        except Exception as error:
            told = error.message if isinstance(error, IcekeelError) else traceback.format_exc()
            phase = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{phase}.failed", "message": told})
        else:
            await send({"type": "lifespan.shutdown.complete"})
