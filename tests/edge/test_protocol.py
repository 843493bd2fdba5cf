"""What is answered to bytes that are no request."""

from __future__ import annotations

import json

from app.edge.protocol import malformed


def test_bytes_that_are_no_request_are_answered_in_the_envelope() -> None:
    """As every other failure: clients read type and code."""
    told = json.loads(malformed("Invalid HTTP request received."))["error"]
    assert told == {"message": "Invalid HTTP request received.", "type": "BadRequestException", "code": 400}
