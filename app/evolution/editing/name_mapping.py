"""Keeping a table's name mapping right when its schema changes (spec: Column Projection).

Old names stay, because files with them stay; new names and new columns are added. A name that another column takes
over is that column's from then on, as the reference implementations have it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.evolution.engine.diff import SchemaDiff
from app.iceberg.name_mapping import MappedField, NameMapping
from app.iceberg.schema import Schema
from app.iceberg.types import ListType, MapType, NestedField, StructType, Type


def followed_mapping(mapping: NameMapping, change: SchemaDiff, after: Schema) -> NameMapping:
    """The mapping for `after`; equal to what it was when no column was added, brought back or renamed."""
    renamed = {d.field_id: d.after.field.name for d in change.deltas.values() if d.renamed and d.after is not None}
    added: dict[int | None, list[NestedField]] = {}
    come = {slot.field_id for slot in change.added()}
    for slot in change.added():
        if slot.role == "field" and slot.parent not in come:
            added.setdefault(slot.parent, []).append(slot.field)
    if not renamed and not added:
        return mapping
    return NameMapping(_fields(mapping.fields, None, renamed, added))


def _fields(
    entries: tuple[MappedField, ...],
    parent: int | None,
    renamed: Mapping[int, str],
    added: Mapping[int | None, list[NestedField]],
) -> tuple[MappedField, ...]:
    out = [_entry(entry, renamed, added) for entry in entries]
    taken = {renamed[e.field_id]: e.field_id for e in out if e.field_id is not None and e.field_id in renamed}
    out = [left for entry in out if (left := _without(entry, taken)) is not None]
    fresh = list(added.get(parent, ()))
    known = {entry.field_id for entry in out}
    taken = {field.name: field.field_id for field in fresh}
    out = [left for entry in out if (left := _without(entry, taken)) is not None]
    for field in fresh:
        if field.field_id in known:
            out = [_named(entry, field.name) if entry.field_id == field.field_id else entry for entry in out]
        else:
            out.append(MappedField((field.name,), field.field_id, _inside(field.field_type)))
    return tuple(out)


def _entry(
    entry: MappedField, renamed: Mapping[int, str], added: Mapping[int | None, list[NestedField]]
) -> MappedField:
    if entry.field_id is None:
        return entry
    if entry.field_id in renamed:
        entry = _named(entry, renamed[entry.field_id])
    return msgspec.structs.replace(entry, fields=_fields(entry.fields, entry.field_id, renamed, added))


def _named(entry: MappedField, name: str) -> MappedField:
    return entry if name in entry.names else msgspec.structs.replace(entry, names=(*entry.names, name))


def _without(entry: MappedField, taken: Mapping[str, int]) -> MappedField | None:
    """The entry without names that are another column's now; None when none is left."""
    names = tuple(name for name in entry.names if taken.get(name, entry.field_id) == entry.field_id)
    if names == entry.names:
        return entry
    return msgspec.structs.replace(entry, names=names) if names else None


def _inside(kind: Type) -> tuple[MappedField, ...]:
    if isinstance(kind, StructType):
        return tuple(MappedField((child.name,), child.field_id, _inside(child.field_type)) for child in kind.fields)
    if isinstance(kind, ListType):
        return (MappedField(("element",), kind.element_id, _inside(kind.element)),)
    if isinstance(kind, MapType):
        return (
            MappedField(("key",), kind.key_id, _inside(kind.key)),
            MappedField(("value",), kind.value_id, _inside(kind.value)),
        )
    return ()
