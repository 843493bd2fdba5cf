"""`app.edge.answer`: header names as written, values that cannot break out of their line."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.edge.answer import Answer, no_content


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


@given(st.lists(st.integers(0, 3).map(lambda power: bytes(17**power * 5)), min_size=1, max_size=40))
def test_a_body_in_pieces_is_the_same_body(pieces: list[bytes]) -> None:
    """Small pieces are joined to their neighbours, so no two small ones follow each other."""
    made = Answer(200, tuple(pieces))
    assert made.body == b"".join(pieces)
    assert dict(made.raw_headers)[b"Content-Length"] == b"%d" % len(made.body)
    sizes = [len(piece) for piece in made.pieces]
    assert all(one >= 4096 or other >= 4096 for one, other in pairwise(sizes))


def test_large_pieces_are_sent_as_they_are() -> None:
    """Views included."""
    large = memoryview(bytes(100_000))
    made = Answer(200, (b"{", large, large, b"}"))
    assert [len(piece) for piece in made.pieces] == [1, 100_000, 100_000, 1]
    assert made.pieces[1] is large
