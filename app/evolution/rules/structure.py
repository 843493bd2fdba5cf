"""Rules about the shape of the schema tree (ICE4xx)."""

from __future__ import annotations

from collections.abc import Iterator

from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import Conflict
from app.evolution.engine.registry import RULES
from app.evolution.rules.types import whence
from app.iceberg.types import ListType, MapType, StructType, Type
from app.rules import Fault


@RULES.rule("ICE401", "field-moved-to-other-parent", spec="Schema Evolution")
def field_moved_to_other_parent(change: Change) -> Iterator[Fault]:
    """A field moves into, out of or between structs, lists and maps.

    Checks
        A field that keeps its ID keeps its parent. Order among siblings is free.
    Why it matters
        In old files the column is where it was. Readers look for it under its new parent, do not find it, and return
        null or the default: the data is gone without an error.
    Example
        Grouping `street` and `city` into a new struct `addr`, or flattening such a struct, is refused.
    What to do
        Add new fields at the new place, with new IDs, and copy the values.
    Spec
        Schema Evolution: grouping fields into a nested struct, or moving them out of one, is not allowed.
    """
    for pair in change.pairs:
        if Conflict.MOVED not in pair.conflicts or pair.before is None or pair.after is None:
            continue
        slot = pair.after
        yield Fault(
            text=(
                f"{slot.label} cannot move from {pair.before.path} to {slot.path}{whence(pair.against)}: old files "
                f"hold it under its former parent"
            ),
            fix=change.way_out("Add a new field with a new ID at the new place and copy the values."),
            field_id=slot.field_id,
            path=slot.path,
            before=pair.before.path,
            after=slot.path,
        )


@RULES.rule("ICE402", "collection-ids-changed", spec="Nested Types")
def collection_ids_changed(change: Change) -> Iterator[Fault]:
    """A list or map keeps its ID but its element, key or value gets another one.

    Checks
        A list that keeps its field ID keeps its element-id; a map keeps its key-id and value-id.
    Why it matters
        Files hold the elements under the old ID. A reader asks for the new one and finds nothing: lists come back
        empty or full of nulls. A list has exactly one element, so its old element cannot be dropped either.
    Example
        `7: tags list<8: string>` to `7: tags list<12: string>` is refused.
    What to do
        Keep the IDs; to start afresh, add a new list column and drop the old one.
    Spec
        Nested Types: element, key and value fields have IDs of their own, which identify them in files.
    """
    for pair in change.pairs:
        if Conflict.REIDENTIFIED not in pair.conflicts or pair.before is None or pair.after is None:
            continue
        slot = pair.after
        old, new = _inner_ids(pair.before.type), _inner_ids(slot.type)
        yield Fault(
            text=(
                f"{slot.label} cannot change from {old} to {new}{whence(pair.against)}: stored elements would no "
                f"longer be found"
            ),
            fix=change.way_out(f"Keep {old}, or add a new column with new IDs and copy the values."),
            field_id=slot.field_id,
            path=slot.path,
            before=old,
            after=new,
        )


@RULES.rule("ICE403", "last-field-dropped", spec="Schemas and Data Types")
def last_field_dropped(change: Change) -> Iterator[Fault]:
    """The last field of a struct, or the last column of a table with data, is dropped.

    Checks
        A struct that had fields keeps at least one, and so does a table that any branch can be read from.
    Why it matters
        Parquet has no groups without columns: from then on nothing can be written to the table, or only by dropping
        the struct as well.
    Example
        `9: addr struct<10: city>` to `9: addr struct<>` is refused.
    What to do
        Drop the struct itself, or add its new field in the same commit.
    Spec
        Silent; Appendix A maps structs to Parquet groups, which cannot be empty.
    """
    before, after = change.before, change.after
    if before is None or not change.takes_effect:
        return
    parents = dict.fromkeys(slot.parent for slot in change.diff.dropped() if slot.role == "field")
    for parent in parents:
        if parent is None:
            if before.fields and not after.fields and change.binds:
                yield Fault(
                    text="the last column of the table would be dropped, and no file format can store such rows",
                    fix="Keep one column, or add another one in the same commit.",
                )
            continue
        struct = after.by_id.get(parent)
        if struct is None or not isinstance(struct.field_type, StructType) or struct.field_type.fields:
            continue
        if not change.binds:
            continue
        path = after.name_of(parent)
        yield Fault(
            text=f"column {path} (field {parent}) would lose its last field, and Parquet cannot store an empty struct",
            fix=f"Drop {path} itself, or add another field to it in the same commit.",
            field_id=parent,
            path=path,
            after=str(struct.field_type),
        )


def _inner_ids(kind: Type) -> str:
    if isinstance(kind, ListType):
        return f"element-id {kind.element_id}"
    if isinstance(kind, MapType):
        return f"key-id {kind.key_id} and value-id {kind.value_id}"
    return str(kind)
