"""Raw bytes over a socket, for what HTTP libraries hide: header case, malformed requests, odd targets."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass

from tests.server import Server


@dataclass(frozen=True)
class Raw:
    """A response as it was on the wire; header names in their own case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value under exactly this spelling, as a case-sensitive client finds it."""
        return next((value for key, value in self.headers if key == name), None)


def send(server: Server, request: bytes, *, half_close: bool = False) -> Raw:
    """Send bytes on a fresh connection and read one response to its end."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while b"\r\n\r\n" not in received:
            piece = connection.recv(65536)
            if not piece:
                raise AssertionError(f"connection closed after {received!r}")
            received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:]))
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        if not request.startswith(b"HEAD"):
            while len(body) < length:
                piece = connection.recv(65536)
                if not piece:
                    break
                body += piece
        else:
            connection.settimeout(0.3)
            with suppress(TimeoutError):
                body += connection.recv(65536)
        return Raw(int(lines[0].split(" ")[1]), headers, body)


def request(server: Server, method: str, target: str, *headers: str, body: bytes = b"") -> Raw:
    """A well-formed request with an exact target and exact header lines."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return send(server, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
