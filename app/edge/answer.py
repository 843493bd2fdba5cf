"""The one response class: ready bytes, header names in the case they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_JSON = (b"Content-Type", b"application/json")

# From this size on a body in pieces is sent in pieces: joining it would copy it once more.
_PIECEMEAL_BYTES = 64 << 10
# Every piece is a message through all layers and a write: a small one is joined to what is beside it.
_SMALL_BYTES = 4 << 10


class Answer(Response):
    """A complete response.

    Starlette lower-cases header names; Java clients look `ETag` and `Cache-Control` up by exact spelling, so names are
    written as they are here. A body may come in pieces, so that a large document is spliced in without a copy.
    """

    def __init__(
        self,
        status: int = 200,
        body: bytes | tuple[bytes | memoryview, ...] = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        content_type: str | None = None,
    ) -> None:
        self.status_code = status
        self.background = None
        pieces: tuple[bytes | memoryview, ...] = body if isinstance(body, tuple) else (body,)
        length = sum(map(len, pieces))
        if len(pieces) > 1:
            pieces = (b"".join(pieces),) if length < _PIECEMEAL_BYTES else tuple(_fewer(pieces))
        self.pieces = pieces
        raw: list[tuple[bytes, bytes]] = []
        if length:
            raw.append(_JSON if content_type is None else (b"Content-Type", content_type.encode("latin-1")))
        if status not in (204, 304):
            raw.append((b"Content-Length", b"%d" % length))
        for name, value in headers:
            raw.append((name.encode("latin-1"), _header_value(value)))
        self.raw_headers = raw

    @property
    def body(self) -> bytes:  # type: ignore[override]
        """The whole body; a large one is joined each time, which sending does not need."""
        return b"".join(self.pieces)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.send_to(send)

    async def send_to(self, send: Send, *more: tuple[bytes, bytes]) -> None:
        """Send it with `more` headers; one answer may be sent any number of times."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": [*self.raw_headers, *more]})
        *first, last = self.pieces
        for piece in first:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": last})

    def without_body(self) -> Answer:
        """The same answer to a HEAD request: nothing after the headers."""
        if any(self.pieces):
            self.pieces = (b"",)
            self.raw_headers = [
                (name, value) for name, value in self.raw_headers if name not in (b"Content-Type", b"Content-Length")
            ]
            self.raw_headers.append((b"Content-Length", b"0"))
        return self


def _fewer(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes, with small pieces joined to their neighbours."""
    run: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        small = len(piece) < _SMALL_BYTES or size < _SMALL_BYTES
        if run and not (small and size + len(piece) <= _PIECEMEAL_BYTES):
            yield run[0] if len(run) == 1 else b"".join(run)
            run, size = [], 0
        run.append(piece)
        size += len(piece)
    yield run[0] if len(run) == 1 else b"".join(run)


def _header_value(value: str) -> bytes:
    """Header values carry ASCII only and no line ends; anything else is escaped rather than smuggled."""
    encoded = value.encode("ascii", "backslashreplace")
    return encoded.replace(b"\r", b" ").replace(b"\n", b" ")


NO_CONTENT = 204
NOT_MODIFIED = 304


def no_content() -> Answer:
    return Answer(NO_CONTENT)
