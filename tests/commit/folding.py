"""Applying updates in tests: JSON in, metadata out."""

from __future__ import annotations

from typing import Any

import msgspec

from app.commit.tables import Applied, apply
from app.spec.table import TableMetadata, render_table_metadata
from app.spec.update import parse_table_updates
from tests.spec.documents import NOW, column, schema

BASE_FILE = "s3://bucket/t/metadata/00004-x.metadata.json"
FRESH_UUID = "ffffffff-0000-4000-8000-000000000001"
LATER = NOW + 1000

CREATE: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": "11111111-2222-4333-8444-555555555555"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": schema(0, column(1, "id"), column(2, "name", "string"))},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://bucket/t"},
    {"action": "set-properties", "updates": {"a": "b"}},
]


def fold(base: TableMetadata | None, *updates: dict[str, Any], now_ms: int = LATER) -> Applied:
    return apply(base, None if base is None else BASE_FILE, parse_table_updates(list(updates)), now_ms, FRESH_UUID)


def result(base: TableMetadata | None, *updates: dict[str, Any], now_ms: int = LATER) -> TableMetadata:
    return fold(base, *updates, now_ms=now_ms).metadata


def written(metadata: TableMetadata) -> dict[str, Any]:
    out: dict[str, Any] = msgspec.json.decode(render_table_metadata(metadata))
    return out


def add_schema(value: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-schema", "schema": value}


def set_current(schema_id: int = -1) -> dict[str, Any]:
    return {"action": "set-current-schema", "schema-id": schema_id}


def add_snapshot(value: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-snapshot", "snapshot": value}


def set_ref(snapshot_id: int, name: str = "main", kind: str = "branch", **more: Any) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id, **more}


def set_statistics(snapshot_id: int, size: int = 1) -> dict[str, Any]:
    file = {
        "snapshot-id": snapshot_id,
        "statistics-path": "s3://bucket/t/metadata/x.puffin",
        "file-size-in-bytes": size,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    return {"action": "set-statistics", "snapshot-id": snapshot_id, "statistics": file}


def set_partition_statistics(snapshot_id: int, size: int = 1) -> dict[str, Any]:
    file = {"snapshot-id": snapshot_id, "statistics-path": "s3://bucket/t/x.parquet", "file-size-in-bytes": size}
    return {"action": "set-partition-statistics", "partition-statistics": file}


def remove_snapshots(*snapshot_ids: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(snapshot_ids)}


def add_spec(*fields: tuple[Any, ...], spec_id: int | None = None) -> dict[str, Any]:
    """Fields as (source-id, transform, name) or with a field-id as the fourth."""
    listed = []
    for source_id, transform, name, *field_id in fields:
        item = {"source-id": source_id, "transform": transform, "name": name}
        listed.append(item | ({"field-id": field_id[0]} if field_id else {}))
    return {"action": "add-spec", "spec": {"fields": listed} | ({} if spec_id is None else {"spec-id": spec_id})}


def set_properties(**updates: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": updates}
