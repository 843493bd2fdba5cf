"""One request and its answer as seen from outside: id, status, duration. Feeds the access log and the metrics."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.metrics import Metrics

EXCHANGE = "icekeel.exchange"
UNMATCHED = "(no route)"

log = logging.getLogger("icekeel.access")

_ACCEPTED_ID = re.compile(rb"^[A-Za-z0-9._:/+=-]{1,128}$")


class Exchange:
    """What is known about one request: `status` is 0 until the answer has begun."""

    __slots__ = ("_send", "id", "status")

    def __init__(self, request_id: str, send: Send) -> None:
        self.id = request_id
        self.status = 0
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"X-Request-Id", self.id.encode("ascii"))]
        await self._send(message)


class Observe:
    """Outermost layer: request id, metrics, access log.

    A client's own `X-Request-Id` is kept when it is short and plain, else an id is made from `id_prefix` (unique to the
    process) and a counter. Every failure of the server (status 500 and above) and every request slower than `slow_s`
    seconds is logged, of the others one in `sample` (0 = none).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        monotonic: Callable[[], float],
        id_prefix: str,
        sample: int,
        slow_s: float,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._monotonic = monotonic
        self._prefix = id_prefix
        self._counter = itertools.count(1)
        self._sample = sample
        self._slow_s = slow_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number = next(self._counter)
        exchange = Exchange(self._id(scope, number), send)
        scope[EXCHANGE] = exchange
        began = self._monotonic()
        try:
            await self._app(scope, receive, exchange.send)
        finally:
            took = self._monotonic() - began
            route = getattr(scope.get("route"), "path", UNMATCHED)
            self._metrics.observe(scope["method"], route, exchange.status, took)
            if exchange.status >= 500 or took >= self._slow_s or (self._sample and number % self._sample == 0):
                self._line(scope, exchange, took)

    def _id(self, scope: Scope, number: int) -> str:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _ACCEPTED_ID.match(value):
                text: str = value.decode("ascii")
                return text
        return f"{self._prefix}-{number:x}"

    def _line(self, scope: Scope, exchange: Exchange, took: float) -> None:
        log.log(
            logging.WARNING if exchange.status >= 500 else logging.INFO,
            "%s %s %d",
            scope["method"],
            scope.get("path", ""),
            exchange.status,
            extra={
                "fields": {
                    "ms": round(took * 1000, 2),
                    "request": exchange.id,
                    "client": (scope.get("client") or ("-",))[0],
                }
            },
        )
