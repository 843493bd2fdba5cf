"""What a commit would do, before it does it: the verdict, every finding, the difference it makes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.catalog.outlook import Outlook, outlook
from app.evolution.engine.diff import SchemaDiff, diff
from app.iceberg.ref import SnapshotRef, ref_to_json
from app.iceberg.table import TableMetadata
from app.rules import Finding

Outcome = Literal["compatible", "incompatible", "not-checked"]


@dataclass(frozen=True, slots=True)
class Assessment:
    """`reason` tells why something is incompatible without a finding, or why it could not be checked.

    `changed` are the members of the metadata that become others, as [before, after] pairs of decoded JSON.
    """

    verdict: Outcome
    base: TableMetadata | None = None
    base_location: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    change: SchemaDiff | None = None
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    outlooks: tuple[Outlook, ...] = ()


def assess(
    base: TableMetadata, base_location: str | None, after: TableMetadata, findings: tuple[Finding, ...]
) -> Assessment:
    """The assessment of a step that was judged: `after` follows `base` with these findings."""
    change = diff(base.schema, after.schema, last_column_id=base.last_column_id)
    return Assessment(
        verdict="incompatible" if any(finding.refuses for finding in findings) else "compatible",
        base=base,
        base_location=base_location,
        findings=findings,
        change=change,
        changed=changes(base, after),
        outlooks=outlook(base, after.schema, change),
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


def _spec_ids(table: TableMetadata) -> list[int]:
    return [spec.spec_id for spec in table.partition_specs]


def _order_ids(table: TableMetadata) -> list[int]:
    return [order.order_id for order in table.sort_orders]


def _refs(refs: Mapping[str, SnapshotRef]) -> dict[str, Any]:
    return {name: ref_to_json(ref) for name, ref in refs.items()}


def _only(of: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: of[key] for key in sorted(keys) if key in of}
