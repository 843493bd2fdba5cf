"""Texts in chunks, and what is spliced from them."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.iceberg.json.chunked_text import CHUNK_BYTES, Chunk, Text, cut, joined, merged

PIECES = st.lists(
    st.one_of(st.binary(max_size=100), st.builds(lambda word, n: word * n, st.binary(max_size=20), st.integers(0, 200)))
)


def member(text: Text, before: bytes = b"", after: bytes = b"") -> bytes:
    return b"".join(text.deflated().member(before, after))


def unpacked(data: bytes) -> bytes:
    """What a reader that stops after the first member sees; there must be nothing behind it."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    out = unpacker.decompress(data) + unpacker.flush()
    assert unpacker.eof and not unpacker.unused_data
    return out


@given(PIECES, st.binary(max_size=200), st.binary(max_size=200), st.data())
def test_a_spliced_member_is_the_text(pieces: list[bytes], before: bytes, after: bytes, data: st.DataObject) -> None:
    """One gzip member with the right checksum and size, whatever was compressed before and in whichever order."""
    chunks = [Chunk(piece) for piece in pieces]
    for chunk in data.draw(st.lists(st.sampled_from(chunks))) if chunks else ():
        chunk.deflated()
    text = Text(chunks)
    whole = before + b"".join(pieces) + after
    packed = member(text, before, after)
    assert unpacked(packed) == gzip.decompress(packed) == whole
    assert int.from_bytes(packed[-8:-4], "little") == zlib.crc32(whole)
    assert int.from_bytes(packed[-4:], "little") == len(whole)
    assert text.joined() == b"".join(pieces) and len(text) == len(text.joined())


def test_ends_of_any_length_are_taken() -> None:
    """A stored block holds 65,535 bytes at most."""
    for size in (0, 1, 65_535, 65_536, 200_000):
        assert unpacked(member(Text.of(b"x"), b"a" * size, b"b" * size)) == b"a" * size + b"x" + b"b" * size


def test_nothing_is_compressed_twice() -> None:
    """Versions that share chunks share their compressed form; `pending` tells what is left to do."""
    old = [Chunk(b"past" * 1000), Chunk(b"more" * 1000)]
    Text(old).deflated()
    new = Text([*old, Chunk(b"fresh" * 10)])
    assert new.pending == 50
    segments = [chunk.segment for chunk in old]
    assert new.deflated().segments[:2] == tuple(segment.data for segment in segments if segment is not None)
    assert all(chunk.segment is segment for chunk, segment in zip(old, segments, strict=True))
    assert new.pending == 0 and new.deflated() is new.deflated()


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=50))))
def test_pieces_between_chunks_become_chunks(parts: list[tuple[bool, bytes]]) -> None:
    """The chunks that were there stay the very same, in order, and the text is that of all parts."""
    made = [Chunk(data) if shared else data for shared, data in parts]
    text = Text.composed(made)
    assert text.joined() == joined(made) == b"".join(data for _, data in parts)
    shared = [part for part in made if isinstance(part, Chunk)]
    assert [chunk for chunk in text.chunks if chunk in shared] == shared
    assert len(text.chunks) <= 2 * len(shared) + 1


@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1), st.booleans())
def test_merging_keeps_what_was_compressed(bodies: list[bytes], ready: bool) -> None:
    """The merged chunk has the joined text, and its compressed form if all of them had one."""
    chunks = [Chunk(body) for body in bodies]
    if ready:
        for chunk in chunks:
            chunk.deflated()
    one = merged(chunks)
    assert one.body == b"".join(bodies)
    assert (one.segment is not None) == ready
    assert unpacked(member(Text([one]))) == one.body


def test_a_cut_text_is_views() -> None:
    """Nothing is copied, and no chunk is larger than it should be; a detached chunk owns its text."""
    data = bytes(CHUNK_BYTES) + b"rest"
    chunks = list(cut(data))
    assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, 4]
    assert all(isinstance(chunk.body, memoryview) and chunk.body.obj is data for chunk in chunks)
    assert chunks[1].detached().body == b"rest" and isinstance(chunks[1].detached().body, bytes)
    own = Chunk(b"own")
    assert own.detached() is own


def test_a_chunk_costs_what_it_holds() -> None:
    """Text and parsed form, and the compressed form from when it is there."""
    chunk = Chunk(b"x" * 1000)
    assert chunk.cost == 2000
    assert chunk.cost == 2000 and len(chunk.deflated().data) == chunk.cost - 2000


@pytest.mark.parametrize("size", [64, 4_096, 300_000])
def test_a_run_of_json_packs_well(size: int) -> None:
    """Chunks that are compressed alone stay near the whole: within a tenth, and the ends of small ones."""
    text = b"".join(
        b'{"snapshot-id":%d,"summary":{"operation":"append","files":"%d"}},' % (n, n * 7) for n in range(9_000)
    )
    body = text[:size]
    pieces = [Chunk(body[at : at + CHUNK_BYTES]) for at in range(0, len(body), CHUNK_BYTES)]
    assert len(member(Text(pieces))) <= 1.1 * len(gzip.compress(body, 1)) + 60
