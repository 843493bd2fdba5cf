"""Whether files written under one schema read correctly under another, one field at a time.

The one place that knows the reader's law; rules put its answers into words. A `Pair` is a field of the new schema
beside the same field of an earlier one (or beside its absence), with the conflicts between them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

from app.evolution.engine.diff import Delta, Slot, diff, same_type
from app.evolution.engine.promotion import changes_output, outgrows, promotable
from app.iceberg.partition import PartitionField, PartitionSpec
from app.iceberg.schema import Schema
from app.iceberg.types import ListType, MapType, PrimitiveType, StructType, UnknownType
from app.iceberg.values import equal_values


class Conflict(enum.Enum):
    """Why files written under the earlier field cannot be read as the later one."""

    REQUIRED_ABSENT = "a required field that the files lack and no initial-default fills"
    MADE_REQUIRED = "an optional field became required"
    MOVED = "the field sits under another parent"
    RESHAPED = "one of primitive, variant, struct, list and map became another"
    REIDENTIFIED = "a list or map has other element, key or value IDs"
    RETYPED = "a primitive type became one that is no legal promotion"
    KEY_CHANGED = "a map key, or something inside one, changed"
    DEFAULT_CHANGED = "the initial-default differs"
    PARTITIONED = "the promotion changes what a partition transform yields"
    OUTGROWN = "a partition transform does not take the promoted type"


class Partitioned(msgspec.Struct, frozen=True, gc=False):
    """A partition field and the spec that holds it."""

    spec_id: int
    field: PartitionField


class ReadContext(msgspec.Struct, frozen=True):
    """What else decides: the format version, and the partition fields of specs that may have files, by source ID."""

    format_version: int
    partitioned: Mapping[int, tuple[Partitioned, ...]] = {}

    @classmethod
    def of(cls, format_version: int, specs: Iterable[PartitionSpec]) -> ReadContext:
        by_source: dict[int, list[Partitioned]] = {}
        for spec in specs:
            for field in spec.fields:
                for source in field.source_ids:
                    by_source.setdefault(source, []).append(Partitioned(spec.spec_id, field))
        return cls(format_version, {source: tuple(found) for source, found in by_source.items()})


class Against(msgspec.Struct, frozen=True, gc=False):
    """The earlier schema of a pair and why it must stay readable. `branch` None: it was the current schema."""

    schema_id: int
    branch: str | None = None
    snapshot_id: int | None = None

    def __str__(self) -> str:
        if self.branch is None:
            return f"schema {self.schema_id}"
        return f"schema {self.schema_id} (branch {self.branch} holds snapshot {self.snapshot_id} written under it)"


class Pair(msgspec.Struct, frozen=True, gc=False):
    """`before` None: the earlier schema lacks the field. `after` None: the new schema does."""

    before: Slot | None
    after: Slot | None
    conflicts: tuple[Conflict, ...]
    against: Against

    @property
    def slot(self) -> Slot:
        slot = self.after if self.after is not None else self.before
        assert slot is not None
        return slot


def conflicts(law: ReadContext, delta: Delta, before: Schema, after: Schema) -> tuple[Conflict, ...]:
    """What keeps files written under `before` from being read under `after`, as far as the delta's field goes."""
    old, new = delta.before, delta.after
    if (old is not None and old.in_key) or (new is not None and new.in_key):
        return _key_conflicts(delta, before, after)
    if new is None:
        return ()
    if old is None:
        return _absence(new, before)
    found: list[Conflict] = []
    if delta.reparented:
        found.append(Conflict.MOVED)
    found.extend(_type_conflicts(law, old, new))
    readable = not found
    if new.required and not old.required:
        found.append(Conflict.MADE_REQUIRED)
    if readable and not same_default(old, new):
        found.append(Conflict.DEFAULT_CHANGED)
    return tuple(found)


def misread(law: ReadContext, before: Schema, after: Schema) -> tuple[Pair, ...]:
    """Every field of `after` that files written under `before` cannot be read as."""
    against = Against(before.schema_id)
    out = []
    for delta in diff(before, after).deltas.values():
        found = conflicts(law, delta, before, after)
        if found:
            out.append(Pair(delta.before, delta.after, found, against))
    return tuple(out)


def misread_fields(law: ReadContext, before: Schema, after: Schema, field_ids: Iterable[int]) -> tuple[Pair, ...]:
    """As `misread`, for some fields alone, none of them inside a map key: it costs what they are, not the schemas."""
    against = Against(before.schema_id)
    out = []
    for field_id in field_ids:
        old, new = slot_of(before, field_id), slot_of(after, field_id)
        if old is None and new is None:
            continue
        found = conflicts(law, Delta(old, new), before, after)
        if found:
            out.append(Pair(old, new, found, against))
    return tuple(out)


def same_default(old: Slot, new: Slot) -> bool:
    """Whether both initial-defaults are one value, whatever their JSON looks like; a promotion keeps the value."""
    a, b = old.initial_default, new.initial_default
    if a is None or b is None:
        return a is b
    if (a is b or a == b) and old.type == new.type:
        return True
    return equal_values(old.type, a, new.type, b)


def _absence(new: Slot, before: Schema) -> tuple[Conflict, ...]:
    if new.role != "field" or not new.required or new.initial_default is not None:
        return ()
    if new.parent is not None:
        parent = before.by_id.get(new.parent)
        if parent is None or not isinstance(parent.field_type, StructType):
            # Where the struct itself is missing, its own default or null answers and nobody asks for its fields.
            return ()
    return (Conflict.REQUIRED_ABSENT,)


def _type_conflicts(law: ReadContext, old: Slot, new: Slot) -> list[Conflict]:
    before, after = old.type, new.type
    if same_type(before, after):
        return []
    if promotable(before, after, law.format_version):
        found = []
        for part in law.partitioned.get(new.field_id, ()):
            if changes_output(part.field.transform, before, after):
                found.append(Conflict.PARTITIONED)
            if outgrows(part.field.transform, before, after):
                found.append(Conflict.OUTGROWN)
        return list(dict.fromkeys(found))
    if type(before) is type(after) and isinstance(before, (ListType, MapType)):
        return [Conflict.REIDENTIFIED]
    primitives = isinstance(before, PrimitiveType) and isinstance(after, PrimitiveType)
    return [Conflict.RETYPED if primitives or isinstance(before, UnknownType) else Conflict.RESHAPED]


def _key_conflicts(delta: Delta, before: Schema, after: Schema) -> tuple[Conflict, ...]:
    """Inside a map key nothing but a comment may change, as long as the map keeps its key ID."""
    old, new = delta.before, delta.after
    if old is not None and new is not None:
        plain = msgspec.structs.replace(old.field, doc=new.field.doc, field_type=new.field.field_type)
        same = not delta.moved and not delta.reparented and same_type(old.type, new.type) and plain == new.field
        return () if same else (Conflict.KEY_CHANGED,)
    slot, other = (old, after) if new is None else (new, before)
    assert slot is not None
    inside = slot.role != "key" and slot.parent in other.by_id
    return (Conflict.KEY_CHANGED,) if inside else ()


def slot_of(schema: Schema, field_id: int) -> Slot | None:
    """The slot of a field ID in a schema, None when the schema lacks it."""
    field = schema.by_id.get(field_id)
    if field is None:
        return None
    role = schema.kind_of(field_id)
    in_key = role == "key" or any(schema.kind_of(a.field_id) == "key" for a in schema.ancestors(field_id))
    return Slot(field, schema.parents[field_id], role, schema.name_of(field_id), schema.positions[field_id], in_key)
