"""Requests in words that were heard before: what they mean is not worked out again.

A client of a catalog sends the same request head over and over: one path, one set of headers, one token. Splitting the
path, checking who asks, matching the route and reading parameters are functions of that head alone, and together they
cost more than the answer. So an endpoint that only reads may leave a `repeat` in the scope: how to answer the very same
head once more. It holds what was understood, never what was found: it asks the store each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.catalog.contention import Peer
from app.edge.access_log import REQUEST_ID, STATUS, Observer
from app.edge.answer import Answer
from app.edge.envelope import Render, let_go
from app.errors import Unavailable

Repeat = Callable[[Peer | None], Awaitable[Answer]]

REPEAT: Final = "icekeel.repeat"

_READS: Final = frozenset({"GET", "HEAD"})
# With one of these the next request is no repetition: a body follows, or the head carries an id of its own.
_UNLIKE: Final = frozenset(
    {b"content-length", b"transfer-encoding", b"expect", b"x-request-id", b"traceparent", b"tracestate"}
)
# Longer heads are rare, and remembering them would let a stranger fill the memory.
_HEAD_BYTES: Final = 4 << 10


class _Known(NamedTuple):
    repeat: Repeat
    route: object
    path: str


async def repeated(request: Request, repeat: Repeat) -> Answer:
    """The answer of `repeat`, which answers this request again should it come in the same words."""
    request.scope[REPEAT] = repeat
    return await repeat(request.scope.get("client"))


class Recall:
    """Answers known heads by their `repeat`, and passes all others on. At most `limit` heads, the latest used ones.

    Only heads whose request was answered well, whole and without a body are kept. A head holds its token and its Host:
    whoever sends another one is checked by the layers below. They also answer when a `repeat` fails: it has changed
    nothing, and what went wrong goes wrong there again, where it is told in full. Only that a store
    is away, or that the server stops, is told at once.
    """

    def __init__(self, app: ASGIApp, observer: Observer, render: Render, *, limit: int = 2_048) -> None:
        self._app = app
        self._render = render
        self._observer = observer
        self._limit = limit
        self._known: OrderedDict[object, _Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _READS:
            await self._app(scope, receive, send)
            return
        observer = self._observer
        began = observer.now()
        key = (scope["method"], scope.get("raw_path"), scope["query_string"], *scope["headers"])
        known = self._known.get(key)
        if known is None:
            await self._app(scope, receive, send)
            self._remember(key, scope)
            return
        # Now, not after the answer: by then others may have pushed it out.
        self._known.move_to_end(key)
        cut: asyncio.CancelledError | None = None
        try:
            answer = await known.repeat(scope.get("client"))
        except asyncio.CancelledError as error:
            # The server stops and has waited long enough: the client is told so, as below.
            cut, answer = error, self._told(error, scope)
        except Unavailable as error:
            # Asked below once more, it would only be waited for as long again.
            answer = self._told(error, scope)
            let_go(error)
        except Exception as error:
            let_go(error)
            await self._app(scope, receive, send)
            return
        request_id = observer.next_name()
        scope["route"] = known.route
        scope["path"] = known.path
        try:
            await answer.send_to(send, (REQUEST_ID, request_id.encode("ascii")))
        finally:
            observer.finished(scope, request_id, answer.status_code, began)
        if cut is not None:
            raise cut

    def _told(self, error: BaseException, scope: Scope) -> Answer:
        answer = self._render(error, scope)
        return answer.without_body() if scope["method"] == "HEAD" else answer

    def _remember(self, key: object, scope: Scope) -> None:
        repeat = scope.pop(REPEAT, None)
        if repeat is None or not 200 <= scope.get(STATUS, 0) < 400:
            return
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name in _UNLIKE:
                return
        if size > _HEAD_BYTES:
            return
        self._known[key] = _Known(repeat, scope.get("route"), scope["path"])
        if len(self._known) > self._limit:
            self._known.popitem(last=False)
