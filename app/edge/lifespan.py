"""What a start or a stop that fails says: one line when the failure is ours, a traceback when it is not."""

from __future__ import annotations

import asyncio
import sys

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import IcekeelError

_FAILED = frozenset({"lifespan.startup.failed", "lifespan.shutdown.failed"})


class OneLine:
    """The outermost layer: tells failures of the lifespan by their message, and ends what the server cuts off.

    The server cancels what outlives its graceful stop. The client has been told by then, as far as it can be, and the
    connection ends; raised on, the cancellation would be a traceback in the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = False

        async def tell(message: Message) -> None:
            nonlocal told
            if message["type"] in _FAILED:
                told = True
                error = sys.exception()
                if isinstance(error, asyncio.CancelledError):
                    # A stop that was told twice cut the lifetime off. It has ended as well as it could.
                    return
                if isinstance(error, IcekeelError):
                    message["message"] = error.message
            await send(message)

        try:
            await self._app(scope, receive, tell if scope["type"] == "lifespan" else send)
        except asyncio.CancelledError:
            return
        except Exception:
            if not told:
                raise
