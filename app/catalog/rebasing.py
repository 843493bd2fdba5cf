"""One wish for a schema change on its way through the states of a table, until one of them takes it.

Operations are planned anew on every state. They may land on another schema than they were thought of on, as long as
they are still about the same columns; else the refusal tells what became of these, and by whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.catalog import schema_history
from app.catalog.commits import PlannedUpdates
from app.catalog.context import Context
from app.catalog.namespaces import Heritage, nearest
from app.errors import BadRequest, CommitFailed
from app.evolution.editing.edit import Touch, missing
from app.evolution.editing.operations import Operation, Rename
from app.evolution.editing.plan import (
    TAG_PROPERTY,
    Plan,
    at_schema,
    plan,
    requirements_to_json,
    updates_to_json,
)
from app.evolution.editing.schema_builder import shown
from app.evolution.engine.diff import diff
from app.iceberg.table import TableMetadata
from app.ports import Tabular

_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What somebody wants done to a table.

    `base_schema_id`: the schema that the operations were thought of on; None for the present one. `plan_hash`: apply
    only what was planned, to the byte. `tag`: whether to tag before a drop; None leaves it to the namespace.
    """

    operations: tuple[Operation, ...]
    base_schema_id: int | None = None
    plan_hash: str | None = None
    tag: bool | None = None


class OperationsDrifted(CommitFailed):
    """The operations are about something else by now than on the schema `since`. Never leaves `catalog`."""

    def __init__(
        self, since: int, base: TableMetadata, operations: tuple[Operation, ...], lost: Sequence[Touch]
    ) -> None:
        super().__init__("The operations no longer mean the same")
        self.since = since
        self.base = base
        self.operations = operations
        self.lost = tuple(lost)
        self.fault: str | None = None

    @property
    def names(self) -> set[str]:
        """Full names that the operations use or give."""
        found = {touch.path for touch in self.lost}
        for operation in self.operations:
            path = getattr(operation, "path", None)
            if path is not None:
                found.add(shown(path))
            if isinstance(operation, Rename):
                head, dot, _ = shown(operation.path).rpartition(".")
                found.add(f"{head}{dot}{operation.to}")
        return found


class Rebase:
    """One wish on its way through the states of a table, until one of them takes it."""

    def __init__(self, wish: SchemaChange) -> None:
        self._wish = wish
        self._first: Plan | None = None

    def updates_on(self, base: TableMetadata, heritage: Heritage) -> PlannedUpdates:
        """The updates of `plan_on`, and what they amount to as decoded JSON."""
        made = self.plan_on(base, heritage)
        return PlannedUpdates(made.updates, self._told(made))

    def plan_on(self, base: TableMetadata, heritage: Heritage) -> Plan:
        """The plan for `base` below namespaces of these properties, the nearest first.

        OperationsDrifted when it would mean something else than where the wish comes from.
        """
        if self._first is None:
            self._first = self._where_it_comes_from(base, heritage)
        first = self._first
        moved_on = first is not None and first.base_schema_id != base.current_schema_id
        try:
            made = self._plan(base, heritage)
        except BadRequest as fault:
            if first is None or not moved_on:
                raise
            otherwise = OperationsDrifted(first.base_schema_id, base, self._wish.operations, first.touches)
            otherwise.fault = fault.message
            raise otherwise from None
        if first is not None and (lost := missing(first.touches, made.touches)):
            raise OperationsDrifted(first.base_schema_id, base, self._wish.operations, lost)
        wanted = self._wish.plan_hash
        if wanted is not None and wanted != made.digest:
            raise CommitFailed(
                f"The plan {wanted[:12]} no longer holds: the table has moved on and the same operations now make plan "
                f"{made.digest[:12]}. Nothing was changed; look at the new plan."
            )
        self._first = first or made
        return made

    def _told(self, made: Plan) -> dict[str, Any]:
        first = self._first or made
        record: dict[str, Any] = {
            "plan-hash": made.digest,
            "requirements": requirements_to_json(made.requirements),
            "updates": updates_to_json(made.updates),
            "changes": made.changes.to_json(),
            "assigned-ids": {slot.path: slot.field_id for slot in made.assigned},
            "notes": list(made.notes),
        }
        if made.tag is not None:
            record["tag"] = made.tag
        if first.base_schema_id != made.base_schema_id:
            record["rebased"] = {"from-schema-id": first.base_schema_id, "onto-schema-id": made.base_schema_id}
        return record

    def _where_it_comes_from(self, base: TableMetadata, heritage: Heritage) -> Plan | None:
        schema_id = self._wish.base_schema_id
        if schema_id is None or schema_id == base.current_schema_id:
            return None
        earlier = at_schema(base, schema_id)
        if earlier is None:
            raise CommitFailed(f"Schema {schema_id} is not retained, so nobody can tell what was meant. Plan again.")
        return self._plan(earlier, heritage)

    def _plan(self, base: TableMetadata, heritage: Heritage) -> Plan:
        tag = self._wish.tag
        if tag is None:
            asked = nearest((base.properties, *heritage), TAG_PROPERTY)
            tag = asked is not None and asked.lower() == "true"
        return plan(base, self._wish.operations, tag_before_drop=tag)


async def what_happened(ctx: Context, row: Tabular, otherwise: OperationsDrifted) -> CommitFailed:
    """The conflict in words: which column the operations were about, what became of it, and who did that."""
    told = [_told(change, chapter) for chapter, change in await _relevant(ctx, row, otherwise)]
    if not told:
        told = [_told(change, None) for change in _difference(otherwise)]
    if not told and otherwise.fault is not None:
        told = [otherwise.fault]
    what = "; ".join(told[:_MOST_TOLD]) or "the table has moved on"
    return CommitFailed(
        f"Cannot rebase onto schema {otherwise.base.current_schema_id}: since schema {otherwise.since}, {what}. "
        f"Nothing was changed; plan again."
    )


async def _relevant(
    ctx: Context, row: Tabular, otherwise: OperationsDrifted
) -> list[tuple[schema_history.Chapter, dict[str, Any]]]:
    concerns = _Concerns(otherwise)
    return [
        (chapter, dict(change))
        for chapter in await schema_history.since(ctx, row, otherwise.since)
        for change in chapter.changes
        if concerns.about(change)
    ]


def _difference(otherwise: OperationsDrifted) -> list[dict[str, Any]]:
    before = otherwise.base.schemas.get(otherwise.since)
    concerns = _Concerns(otherwise)
    return [change for change in diff(before, otherwise.base.schema).to_json() if concerns.about(change)]


class _Concerns:
    """Which changes the operations of a failed rebase care about: their columns, and the names they give."""

    def __init__(self, otherwise: OperationsDrifted) -> None:
        self._ids = {touch.field_id for touch in otherwise.lost if touch.field_id is not None}
        self._everything = any(touch.field_id is None for touch in otherwise.lost)
        self._names = set(otherwise.names)

    def about(self, change: Mapping[str, Any]) -> bool:
        return self._everything or change.get("field-id") in self._ids or change.get("path") in self._names


def _told(change: Mapping[str, Any], chapter: schema_history.Chapter | None) -> str:
    """`column sku (field 2) was renamed from sku to article by alice (spark 3.5) at 2026-01-02 03:04:05Z`."""
    what = str(change["change"]).replace("-", " ")
    text = f"field {change['field-id']}"
    if "path" in change:
        text = f"column {change['path']} ({text})"
    text += f" was {what}"
    if "before" in change and "after" in change:
        text += f" from {change['before']} to {change['after']}"
    if chapter is None or chapter.at_ms is None:
        return text
    moment = datetime.fromtimestamp(chapter.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    client = f" ({chapter.client})" if chapter.client else ""
    return f"{text} by {chapter.by}{client} at {moment}"
