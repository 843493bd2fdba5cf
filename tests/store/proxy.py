"""A TCP proxy that cuts a connection at a chosen moment, or loses them all without a word: what failing networks do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

Moment = Literal["before", "after"]


class Proxy:
    """Forwards to `port`. `cut` arms it: the next client bytes with `needle` end the connection.

    `before`: the bytes never arrive. `after`: they arrive and are answered, but the client never hears.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._needle: bytes | None = None
        self._moment: Moment = "before"
        self._times = 0
        self._lost = asyncio.Event()
        self.port = 0

    def cut(self, needle: bytes, moment: Moment, times: int = 1) -> None:
        self._needle, self._moment, self._times = needle, moment, times

    def lose_all(self) -> None:
        """Nothing passes any more over the connections that are open, and neither side is told. New ones work."""
        self._lost.set()
        self._lost = asyncio.Event()

    @property
    def cuts_left(self) -> int:
        return self._times

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        muted, lost = asyncio.Event(), self._lost

        async def answers() -> None:
            while data := await upstream_reader.read(65536):
                if muted.is_set():
                    break
                if lost.is_set():
                    continue
                writer.write(data)
                await writer.drain()
            writer.close()

        answering = asyncio.create_task(answers())
        try:
            while data := await reader.read(65536):
                if lost.is_set():
                    continue
                if self._times and self._needle is not None and self._needle in data:
                    self._times -= 1
                    if self._moment == "after":
                        muted.set()
                        upstream_writer.write(data)
                        await asyncio.wait_for(answering, 10)
                    break
                upstream_writer.write(data)
                await upstream_writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            answering.cancel()
            for each in (upstream_writer, writer):
                with suppress(OSError):
                    each.transport.abort()


@asynccontextmanager
async def proxy(port: int) -> AsyncIterator[Proxy]:
    made = Proxy(port)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
