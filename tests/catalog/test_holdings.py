"""What shared chunks weigh."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.catalog.holdings import Holdings
from app.iceberg.json.chunked_text import Chunk, Text


@given(st.lists(st.tuples(st.sampled_from(["hold", "release", "deflate"]), st.integers(0, 9))))
def test_each_held_chunk_counts_once_at_its_present_weight(steps: list[tuple[str, int]]) -> None:
    """However texts overlap, come, go and are compressed; and nothing is left when all are gone."""
    chunks = [Chunk(b"x" * (10 + 90 * at)) for at in range(6)]
    texts = [Text(chunks[at % 4 : at % 4 + 1 + at % 3]) for at in range(10)]
    holdings, held = Holdings(), dict.fromkeys(range(10), 0)
    for step, at in steps:
        if step == "hold":
            holdings.hold(texts[at])
            held[at] += 1
        elif step == "deflate":
            texts[at].deflated()
            holdings.weigh(texts[at])
        elif held[at]:
            holdings.release(texts[at])
            held[at] -= 1
        alive = {chunk for at, times in held.items() if times for chunk in texts[at].chunks}
        assert holdings.bytes == sum(chunk.cost for chunk in alive)
        assert len(holdings) == len(alive)
    for at, times in held.items():
        for _ in range(times):
            holdings.release(texts[at])
    assert (holdings.bytes, len(holdings)) == (0, 0)
