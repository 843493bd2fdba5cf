"""What a commit would do, before it does it: the verdict, every finding, the difference it makes, and its JSON form.

Pure: what is judged and what it is judged by is handed in. What files return follows the reader's own law
(`app.projection.projection`) for files of conforming writers; what single files hold beyond that, only reading them
tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.errors import SpecError
from app.evolution.editing.plan import Plan, requirements_to_json, updates_to_json
from app.evolution.engine.diff import SchemaDiff, Slot, diff
from app.iceberg.ref import SnapshotRef, ref_to_json
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata
from app.iceberg.values import value_to_json
from app.projection.projection import Answer, Column, Constant, Projected, Unreadable, project
from app.rules import Finding

MOST_SCHEMAS = 100
"""Only the youngest schemas are looked at: a table may have kept thousands."""

MOST_READINGS = 100_000
"""Fewer of them when very many columns change, so that this many readings are told; of the youngest all are."""


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """What one column returns from files of one schema. `stored_as` is the type in the file where it is another."""

    slot: Slot
    returns: Literal["value", "initial-default", "null", "unreadable"]
    value: Any = None
    stored_as: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaReads:
    """The columns of files written under one schema, and how many retained snapshots were."""

    schema_id: int
    snapshots: int
    columns: tuple[ColumnRead, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """`reason` tells why something is incompatible without a finding, or why it could not be checked.

    `changed` are the members of the metadata that become others, as [before, after] pairs of decoded JSON.
    """

    verdict: Literal["compatible", "incompatible", "not-checked"]
    base: TableMetadata | None = None
    base_location: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    change: SchemaDiff | None = None
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    reads: tuple[SchemaReads, ...] = ()


def dry_run(
    base: TableMetadata, base_location: str | None, after: TableMetadata, findings: tuple[Finding, ...]
) -> DryRun:
    """What comes of a step that was judged: `after` follows `base` with these findings."""
    change = diff(base.schema, after.schema, last_column_id=base.last_column_id)
    return DryRun(
        verdict="incompatible" if any(finding.refuses for finding in findings) else "compatible",
        base=base,
        base_location=base_location,
        findings=findings,
        change=change,
        changed=changes(base, after),
        reads=reads_by_schema(base, after.schema, change),
    )


def changes(before: TableMetadata, after: TableMetadata) -> dict[str, tuple[Any, Any]]:
    """The members of the metadata that differ, schemas, snapshots and the like by their ids."""
    out: dict[str, tuple[Any, Any]] = {}
    for name, old, new in (
        ("format-version", before.format_version, after.format_version),
        ("location", before.location, after.location),
        ("last-column-id", before.last_column_id, after.last_column_id),
        ("current-schema-id", before.current_schema_id, after.current_schema_id),
        ("schemas", list(before.schemas), list(after.schemas)),
        ("default-spec-id", before.default_spec_id, after.default_spec_id),
        ("partition-specs", _spec_ids(before), _spec_ids(after)),
        ("last-partition-id", before.last_partition_id, after.last_partition_id),
        ("default-sort-order-id", before.default_sort_order_id, after.default_sort_order_id),
        ("sort-orders", _order_ids(before), _order_ids(after)),
        ("current-snapshot-id", before.current_snapshot_id, after.current_snapshot_id),
        ("snapshots", len(before.snapshots), len(after.snapshots)),
    ):
        if old != new:
            out[name] = (old, new)
    for name, old_map, new_map in (
        ("properties", before.properties, after.properties),
        ("refs", _refs(before.refs), _refs(after.refs)),
    ):
        different = {k for k in {*old_map, *new_map} if old_map.get(k) != new_map.get(k)}
        if different:
            out[name] = (_only(old_map, different), _only(new_map, different))
    return out


def reads_by_schema(table: TableMetadata, after: Schema, change: SchemaDiff) -> tuple[SchemaReads, ...]:
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
            read = {one.field.field_id: one for one in project(schema, after).walk()}
            columns = tuple(_column_read(read, after, slot) for slot in slots)
            out.append(SchemaReads(schema_id, number[schema_id], columns))
    return tuple(out)


def _column_read(read: Mapping[int, Projected], after: Schema, slot: Slot) -> ColumnRead:
    found = read.get(slot.field_id)
    if found is None:
        # Inside of something that one constant answers for as a whole.
        around = next((outer for outer in after.ancestors(slot.field_id) if outer.field_id in read), None)
        found = None if around is None else read[around.field_id]
        if isinstance(found, Constant) and found.value is not None:
            return ColumnRead(slot, "initial-default")
    match found:
        case Column():
            stored = str(found.stored) if found.promoted else None
            return ColumnRead(slot, "value", stored_as=stored)
        case Constant(answer=Answer.INITIAL_DEFAULT):
            return ColumnRead(slot, "initial-default", _json(slot, found.value))
        case Unreadable():
            return ColumnRead(slot, "unreadable", reason=found.reason)
    return ColumnRead(slot, "null")


def _json(slot: Slot, value: Any) -> Any:
    try:
        return value_to_json(slot.type, value)
    except SpecError:
        return slot.initial_default


def _spec_ids(table: TableMetadata) -> list[int]:
    return [spec.spec_id for spec in table.partition_specs]


def _order_ids(table: TableMetadata) -> list[int]:
    return [order.order_id for order in table.sort_orders]


def _refs(refs: Mapping[str, SnapshotRef]) -> dict[str, Any]:
    return {name: ref_to_json(ref) for name, ref in refs.items()}


def _only(of: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: of[key] for key in sorted(keys) if key in of}


def dry_run_json(of: DryRun) -> dict[str, Any]:
    """The body of a check."""
    out: dict[str, Any] = {"verdict": of.verdict}
    if of.reason is not None:
        out["reason"] = of.reason
    if of.base is not None:
        out["base"] = {
            "metadata-location": of.base_location,
            "schema-id": of.base.current_schema_id,
            "last-column-id": of.base.last_column_id,
        }
    out["findings"] = [finding.to_json() for finding in of.findings]
    change = of.change
    out["changes"] = [] if change is None else change.to_json()
    out["assigned-ids"] = (
        []
        if change is None
        else [
            {"field-id": slot.field_id, "path": slot.path, "type": str(slot.type)}
            for slot in change.added()
            if slot.field_id not in change.restored
        ]
    )
    out["metadata-changes"] = {name: {"before": old, "after": new} for name, (old, new) in of.changed.items()}
    out["reads"] = [_schema_reads_json(one) for one in of.reads]
    return out


def plan_json(made: Plan, run: DryRun) -> dict[str, Any]:
    """The body of a plan: the commit that it stands for, and everything a check says of that."""
    out: dict[str, Any] = {
        "plan-hash": made.digest,
        "requirements": requirements_to_json(made.requirements),
        "updates": updates_to_json(made.updates),
        "schema": schema_to_json(made.schema),
        "notes": list(made.notes),
        **dry_run_json(run),
    }
    if made.tag is not None:
        out["tag"] = made.tag
    return out


def _schema_reads_json(of: SchemaReads) -> dict[str, Any]:
    columns = [_column_read_json(one) for one in of.columns]
    return {"schema-id": of.schema_id, "snapshots": of.snapshots, "columns": columns}


def _column_read_json(of: ColumnRead) -> dict[str, Any]:
    out: dict[str, Any] = {"field-id": of.slot.field_id, "path": of.slot.path, "returns": of.returns}
    extra: Mapping[str, Any] = {"value": of.value, "stored-as": of.stored_as, "reason": of.reason}
    out.update((key, value) for key, value in extra.items() if value is not None)
    return out
