"""Why a store failed, without a word of what it said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.objects.failures import reason

HEAD = "Generic S3 error: Error performing GET https://h/b/k in 1ms - "
REFUSED = HEAD + "Server returned non-2xx status code: 403 Forbidden: "


@given(st.text(min_size=1, max_size=200).map(lambda text: f"\u2603{text}\u2603"))
def test_nothing_of_a_body_passes(body: str) -> None:
    """Whatever a server answers, the words are ours: the same as for another body."""
    assert reason(Exception(REFUSED + body)) == "the store answered 403 Forbidden"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            REFUSED + "<Error><Code>AccessDenied</Code><Message>x</Message>",
            "the store answered 403 Forbidden (AccessDenied)",
        ),
        (REFUSED + "<Error><Code>HunterTwo</Code>", "the store answered 403 Forbidden"),
        (HEAD + "Server returned non-2xx status code: 599 <unknown>: x", "the store answered 599"),
        (HEAD + "HTTP error: x\nkind: Connect ConnectionRefused", "connection refused"),
        (HEAD + "HTTP error: x\nkind: Timeout", "no answer within the time limit"),
        (HEAD + "HTTP error: x\ndns error", "the name of the host cannot be resolved"),
        (HEAD + "HTTP error: x", "the connection broke"),
        ("Generic S3 error: Got invalid list response: hunter2", "the answer is not one of an object store"),
        (
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1s - HTTP error: x",
            "neither the options nor the server's environment give credentials",
        ),
        ("hunter2", "the store's client failed"),
    ],
)
def test_the_cause_is_told(text: str, expected: str) -> None:
    """Status, well-known error codes, and what kept an answer from coming."""
    assert reason(Exception(text)) == expected
