"""Updates of a table's schema list."""

from __future__ import annotations

from app.errors import ValidationFailed
from app.iceberg.json.codec import INT32_MAX
from app.iceberg.update import LAST_ADDED, AddSchema, RemoveSchemas, SetCurrentSchema
from app.metadata.builder import TableMetadataBuilder


def add_schema(draft: TableMetadataBuilder, update: AddSchema) -> None:
    """List the schema, or resolve to the equal one that is listed already; the column id counter only grows."""
    schema = update.schema
    highest = max(draft.last_column_id, schema.highest_id)
    known = draft.schemas.same_as(schema)
    schema_id = _next_schema_id(draft) if known is None else known
    if known is None:
        draft.schemas = draft.schemas.append(schema.with_id(schema_id))
    if known is None or highest != draft.last_column_id:
        draft.last_column_id = highest
        draft.record(update)
    draft.last_added_schema_id = schema_id
    sent = update.sent_id
    # 0 is what clients send that do not number schemas at all; where a schema 0 exists it can only mean that one.
    if sent is not None and sent != schema_id and not (sent == 0 and 0 in draft.schemas):
        draft.assigned_schema_ids[sent] = schema_id


def _next_schema_id(draft: TableMetadataBuilder) -> int:
    """An id that no schema had: none that is listed, removed, remembered as the highest, or named by a snapshot."""
    taken = {*draft.schemas.ids, *draft.removed_schema_ids, draft.remembered_schema_id}
    for snapshots in (draft.listed, draft.added_snapshots.values()):
        taken.update(snapshot.schema_id for snapshot in snapshots if snapshot.schema_id is not None)
    following = max(taken, default=-1) + 1
    if following <= INT32_MAX:
        return max(following, 0)
    return next(candidate for candidate in range(len(taken) + 1) if candidate not in taken)


def set_current_schema(draft: TableMetadataBuilder, update: SetCurrentSchema) -> None:
    if update.schema_id == LAST_ADDED:
        if draft.last_added_schema_id is None:
            raise ValidationFailed("Cannot set last added schema: no schema has been added")
        schema_id = draft.last_added_schema_id
    else:
        schema_id = update.schema_id
        if schema_id not in draft.schemas:
            schema_id = draft.assigned_schema_ids.get(schema_id, schema_id)
    if schema_id not in draft.schemas:
        raise ValidationFailed(f"Cannot set current schema to unknown schema: {update.schema_id}")
    if schema_id != draft.current_schema_id:
        draft.current_schema_id = schema_id
        draft.record(update)


def remove_schemas(draft: TableMetadataBuilder, update: RemoveSchemas) -> None:
    """Unknown ids are ignored. Whether snapshots still need a schema is judged by the evolution rules."""
    if draft.current_schema_id in update.schema_ids:
        raise ValidationFailed("Cannot remove the current schema")
    gone = {schema_id for schema_id in update.schema_ids if schema_id in draft.schemas}
    if gone:
        draft.schemas = draft.schemas.remove(gone)
        draft.removed_schema_ids |= gone
        if draft.last_added_schema_id in gone:
            draft.last_added_schema_id = None
        draft.record(update)
