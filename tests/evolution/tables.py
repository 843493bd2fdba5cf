"""Tables and commits in the shorthand of the tests: JSON documents in, verdicts out, everything real in between."""

from __future__ import annotations

import json
from typing import Any

from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.iceberg.table import TableMetadata, parse_table_metadata, render_table_metadata
from app.iceberg.update import parse_table_updates
from app.metadata.tables import apply
from app.rules import Policy, Severity, Verdict

NOW = 1_700_000_000_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
Json = dict[str, Any]


def field(field_id: int, name: str, type_: Any, required: bool = False, **more: Any) -> Json:
    """A field; `initial` and `write` are its defaults."""
    out = {"id": field_id, "name": name, "required": required, "type": type_}
    for key, wire in (("initial", "initial-default"), ("write", "write-default"), ("doc", "doc")):
        if key in more:
            out[wire] = more[key]
    return out


def struct(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


def list_of(element_id: int, element: Any, required: bool = False) -> Json:
    return {"type": "list", "element-id": element_id, "element": element, "element-required": required}


def map_of(key_id: int, key: Any, value_id: int, value: Any, required: bool = False) -> Json:
    return {
        "type": "map",
        "key-id": key_id,
        "key": key,
        "value-id": value_id,
        "value": value,
        "value-required": required,
    }


def schema(*fields: Json, schema_id: int = 0, identifiers: list[int] | None = None) -> Json:
    out: Json = {"type": "struct", "schema-id": schema_id, "fields": list(fields)}
    if identifiers is not None:
        out["identifier-field-ids"] = identifiers
    return out


def snapshot(snapshot_id: int, schema_id: int | None = None, parent: int | None = None, sequence: int = 0) -> Json:
    out: Json = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence or snapshot_id,
        "timestamp-ms": NOW + snapshot_id,
        "manifest-list": f"s3://lake/t/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "first-row-id": 0,
        "added-rows": 0,
    }
    if schema_id is not None:
        out["schema-id"] = schema_id
    if parent is not None:
        out["parent-snapshot-id"] = parent
    return out


def part(source: int, transform: str, name: str, field_id: int = 1000) -> Json:
    return {"source-id": source, "field-id": field_id, "name": name, "transform": transform}


def sort_by(source: int, transform: str = "identity") -> Json:
    return {"source-id": source, "transform": transform, "direction": "asc", "null-order": "nulls-first"}


def branch(snapshot_id: int) -> Json:
    return {"snapshot-id": snapshot_id, "type": "branch"}


def tag(snapshot_id: int) -> Json:
    return {"snapshot-id": snapshot_id, "type": "tag"}


def table(
    *schemas: Json,
    current: int | None = None,
    version: int = 2,
    last_column_id: int | None = None,
    snapshots: list[Json] | None = None,
    refs: dict[str, Json] | None = None,
    specs: list[list[Json]] | None = None,
    default_spec: int = 0,
    orders: list[list[Json]] | None = None,
    default_order: int = 0,
    properties: dict[str, str] | None = None,
) -> TableMetadata:
    """A stored table, read as the catalog reads it. `specs` and `orders` are lists of field lists, numbered from 0
    (orders from 1 behind the unsorted one)."""
    listed = snapshots or []
    refs = {} if refs is None else refs
    specs = specs or [[]]
    if version < 3:
        listed = [{k: v for k, v in s.items() if k not in ("first-row-id", "added-rows")} for s in listed]
    if version == 1:
        listed = [{**s, "sequence-number": 0} for s in listed]
    document: Json = {
        "format-version": version,
        "table-uuid": UUID,
        "location": "s3://lake/t",
        "last-sequence-number": 0 if version == 1 else max([s["sequence-number"] for s in listed], default=0),
        "last-updated-ms": NOW + 10_000,
        "last-column-id": max(map(_highest, schemas)) if last_column_id is None else last_column_id,
        "schemas": list(schemas),
        "current-schema-id": schemas[-1]["schema-id"] if current is None else current,
        "partition-specs": [{"spec-id": at, "fields": fields} for at, fields in enumerate(specs)],
        "default-spec-id": default_spec,
        "last-partition-id": max([p["field-id"] for fields in specs for p in fields], default=999),
        "sort-orders": [
            {"order-id": 0, "fields": []},
            *({"order-id": at, "fields": fields} for at, fields in enumerate(orders or [], 1)),
        ],
        "default-sort-order-id": default_order,
        "properties": properties or {},
        "snapshots": listed,
        "refs": refs,
        "next-row-id": 0,
    }
    if "main" in refs:
        document["current-snapshot-id"] = refs["main"]["snapshot-id"]
    return parse_table_metadata(json.dumps(document).encode())


def _highest(of: Any) -> int:
    if isinstance(of, dict):
        own = [of.get(key, 0) for key in ("id", "element-id", "key-id", "value-id")]
        return int(max([*own, *map(_highest, of.values())]))
    return max(map(_highest, of), default=0) if isinstance(of, list) else 0


def add_schema(*fields: Json, identifiers: list[int] | None = None) -> Json:
    return {"action": "add-schema", "schema": schema(*fields, schema_id=-1, identifiers=identifiers)}


def set_schema(schema_id: int = -1) -> Json:
    return {"action": "set-current-schema", "schema-id": schema_id}


def evolve(*fields: Json, identifiers: list[int] | None = None) -> list[Json]:
    return [add_schema(*fields, identifiers=identifiers), set_schema()]


def upgrade(version: int = 3) -> Json:
    return {"action": "upgrade-format-version", "format-version": version}


def add_snapshot(snapshot_id: int, schema_id: int | None = None, parent: int | None = None, sequence: int = 0) -> Json:
    return {"action": "add-snapshot", "snapshot": snapshot(snapshot_id, schema_id, parent, sequence)}


def set_ref(name: str, snapshot_id: int, kind: str = "branch") -> Json:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id}


def remove_ref(name: str) -> Json:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def commit(base: TableMetadata | None, updates: list[Json]) -> TableMetadata:
    """The table after the updates, as the catalog would write and read it."""
    applied = apply(base, "s3://lake/t/metadata/v1.json", parse_table_updates(updates, "$.updates"), NOW + 20_000, UUID)
    return applied.metadata


def judged(
    base: TableMetadata | None,
    updates: list[Json],
    *,
    lowered: dict[str, Severity] | None = None,
    specs_in_use: frozenset[int] | None = None,
) -> Verdict:
    """The verdict on a commit; what is accepted also has to load again."""
    after = commit(base, updates)
    found = judge(base, after, Evidence(specs_in_use=specs_in_use), Policy(set_by_api=lowered or {}), NOW)
    if not found.refused:
        parse_table_metadata(b"".join([render_table_metadata(after)]))
    return found


def refusals(base: TableMetadata | None, updates: list[Json], **more: Any) -> list[str]:
    """The codes that refuse the commit, sorted; empty when it is accepted."""
    return sorted({f.code for f in judged(base, updates, **more).findings if f.refuses})


def warnings(base: TableMetadata | None, updates: list[Json], **more: Any) -> list[str]:
    """The codes that warn about the commit, sorted."""
    return sorted({f.code for f in judged(base, updates, **more).findings if f.severity is Severity.WARN})
