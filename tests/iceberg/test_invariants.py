"""What every reader demands of a document."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.table import CLOCK_SKEW_MS, check_invariants
from tests.iceberg.documents import NOW, UUID, document, parsed, snapshot, with_history


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 4}, "Unsupported format version"),
        ({"format_version": 0}, "Unsupported format version"),
        ({"table_uuid": None}, "UUID is required"),
        ({"location": ""}, "location is required"),
        ({"partition_specs": ()}, "Partition specs cannot be empty"),
        ({"sort_orders": ()}, "Sort orders cannot be empty"),
        ({"current_schema_id": 7}, "current-schema-id"),
        ({"default_spec_id": 7}, "default-spec-id"),
        ({"default_sort_order_id": 7}, "default-sort-order-id"),
        ({"current_snapshot_id": 7}, "Cannot find current version"),
        ({"current_snapshot_id": None}, "main branch exists"),
        ({"current_snapshot_id": 1}, "does not match main"),
        ({"last_sequence_number": 1}, "greater than last sequence number"),
        ({"last_updated_ms": NOW - CLOCK_SKEW_MS - 1}, "before last snapshot-log entry"),
    ],
)
def test_each_invariant_is_checked(change: dict[str, Any], message: str) -> None:
    """A sound document made unsound in one member is refused for it."""
    sound = parsed(with_history(snapshot(1, number=1), snapshot(2, 1, number=2)))
    check_invariants(sound)
    with pytest.raises(SpecError, match=message):
        check_invariants(msgspec.structs.replace(sound, **change))


def test_version_1_has_no_sequence_numbers() -> None:
    """Neither the table nor its snapshots."""
    with pytest.raises(SpecError, match="must be 0 in v1"):
        check_invariants(msgspec.structs.replace(parsed(document(1)), last_sequence_number=1))
    with pytest.raises(SpecError, match="greater than last sequence number"):
        parsed(with_history(snapshot(1, number=1), version=1))


def test_log_times_may_run_back_by_a_minute() -> None:
    """Clocks differ between machines; more is a fault."""
    late, early = snapshot(1, at=NOW), snapshot(2, 1, at=NOW - CLOCK_SKEW_MS)
    parsed(with_history(late, early))
    with pytest.raises(SpecError, match="not in order of time"):
        parsed(with_history(late, early | {"timestamp-ms": NOW - CLOCK_SKEW_MS - 1}))
    files = [{"timestamp-ms": NOW + CLOCK_SKEW_MS, "metadata-file": "f"}]
    parsed(document(metadata_log=files))
    files[0]["timestamp-ms"] = NOW + CLOCK_SKEW_MS + 1
    with pytest.raises(SpecError, match="before last metadata-log entry"):
        parsed(document(metadata_log=files))


def test_version_1_needs_no_uuid() -> None:
    """Only version 1."""
    assert parsed(document(1, table_uuid=None)).table_uuid is None
    assert parsed(document(1)).table_uuid == UUID


@pytest.mark.parametrize("key", ["partition_specs", "sort_orders"])
def test_ids_in_lists_are_unique(key: str) -> None:
    """Two specs or orders under one id cannot be told apart."""
    table = parsed(document())
    with pytest.raises(SpecError, match="the same"):
        check_invariants(msgspec.structs.replace(table, **{key: getattr(table, key) * 2}))


def test_shared_history_is_not_looked_at_again() -> None:
    """With a sound base only what came after it is checked."""
    base = parsed(with_history(snapshot(1, number=1), snapshot(2, 1, number=2)))
    lowered = msgspec.structs.replace(base, last_sequence_number=1)
    check_invariants(lowered, base)
    grown = msgspec.structs.replace(
        lowered, snapshots=base.snapshots.append(parsed(with_history(snapshot(3, number=3))).snapshots[0])
    )
    with pytest.raises(SpecError, match="sequence number 3"):
        check_invariants(grown, base)
