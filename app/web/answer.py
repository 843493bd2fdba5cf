"""The one response class: ready bytes, header names in the case they are given."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_JSON = (b"Content-Type", b"application/json")


class Answer(Response):
    """A complete response.

    Starlette lower-cases header names; Java clients look `ETag` and `Cache-Control` up by exact spelling, so names are
    written as they are here.
    """

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        content_type: str | None = None,
    ) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        raw: list[tuple[bytes, bytes]] = []
        if body:
            raw.append(_JSON if content_type is None else (b"Content-Type", content_type.encode("latin-1")))
        if status not in (204, 304):
            raw.append((b"Content-Length", str(len(body)).encode("ascii")))
        for name, value in headers:
            raw.append((name.encode("latin-1"), _header_value(value)))
        self.raw_headers = raw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})

    def without_body(self) -> Answer:
        """The same answer to a HEAD request: nothing after the headers."""
        if self.body:
            self.body = b""
            self.raw_headers = [
                (name, value) for name, value in self.raw_headers if name not in (b"Content-Type", b"Content-Length")
            ]
            self.raw_headers.append((b"Content-Length", b"0"))
        return self


def _header_value(value: str) -> bytes:
    """Header values carry ASCII only and no line ends; anything else is escaped rather than smuggled."""
    encoded = value.encode("ascii", "backslashreplace")
    return encoded.replace(b"\r", b" ").replace(b"\n", b" ")


NO_CONTENT = 204
NOT_MODIFIED = 304


def no_content() -> Answer:
    return Answer(NO_CONTENT)
