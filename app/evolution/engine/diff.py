"""What changed between two schemas, field ID by field ID and at every depth.

Equal parts are skipped by structural comparison, so a small change of a wide schema costs little more than one
comparison per top-level column. Struct fields, list elements, map keys and map values are all slots; paths are the
full dotted names of the spec's examples (`addr.city`, `tags.element`, `attrs.value.x`).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from app.iceberg.schema import Schema
from app.iceberg.types import ListType, MapType, NestedField, StructType, Type

Role = Literal["field", "element", "key", "value"]
ColumnChange = Literal[
    "added",
    "dropped",
    "restored",
    "renamed",
    "re-parented",
    "moved",
    "type-changed",
    "made-required",
    "made-optional",
    "doc-changed",
    "initial-default-changed",
    "write-default-changed",
]
Change = Literal[ColumnChange, "identifier-added", "identifier-removed"]
"""The kinds of change that the journal tells, each of one column."""


class Slot(msgspec.Struct, frozen=True, gc=False):
    """One place of a schema that has a field ID.

    `parent` is the ID of the enclosing field (None at the top), `position` the index among its siblings, and
    `in_key` is true for a map key and everything inside it.
    """

    field: NestedField
    parent: int | None
    role: Role
    path: str
    position: int = 0
    in_key: bool = False

    @property
    def field_id(self) -> int:
        return self.field.field_id

    @property
    def type(self) -> Type:
        return self.field.field_type

    @property
    def required(self) -> bool:
        return self.field.required

    @property
    def initial_default(self) -> object:
        """Decoded JSON; None when there is none."""
        return _settled(self.field.initial_default)

    @property
    def write_default(self) -> object:
        """Decoded JSON; None when there is none."""
        return _settled(self.field.write_default)

    @property
    def label(self) -> str:
        """How messages name the slot, e.g. `column addr.city (field 10)` or `element tags.element (field 8)`."""
        noun = "column" if self.role == "field" else self.role
        return f"{noun} {self.path or repr('')} (field {self.field_id})"


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One field ID whose own definition or place differs. `before` None: added; `after` None: dropped.

    `moved` marks a struct field that changed its order among siblings that stayed; a struct whose children changed
    has no delta of its own.
    """

    before: Slot | None
    after: Slot | None
    moved: bool = False

    @property
    def slot(self) -> Slot:
        slot = self.after if self.after is not None else self.before
        assert slot is not None
        return slot

    @property
    def field_id(self) -> int:
        return self.slot.field_id

    @property
    def added(self) -> bool:
        return self.before is None

    @property
    def dropped(self) -> bool:
        return self.after is None

    @property
    def renamed(self) -> bool:
        return self.before is not None and self.after is not None and self.before.field.name != self.after.field.name

    @property
    def reparented(self) -> bool:
        """Under another parent, or in another role under the same one."""
        return (
            self.before is not None
            and self.after is not None
            and (self.before.parent != self.after.parent or self.before.role != self.after.role)
        )

    @property
    def retyped(self) -> bool:
        """The type itself differs: another primitive, another kind, or other element, key or value IDs."""
        return self.before is not None and self.after is not None and not same_type(self.before.type, self.after.type)


class SchemaDiff(msgspec.Struct, frozen=True):
    """Deltas by field ID, in the order of the new schema with drops last, and the identifier fields that changed."""

    deltas: Mapping[int, Delta]
    identifiers_added: tuple[int, ...] = ()
    identifiers_removed: tuple[int, ...] = ()
    restored: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.deltas or self.identifiers_added or self.identifiers_removed)

    def added(self) -> Iterator[Slot]:
        return (d.after for d in self.deltas.values() if d.before is None and d.after is not None)

    def dropped(self) -> Iterator[Slot]:
        return (d.before for d in self.deltas.values() if d.after is None and d.before is not None)

    def to_json(self) -> list[dict[str, object]]:
        """One entry per changed aspect, for the journal and the API: `change`, `field-id`, `path`, and what applies
        of `before` and `after`."""
        out: list[dict[str, object]] = []
        for delta in self.deltas.values():
            out.extend(_aspects(delta, delta.field_id in self.restored))
        out.extend({"change": "identifier-added", "field-id": i} for i in self.identifiers_added)
        out.extend({"change": "identifier-removed", "field-id": i} for i in self.identifiers_removed)
        return out


def diff(before: Schema | None, after: Schema, *, last_column_id: int | None = None) -> SchemaDiff:
    """The change from `before` to `after`; with `before` None every field is added.

    `last_column_id`, the table's counter before the change, tells restored fields (IDs used earlier) from new ones.
    """
    walk = _Walk()
    if before is None:
        walk.arrive(after.fields, None, "", False)
    elif before is not after:
        walk.structs(before.fields, after.fields, None, "", "", False)
    deltas = walk.deltas()
    had = frozenset(before.identifier_field_ids) if before is not None else frozenset()
    has = frozenset(after.identifier_field_ids)
    restored = (
        frozenset(i for i, d in deltas.items() if d.before is None and i <= last_column_id)
        if last_column_id is not None
        else frozenset()
    )
    return SchemaDiff(deltas, tuple(sorted(has - had)), tuple(sorted(had - has)), restored)


def same_type(before: Type, after: Type) -> bool:
    """Equality of a type by itself, the definitions of its children left aside."""
    if isinstance(before, StructType):
        return isinstance(after, StructType)
    if isinstance(before, ListType):
        return isinstance(after, ListType) and before.element_id == after.element_id
    if isinstance(before, MapType):
        return isinstance(after, MapType) and before.key_id == after.key_id and before.value_id == after.value_id
    return before == after


def children(slot: Slot) -> Iterator[Slot]:
    """The slots directly under `slot`."""
    kind, parent, prefix = slot.type, slot.field_id, f"{slot.path}."
    if isinstance(kind, StructType):
        for at, field in enumerate(kind.fields):
            yield Slot(field, parent, "field", prefix + field.name, at, slot.in_key)
    elif isinstance(kind, ListType):
        yield Slot(kind.element_field, parent, "element", f"{prefix}element", 0, slot.in_key)
    elif isinstance(kind, MapType):
        yield Slot(kind.key_field, parent, "key", f"{prefix}key", 0, True)
        yield Slot(kind.value_field, parent, "value", f"{prefix}value", 1, slot.in_key)


def subtree(slot: Slot) -> Iterator[Slot]:
    """`slot` and everything under it, outer before inner."""
    yield slot
    if isinstance(slot.type, (StructType, ListType, MapType)):
        for child in children(slot):
            yield from subtree(child)


def _settled(default: object) -> object:
    return None if default is UNSET else default


class _Walk:
    """Collects deltas while two schemas are compared. An ID that goes in one place and comes in another is one delta
    with both ends, whatever the two places are."""

    def __init__(self) -> None:
        self._changed: dict[int, Delta] = {}
        self._gone: dict[int, Slot] = {}
        self._come: dict[int, Slot] = {}

    def deltas(self) -> dict[int, Delta]:
        out = dict(self._changed)
        for field_id, slot in self._come.items():
            left = self._gone.pop(field_id, None)
            # What travels unchanged inside something that moved is no change of its own.
            if left is None or not _same_in_place(left, slot):
                out[field_id] = Delta(left, slot)
        out.update((field_id, Delta(slot, None)) for field_id, slot in self._gone.items())
        return out

    def arrive(self, fields: Iterable[NestedField], parent: int | None, prefix: str, in_key: bool) -> None:
        for at, field in enumerate(fields):
            self._come.update(
                (s.field_id, s) for s in subtree(Slot(field, parent, "field", prefix + field.name, at, in_key))
            )

    def structs(
        self,
        before: tuple[NestedField, ...],
        after: tuple[NestedField, ...],
        parent: int | None,
        prefix_before: str,
        prefix_after: str,
        in_key: bool,
    ) -> None:
        """Compare the fields of one struct by ID. The prefixes differ when an enclosing struct was renamed."""
        if before is after:
            return
        left = {f.field_id: (at, f) for at, f in enumerate(before)}
        moved = _out_of_order([f.field_id for f in before], [f.field_id for f in after])
        for at, field in enumerate(after):
            found = left.pop(field.field_id, None)
            if found is None:
                self._come.update(
                    (s.field_id, s)
                    for s in subtree(Slot(field, parent, "field", prefix_after + field.name, at, in_key))
                )
                continue
            at_before, field_before = found
            shifted = field.field_id in moved
            if (field is field_before or field == field_before) and not shifted:
                continue
            self.slots(
                Slot(field_before, parent, "field", prefix_before + field_before.name, at_before, in_key),
                Slot(field, parent, "field", prefix_after + field.name, at, in_key),
                shifted,
            )
        for at, field in left.values():
            self._gone.update(
                (s.field_id, s) for s in subtree(Slot(field, parent, "field", prefix_before + field.name, at, in_key))
            )

    def slots(self, before: Slot, after: Slot, moved: bool = False) -> None:
        """Compare two slots with the same ID in the same place."""
        if moved or not _same_by_itself(before.field, after.field):
            self._changed[after.field_id] = Delta(before, after, moved)
        old, new = before.type, after.type
        if old is new or old == new:
            return
        if isinstance(old, StructType) and isinstance(new, StructType):
            self.structs(old.fields, new.fields, after.field_id, f"{before.path}.", f"{after.path}.", after.in_key)
            return
        gone = {s.field_id: s for s in children(before)}
        for child in children(after):
            match = gone.pop(child.field_id, None)
            if match is not None and match.role == child.role:
                self.slots(match, child)
                continue
            if match is not None:
                gone[child.field_id] = match
            self._come.update((s.field_id, s) for s in subtree(child))
        for child in gone.values():
            self._gone.update((s.field_id, s) for s in subtree(child))


def _same_in_place(before: Slot, after: Slot) -> bool:
    same_place = before.parent == after.parent and before.role == after.role
    return same_place and _same_by_itself(before.field, after.field)


def _same_by_itself(before: NestedField, after: NestedField) -> bool:
    return (
        before.name == after.name
        and before.required == after.required
        and before.doc == after.doc
        and _same_json(before.initial_default, after.initial_default)
        and _same_json(before.write_default, after.write_default)
        and same_type(before.field_type, after.field_type)
    )


def _same_json(before: object, after: object) -> bool:
    """JSON equality; Python's `True == 1` must not hide a change."""
    a, b = _settled(before), _settled(after)
    return a is b or (type(a) is type(b) and a == b)


def _out_of_order(before: list[int], after: list[int]) -> frozenset[int]:
    """The fewest IDs that must have been moved to turn the order of `before` into that of `after`, adds and drops
    aside: everything outside one longest increasing run."""
    if before == after:
        return _NONE_MOVED
    place = {field_id: at for at, field_id in enumerate(before)}
    common = [field_id for field_id in after if field_id in place]
    ranks = [place[field_id] for field_id in common]
    if all(a < b for a, b in itertools.pairwise(ranks)):
        return _NONE_MOVED
    tails: list[int] = []
    at_tail: list[int] = []
    link: list[int] = []
    for at, rank in enumerate(ranks):
        length = bisect_left(tails, rank)
        link.append(at_tail[length - 1] if length else -1)
        if length == len(tails):
            tails.append(rank)
            at_tail.append(at)
        else:
            tails[length] = rank
            at_tail[length] = at
    stayed: set[int] = set()
    at = at_tail[-1]
    while at >= 0:
        stayed.add(common[at])
        at = link[at]
    return frozenset(common) - stayed


_NONE_MOVED: Final[frozenset[int]] = frozenset()


def _aspects(delta: Delta, restored: bool) -> Iterator[dict[str, object]]:
    before, after = delta.before, delta.after
    if before is None or after is None:
        change: ColumnChange = "dropped" if after is None else "restored" if restored else "added"
        slot = delta.slot
        entry = _entry(change, slot, None, None)
        entry["before" if after is None else "after"] = describe(slot)
        yield entry
        return
    if delta.renamed:
        yield _entry("renamed", after, before.path, after.path)
    if delta.reparented:
        yield _entry("re-parented", after, before.path, after.path)
    if delta.moved:
        yield _entry("moved", after, before.position, after.position)
    if delta.retyped:
        yield _entry("type-changed", after, str(before.type), str(after.type))
    if before.required != after.required:
        yield _entry("made-required" if after.required else "made-optional", after, None, None)
    if before.field.doc != after.field.doc:
        yield _entry("doc-changed", after, before.field.doc, after.field.doc)
    if not _same_json(before.field.initial_default, after.field.initial_default):
        yield _entry("initial-default-changed", after, before.initial_default, after.initial_default)
    if not _same_json(before.field.write_default, after.field.write_default):
        yield _entry("write-default-changed", after, before.write_default, after.write_default)


def _entry(change: ColumnChange, slot: Slot, before: object, after: object) -> dict[str, object]:
    entry: dict[str, object] = {"change": change, "field-id": slot.field_id, "path": slot.path}
    if before is not None:
        entry["before"] = before
    if after is not None:
        entry["after"] = after
    return entry


def describe(slot: Slot) -> str:
    """`required long`, as messages and the journal print a definition."""
    return f"{'required' if slot.required else 'optional'} {slot.type}"
