"""The floor: a bare ASGI callable that reads one pointer from SQLite and answers a body of the wanted size.

Same uvicorn, event loop and HTTP parser as the server, no framework, no routing, no checks. `/5200` answers 5,200
bytes, `/304` and `/204` no body at all. With `--bare` not even the pointer is read.
"""

from __future__ import annotations

import gc
import socket
import sqlite3
import sys
from functools import cache
from typing import Any

import uvicorn

from app.edge.protocol import Protocol


@cache
def body(size: int) -> bytes:
    return b"{" + b" " * (size - 2) + b"}"


def application(path: str, *, select: bool) -> Any:
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("PRAGMA journal_mode=WAL")
    reader.execute("CREATE TABLE pointer (namespace TEXT, name TEXT, location TEXT, PRIMARY KEY (namespace, name))")
    reader.executemany("INSERT INTO pointer VALUES ('bench', ?, ?)", [(f"t{n}", "file:/x" * 20) for n in range(1000)])
    sql = "SELECT location FROM pointer WHERE namespace = ? AND name = ?"

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if select:
            reader.execute(sql, ("bench", "t500")).fetchone()
        size = int(scope["path"][1:])
        empty = size in (204, 304)
        data = b"" if empty else body(size)
        headers = [(b"Content-Type", b"application/json"), (b"ETag", b'"0123456789abcdef"')]
        if not empty:
            headers.append((b"Content-Length", str(len(data)).encode()))
        await send({"type": "http.response.start", "status": size if empty else 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    return answer


def main() -> None:
    app = application(sys.argv[1], select="--bare" not in sys.argv)
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    gc.freeze()
    config = uvicorn.Config(
        app, loop="uvloop", http=Protocol, lifespan="off", access_log=False, log_level="warning", server_header=False
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
