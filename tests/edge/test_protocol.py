"""What goes over the wire, against what zttp alone would write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import zttp
from hypothesis import given
from hypothesis import strategies as st

from app.edge.protocol import Connection

Headers = list[tuple[bytes, bytes]]
LENGTHS = st.sampled_from([0, 1, 9_999, 99_999, 100_000, 100_001, 250_000])


def written(conn: Connection | zttp.H1Connection, answers: Sequence[tuple[Headers, int, list[int]]]) -> bytes:
    """The bytes of these answers to as many requests on one connection; of each the headers, the length, the cuts."""
    out = b""
    for headers, length, cuts in answers:
        event = conn.receive_event(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert isinstance(event, zttp.Request) and event.end_stream
        conn.send_response(200, headers)
        out += conn.data_to_send()
        body = bytes(range(251)) * (length // 251 + 1)
        edges = sorted({0, length, *(cut for cut in cuts if cut < length)})
        for begin, end in pairwise(edges):
            conn.send_data(memoryview(body)[begin:end])
            out += conn.data_to_send()
        conn.end_message()
        out += conn.data_to_send()
        assert not conn.should_close()
        conn.start_next_cycle()
    return out


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([(b"ETag", b'"0"'), (b"X-A", b"Content-Length: 0"), (b"Vary", b"Accept")])),
            LENGTHS,
            st.lists(st.integers(1, 250_000), max_size=3),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_large_bodies_go_past_zttp_and_nobody_sees_it(
    answers: list[tuple[Headers, int, list[int], int]],
) -> None:
    """Byte for byte what zttp writes, for bodies of any size in any pieces, one answer after the other."""
    made = [
        ([*headers[:at], (b"Content-Length", b"%d" % length), *headers[at:]], length, cuts)
        for headers, length, cuts, at in answers
    ]
    assert written(Connection(zttp.Connection(zttp.SERVER)), made) == written(zttp.Connection(zttp.SERVER), made)
