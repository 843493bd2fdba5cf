"""Append-only runs of JSON entries whose structure is shared between versions of a document.

A table's snapshots, snapshot log and metadata log only grow at their end, and a commit must cost what it changed.
An `Entries` is a length over a shared tape: the version at the tip appends in place, any other copies first. The
tape keeps the entries of the past as chunks of text, which versions share too; the last ones are loose.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, compress, islice
from operator import attrgetter, is_
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from app.iceberg.json.chunked_text import CHUNK_BYTES, Chunk, Piece, merged
from app.iceberg.json.typed import convert_typed, decode_typed


class Entry(Protocol):
    """One element: index values as attributes, and its JSON text as stored."""

    @property
    def body(self) -> msgspec.Raw: ...

    def detached(self) -> Self:
        """The same entry with its text copied out of the document it was parsed from."""
        ...


E = TypeVar("E", bound=Entry)
X = TypeVar("X", bound=msgspec.Struct)

# Entries appended one by one stay loose until there are this many, or this many bytes of them: they are joined, and
# compressed, anew for each version. Sealing earlier would make many small chunks.
LOOSE_LIMIT = 256
_LOOSE_BYTES = 32 << 10
# Chunks at the end that are smaller than this are merged once they are as large together.
_SMALL_BYTES = CHUNK_BYTES // 2


class Sealed(NamedTuple):
    """The text of the entries up to number `end`, from where the chunk before ends, each with the comma behind it.

    So it is for versions that are longer than `end`: no chunk holds the last entry.
    """

    end: int
    chunk: Chunk


class Tape(Generic[E]):
    """What versions share. `sealed` is replaced, never changed: threads may render versions at the same time."""

    __slots__ = ("items", "positions", "sealed")

    def __init__(self, items: list[E], sealed: tuple[Sealed, ...], positions: dict[int, int]) -> None:
        self.items = items
        self.sealed = sealed
        self.positions = positions


class Entries(Generic[E]):
    """An immutable sequence. A subclass with `key_name`, an attribute of its entries, makes them findable by it."""

    __slots__ = ("_length", "_tape")

    key_name: ClassVar[str | None] = None

    def __init__(self, items: Iterable[E] = (), sealed: Sequence[Sealed] = ()) -> None:
        """`sealed` is text of the first `items` when it is at hand."""
        listed = list(items)
        self._length = len(listed)
        self._tape: Tape[E] = Tape(listed, tuple(sealed), self._positions(listed))

    @classmethod
    def _positions(cls, items: list[E]) -> dict[int, int]:
        if cls.key_name is None:
            return {}
        key = attrgetter(cls.key_name)
        return {key(item): at for at, item in enumerate(items)}

    @classmethod
    def _over(cls, tape: Tape[E], length: int) -> Self:
        made = cls.__new__(cls)
        made._tape, made._length = tape, length
        return made

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[E]:
        return islice(self._tape.items, self._length)

    def __getitem__(self, at: int) -> E:
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._tape.items[at if at >= 0 else self._length + at]

    @property
    def last(self) -> E | None:
        return self._tape.items[self._length - 1] if self._length else None

    def since(self, base: Entries[E]) -> tuple[E, ...]:
        """Entries that `base` does not share: those appended after it, or all when the structure differs."""
        mine, theirs, start = self._tape.items, base._tape.items, base._length
        # Two versions that went on from one base have tapes of their own with the same entries at the front.
        shared = start <= self._length and (mine is theirs or all(map(is_, islice(mine, start), theirs)))
        return tuple(mine[start if shared else 0 : self._length])

    def find(self, key: int) -> E | None:
        """The entry with this key (the last one, should a document hold two)."""
        at = self._tape.positions.get(key)
        return None if at is None or at >= self._length else self._tape.items[at]

    @property
    def has_duplicates(self) -> bool:
        """True when two entries have one key. Meant for a sequence just parsed."""
        return self.key_name is not None and len(self._tape.positions) != len(self._tape.items)

    def append(self, entry: E) -> Self:
        """A sequence one longer. Constant time at the tip; a copy when another version went on from here first."""
        tape, length = self._tape, self._length
        won = False
        if len(tape.items) == length:
            tape.items.append(entry)
            # Two threads may both have seen the tip: the slot belongs to the one whose entry sits in it.
            won = tape.items[length] is entry
        if not won:
            items = tape.items[:length]
            sealed = tuple([run for run in tape.sealed if run.end <= length])
            tape = Tape(items, sealed, self._positions(items))
            items.append(entry)
        if self.key_name is not None:
            tape.positions[getattr(entry, self.key_name)] = length
        return self._over(tape, length + 1)

    def keep(self, kept: Callable[[E], bool]) -> Self:
        """Only the entries that `kept` accepts; this very sequence when it accepts all. Linear.

        When most are gone, the texts of the others are copied, so that the document they are part of can be freed.
        """
        return self._reduced([kept(item) for item in self])

    def after(self, count: int) -> Self:
        """Without the first `count` entries. Linear; texts are copied as in `keep`."""
        count = min(count, self._length)
        return self._reduced([False] * count + [True] * (self._length - count))

    def _reduced(self, wanted: list[bool]) -> Self:
        """The entries marked in `wanted`. Chunks that keep all of theirs stay, the others are written anew."""
        size = sum(wanted)
        if size == self._length:
            return self
        detach = 2 * size < self._length
        items: list[E] = []
        sealed: list[Sealed] = []
        start = done = 0
        for end, chunk in self._sealed():
            untouched = all(wanted[start:end])
            if untouched and (done == len(items) or len(chunk) >= _LOOSE_BYTES):
                # The chunk stays as it is; what was left of those before it becomes chunks of its own.
                sealed += _seal(items, done, len(items))
                done = len(items) + end - start
                sealed.append(Sealed(done, chunk.detached() if detach else chunk))
            items += self._taken(wanted, start, end, detach)
            start = end
        items += self._taken(wanted, start, self._length, detach)
        return type(self)(items, sealed)

    def _taken(self, wanted: list[bool], start: int, end: int, detach: bool) -> list[E]:
        taken = compress(self._tape.items[start:end], wanted[start:end])
        return [item.detached() for item in taken] if detach else list(taken)

    def _sealed(self) -> tuple[Sealed, ...]:
        """The chunks of the tape that end before this version's last entry."""
        sealed = self._tape.sealed
        used = len(sealed)
        while used and sealed[used - 1].end >= self._length:
            used -= 1
        return sealed if used == len(sealed) else sealed[:used]

    @property
    def loose(self) -> int:
        """How many entries `parts` would have to join."""
        sealed = self._sealed()
        return self._length - (sealed[-1].end if sealed else 0)

    def parts(self) -> list[Piece | Chunk]:
        """The JSON array: the past as the chunks that other versions have too, and what is loose."""
        sealed = self._sealed()
        start = sealed[-1].end if sealed else 0
        loose = _joined(self._tape.items[start : self._length])
        if self._length - start > LOOSE_LIMIT or len(loose) > _LOOSE_BYTES:
            newest = _seal(self._tape.items, start, self._length - 1)
            tip = sealed is self._tape.sealed
            sealed = _tidied((*sealed, *newest))
            if tip:
                self._tape.sealed = sealed
            loose = _joined(self._tape.items[self._length - 1 : self._length])
        return [b"[", *[run.chunk for run in sealed], loose, b"]"]


def _joined(items: Sequence[Entry]) -> bytes:
    return b",".join([memoryview(item.body) for item in items])


def _seal(items: Sequence[Entry], start: int, end: int) -> list[Sealed]:
    """Chunks for the entries from `start` to `end`."""
    sealed: list[Sealed] = []
    while start < end:
        upto, size = start, 0
        while upto < end and (upto == start or size < CHUNK_BYTES):
            size += len(items[upto].body) + 1
            upto += 1
        sealed.append(Sealed(upto, Chunk(_joined(items[start:upto]) + b",")))
        start = upto
    return sealed


def _tidied(sealed: tuple[Sealed, ...]) -> tuple[Sealed, ...]:
    """With the small chunks at the end as one, as soon as they are together no longer small."""
    first, size = len(sealed), 0
    while first and len(sealed[first - 1].chunk) < _SMALL_BYTES:
        first -= 1
        size += len(sealed[first].chunk)
    if size < _SMALL_BYTES:
        return sealed
    return (*sealed[:first], Sealed(sealed[-1].end, merged([run.chunk for run in sealed[first:]])))


_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])
_VALUES = msgspec.json.Decoder(list[Any])

BODY = "<body>"
"""The document key of the `body` member: one that no document uses, so that decoding leaves `body` alone."""

NO_TEXT = msgspec.Raw(b"")


def kebab(name: str) -> str:
    """Document keys of an index struct: kebab case, and `body` out of the document's reach."""
    return BODY if name == "body" else name.replace("_", "-")


def parse_array(raw: msgspec.Raw, path: str, kind: type[X]) -> list[X]:
    """The elements of a JSON array as index structs, each given its own text as `body`.

    Nothing is copied: the texts are views into the document. SpecError names the element at fault.
    """
    try:
        items = msgspec.json.decode(raw, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        # Members that are null where the index has a plain value count as absent: look again, element by element.
        listed = decode_typed(_VALUES, raw, path)
        items = [convert_typed(item, kind, f"{path}[{at}]") for at, item in enumerate(listed)]
    for item, text in zip(items, _TEXTS.decode(raw), strict=True):
        msgspec.structs.force_setattr(item, "body", text)
    return items


def sealed_text(raw: msgspec.Raw, items: Sequence[Entry]) -> list[Sealed]:
    """Chunks that are views into the text of an array; none if there is white space between its `items`."""
    if len(items) < 2:
        return []
    ends = list(accumulate([len(item.body) + 1 for item in items]))
    if ends[-1] + 1 != len(raw):
        return []
    view, sealed, start = memoryview(raw)[1:], [], 0
    while start < ends[-2]:
        count = min(bisect_left(ends, start + CHUNK_BYTES) + 1, len(items) - 1)
        sealed.append(Sealed(count, Chunk(view[start : ends[count - 1]])))
        start = ends[count - 1]
    return sealed
