"""One request and its answer as seen from outside: id, status, duration. Feeds the access log and the metrics."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.edge.metrics import Metrics

EXCHANGE = "icekeel.exchange"
STATUS = "icekeel.status"
REQUEST_ID = b"X-Request-Id"
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
            message["headers"] = [*message.get("headers", ()), (REQUEST_ID, self.id.encode("ascii"))]
        await self._send(message)


class Observer:
    """What is told of finished requests: metrics always, a line of the access log for some.

    A client's own `X-Request-Id` is kept when it is short and plain, else an id is made from `id_prefix` (unique to the
    process) and a counter. Every failure of the server (status 500 and above) and every request slower than `slow_s`
    seconds is logged, of the others one in `sample` (0 = none).
    """

    def __init__(
        self, *, metrics: Metrics, monotonic: Callable[[], float], id_prefix: str, sample: int, slow_s: float
    ) -> None:
        self.now = monotonic
        self._metrics = metrics
        self._prefix = id_prefix
        self._counter = itertools.count(1)
        self._finished = itertools.count(1)
        self._sample = sample
        self._slow_s = slow_s

    def name(self, scope: Scope) -> str:
        """The id of a request."""
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _ACCEPTED_ID.match(value):
                text: str = value.decode("ascii")
                return text
        return self.next_name()

    def next_name(self) -> str:
        """An id for a request that brings none."""
        return f"{self._prefix}-{next(self._counter):x}"

    def finished(self, scope: Scope, request_id: str, status: int, began: float) -> None:
        """The last byte of the answer is out; `began` is what `now` said when the request came in."""
        took = self.now() - began
        self._metrics.observe(scope["method"], getattr(scope.get("route"), "path", UNMATCHED), status, took)
        number = next(self._finished)
        if status >= 500 or took >= self._slow_s or (self._sample and number % self._sample == 0):
            _line(scope, request_id, status, took)


class Observe:
    """The layer around everything that answers: request id, metrics, access log."""

    def __init__(self, app: ASGIApp, observer: Observer) -> None:
        self._app = app
        self._observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        observer = self._observer
        exchange = Exchange(observer.name(scope), send)
        scope[EXCHANGE] = exchange
        began = observer.now()
        try:
            await self._app(scope, receive, exchange.send)
        finally:
            # It knows how to send, which knows the scope: left in there, every request would be a cycle of references.
            del scope[EXCHANGE]
            scope[STATUS] = exchange.status
            observer.finished(scope, exchange.id, exchange.status, began)


def _line(scope: Scope, request_id: str, status: int, took: float) -> None:
    log.log(
        logging.WARNING if status >= 500 else logging.INFO,
        "%s %s %d",
        scope["method"],
        scope.get("path", ""),
        status,
        extra={
            "fields": {
                "ms": round(took * 1000, 2),
                "request": request_id,
                "client": (scope.get("client") or ("-",))[0],
            }
        },
    )
