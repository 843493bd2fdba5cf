"""Every failure, from whatever layer below, becomes the answer that the error table says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.access_log import EXCHANGE, Exchange
from app.edge.answer import Answer

log = logging.getLogger("icekeel")

Render = Callable[[BaseException, Scope], Answer]


class Envelope:
    """Catches what the layers below raise and sends `render(error, scope)`; without a body for HEAD.

    Once an answer has begun nothing can be put right: the error is raised on, and the server closes the connection,
    which a client reads as a broken answer and not as a complete one.
    """

    def __init__(self, app: ASGIApp, *, render: Render) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange: Exchange = scope[EXCHANGE]
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if exchange.status:
                raise
            try:
                await self._answer(error, exchange, scope, receive, send)
            finally:
                let_go(error)
        except asyncio.CancelledError as error:
            # The server cancels what outlives the graceful stop. The client must hear what can be known.
            if not exchange.status:
                await self._answer(error, exchange, scope, receive, send)
            raise

    async def _answer(
        self, error: BaseException, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = self._render(error, scope)
        if isinstance(error, asyncio.CancelledError):
            log.warning("request %s was cut off: the server stops", exchange.id)
        elif answer.status_code == 500:
            log.error("request %s failed: %r", exchange.id, error, exc_info=error)
        if scope["method"] == "HEAD":
            answer = answer.without_body()
        await answer(scope, receive, send)


def let_go(error: BaseException) -> None:
    """Part a failure that has been told from the frames it came through.

    A frame that knows the failure, as many do, is a cycle with it: all that was read for the request, whole documents
    among it, would stay until the next collection, which is rare.
    """
    told: BaseException | None = error
    while told is not None and told.__traceback__ is not None:
        told.__traceback__ = None
        told = told.__cause__ or told.__context__
