"""uvicorn's HTTP protocol, answering malformed HTTP with the error envelope too.

The zttp parser is chosen on purpose. Java clients look `ETag` up by exact spelling; httptools lower-cases header names
on the wire, zttp and h11 keep them, and h11 costs 4.5 times the CPU. A test reads the raw bytes.
"""

from __future__ import annotations

from contextlib import suppress

import zttp
from uvicorn.protocols.http.zttp_impl import ZttpProtocol

from app.edge.answer import Answer


class Protocol(ZttpProtocol):
    """What cannot be parsed as a request never reaches the application, so its answer is made here."""

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
