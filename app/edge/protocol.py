"""uvicorn's HTTP protocol, answering malformed HTTP with the error envelope too.

The zttp parser is chosen on purpose. Java clients look `ETag` up by exact spelling; httptools lower-cases header names
on the wire, zttp and h11 keep them, and h11 costs 4.5 times the CPU. A test reads the raw bytes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import zttp
from uvicorn.protocols.http.zttp_impl import ZttpProtocol

from app.edge.answer import Answer

_LENGTH: Final = b"Content-Length"
_NOTHING: Final = (_LENGTH, b"0")
# Bodies whose length has more digits are large: from 100,000 bytes on.
_DIGITS: Final = 5


class Connection:
    """zttp's connection, except that large bodies go past it.

    It copies a body twice, into its buffer and out of it: 4 ms of CPU for 6 MB, more than all the rest of the answer.
    So it frames an answer without a body, whose length is then put right in the head; that the body has the length that
    was promised is counted by uvicorn, not by it.
    """

    __slots__ = (
        "_conn",
        "_large",
        "_ready",
        "end_message",
        "next_event",
        "receive_event",
        "send_informational",
        "should_close",
        "start_next_cycle",
        "upgrade",
    )

    def __init__(self, conn: zttp.H1Connection) -> None:
        self._conn = conn
        self._large = False
        self._ready: Any = None
        self.end_message = conn.end_message
        self.next_event = conn.next_event
        self.receive_event = conn.receive_event
        self.send_informational = conn.send_informational
        self.should_close = conn.should_close
        self.start_next_cycle = conn.start_next_cycle
        self.upgrade = conn.upgrade

    def send_response(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._large = False
        for at, (name, value) in enumerate(headers):
            if name == _LENGTH and len(value) > _DIGITS:
                self._conn.send_response(status, [*headers[:at], _NOTHING, *headers[at + 1 :]])
                # Between line ends: no value of a header can hold that.
                zero, length = (b"\r\n%s: %s\r\n" % (_LENGTH, digits) for digits in (b"0", value))
                self._ready = self._conn.data_to_send().replace(zero, length, 1)
                self._large = True
                return
        self._conn.send_response(status, headers)

    def send_data(self, data: Any) -> None:
        if self._large:
            self._ready = data
        else:
            self._conn.send_data(data)

    def data_to_send(self) -> Any:
        """What is to be written now: bytes, or a piece of a large body as it is."""
        ready = self._ready
        if ready is None:
            return self._conn.data_to_send()
        self._ready = None
        return ready


class Protocol(ZttpProtocol):
    """What cannot be parsed as a request never reaches the application, so its answer is made here."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = Connection(self.conn)  # type: ignore[assignment]

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: a client that offers another protocol, as `curl --http2` does, is served in this one."""

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except UnicodeDecodeError:
            # uvicorn decodes the request line as ASCII before the application sees it.
            self.handle_remote_protocol_error()

    def send_400_response(self, msg: str) -> None:
        answer = Answer(400, malformed(msg), [("Connection", "close")])
        try:
            self.conn.send_response(400, answer.raw_headers)
            # An answer to HEAD ends with its head.
            with suppress(zttp.LocalProtocolError):
                self.conn.send_data(b"".join(answer.pieces))
            self.conn.end_message()
            self.transport.write(self.conn.data_to_send())
        except zttp.LocalProtocolError:
            # The request's own answer is under way, and ends with the connection.
            pass
        self.transport.close()


def malformed(message: str) -> bytes:
    """The envelope of a request that is not HTTP; `message` is plain ASCII from the server itself."""
    return f'{{"error":{{"message":"{message}","type":"BadRequestException","code":400}}}}'.encode("ascii")
