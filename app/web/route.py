"""The lean route class: FastAPI's declaration, without FastAPI's per-request machinery."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.web.paths import DEPTH

Endpoint = Callable[[Request], Awaitable[Response]]


class LeanRoute(APIRoute):
    """Awaits `endpoint(request)` and sends the Response it returns.

    The declaration (path, methods, parameters, bodies, errors) drives dispatch and the OpenAPI document as for any
    FastAPI route; parameters are read by the endpoint itself. Declared parameters cost 51 us a request when FastAPI
    solves them, 4 us when they are read by hand.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **declaration: Any) -> None:
        super().__init__(path, endpoint, **declaration)
        self._depth = path.count("/")
        self._methods = frozenset(self.methods or ())
        self._endpoint: Endpoint = endpoint
        self.app = self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette matches, on the undecoded path; the number of segments rules most routes out at once."""
        if scope.get(DEPTH) != self._depth:
            return Match.NONE, {}
        found = self.path_regex.match(scope["path"])
        if found is None:
            return Match.NONE, {}
        child: Scope = {"endpoint": self.endpoint, "path_params": found.groupdict(), "route": self}
        return (Match.FULL if scope["method"] in self._methods else Match.PARTIAL), child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self._methods:
            raise HTTPException(405)
        await self.app(scope, receive, send)
