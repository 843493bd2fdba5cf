"""A keep-alive HTTP/1.1 client on a bare asyncio protocol: the generator must cost less than what it measures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

# What PyIceberg sends, with a bearer of a usual length. No compression, so that no server is charged for it.
HEADERS = {
    "User-Agent": "PyIceberg/0.12.0",
    "X-Client-Version": "0.14.1",
    "Accept": "*/*",
    "Connection": "keep-alive",
    "X-Iceberg-Access-Delegation": "vended-credentials",
    "Authorization": "Bearer " + "a" * 400,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, lower-case headers and body of one answer."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes


def request(host: str, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in {**HEADERS, **(headers or {})}.items()]
    if body or method in ("POST", "PUT"):
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._data = bytearray()
        self._waiting: asyncio.Future[Reply] | None = None
        self._bare = False
        self._status = -1
        self._headers: dict[bytes, bytes] = {}
        self._body_at = 0
        self._length: int | None = None

    @classmethod
    async def open(cls, host: str, port: int) -> Connection:
        _, protocol = await asyncio.get_running_loop().create_connection(cls, host, port)
        return protocol

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.WriteTransport without being one.
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("closed by the server"))

    def send(self, data: bytes) -> asyncio.Future[Reply]:
        """Send the bytes of one request; the future is its answer."""
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._bare = data.startswith(b"HEAD ")
        self._status = -1
        self._transport.write(data)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._status < 0 and not self._head():
            return
        body = self._body()
        if body is not None and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Reply(self._status, self._headers, body))

    def _head(self) -> bool:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = bytes(self._data[:end]).split(b"\r\n")
        self._status = int(first[9:12])
        self._headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            self._headers[name.lower()] = value.strip()
        self._body_at = end + 4
        if self._bare or self._status in (204, 304):
            self._length = 0
        else:
            length = self._headers.get(b"content-length")
            self._length = None if length is None else int(length)
        return True

    def _body(self) -> bytes | None:
        """The complete body, or None while some of it is missing; the buffer then starts at the next answer."""
        if self._length is None:
            return self._chunked()
        end = self._body_at + self._length
        if len(self._data) < end:
            return None
        body = bytes(self._data[self._body_at : end])
        del self._data[:end]
        return body

    def _chunked(self) -> bytes | None:
        if not self._data.endswith(b"0\r\n\r\n"):
            return None
        pieces, at = [], self._body_at
        while True:
            line = self._data.find(b"\r\n", at)
            if line < 0:
                return None
            size = int(bytes(self._data[at:line]).partition(b";")[0], 16)
            at = line + 2
            if size == 0:
                break
            if len(self._data) < at + size + 2:
                return None
            pieces.append(bytes(self._data[at : at + size]))
            at += size + 2
        self._data.clear()
        return b"".join(pieces)
