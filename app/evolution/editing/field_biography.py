"""The life of one field ID, as the retained schemas and snapshots of a table tell it, and its JSON form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from app.evolution.engine.compatibility import slot_of
from app.evolution.engine.diff import Slot, same_type
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import TableMetadata

State = Literal["current", "dropped", "forgotten", "never-assigned"]


class Definition(msgspec.Struct, frozen=True):
    """What one schema said of the field, where it differs from what the schema before said."""

    schema_id: int
    slot: Slot


class Carriers(msgspec.Struct, frozen=True):
    """Retained snapshots that were written under a schema with the field."""

    count: int = 0
    oldest: Snapshot | None = None
    newest: Snapshot | None = None


class Biography(msgspec.Struct, frozen=True):
    """`forgotten`: the ID was given out, and no retained schema has it any more."""

    field_id: int
    state: State
    slot: Slot | None
    definitions: tuple[Definition, ...]
    schema_ids: tuple[int, ...]
    snapshots: Carriers
    refs: tuple[str, ...]


def biography(table: TableMetadata, field_id: int) -> Biography:
    """The life of a field ID; linear in the retained schemas and snapshots."""
    carriers = tuple(schema_id for schema_id in sorted(table.schemas) if _has(table, schema_id, field_id))
    current = slot_of(table.schema, field_id)
    last = None
    if current is None and carriers:
        schema = table.schemas.get(carriers[-1])
        last = None if schema is None else slot_of(schema, field_id)
    carrying = frozenset(carriers)
    return Biography(
        field_id=field_id,
        state=_state(table, field_id, current, carriers),
        slot=current or last,
        definitions=tuple(_definitions(table, field_id, carriers)),
        schema_ids=carriers,
        snapshots=_snapshots(table, carrying),
        refs=tuple(_refs(table, carrying)),
    )


def _has(table: TableMetadata, schema_id: int, field_id: int) -> bool:
    schema = table.schemas.get(schema_id)
    return schema is not None and field_id in schema.by_id


def _state(table: TableMetadata, field_id: int, current: Slot | None, carriers: tuple[int, ...]) -> State:
    if current is not None:
        return "current"
    if carriers:
        return "dropped"
    return "forgotten" if 0 < field_id <= table.last_column_id else "never-assigned"


def _definitions(table: TableMetadata, field_id: int, carriers: tuple[int, ...]) -> Iterator[Definition]:
    before: Slot | None = None
    for schema_id in carriers:
        schema = table.schemas.get(schema_id)
        slot = None if schema is None else slot_of(schema, field_id)
        if slot is not None and (before is None or not _same(before, slot)):
            yield Definition(schema_id, slot)
        before = slot


def _same(before: Slot, after: Slot) -> bool:
    """Equal in all that is the field's own: children are other fields."""
    return (
        (before.path, before.parent, before.role, before.position, before.required)
        == (after.path, after.parent, after.role, after.position, after.required)
        and same_type(before.type, after.type)
        and before.field.doc == after.field.doc
        and before.initial_default == after.initial_default
        and before.write_default == after.write_default
    )


def _snapshots(table: TableMetadata, carrying: frozenset[int]) -> Carriers:
    number = 0
    oldest: Snapshot | None = None
    newest: Snapshot | None = None
    for snapshot in table.snapshots:
        if snapshot.schema_id not in carrying:
            continue
        number += 1
        if oldest is None or snapshot.timestamp_ms < oldest.timestamp_ms:
            oldest = snapshot
        if newest is None or snapshot.timestamp_ms >= newest.timestamp_ms:
            newest = snapshot
    return Carriers(number, oldest, newest)


def _refs(table: TableMetadata, carrying: frozenset[int]) -> Iterator[str]:
    """Branches and tags at a snapshot that carries the field."""
    for name, ref in table.refs.items():
        snapshot = table.snapshots.get(ref.snapshot_id)
        if snapshot is not None and snapshot.schema_id in carrying:
            yield name


def biography_json(of: Biography) -> dict[str, Any]:
    """As decoded JSON, for the API's answers and for the offline command line."""
    out: dict[str, Any] = {"field-id": of.field_id, "state": of.state}
    if of.slot is not None:
        out["definition"] = slot_json(of.slot)
    out["definitions"] = [{"schema-id": one.schema_id, **slot_json(one.slot)} for one in of.definitions]
    out["schema-ids"] = list(of.schema_ids)
    out["snapshots"] = _carriers_json(of.snapshots)
    out["refs"] = list(of.refs)
    return out


def slot_json(of: Slot) -> dict[str, Any]:
    """A field's own definition."""
    out: dict[str, Any] = {"path": of.path, "type": str(of.type), "required": of.required, "position": of.position}
    if of.parent is not None:
        out["parent-id"] = of.parent
    said = {"doc": of.field.doc, "initial-default": of.initial_default, "write-default": of.write_default}
    return out | {key: value for key, value in said.items() if value is not None}


def _carriers_json(of: Carriers) -> dict[str, Any]:
    out: dict[str, Any] = {"count": of.count}
    if of.oldest is not None and of.newest is not None:
        out["oldest"], out["newest"] = _snapshot_json(of.oldest), _snapshot_json(of.newest)
    return out


def _snapshot_json(of: Snapshot) -> dict[str, Any]:
    return {"snapshot-id": of.snapshot_id, "timestamp-ms": of.timestamp_ms, "schema-id": of.schema_id}
