"""What becomes of a table's name mapping when its schema changes (spec: Column Projection).

Files without field IDs find their columns by name through the mapping. A name that goes from one field to another
takes the values in those files along, so while there may be such files a name stays with its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from app.evolution.diff import SchemaDiff
from app.spec.name_mapping import MappedField, NameMapping
from app.spec.schema import Schema
from app.spec.types import ListType, MapType, NestedField, StructType, Type

_Place = tuple[int | None, str]
"""The ID of the enclosing field (None at the top level) and a name inside it."""


class Move(msgspec.Struct, frozen=True):
    """A name that files may have had for the field `former` and that is mapped to the field `field_id`."""

    name: str
    former: int
    field_id: int


class _Following(msgspec.Struct, frozen=True):
    """New names by field ID, new fields by parent, and whether names in use stay with their fields."""

    renamed: Mapping[int, str]
    added: Mapping[int | None, list[NestedField]]
    keep: bool


def followed_mapping(mapping: NameMapping, change: SchemaDiff, after: Schema, *, keep: bool) -> NameMapping:
    """The mapping for `after`; equal to what it was when no column was added, brought back or renamed.

    Old names stay, because files with them stay; new names and new columns are added. With `keep`, which is for tables
    with data, a name that another field has stays there, and a new column of that name is mapped without a name.
    Without it the name goes to the column that takes it over, as the reference implementations always have it.
    """
    renamed = {d.field_id: d.after.field.name for d in change.deltas.values() if d.renamed and d.after is not None}
    added: dict[int | None, list[NestedField]] = {}
    come = {slot.field_id for slot in change.added()}
    for slot in change.added():
        if slot.role == "field" and slot.parent not in come:
            added.setdefault(slot.parent, []).append(slot.field)
    if not renamed and not added:
        return mapping
    return NameMapping(_fields(mapping.fields, None, _Following(renamed, added, keep)))


def names_by_id(mapping: NameMapping) -> dict[int, set[str]]:
    """All names of each field, wherever the mapping has it."""
    out: dict[int, set[str]] = {}
    for _, entry in mapping.walk():
        if entry.field_id is not None:
            out.setdefault(entry.field_id, set()).update(entry.names)
    return out


def moved_names(before: NameMapping, after: NameMapping, earlier: Iterable[Schema]) -> Iterator[Move]:
    """Names that `after` gives to a field they did not have in `before`, though they had another.

    A name that `before` leaves out counts as that of the field which first bore it in the `earlier` schemas (oldest
    first): the mapping may have lost it with a dropped column. Linear in the mappings and, if there are new names, in
    the fields of the schemas.
    """
    fresh: dict[_Place, list[int]] = {}
    levels: list[tuple[int | None, Sequence[MappedField], Sequence[MappedField]]] = [
        (None, before.fields, after.fields)
    ]
    while levels:
        parent, old, new = levels.pop()
        held = _ids_by_name(old)
        for name, ids in _ids_by_name(new).items():
            known = held.get(name)
            if known is None:
                fresh[parent, name] = ids
            else:
                yield from (Move(name, known[0], field_id) for field_id in ids if field_id not in known)
        inside = _children_by_id(old)
        levels += [(field_id, inside.get(field_id, ()), below) for field_id, below in _children_by_id(new).items()]
    if not fresh:
        return
    for place, former in _first_bearers(fresh, earlier).items():
        yield from (Move(place[1], former, field_id) for field_id in fresh[place] if field_id != former)


def _ids_by_name(entries: Sequence[MappedField]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for entry in entries:
        if entry.field_id is not None:
            for name in entry.names:
                out.setdefault(name, []).append(entry.field_id)
    return out


def _children_by_id(entries: Sequence[MappedField]) -> dict[int, list[MappedField]]:
    out: dict[int, list[MappedField]] = {}
    for entry in entries:
        if entry.field_id is not None and entry.fields:
            out.setdefault(entry.field_id, []).extend(entry.fields)
    return out


def _first_bearers(places: Mapping[_Place, object], earlier: Iterable[Schema]) -> dict[_Place, int]:
    found: dict[_Place, int] = {}
    for schema in earlier:
        for field_id, field in schema.by_id.items():
            place = (schema.parents[field_id], field.name)
            if place in places:
                found.setdefault(place, field_id)
    return found


def _fields(entries: tuple[MappedField, ...], parent: int | None, following: _Following) -> tuple[MappedField, ...]:
    owners = {name: ids[0] for name, ids in _ids_by_name(entries).items()} if following.keep else {}
    out = [_entry(entry, following, owners) for entry in entries]
    fresh = following.added.get(parent, [])
    if not following.keep:
        here = [entry.field_id for entry in out if entry.field_id is not None]
        out = _left_to(out, {following.renamed[i]: i for i in here if i in following.renamed})
        out = _left_to(out, {field.name: field.field_id for field in fresh})
    known = {entry.field_id for entry in out}
    for field in fresh:
        names = (field.name,) if owners.get(field.name, field.field_id) == field.field_id else ()
        if field.field_id in known:
            out = [_named(entry, *names) if entry.field_id == field.field_id else entry for entry in out]
        else:
            out.append(MappedField(names, field.field_id, _inside(field.field_type)))
    return tuple(out)


def _entry(entry: MappedField, following: _Following, owners: Mapping[str, int]) -> MappedField:
    field_id = entry.field_id
    if field_id is None:
        return entry
    name = following.renamed.get(field_id)
    if name is not None and owners.get(name, field_id) == field_id:
        entry = _named(entry, name)
    return msgspec.structs.replace(entry, fields=_fields(entry.fields, field_id, following))


def _left_to(entries: list[MappedField], taken: Mapping[str, int]) -> list[MappedField]:
    return [left for entry in entries if (left := _without(entry, taken)) is not None]


def _named(entry: MappedField, *names: str) -> MappedField:
    new = tuple(name for name in names if name not in entry.names)
    return msgspec.structs.replace(entry, names=(*entry.names, *new)) if new else entry


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
