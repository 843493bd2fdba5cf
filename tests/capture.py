"""A server on loopback that writes down what it is sent, in place of a store or of a host that nobody should reach."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Captured:
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class Capture:
    """`host` is the name under which it is asked for; every request gets `status`, `headers` and `body`."""

    status: int = 404
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    requests: list[Captured] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def text(self) -> str:
        """Everything it was sent, headers and paths."""
        return "\n".join(f"{one.method} {one.path} {dict(one.headers)}" for one in self.requests)


@contextmanager
def capture(
    status: int = 404, body: bytes = b"", headers: Mapping[str, str] | None = None, host: str = "127.0.0.1"
) -> Iterator[Capture]:
    """A running one; `host` may be `localhost`, which for a client is another host than 127.0.0.1."""
    seen = Capture(status, body, headers or {}, host)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.requests.append(Captured(self.command, self.path, dict(self.headers)))
            self.send_response(seen.status)
            for name, value in {**seen.headers, "Content-Length": str(len(seen.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(seen.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the requests are kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
