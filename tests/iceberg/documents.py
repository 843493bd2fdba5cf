"""Table metadata documents for tests: small, complete, and easy to vary."""

from __future__ import annotations

from typing import Any

from app.iceberg.json.codec import encode
from app.iceberg.table import TableMetadata, parse_table_metadata

UUID = "0b5e8f3a-5d0c-4b7e-9a56-3c1f7a2d9e10"
NOW = 1_700_000_000_000


def column(field_id: int, name: str, kind: Any = "long", *, required: bool = False, **more: Any) -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": required, "type": kind, **more}


def schema(schema_id: int | None, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    head: dict[str, Any] = {"type": "struct"} if schema_id is None else {"type": "struct", "schema-id": schema_id}
    return {**head, "fields": list(fields), **more}


def snapshot(
    snapshot_id: int, parent: int | None = None, number: int = 0, at: int = NOW, **more: Any
) -> dict[str, Any]:
    out: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": at,
        "manifest-list": f"s3://bucket/t/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if parent is not None:
        out["parent-snapshot-id"] = parent
    return {**out, **more}


def document(version: int = 2, **more: Any) -> dict[str, Any]:
    """An empty table with columns 1 id and 2 name; `more` replaces members (dashes as underscores), None removes."""
    out: dict[str, Any] = {
        "format-version": version,
        "table-uuid": UUID,
        "location": "s3://bucket/t",
        "last-updated-ms": NOW,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [schema(0, column(1, "id", required=True), column(2, "name", "string"))],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
    }
    if version > 1:
        out["last-sequence-number"] = 0
    if version > 2:
        out["next-row-id"] = 0
    for key, value in more.items():
        if value is None:
            out.pop(key.replace("_", "-"), None)
        else:
            out[key.replace("_", "-")] = value
    return out


def with_history(*snapshots: dict[str, Any], version: int = 2, **more: Any) -> dict[str, Any]:
    """A table whose main went through `snapshots` one after another."""
    last = snapshots[-1]
    return document(
        version,
        **{
            "snapshots": list(snapshots),
            "snapshot_log": [
                {"timestamp-ms": item["timestamp-ms"], "snapshot-id": item["snapshot-id"]} for item in snapshots
            ],
            "current_snapshot_id": last["snapshot-id"],
            "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
            "last_updated_ms": max(item["timestamp-ms"] for item in snapshots),
            "last_sequence_number": max(item["sequence-number"] for item in snapshots) if version > 1 else None,
            **more,
        },
    )


def parsed(value: dict[str, Any]) -> TableMetadata:
    return parse_table_metadata(encode(value))
