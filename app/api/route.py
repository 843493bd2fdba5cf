"""The two kinds of path operation: ordinary ones with a strict body, and lean ones that answer with bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app.catalog.metadata_cache import aside
from app.edge.bodies import read_body
from app.edge.callers import is_iceberg_java
from app.edge.raw_path import decode_query
from app.errors import BadRequest
from app.iceberg.amounts import check_amounts
from app.iceberg.json import codec

LeanEndpoint = Callable[[Request], Awaitable[Response]]


# Headers in the case in which `edge.answer` writes them: clients that compare letter by letter see one spelling.
_AS_JAVA_ASKS = {b"content-type": b"Content-Type", b"content-length": b"Content-Length"}


class StrictRequest(Request):
    """A request whose body is read within the limits, once, and decoded by the strict JSON decoder."""

    _raw: bytes | None = None
    _decoded: codec.Json = None

    async def body(self) -> bytes:
        """The body's bytes. PayloadTooLarge, RequestTimeout, ClientGone."""
        if self._raw is None:
            self._raw = await read_body(self)
        return self._raw

    async def decode(self) -> None:
        """Make `json` ready. SpecError for malformed text, BadRequest for what is no object or holds more than it may.

        Iceberg's Java client can send ISO-8859-1; only from it, bytes that are not UTF-8 are read as that.
        """
        text = await self.body()
        if is_iceberg_java(self.headers.get("x-client-version", "")) and not _is_utf8(text):
            text = text.decode("latin-1").encode("utf-8")
        value = await aside(len(text), _decoded, text)
        if type(value) is not dict:
            raise BadRequest(f"The body must be a JSON object, not {codec.describe(value)}")
        self._decoded = value

    async def json(self) -> Any:
        return self._decoded


def _decoded(text: bytes) -> codec.Json:
    check_amounts(text)
    return codec.decode_request(text)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _takes_query(dependant: Dependant) -> bool:
    return bool(dependant.query_params) or any(map(_takes_query, dependant.dependencies))


class StrictRoute(APIRoute):
    """An ordinary path operation. Its body is decoded before FastAPI looks at it.

    FastAPI turns every failure while it reads a body into one sentence without a cause; ours say what is wrong.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        takes_body = self.body_field is not None
        takes_query = _takes_query(self.dependant)

        async def handle(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            if takes_query:
                # The framework's own parser is lenient: of a name with two values it takes one.
                decode_query(request.scope["query_string"])
            if takes_body:
                await strict.decode()
            response = await handler(strict)
            response.raw_headers[:] = [(_AS_JAVA_ASKS.get(name, name), value) for name, value in response.raw_headers]
            return response

        return handle


class LeanRoute(APIRoute):
    """Awaits `endpoint(request)` and sends the Response it returns: no solving of parameters, 50 us less a request.

    What the operation takes is declared by a documenting dependency (`dependencies=[Depends(...)]`) that is never run;
    the endpoint reads the request itself.
    """

    def __init__(self, path: str, endpoint: LeanEndpoint, **declared: Any) -> None:
        super().__init__(path, endpoint, **declared)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await endpoint(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = app
