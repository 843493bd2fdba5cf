"""The application: our own layers around Starlette's router, and a start that fails in one line."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from starlette.datastructures import State
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.route import LeanRoute
from app.errors import IcekeelError

Layers = Callable[[ASGIApp], ASGIApp]
Lifetime = Callable[[], AbstractAsyncContextManager[None]]


class Application:
    """`routes` in the order in which they are tried, `layers` around them; endpoints find `state` by their request.

    Every failure is rendered by the envelope layer, so there are no exception handlers, and no middlewares beside ours.
    """

    def __init__(self, routes: Sequence[LeanRoute], *, layers: Layers, lifetime: Lifetime) -> None:
        self.state = State()
        self.routes = tuple(routes)
        self._lifetime = lifetime
        self._app = layers(Router(routes, redirect_slashes=False))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        scope["app"] = self
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            # The server cuts off what outlives its graceful stop. It has been told by now, as far as it can be, and the
            # connection ends; raised on, it would be a traceback in the log.
            return

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan protocol. A failure that is ours is told by its message, any other by its traceback."""
        await receive()
        started = False
        try:
            async with self._lifetime():
                await send({"type": "lifespan.startup.complete"})
                started = True
                await receive()
        except asyncio.CancelledError:
            # A stop that was told twice cuts the lifetime off. It has ended as well as it could, and nobody listens.
            return
        except Exception as error:
            told = error.message if isinstance(error, IcekeelError) else traceback.format_exc()
            phase = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{phase}.failed", "message": told})
        else:
            await send({"type": "lifespan.shutdown.complete"})
