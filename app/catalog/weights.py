"""How heavy work on a change is, in the bytes of text that take as long: what `documents.aside` decides by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.evolution.operations import Operation
from app.spec.requirement import TableRequirement
from app.spec.schema import Schema
from app.spec.table import TableMetadata
from app.spec.update import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveProperties,
    SetProperties,
    TableUpdate,
    ViewUpdate,
)

_COLUMN: Final = 1_000
"""A column of a schema that is folded, judged or compared: some 30 microseconds."""
_UPDATE: Final = 500
_PROPERTY: Final = 50


def of_updates(updates: Iterable[TableUpdate | ViewUpdate]) -> int:
    """Of folding updates into a table or view."""
    return sum(map(_of_update, updates))


def of_requirements(requirements: tuple[TableRequirement, ...]) -> int:
    """Of checking what a commit requires."""
    return len(requirements) * _PROPERTY


def of_schema(schema: Schema) -> int:
    """Of any work that looks at every column."""
    return len(schema.by_id) * _COLUMN


def of_operations(operations: tuple[Operation, ...]) -> int:
    """Of carrying operations on a schema out."""
    wanted = (getattr(one, "wanted", None) for one in operations)
    return len(operations) * _UPDATE + sum(len(one.fields) * _COLUMN for one in wanted if one is not None)


def of_plan(operations: tuple[Operation, ...], schema: Schema) -> int:
    """Of planning operations on a schema."""
    return of_operations(operations) + of_schema(schema)


def of_step(before: TableMetadata | None, after: TableMetadata) -> int:
    """Of judging whether one table may follow another."""
    lists = len(after.partition_specs) + len(after.sort_orders)
    if before is None:
        return of_schema(after.schema) + (lists + len(after.snapshots)) * _UPDATE
    weight = (lists + abs(len(after.snapshots) - len(before.snapshots))) * _UPDATE
    added = abs(len(after.schemas) - len(before.schemas))
    if added or after.current_schema_id != before.current_schema_id:
        weight += of_schema(before.schema) + of_schema(after.schema) * max(added, 1)
    return weight


def _of_update(update: TableUpdate | ViewUpdate) -> int:
    match update:
        case AddSchema(schema):
            return _UPDATE + len(schema.fields) * _COLUMN
        case AddPartitionSpec(spec):
            return _UPDATE + len(spec.fields) * _COLUMN
        case AddSortOrder(order):
            return _UPDATE + len(order.fields) * _COLUMN
        case SetProperties(values):
            return _UPDATE + len(values) * _PROPERTY
        case RemoveProperties(names):
            return _UPDATE + len(names) * _PROPERTY
    return _UPDATE
