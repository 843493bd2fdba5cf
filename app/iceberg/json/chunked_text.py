"""The JSON text of a large document in chunks that versions share, each compressed at most once (RFC 1951, RFC 1952).

A commit changes the head of a document and the ends of its histories; the rest of the text is the same chunks as
before. Each chunk, once somebody wants it compressed, becomes a run of DEFLATE blocks that ends on a byte boundary and
refers to nothing before it, so that any sequence of them, with a header and a trailer, is one ordinary gzip member. Its
checksum follows from those of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from isal import isal_zlib

Piece = bytes | memoryview

# Whole chunks are what an edit in the middle rebuilds; smaller ones would compress worse and need more writes.
CHUNK_BYTES: Final = 256 << 10

# Level 1 packs as well as zlib's own and takes a sixth of its time; level 3 takes seven times as long for one percent.
LEVEL: Final = 1
_RAW: Final = -15

# Below this a compressor's tables cost more than they save.
_STORED_BYTES: Final = 64
_BLOCK_BYTES: Final = 0xFFFF
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""No name, no time: equal texts in equal chunks are equal files."""
_LAST_BLOCK: Final = b"\x03\x00"
_SIZES: Final = (1 << 32) - 1


class Segment(NamedTuple):
    """A chunk compressed: DEFLATE blocks, none of them the last one, and the CRC-32 of what they unpack to."""

    data: bytes
    crc: int


class Chunk:
    """Some text, and its compressed form from the first time on that somebody asked."""

    __slots__ = ("body", "segment")

    def __init__(self, body: Piece, segment: Segment | None = None) -> None:
        self.body = body
        self.segment = segment

    def __len__(self) -> int:
        return len(self.body)

    @property
    def cost(self) -> int:
        """Bytes of memory to charge: the text, what was parsed from it (about as much again), the compressed form."""
        return 2 * len(self.body) + (0 if self.segment is None else len(self.segment.data))

    def deflated(self) -> Segment:
        found = self.segment
        if found is None:
            # Two threads may both compress, to equal results.
            found = self.segment = Segment(_deflate(self.body), isal_zlib.crc32(self.body))
        return found

    def detached(self) -> Chunk:
        """The same chunk with its text copied out of the document that it is a view into."""
        return self if isinstance(self.body, bytes) else Chunk(bytes(self.body), self.segment)


class Deflated(NamedTuple):
    """A text compressed: DEFLATE blocks, and checksum and number of the bytes that they unpack to."""

    segments: tuple[bytes, ...]
    crc: int
    size: int

    def member(self, before: bytes = b"", after: bytes = b"") -> tuple[bytes, ...]:
        """The pieces of one gzip member with the text between `before` and `after`, which should be short."""
        crc = isal_zlib.crc32_combine(isal_zlib.crc32(before), self.crc, self.size)
        crc = isal_zlib.crc32(after, crc)
        size = (len(before) + self.size + len(after)) & _SIZES
        trailer = crc.to_bytes(4, "little") + size.to_bytes(4, "little")
        return (_HEADER + _store(before), *self.segments, _store(after) + _LAST_BLOCK + trailer)


class Text:
    """An immutable text in chunks. Equality is identity."""

    __slots__ = ("_deflated", "_size", "chunks")

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = tuple(chunks)
        self._size = sum(map(len, self.chunks))
        self._deflated: Deflated | None = None

    @classmethod
    def of(cls, data: Piece) -> Text:
        """A text that shares nothing with others."""
        return cls(cut(data))

    @classmethod
    def composed(cls, parts: Iterable[Piece | Chunk]) -> Text:
        """Chunks as they are, and each run of pieces between them as a chunk of its own."""
        chunks: list[Chunk] = []
        loose: list[Piece] = []
        for part in parts:
            if isinstance(part, Chunk):
                if loose:
                    chunks.append(Chunk(b"".join(loose)))
                    loose = []
                chunks.append(part)
            else:
                loose.append(part)
        if loose:
            chunks.append(Chunk(b"".join(loose)))
        return cls(chunks)

    def __len__(self) -> int:
        return self._size

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple([chunk.body for chunk in self.chunks])

    def joined(self) -> bytes:
        """The whole text, copied each time."""
        return b"".join(self.pieces)

    @property
    def pending(self) -> int:
        """Bytes that `deflated` would have to compress."""
        if self._deflated is not None:
            return 0
        return sum([len(chunk) for chunk in self.chunks if chunk.segment is None])

    def deflated(self) -> Deflated:
        """The text compressed; what other versions compressed already is not compressed again."""
        found = self._deflated
        if found is None:
            crc = 0
            data: list[bytes] = []
            for chunk in self.chunks:
                segment = chunk.deflated()
                data.append(segment.data)
                crc = isal_zlib.crc32_combine(crc, segment.crc, len(chunk))
            found = self._deflated = Deflated(tuple(data), crc, self._size)
        return found


def cut(data: Piece) -> Iterator[Chunk]:
    """Views into `data`, each of at most CHUNK_BYTES."""
    view = memoryview(data)
    return (Chunk(view[at : at + CHUNK_BYTES]) for at in range(0, len(view), CHUNK_BYTES))


def merged(chunks: Iterable[Chunk]) -> Chunk:
    """One chunk in place of several; it is compressed if all of them are."""
    listed = list(chunks)
    body = b"".join([chunk.body for chunk in listed])
    crc = 0
    data: list[bytes] = []
    for chunk in listed:
        if chunk.segment is None:
            return Chunk(body)
        data.append(chunk.segment.data)
        crc = isal_zlib.crc32_combine(crc, chunk.segment.crc, len(chunk))
    return Chunk(body, Segment(b"".join(data), crc))


def joined(parts: Iterable[Piece | Chunk]) -> bytes:
    """The text of `parts` in one piece."""
    return b"".join([part.body if isinstance(part, Chunk) else part for part in parts])


def _deflate(body: Piece) -> bytes:
    if len(body) < _STORED_BYTES:
        return _store(bytes(body))
    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _RAW)
    return packer.compress(body) + packer.flush(isal_zlib.Z_FULL_FLUSH)


def _store(data: bytes) -> bytes:
    """As stored blocks: plain, with five bytes before each."""
    blocks: list[bytes] = []
    for at in range(0, len(data), _BLOCK_BYTES):
        part = data[at : at + _BLOCK_BYTES]
        size = len(part)
        blocks.append(b"\x00" + size.to_bytes(2, "little") + (size ^ _BLOCK_BYTES).to_bytes(2, "little") + part)
    return b"".join(blocks)
