"""What the chunks of cached documents weigh: each counts once, however many versions of a table have it."""

from __future__ import annotations

from app.iceberg.json.chunked_text import Chunk, Text


class _Held:
    __slots__ = ("cost", "holders")

    def __init__(self) -> None:
        self.holders = 0
        self.cost = 0


class Holdings:
    """`bytes` is the sum of what every held chunk was charged with when it was weighed last."""

    __slots__ = ("_chunks", "bytes")

    def __init__(self) -> None:
        self._chunks: dict[Chunk, _Held] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._chunks)

    def hold(self, text: Text) -> None:
        for chunk in text.chunks:
            self._chunks.setdefault(chunk, _Held()).holders += 1
        self.weigh(text)

    def release(self, text: Text) -> None:
        """The counterpart of one `hold`."""
        for chunk in text.chunks:
            held = self._chunks[chunk]
            held.holders -= 1
            if not held.holders:
                self.bytes -= held.cost
                del self._chunks[chunk]

    def weigh(self, text: Text) -> None:
        """Charge what a text has become; chunks that nobody holds are free."""
        for chunk in text.chunks:
            held = self._chunks.get(chunk)
            if held is not None:
                self.bytes += chunk.cost - held.cost
                held.cost = chunk.cost
