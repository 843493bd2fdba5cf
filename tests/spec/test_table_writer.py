"""Writing table metadata."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.spec.codec import encode
from app.spec.table import parse_table_metadata, render_refs_only, render_table_metadata
from tests.spec.documents import column, document, parsed, schema, snapshot, with_history

EMPTY: dict[str, Any] = {
    "snapshots": [],
    "snapshot-log": [],
    "metadata-log": [],
    "refs": {},
    "statistics": [],
    "partition-statistics": [],
}


def written(value: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = msgspec.json.decode(render_table_metadata(parsed(value)))
    return out


@pytest.mark.parametrize(("version", "none"), [(1, -1), (2, -1), (3, None)])
def test_an_empty_table_writes_its_empty_members(version: int, none: int | None) -> None:
    """No snapshot is -1 before version 3 and null since; lists and maps are empty, not absent."""
    out = written(document(version))
    assert {key: out[key] for key in EMPTY} == EMPTY
    assert "current-snapshot-id" in out
    assert out["current-snapshot-id"] == none


def test_members_by_version() -> None:
    """Sequence numbers since 2, row ids since 3, legacy members in 1 only."""
    one, two, three = (written(document(version)) for version in (1, 2, 3))
    assert {"schema", "partition-spec"} <= one.keys()
    assert one["schema"] == one["schemas"][0]
    assert one["partition-spec"] == []
    assert not {"last-sequence-number", "next-row-id"} & one.keys()
    assert not {"schema", "partition-spec", "next-row-id"} & two.keys()
    assert three["next-row-id"] == three["last-sequence-number"] == 0


def test_nothing_but_these_differs_from_what_was_read() -> None:
    """A full document is written as it was read."""
    value = with_history(snapshot(1, number=1), snapshot(2, 1, number=2)) | {
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": "f"}],
        "statistics": [],
        "partition-statistics": [{"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1}],
        "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA==", "x": 1}],
        "properties": {"a": "ü\u2028"},
    }
    assert written(value) == value


def test_unknown_members_survive_at_every_level() -> None:
    """Top level byte for byte; in snapshots, schemas, fields, specs, orders, refs and logs by value."""
    value = with_history(snapshot(1) | {"x": 1})
    value["schemas"] = [schema(0, column(1, "id", x=1), y=[1.5])]
    value["partition-specs"] = [
        {"spec-id": 0, "x": 2, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "void", "x": 1}]}
    ]
    value["sort-orders"] = [{"order-id": 0, "fields": [], "x": 3}]
    value["refs"]["main"]["x"] = {"deep": None}
    value["snapshot-log"][0]["x"] = 1
    out = written(value)
    for key in ("snapshots", "schemas", "partition-specs", "sort-orders", "refs", "snapshot-log"):
        assert out[key] == value[key]
    text = encode(document())[:-1] + b',"x-new": {"a" :1e2,  "b":[null ]} }'
    assert b'"x-new":{"a" :1e2,  "b":[null ]}' in render_table_metadata(parse_table_metadata(text))


def test_encryption_keys_are_written_only_if_there_are_any() -> None:
    """At any version."""
    assert "encryption-keys" not in written(document(3))


def test_what_was_written_reads_as_the_same_table() -> None:
    """Writing is a fixed point."""
    for version in (1, 2, 3):
        once = render_table_metadata(parsed(with_history(snapshot(1), version=version)))
        assert render_table_metadata(parse_table_metadata(once)) == once


def test_refs_only_keeps_what_refs_point_to() -> None:
    """Snapshots without a ref go, and nothing else does."""
    value = with_history(snapshot(1), snapshot(2, 1), snapshot(3, 2))
    value["refs"]["t"] = {"snapshot-id": 1, "type": "tag"}
    full, refs = written(value), msgspec.json.decode(render_refs_only(parsed(value)))
    assert [item["snapshot-id"] for item in refs["snapshots"]] == [1, 3]
    assert refs | {"snapshots": full["snapshots"]} == full
