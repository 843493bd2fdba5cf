"""The tables that the workloads run on, made through the REST protocol alone, so that any server can have them."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from bench.targets import Target

Json = dict[str, Any]
KINDS = ("long", "string", "double", "int", "date", "timestamp", "decimal(9, 2)", "boolean", "uuid", "binary")
COLUMNS = 20
MANY = 32
FIRST_SNAPSHOT = 1_000_000_000_000
_BATCH = 2_000
SPACE = "bench"
LISTED = "listed"
MILLION = "million"
WARM = "warm"
SIZES = {"t5": 5, "t1000": 1_000, "t10000": 10_000, "a1000": 1_000, "a10000": 10_000}
PACKED = "g10000"
"""A table of 10,000 snapshots whose metadata files are gzip."""


def columns(last: str = "column_20") -> list[Json]:
    named = [f"column_{at}" for at in range(1, COLUMNS)] + [last]
    return [
        {"id": at + 1, "name": name, "required": False, "type": KINDS[at % len(KINDS)]} for at, name in enumerate(named)
    ]


def schema(last: str = "column_20") -> Json:
    return {"type": "struct", "schema-id": 0, "fields": columns(last)}


def snapshot(number: int, timestamp_ms: int, folder: str) -> Json:
    """The snapshot of a sequence number, with a summary as engines write it."""
    summary = {"operation": "append", "spark.app.id": "application_1700000000000_0001", "added-data-files": "4"}
    summary |= {"added-records": "100000", "added-files-size": "52428800", "changed-partition-count": "1"}
    summary |= {"total-records": str(number * 100_000), "total-files-size": str(number * 52_428_800)}
    summary |= {"total-data-files": str(number * 4), "total-delete-files": "0", "total-position-deletes": "0"}
    return {
        "snapshot-id": FIRST_SNAPSHOT + number,
        "sequence-number": number,
        "timestamp-ms": timestamp_ms,
        "manifest-list": f"{folder}/metadata/snap-{FIRST_SNAPSHOT + number}-1-0f1e2d3c.avro",
        "summary": summary,
        "schema-id": 0,
        **({"parent-snapshot-id": FIRST_SNAPSHOT + number - 1} if number > 1 else {}),
    }


def make(target: Target, space: str, name: str, snapshots: int = 0, **properties: str) -> None:
    """A table with a line of snapshots on main."""
    made = target.must(
        "POST",
        target.path(f"namespaces/{space}/tables"),
        {"name": name, "schema": schema(), "stage-create": False, "properties": {"format-version": "2", **properties}},
    )
    folder = made["metadata"]["location"]
    for start in range(0, snapshots, _BATCH):
        now = time.time_ns() // 1_000_000
        upto = min(start + _BATCH, snapshots)
        updates: list[Json] = [
            {"action": "add-snapshot", "snapshot": snapshot(number, now, folder)}
            for number in range(start + 1, upto + 1)
        ]
        main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
        updates.append({**main, "snapshot-id": FIRST_SNAPSHOT + upto})
        body = {"requirements": [], "updates": updates}
        target.must("POST", target.path(f"namespaces/{space}/tables/{name}"), body)


def seed(target: Target, *, listed: int) -> None:
    """Everything that the workloads need; and whether the target keeps all of it."""
    for space in (SPACE, LISTED):
        target.must("POST", target.path("namespaces"), {"namespace": [space], "properties": {}})
    for name, snapshots in SIZES.items():
        make(target, SPACE, name, snapshots)
    make(target, SPACE, PACKED, 10_000, **{"write.metadata.compression-codec": "gzip"})
    kept = target.must("GET", target.path(f"namespaces/{SPACE}/tables/t5"))["metadata"]["snapshots"]
    target.history = len(kept) == SIZES["t5"]
    for name in ("properties", *(f"tx{at}" for at in range(10)), *(f"many{at}" for at in range(MANY))):
        make(target, SPACE, name, 1)
    for at in range(listed):
        make(target, LISTED, f"table_{at:07}")


def million(target: Target, database: Path, count: int) -> None:
    """A namespace of `count` tables, put into the embedded server's database: only their pointers are there."""
    target.must("POST", target.path("namespaces"), {"namespace": [MILLION], "properties": {}})
    with sqlite3.connect(database, timeout=60) as writer:
        names = [row[1] for row in writer.execute("PRAGMA table_info(tabular)")]
        home = writer.execute("SELECT namespace_id FROM namespace WHERE path LIKE ?", (f"%{MILLION}%",)).fetchone()[0]
        changed = {
            "tabular_id": "1000000 + n",
            "namespace_id": str(home),
            "name": "printf('table_%07d', n)",
            "uuid": "printf('00000000-0000-4000-8000-%012d', n)",
            "location": "location || '-' || n",
            "location_key": "location_key || '-' || n",
            "metadata_location": "metadata_location || '-' || n",
        }
        picked = ", ".join(changed.get(name, name) for name in names)
        writer.execute(
            f"WITH RECURSIVE counter(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counter WHERE n < {count - 1}) "
            f"INSERT INTO tabular ({', '.join(names)}) "
            f"SELECT {picked} FROM counter, (SELECT * FROM tabular WHERE kind = 'table' LIMIT 1)"
        )
    writer.close()
