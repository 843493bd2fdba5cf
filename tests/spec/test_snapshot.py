"""Snapshots: what is read, kept and refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.errors import SpecError
from app.spec.codec import encode
from app.spec.snapshot import Snapshots, parse_snapshot, parse_snapshots, snapshot_from_json
from app.spec.text import joined
from tests.spec.documents import snapshot


def stored(*items: dict[str, Any]) -> Snapshots:
    return parse_snapshots(msgspec.Raw(encode(list(items))), "$.snapshots")


def test_a_stored_snapshot_keeps_its_bytes() -> None:
    """Order, blanks, unknown members and large integers of a stored snapshot survive byte for byte."""
    text = b'{ "x-new" : {"deep":[1,null]},"snapshot-id":9007199254740993, "timestamp-ms":1,"manifest-list":"m"}'
    assert parse_snapshot(text, canonical=False).raw == text
    assert joined(parse_snapshots(msgspec.Raw(b"[ " + text + b"\n]"), "$").parts()) == b"[" + text + b"]"


def test_a_sent_snapshot_loses_its_nulls_only() -> None:
    """Null members of what a client sends are dropped, unknown members kept."""
    sent = snapshot(7, None, 1) | {"parent-snapshot-id": None, "x-new": {"a": None, "b": [1]}}
    kept = snapshot_from_json(sent, "$")
    assert kept.to_json() == snapshot(7, None, 1) | {"x-new": {"b": [1]}}
    assert parse_snapshot(encode(sent), canonical=True) == kept


def test_index_values_are_read() -> None:
    """The index holds what commits and rules ask for."""
    made = snapshot_from_json(snapshot(-5, 4, 9, 77) | {"first-row-id": 3, "added-rows": 2}, "$")
    assert (made.snapshot_id, made.parent_snapshot_id, made.sequence_number, made.timestamp_ms) == (-5, 4, 9, 77)
    assert (made.schema_id, made.first_row_id, made.added_rows, made.operation) == (0, 3, 2, "append")


def test_a_missing_sequence_number_is_zero() -> None:
    """Version 1 snapshots have none; null counts as absent in stored documents too."""
    bare = {"snapshot-id": 1, "timestamp-ms": 2, "manifest-list": "m"}
    assert [item.sequence_number for item in stored(bare, bare | {"snapshot-id": 2, "sequence-number": None})] == [0, 0]


def test_embedded_manifests_are_enough() -> None:
    """Version 1 may list manifests in place of a manifest list."""
    made = stored({"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["a.avro"]}).get(1)
    assert made is not None
    assert (made.manifest_list, made.manifests) == (None, ["a.avro"])


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"snapshot-id": None}, "$.snapshots[1]"),
        ({"snapshot-id": 1.0}, "$.snapshots[1].snapshot-id"),
        ({"snapshot-id": 2**63}, "$.snapshots[1].snapshot-id"),
        ({"timestamp-ms": "1"}, "$.snapshots[1].timestamp-ms"),
        ({"schema-id": 2**31}, "$.snapshots[1].schema-id"),
        ({"sequence-number": True}, "$.snapshots[1].sequence-number"),
        ({"manifest-list": None}, "$.snapshots[1]"),
        ({"first-row-id": 1}, "$.snapshots[1]"),
        ({"first-row-id": -1, "added-rows": 1}, "$.snapshots[1].first-row-id"),
        ({"added-rows": -1}, "$.snapshots[1].added-rows"),
        ({"summary": []}, "$.snapshots[1].summary"),
    ],
)
def test_what_no_reader_loads_is_refused_with_its_path(change: dict[str, Any], path: str) -> None:
    """The error names the member at fault."""
    with pytest.raises(SpecError) as caught:
        stored(snapshot(1), {key: item for key, item in (snapshot(2) | change).items() if item is not None})
    assert caught.value.path == path


def test_summary_values_must_be_strings() -> None:
    """A client's snapshot is checked whole; a stored one when somebody asks for it."""
    odd = snapshot(1) | {"summary": {"operation": "append", "added": 3}}
    with pytest.raises(SpecError, match="summary"):
        snapshot_from_json(odd, "$")
    with pytest.raises(SpecError, match=r"\$\.snapshots\[0\]\.summary"):
        stored(odd).verify("$.snapshots")


def test_two_snapshots_with_one_id_are_refused() -> None:
    """Ids are unique within a document."""
    with pytest.raises(SpecError, match="same snapshot-id"):
        stored(snapshot(1), snapshot(1))


def test_ancestry_runs_to_the_parentless_snapshot() -> None:
    """Newest first, complete when the line reaches its start."""
    line = stored(snapshot(1), snapshot(2, 1), snapshot(3, 2), snapshot(4, 1)).ancestry(3)
    assert [item.snapshot_id for item in line] == [3, 2, 1]
    assert line.complete


def test_ancestry_tells_when_it_breaks_off() -> None:
    """A parent that is not listed, an unknown start and a circle are all incomplete."""
    listed = stored(snapshot(2, 1), snapshot(3, 4), snapshot(4, 3))
    assert [item.snapshot_id for item in listed.ancestry(2)] == [2]
    assert not listed.ancestry(2).complete
    assert not listed.ancestry(99).complete
    assert [item.snapshot_id for item in listed.ancestry(3)] == [3, 4]
    assert not listed.ancestry(3).complete


def test_renumbering_the_schema_changes_nothing_else() -> None:
    """Everything but schema-id stays as sent."""
    sent = snapshot(1) | {"x-new": [1, {"y": 2}]}
    assert snapshot_from_json(sent, "$").with_schema_id(9).to_json() == sent | {"schema-id": 9}


def test_nesting_beyond_reason_is_a_fault_of_the_document() -> None:
    """Deep nesting never escapes as a recursion error."""
    deep: Any = 1
    for _ in range(2000):
        deep = {"a": deep}
    with pytest.raises(SpecError):
        snapshot_from_json(snapshot(1) | {"x": deep}, "$")
    text = b'{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(SpecError):
        parse_snapshot(text, canonical=False)


def test_a_parent_minus_one_is_none() -> None:
    """Old writers put it so: what a client sends loses the member, a stored text stays, and both are parentless."""
    sent = snapshot_from_json(snapshot(7, -1, 1), "$")
    assert (sent.parent_snapshot_id, sent.to_json()) == (None, snapshot(7, None, 1))
    kept = stored(snapshot(7, -1, 1), snapshot(8, 7, 2))
    assert [item.parent_snapshot_id for item in kept] == [None, 7]
    assert kept.ancestry(8).complete
    assert joined(kept.parts()) == encode([snapshot(7, -1, 1), snapshot(8, 7, 2)])
    assert parse_snapshot(encode(snapshot(7, -1, 1)), canonical=False).parent_snapshot_id is None


def test_a_listed_snapshot_minus_one_is_read_but_not_taken_in() -> None:
    """A stored table with one still loads; a document from outside is refused with the place."""
    listed = stored(snapshot(7), snapshot(-1))
    with pytest.raises(SpecError) as caught:
        listed.verify("$.snapshots")
    assert caught.value.path == "$.snapshots[1].snapshot-id"
    stored(snapshot(-2), snapshot(0)).verify("$.snapshots")
