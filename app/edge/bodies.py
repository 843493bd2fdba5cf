"""Request bodies: JSON only, within the limit, read once, not for ever."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.http_errors import ClientGone, RequestTimeout, UnsupportedMediaType
from app.errors import BadRequest, PayloadTooLarge

LIMITS = "icekeel.body"


class BodyLimits:
    """Refuses bodies that announce more than `limit` bytes, are not `application/json`, or are content-encoded.

    The media type is what keeps web pages out: a cross-site form or plain fetch cannot send it.
    `read_body` applies the same limit to bodies of unannounced length, and `timeout_s` (seconds) to slow ones.
    """

    def __init__(self, app: ASGIApp, *, limit: int, timeout_s: float) -> None:
        self._app = app
        self._limits = (limit, timeout_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._check(scope)
            scope[LIMITS] = self._limits
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        length = kind = encoding = b""
        chunked = False
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = value
            elif name == b"content-type":
                kind = value
            elif name == b"transfer-encoding":
                chunked = True
            elif name == b"content-encoding":
                encoding = value
        if not chunked and length in (b"", b"0"):
            return
        if length and not length.isdigit():
            raise BadRequest("Content-Length is not a number")
        if length and int(length) > self._limits[0]:
            raise too_large(self._limits[0])
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise UnsupportedMediaType("Bodies must be sent with Content-Type: application/json")
        if encoding.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType(f"Content-Encoding {encoding.decode('latin-1')} is not supported for requests")


def too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"Body exceeds the limit of {limit} bytes (ICEKEEL_BODY_LIMIT)", limit=limit)


async def read_body(request: Request) -> bytes:
    """The whole body. PayloadTooLarge, RequestTimeout; ClientGone when the connection ended before the body did."""
    limit, timeout_s = request.scope[LIMITS]
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone("The connection ended before the whole body was received")
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                if not message.get("more_body", False):
                    return piece if not pieces else b"".join([*pieces, piece])
                pieces.append(piece)
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {timeout_s:g} seconds") from None
