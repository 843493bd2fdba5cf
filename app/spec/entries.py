"""Append-only runs of JSON entries whose structure is shared between versions of a document.

A table's snapshots, snapshot log and metadata log only grow at their end, and a commit must cost what it changed.
An `Entries` is a length over a shared tape: the version at the tip appends in place, any other copies first. The
tape keeps the entries of the past joined as one piece of JSON, so rendering joins a few big pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec

from app.spec.typed import convert_typed, decode_typed

Piece = bytes | memoryview


class Entry(Protocol):
    """One element: index values as attributes, and its JSON text as stored."""

    @property
    def body(self) -> msgspec.Raw: ...

    def detached(self) -> Self:
        """The same entry with its text copied out of the document it was parsed from."""
        ...


E = TypeVar("E", bound=Entry)
X = TypeVar("X", bound=msgspec.Struct)

# Entries appended one by one stay separate pieces until there are this many: joining earlier would copy the whole
# past on each commit, much later would make each rendering join many small pieces.
LOOSE_LIMIT = 256


class Tape(Generic[E]):
    """What versions share. `joined` is (n, JSON text of the first n entries, comma-separated)."""

    __slots__ = ("items", "joined", "positions")

    def __init__(self, items: list[E], joined: tuple[int, Piece], positions: dict[int, int]) -> None:
        self.items = items
        self.joined = joined
        self.positions = positions


class Entries(Generic[E]):
    """An immutable sequence. A subclass with `key_name`, an attribute of its entries, makes them findable by it."""

    __slots__ = ("_length", "_tape")

    key_name: ClassVar[str | None] = None

    def __init__(self, items: Iterable[E] = (), joined: Piece | None = None) -> None:
        """`joined` is the JSON text of all `items` without brackets, when it is at hand."""
        listed = list(items)
        self._length = len(listed)
        self._tape: Tape[E] = Tape(
            listed, (len(listed), joined) if joined is not None else (0, b""), self._positions(listed)
        )

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
        start = base._length if base._tape is self._tape and base._length <= self._length else 0
        return tuple(self._tape.items[start : self._length])

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
            joined = tape.joined if tape.joined[0] <= length else (0, b"")
            tape = Tape(items, joined, self._positions(items))
            items.append(entry)
        if self.key_name is not None:
            tape.positions[getattr(entry, self.key_name)] = length
        return self._over(tape, length + 1)

    def keep(self, kept: Callable[[E], bool]) -> Self:
        """Only the entries that `kept` accepts; this very sequence when it accepts all. Linear.

        When most are gone, the texts of the others are copied, so that the document they are part of can be freed.
        """
        return self._reduced([item for item in self if kept(item)])

    def after(self, count: int) -> Self:
        """Without the first `count` entries. Linear; texts are copied as in `keep`."""
        return self._reduced(self._tape.items[count : self._length])

    def _reduced(self, items: list[E]) -> Self:
        if len(items) == self._length:
            return self
        if 2 * len(items) < self._length:
            items = [item.detached() for item in items]
        return type(self)(items)

    def render(self) -> list[Piece]:
        """The JSON array, in few pieces to be joined: the past is one of them."""
        count, joined = self._tape.joined
        length = self._length
        if count == length:
            return [b"[", joined, b"]"]
        start = count if count < length else 0
        loose = b",".join([memoryview(item.body) for item in self._tape.items[start:length]])
        past: list[Piece] = [joined, b","] if start else []
        if count == 0 or length - count >= LOOSE_LIMIT:
            loose = b"".join((*past, loose))
            self._tape.joined = (length, loose)
            past = []
        return [b"[", *past, loose, b"]"]


_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])
_VALUES = msgspec.json.Decoder(list[Any])

BODY = "<body>"
"""The document key of the `body` member: one that no document uses, so that decoding leaves `body` alone."""

NO_TEXT = msgspec.Raw(b"")


def kebab(name: str) -> str:
    """Document keys of an index struct: kebab case, and `body` out of the document's reach."""
    return BODY if name == "body" else name.replace("_", "-")


def parse_array(raw: msgspec.Raw, path: str, kind: type[X]) -> tuple[list[X], Piece]:
    """The elements of a JSON array as index structs, each given its own text as `body`, and the text in the brackets.

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
    return items, memoryview(raw)[1:-1] if items else b""
