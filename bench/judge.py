"""What judging adds to a commit: a table of 1,000 columns, 200 retained schemas and 2,000 snapshots.

Each line is one kind of commit: the median and the worst of several judgements, each on metadata freshly folded from
a parsed base, so that nothing derived is left from the one before. The fold itself is not counted.

    python -m bench.judge [--columns 1000] [--schemas 200] [--snapshots 2000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.iceberg.table import TableMetadata, parse_table_metadata
from app.iceberg.update import parse_table_updates
from app.metadata.tables import apply
from app.rules import Policy

NOW = 1_700_000_000_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
ROUNDS = 15
KINDS = ("long", "string", "double", "int", "date", "decimal(9, 2)")
Json = dict[str, Any]


def columns(count: int) -> list[Json]:
    return [
        {"id": at, "name": f"column_{at}", "required": False, "type": KINDS[at % len(KINDS)]}
        for at in range(1, count + 1)
    ]


def document(width: int, versions: int, snapshots: int) -> bytes:
    """A table whose last column was renamed from schema to schema, and whose snapshots name schemas in turn."""
    base = columns(width)
    schemas = []
    for at in range(versions):
        fields = [*base[:-1], {**base[-1], "name": f"column_{width}_{at}"}]
        schemas.append({"type": "struct", "schema-id": at, "fields": fields})
    listed = [
        {
            "snapshot-id": at,
            "sequence-number": at,
            "timestamp-ms": NOW + at,
            "manifest-list": f"s3://lake/t/metadata/snap-{at}.avro",
            "summary": {"operation": "append"},
            "schema-id": at * versions // (snapshots + 1),
            **({"parent-snapshot-id": at - 1} if at > 1 else {}),
        }
        for at in range(1, snapshots + 1)
    ]
    return json.dumps(
        {
            "format-version": 2,
            "table-uuid": UUID,
            "location": "s3://lake/t",
            "last-sequence-number": snapshots,
            "last-updated-ms": NOW + snapshots,
            "last-column-id": width + 5,
            "schemas": schemas,
            "current-schema-id": versions - 1,
            "partition-specs": [
                {
                    "spec-id": 0,
                    "fields": [{"source-id": 5, "field-id": 1000, "name": "day_part", "transform": "bucket[16]"}],
                }
            ],
            "default-spec-id": 0,
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {},
            "snapshots": listed,
            "current-snapshot-id": snapshots,
            "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}},
        }
    ).encode()


def evolve(fields: list[Json]) -> list[Json]:
    return [
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": -1, "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def commits(base: TableMetadata, width: int, versions: int, snapshots: int) -> dict[str, list[Json]]:
    current = [*columns(width)[:-1], {**columns(width)[-1], "name": f"column_{width}_{versions - 1}"}]
    append = {
        "snapshot-id": snapshots + 1,
        "sequence-number": snapshots + 1,
        "timestamp-ms": NOW + snapshots + 1,
        "manifest-list": "s3://lake/t/metadata/snap.avro",
        "summary": {"operation": "append"},
        "parent-snapshot-id": snapshots,
    }
    head = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}

    def appended(schema_id: int) -> list[Json]:
        return [
            {"action": "add-snapshot", "snapshot": {**append, "schema-id": schema_id}},
            {**head, "snapshot-id": snapshots + 1},
        ]

    added = {"id": width + 6, "name": "fresh", "required": False, "type": "string"}
    return {
        "append": appended(versions - 1),
        "append under an older schema": appended(versions - 2),
        "rollback by 100 snapshots": [{**head, "snapshot-id": snapshots - 100}],
        "add a column": evolve([*current, added]),
        "rename a column": evolve([{**current[0], "name": "renamed"}, *current[1:]]),
        "move a column first": evolve([current[-1], *current[:-1]]),
        "promote a column": evolve([*current[:2], {**current[2], "type": "long"}, *current[3:]])
        if current[2]["type"] == "int"
        else evolve([{**f, "type": "long"} if f["id"] == 3 else f for f in current]),
        "drop a column": evolve(current[1:]),
        "refused: long to string": evolve([{**f, "type": "string"} if f["id"] == 6 else f for f in current]),
        "refused: retired ID, no schema has it": evolve([*current, {**added, "id": width + 1}]),
    }


def timed(base: TableMetadata, updates: list[Json]) -> tuple[float, float, int]:
    """Median and worst milliseconds, and the number of findings."""
    durations = []
    found = 0
    for _ in range(ROUNDS):
        after = apply(base, "s3://lake/t/metadata/v1.json", parse_table_updates(updates), NOW * 2, UUID).metadata
        start = time.process_time()
        found = len(judge(base, after, Evidence(), Policy(), NOW).findings)
        durations.append((time.process_time() - start) * 1000)
    return statistics.median(durations), max(durations), found


def cold(data: bytes, updates: Callable[[TableMetadata], list[Json]]) -> float:
    """Milliseconds of one judgement on a base that nothing was asked of before."""
    base = parse_table_metadata(data)
    after = apply(base, "s3://lake/t/metadata/v1.json", parse_table_updates(updates(base)), NOW * 2, UUID).metadata
    start = time.process_time()
    judge(base, after, Evidence(), Policy(), NOW)
    return (time.process_time() - start) * 1000


def medians(width: int = 1000, versions: int = 200, snapshots: int = 2000) -> dict[str, float]:
    """CPU milliseconds of each kind of commit."""
    base = parse_table_metadata(document(width, versions, snapshots))
    return {name: timed(base, updates)[0] for name, updates in commits(base, width, versions, snapshots).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--snapshots", type=int, default=2000)
    given = parser.parse_args()
    data = document(given.columns, given.schemas, given.snapshots)
    base = parse_table_metadata(data)
    print(
        f"{given.columns} columns, {given.schemas} schemas, {given.snapshots} snapshots; CPU milliseconds per judgement"
    )
    print(f"{'commit':40} {'median':>8} {'worst':>8} {'cold':>8} {'findings':>9}")
    for name, updates in commits(base, given.columns, given.schemas, given.snapshots).items():
        median, worst, found = timed(base, updates)
        first = cold(data, lambda _, updates=updates: updates)  # type: ignore[misc]
        print(f"{name:40} {median:8.3f} {worst:8.3f} {first:8.3f} {found:9}")


if __name__ == "__main__":
    main()
