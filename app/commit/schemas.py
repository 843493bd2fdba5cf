"""Updates of a table's schema list."""

from __future__ import annotations

from typing import Final

from app.commit.draft import TableDraft
from app.errors import ValidationFailed
from app.spec.codec import INT32_MAX
from app.spec.schema import Schema
from app.spec.update import LAST_ADDED, AddSchema, RemoveSchemas, SetCurrentSchema

MOST_COLUMNS: Final = 50_000
"""Columns of any depth in a schema that a client brings; schemas that are stored may have more."""


def check_width(schema: Schema) -> None:
    """ValidationFailed for more columns than a new schema may have."""
    if len(schema.by_id) > MOST_COLUMNS:
        raise ValidationFailed(
            f"A schema of {len(schema.by_id)} columns, nested ones included, is too wide: at most {MOST_COLUMNS} are "
            "accepted. Use a map for what is named by data"
        )


def add_schema(draft: TableDraft, update: AddSchema) -> None:
    """List the schema, or resolve to the equal one that is listed already; the column id counter only grows."""
    schema = update.schema
    check_width(schema)
    highest = max(draft.last_column_id, schema.highest_id)
    known = draft.schemas.same_as(schema)
    schema_id = _next_schema_id(draft) if known is None else known
    if known is None:
        draft.schemas.append(schema.with_id(schema_id))
    if known is None or highest != draft.last_column_id:
        draft.last_column_id = highest
        draft.record(update)
    draft.last_added_schema_id = schema_id
    sent = update.sent_id
    # 0 is what clients send that do not number schemas at all; where a schema 0 exists it can only mean that one.
    if sent is not None and sent != schema_id and not (sent == 0 and 0 in draft.schemas):
        draft.assigned_schema_ids[sent] = schema_id


def _next_schema_id(draft: TableDraft) -> int:
    """An id that no schema had: none that is listed, removed, remembered as the highest, or named by a snapshot."""
    # A snapshot of this commit names a schema that is listed, or was until this commit removed it.
    named = draft.named_schema_ids
    following = max(draft.schemas.highest_id, draft.remembered_schema_id, max(named, default=-1)) + 1
    if following <= INT32_MAX:
        return max(following, 0)
    taken = (draft.schemas, draft.removed_schema_ids, named, (draft.remembered_schema_id,))
    while any(draft.free_schema_id in ids for ids in taken):
        draft.free_schema_id += 1
    return draft.free_schema_id


def set_current_schema(draft: TableDraft, update: SetCurrentSchema) -> None:
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


def remove_schemas(draft: TableDraft, update: RemoveSchemas) -> None:
    """Unknown ids are ignored. Whether snapshots still need a schema is judged by the evolution rules."""
    if draft.current_schema_id in update.schema_ids:
        raise ValidationFailed("Cannot remove the current schema")
    gone = {schema_id for schema_id in update.schema_ids if schema_id in draft.schemas}
    if gone:
        draft.schemas.remove(gone)
        draft.removed_schema_ids |= gone
        if draft.last_added_schema_id in gone:
            draft.last_added_schema_id = None
        draft.record(update)
