"""What files written under each retained schema will answer for columns that a change adds or alters.

Pure. It follows the reader's own law (`app.reader.projection`) for files of conforming writers; what single files
hold beyond that, only reading them tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.errors import SpecError
from app.evolution.diff import SchemaDiff, Slot
from app.reader.projection import Answer, Column, Constant, Projected, Projection, Unreadable, project
from app.spec.schema import Schema
from app.spec.table import TableMetadata
from app.spec.values import value_to_json

Returns = Literal["value", "initial-default", "null", "unreadable"]

MOST_SCHEMAS = 100
"""Only the youngest schemas are looked at: a table may have kept thousands."""


MOST_READINGS = 100_000
"""Fewer of them when very many columns change, so that this many readings are told; of the youngest all are."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one column returns from files of one schema. `stored_as` is the type in the file where it is another."""

    slot: Slot
    returns: Returns
    value: Any = None
    stored_as: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The readings of files written under one schema, and how many retained snapshots were."""

    schema_id: int
    snapshots: int
    readings: tuple[Reading, ...]


def outlook(table: TableMetadata, after: Schema, change: SchemaDiff) -> tuple[Outlook, ...]:
    """For each retained schema of `table`, oldest first, what its files return for the changed columns of `after`."""
    slots = [delta.after for delta in change.deltas.values() if delta.after is not None and delta.after.role == "field"]
    if not slots:
        return ()
    most = min(MOST_SCHEMAS, max(1, MOST_READINGS // len(slots)))
    written = sorted(table.schemas)[-most:]
    number = Counter(snapshot.schema_id for snapshot in table.snapshots)
    out = []
    for schema_id in written:
        schema = table.schemas.get(schema_id)
        if schema is not None:
            readings = tuple(_readings(project(schema, after), after, slots))
            out.append(Outlook(schema_id, number[schema_id], readings))
    return tuple(out)


def _readings(plan: Projection, after: Schema, slots: Iterable[Slot]) -> list[Reading]:
    plans = {one.field.field_id: one for one in plan.walk()}
    return [_reading(plans, after, slot) for slot in slots]


def _reading(plans: Mapping[int, Projected], after: Schema, slot: Slot) -> Reading:
    found = plans.get(slot.field_id)
    if found is None:
        # Inside of something that one constant answers for as a whole.
        around = next((outer for outer in after.ancestors(slot.field_id) if outer.field_id in plans), None)
        found = None if around is None else plans[around.field_id]
        if isinstance(found, Constant) and found.value is not None:
            return Reading(slot, "initial-default")
    match found:
        case Column():
            stored = str(found.stored) if found.promoted else None
            return Reading(slot, "value", stored_as=stored)
        case Constant(answer=Answer.INITIAL_DEFAULT):
            return Reading(slot, "initial-default", _json(slot, found.value))
        case Unreadable():
            return Reading(slot, "unreadable", reason=found.reason)
    return Reading(slot, "null")


def _json(slot: Slot, value: Any) -> Any:
    try:
        return value_to_json(slot.type, value)
    except SpecError:
        return slot.initial_default
