"""A server process that leaves without failing a client: it says so first, and answers whoever has reached it."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

STOPS = frozenset({signal.SIGTERM, signal.SIGINT})
_SETTLE_S = 0.2
# A terminal, or systemd, tells every process of a group, and a supervisor tells its own once more: that is one stop.
_SAME_STOP_S = 0.2
_CLOSE = (b"Connection", b"close")


class LeavingServer(uvicorn.Server):
    """On the first signal `draining()` is told, and `drain_s` seconds later the process stops; a second ends that
    wait.

    While it drains, every answer closes its connection, so that clients and proxies come back to another replica.
    """

    def __init__(self, config: uvicorn.Config, *, drain_s: float, draining: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain_s = drain_s
        self._draining = draining
        self._told_at = 0.0
        self._stop_at: float | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear the signals from here on, those that were kept waiting first."""
        with super().capture_signals():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._drain_s or (self._stop_at is not None and now - self._told_at > _SAME_STOP_S):
            super().handle_exit(sig, frame)
            return
        self._captured_signals.append(sig)
        if self._stop_at is None:
            self._told_at = now
            self._stop_at = asyncio.get_running_loop().time() + self._drain_s
            self._draining()

    async def on_tick(self, counter: int) -> bool:
        done = await super().on_tick(counter)
        if self._stop_at is None:
            return done
        self._close_connections()
        return done or asyncio.get_running_loop().time() >= self._stop_at

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, but take in what the kernel has already accepted, and let requests on their way arrive.

        Both would be reset otherwise, and a client whose commit is reset cannot know what became of it.
        """
        kept = [listener.dup() for listener in sockets or []]
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await asyncio.sleep(0)
        for connection in [each for listener in kept for each in _last_accepted(listener)]:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        self._close_connections()
        await asyncio.sleep(_SETTLE_S)
        await super().shutdown(sockets)

    def _close_connections(self) -> None:
        headers = self.server_state.default_headers
        if _CLOSE not in headers:
            self.server_state.default_headers = [*headers, _CLOSE]

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


def _last_accepted(listener: socket.socket) -> list[socket.socket]:
    """What waits in the kernel. The listener is closed in the same breath, which leaves a latecomer microseconds."""
    listener.setblocking(False)
    waiting: list[socket.socket] = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            listener.close()
            break
        waiting.append(connection)
    for connection in waiting:
        connection.setblocking(False)
    return waiting
