"""The load generator's HTTP client reads what real servers send."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bench.wire import Connection, Reply, request

PIECES = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    (b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', 304, b""),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab\r\n\r\n3\r\ncde\r\n0\r\n\r\n", 200, b"ab\r\ncde"),
]


async def _against(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> list[Reply]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        connection = await Connection.open(host, port)
        try:
            return [await connection.send(request(host, "GET", f"/{at}")) for at in range(len(PIECES))]
        finally:
            connection.close()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_read_whatever_the_pieces_they_come_in(size: int) -> None:
    """Lengths, chunks and answers without a body come out whole, however the network cuts them."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for raw, _, _ in PIECES:
            await reader.readuntil(b"\r\n\r\n")
            for at in range(0, len(raw), size):
                writer.write(raw[at : at + size])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    replies = asyncio.run(_against(serve))
    assert [(reply.status, reply.body) for reply in replies] == [(status, body) for _, status, body in PIECES]
