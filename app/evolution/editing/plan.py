"""From operations to one commit: requirements, updates, and a hash that stands for exactly these.

Pure. A plan is made against one state of a table; on another state it is made again, and `same_meaning` tells whether
the operations are still about the same columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from app.errors import SpecError, ValidationFailed
from app.evolution.editing.edit import Touch, edit, missing
from app.evolution.editing.operations import Operation, RollbackTo
from app.evolution.engine import column_properties
from app.evolution.engine.diff import SchemaDiff, Slot, diff
from app.evolution.engine.name_mapping import followed_mapping, names_by_id
from app.iceberg.json.codec import encode
from app.iceberg.name_mapping import (
    NAME_MAPPING_PROPERTY,
    NameMapping,
    parse_name_mapping,
    render_name_mapping,
)
from app.iceberg.ref import MAIN, SnapshotRef, ref_to_json
from app.iceberg.requirement import (
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata
from app.iceberg.update import (
    LAST_ADDED,
    AddSchema,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)

TAG_PROPERTY: Final = "icekeel.tag-before-drop"
"""`true` on a namespace or table: a plan that drops a column tags the current snapshot first."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the operations make of one state of a table. Without updates there is nothing to do.

    `tag` is the name under which the current snapshot is kept before a column goes; `required` are new required
    columns that old rows fill from a default.
    """

    base_schema_id: int
    schema: Schema
    changes: SchemaDiff
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    touches: tuple[Touch, ...]
    notes: tuple[str, ...]
    digest: str
    tag: str | None = None

    @property
    def assigned(self) -> tuple[Slot, ...]:
        """Every place of the new schema that gets an ID no field had before."""
        return tuple(slot for slot in self.changes.added() if slot.field_id not in self.changes.restored)

    @property
    def required(self) -> tuple[Slot, ...]:
        fields = (slot for slot in self.assigned if slot.role == "field")
        return tuple(slot for slot in fields if slot.required and slot.initial_default is not None)


def plan(table: TableMetadata, operations: tuple[Operation, ...], *, tag_before_drop: bool = False) -> Plan:
    """The commit that carries the operations out on `table`. ValidationFailed, SpecError for what has no meaning."""
    edited = edit(table, operations)
    before = table.schema
    changes = diff(before, edited.schema, last_column_id=table.last_column_id)
    notes = list(edited.notes)
    tag = _tag_name(table, changes) if tag_before_drop else None
    updates: list[TableUpdate] = []
    if tag is not None and table.current_snapshot_id is not None:
        updates.append(SetSnapshotRef(tag, SnapshotRef(snapshot_id=table.current_snapshot_id, kind="tag")))
        notes.append(f"snapshot {table.current_snapshot_id} is kept as tag {tag}")
    known = table.schemas.same_as(edited.schema)
    schema = edited.schema.with_id(max(table.schemas.ids, default=-1) + 1 if known is None else known)
    updates.extend(_schema_updates(table, schema, new=known is None))
    updates.extend(_ref_updates(table, operations))
    updates.extend(_property_updates(table, changes, edited.schema, notes))
    requirements = tuple(_requirements(table, operations, changes, tag)) if updates else ()
    return Plan(
        base_schema_id=table.current_schema_id,
        schema=schema,
        changes=changes,
        requirements=requirements,
        updates=tuple(updates),
        touches=edited.touches,
        notes=tuple(notes),
        digest=_digest(requirements, updates),
        tag=tag,
    )


def same_meaning(earlier: Plan, later: Plan) -> bool:
    """Whether the operations are about the same columns, with the same traits, in both plans."""
    return not missing(earlier.touches, later.touches)


def at_schema(table: TableMetadata, schema_id: int) -> TableMetadata | None:
    """The table as if `schema_id` were current; None when that schema is not retained."""
    if schema_id not in table.schemas:
        return None
    return msgspec.structs.replace(table, current_schema_id=schema_id)


def _schema_updates(table: TableMetadata, schema: Schema, *, new: bool) -> Iterator[TableUpdate]:
    if schema.same_content(table.schema):
        return
    if new:
        yield AddSchema(schema, schema.schema_id)
    yield SetCurrentSchema(LAST_ADDED if new else schema.schema_id)


def _ref_updates(table: TableMetadata, operations: tuple[Operation, ...]) -> Iterator[TableUpdate]:
    for operation in operations:
        if isinstance(operation, RollbackTo):
            ref = table.refs.get(operation.branch)
            if ref is None:
                yield SetSnapshotRef(operation.branch, SnapshotRef(snapshot_id=operation.snapshot_id, kind="branch"))
            elif ref.snapshot_id != operation.snapshot_id:
                moved = msgspec.structs.replace(ref, snapshot_id=operation.snapshot_id, extra={})
                yield SetSnapshotRef(operation.branch, moved)


def _property_updates(
    table: TableMetadata, changes: SchemaDiff, schema: Schema, notes: list[str]
) -> Iterator[TableUpdate]:
    updates, removals = column_properties.followed(table.properties, table.schema, schema)
    mapping = _mapping_update(table, changes, schema, notes)
    if mapping is not None:
        updates[NAME_MAPPING_PROPERTY] = mapping
    if updates:
        yield SetProperties(updates)
    if removals:
        yield RemoveProperties(removals)


def _mapping_update(table: TableMetadata, changes: SchemaDiff, schema: Schema, notes: list[str]) -> str | None:
    text = table.properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return None
    try:
        mapping = parse_name_mapping(text)
    except SpecError:
        notes.append(f"{NAME_MAPPING_PROPERTY} cannot be parsed and stays as it is")
        return None
    followed = followed_mapping(mapping, changes, schema, keep=len(table.snapshots) > 0)
    notes.extend(_kept_names(followed, changes))
    return None if followed == mapping else render_name_mapping(followed)


def _kept_names(mapping: NameMapping, changes: SchemaDiff) -> Iterator[str]:
    names = names_by_id(mapping)
    for delta in changes.deltas.values():
        slot = delta.after
        if slot is None or slot.role != "field" or not (delta.added or delta.renamed):
            continue
        if slot.field.name not in names.get(slot.field_id, {slot.field.name}):
            yield (
                f"{slot.field.name} stays the name of another field in {NAME_MAPPING_PROPERTY}, because files without "
                f"field IDs may hold that one's values under it; {slot.path} is not found in such files"
            )


def _requirements(
    table: TableMetadata, operations: tuple[Operation, ...], changes: SchemaDiff, tag: str | None
) -> Iterator[TableRequirement]:
    if table.table_uuid is not None:
        yield AssertTableUuid(table.table_uuid)
    yield AssertCurrentSchemaId(table.current_schema_id)
    if any(slot.field_id not in changes.restored for slot in changes.added()):
        yield AssertLastAssignedFieldId(table.last_column_id)
    moved = {operation.branch for operation in operations if isinstance(operation, RollbackTo)}
    if tag is not None:
        moved.add(MAIN)
    for branch in sorted(moved):
        ref = table.refs.get(branch)
        yield AssertRefSnapshotId(branch, None if ref is None else ref.snapshot_id)
    if tag is not None:
        yield AssertRefSnapshotId(tag, None)


def _tag_name(table: TableMetadata, changes: SchemaDiff) -> str | None:
    """`before-drop-country`, numbered when taken; None when nothing is dropped or there is no data to keep."""
    dropped = [slot.path for slot in changes.dropped() if slot.role == "field"]
    if not dropped or table.current_snapshot_id is None:
        return None
    name = f"before-drop-{dropped[0]}"
    number = 2
    while name in table.refs:
        name = f"before-drop-{dropped[0]}-{number}"
        number += 1
    return name


def _digest(requirements: tuple[TableRequirement, ...], updates: list[TableUpdate]) -> str:
    return hashlib.sha256(encode([requirements_to_json(requirements), updates_to_json(updates)])).hexdigest()


def requirements_to_json(requirements: tuple[TableRequirement, ...]) -> list[dict[str, Any]]:
    """Requirements of a plan in the protocol's form."""
    return [_requirement(requirement) for requirement in requirements]


def updates_to_json(updates: tuple[TableUpdate, ...] | list[TableUpdate]) -> list[dict[str, Any]]:
    """Updates of a plan in the protocol's form."""
    return [_update(update) for update in updates]


def _requirement(requirement: TableRequirement) -> dict[str, Any]:
    match requirement:
        case AssertTableUuid(uuid):
            return {"type": "assert-table-uuid", "uuid": uuid}
        case AssertCurrentSchemaId(schema_id):
            return {"type": "assert-current-schema-id", "current-schema-id": schema_id}
        case AssertLastAssignedFieldId(field_id):
            return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": field_id}
        case AssertRefSnapshotId():
            return {
                "type": "assert-ref-snapshot-id",
                "ref": requirement.ref,
                "snapshot-id": requirement.snapshot_id,
            }
    raise ValidationFailed(f"No plan has such a requirement: {requirement}")


def _update(update: TableUpdate) -> dict[str, Any]:
    match update:
        case AddSchema(schema):
            return {"action": "add-schema", "schema": schema_to_json(schema)}
        case SetCurrentSchema(schema_id):
            return {"action": "set-current-schema", "schema-id": schema_id}
        case SetProperties(updates):
            return {"action": "set-properties", "updates": dict(updates)}
        case RemoveProperties(removals):
            return {"action": "remove-properties", "removals": list(removals)}
        case SetSnapshotRef(name, ref):
            return {"action": "set-snapshot-ref", "ref-name": name, **ref_to_json(ref)}
    raise ValidationFailed(f"No plan has such an update: {update}")
