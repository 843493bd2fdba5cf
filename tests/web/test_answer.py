"""`app.web.answer`: header names as written, values that cannot break out of their line."""

from __future__ import annotations

from app.web.answer import Answer, no_content


def test_header_names_keep_their_case() -> None:
    """Starlette would lower-case them, and Java would not find them."""
    assert (b"ETag", b"x") in Answer(200, b"{}", [("ETag", "x")]).raw_headers


def test_values_stay_in_their_line() -> None:
    """A line end or a letter beyond ASCII is escaped."""
    headers = dict(Answer(200, b"", [("Allow", "a\r\nX: y\u00e9")]).raw_headers)
    assert headers[b"Allow"] == b"a  X: y\\xe9"


def test_no_content_has_neither_type_nor_length() -> None:
    """RFC 9110: 204 has no Content-Length."""
    assert no_content().raw_headers == []


def test_an_empty_answer_has_length_zero() -> None:
    """So that keep-alive clients know it has ended."""
    assert Answer(404).raw_headers == [(b"Content-Length", b"0")]
