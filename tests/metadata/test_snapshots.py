"""Adding and removing snapshots, and their statistics."""

from __future__ import annotations

import time
from typing import Any

import pytest

from app.errors import CommitFailed, SpecError, ValidationFailed
from app.iceberg.json.codec import decode, encode
from app.iceberg.table import parse_table_metadata
from app.iceberg.update import parse_table_updates
from app.metadata.tables import apply
from tests.iceberg.documents import document, parsed, snapshot, with_history
from tests.metadata.folding import (
    CREATE,
    LATER,
    add_snapshot,
    fold,
    remove_snapshots,
    result,
    set_ref,
    written,
)

EMPTY = parsed(document())
LINE = parsed(with_history(snapshot(1, number=1), snapshot(2, 1, number=2), snapshot(3, 2, number=3)))


def statistics(snapshot_id: int, path: str = "p") -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


def set_statistics(snapshot_id: int, path: str = "p") -> list[dict[str, Any]]:
    return [
        {"action": "set-statistics", "statistics": statistics(snapshot_id, path)},
        {"action": "set-partition-statistics", "partition-statistics": statistics(snapshot_id, path)},
    ]


def test_a_snapshot_is_listed_as_sent() -> None:
    """Unknown members stay, and the sequence number advances the table's."""
    sent = snapshot(4, 3, 4) | {"x-new": {"y": 2**63 - 1}}
    after = result(LINE, add_snapshot(sent), set_ref(4))
    assert written(after)["snapshots"][-1] == sent
    assert (after.last_sequence_number, after.current_snapshot_id) == (4, 4)


def test_a_snapshot_id_is_used_once() -> None:
    """Also within one commit; an id that the commit removed is free."""
    for updates in (
        [add_snapshot(snapshot(3, 2, 4))],
        [add_snapshot(snapshot(4, 3, 4)), add_snapshot(snapshot(4, 3, 5))],
    ):
        with pytest.raises(ValidationFailed, match="already exists"):
            fold(LINE, *updates)
    again = result(LINE, remove_snapshots(3), add_snapshot(snapshot(3, 2, 4)), set_ref(3))
    assert [(item.snapshot_id, item.sequence_number) for item in again.snapshots] == [(1, 1), (2, 2), (3, 4)]


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_stale_sequence_number_is_a_conflict(number: int) -> None:
    """A refresh cures it (O-16)."""
    with pytest.raises(CommitFailed, match="older than last sequence number 3"):
        fold(LINE, add_snapshot(snapshot(4, 3, number)))


def test_a_parentless_snapshot_may_have_any_sequence_number() -> None:
    """The table's number is the highest that ever was."""
    after = result(LINE, add_snapshot(snapshot(4, None, 1)), add_snapshot(snapshot(5, 4, 7)))
    assert after.last_sequence_number == 7
    assert result(LINE, add_snapshot(snapshot(4, None, 1))).last_sequence_number == 3


def test_an_unknown_parent_is_a_conflict() -> None:
    """It was expired meanwhile; on a table that is being created it is plainly wrong."""
    with pytest.raises(CommitFailed, match="unknown parent snapshot 99"):
        fold(LINE, add_snapshot(snapshot(4, 99, 4)))
    with pytest.raises(CommitFailed):
        fold(LINE, remove_snapshots(3), add_snapshot(snapshot(4, 3, 4)))
    with pytest.raises(ValidationFailed):
        fold(None, *CREATE, add_snapshot(snapshot(1, 99, 1)))


def test_version_1_has_no_sequence_numbers() -> None:
    """They are absent or 0."""
    base = parsed(document(1))
    after = result(base, add_snapshot(snapshot(1)), add_snapshot(snapshot(2, 1)), set_ref(2))
    assert after.last_sequence_number == 0
    with pytest.raises(ValidationFailed, match="must be 0 in v1"):
        fold(base, add_snapshot(snapshot(1, number=1)))


def test_row_ids_advance() -> None:
    """From the snapshot's first id by its rows (O-34)."""
    base = result(LINE, {"action": "upgrade-format-version", "format-version": 3})
    assert base.next_row_id == 0
    after = result(base, add_snapshot(snapshot(4, 3, 4) | {"first-row-id": 0, "added-rows": 250}))
    assert after.next_row_id == 250
    gap = result(after, add_snapshot(snapshot(5, 4, 5) | {"first-row-id": 300, "added-rows": 10}))
    assert gap.next_row_id == 310
    assert [item.first_row_id for item in gap.snapshots] == [None, None, None, 0, 300]


def test_row_ids_are_never_given_twice() -> None:
    """A stale first-row-id is a conflict with or without a parent, a missing one a bad request."""
    base = parsed(with_history(snapshot(1, number=1), version=3, next_row_id=100))
    rows = {"first-row-id": 99, "added-rows": 5}
    for parent in (1, None):
        with pytest.raises(CommitFailed, match="first-row-id is behind"):
            fold(base, add_snapshot(snapshot(2, parent, 2) | rows))
    with pytest.raises(ValidationFailed, match="first-row-id is null"):
        fold(base, add_snapshot(snapshot(2, 1, 2)))
    with pytest.raises(ValidationFailed, match="64-bit"):
        fold(base, add_snapshot(snapshot(2, 1, 2) | {"first-row-id": 2**63 - 1, "added-rows": 1}))


def test_before_version_3_row_ids_do_not_count() -> None:
    """They are kept in the snapshot and ignored otherwise."""
    after = result(LINE, add_snapshot(snapshot(4, 3, 4) | {"first-row-id": 9, "added-rows": 5}))
    assert after.next_row_id == 0
    assert written(after)["snapshots"][-1]["first-row-id"] == 9


def test_a_new_table_needs_schema_spec_and_order_before_snapshots() -> None:
    """Each is missed by name."""
    for at, what in ((2, "schema"), (4, "partition spec"), (6, "sort order")):
        with pytest.raises(ValidationFailed, match=f"before a {what}"):
            fold(None, *CREATE[:at], add_snapshot(snapshot(1, number=1)))


def test_removal_takes_refs_and_statistics_along() -> None:
    """Of the removed snapshots only (O-27)."""
    base = result(LINE, *set_statistics(1), *set_statistics(3), set_ref(1, "k", "tag"), set_ref(1, "b"))
    after = result(base, remove_snapshots(1, 1, 77))
    assert [file.snapshot_id for file in after.statistics] == [3]
    assert [file.snapshot_id for file in after.partition_statistics] == [3]
    assert set(after.refs) == {"main"}
    assert [item.snapshot_id for item in after.snapshots] == [2, 3]


def test_removing_the_current_snapshot_leaves_none() -> None:
    """Main goes with it."""
    after = result(LINE, remove_snapshots(3))
    assert (after.current_snapshot_id, after.refs, len(after.snapshot_log)) == (None, {}, 0)


def test_removing_nothing_is_no_change() -> None:
    """Unknown ids and an empty list are ignored."""
    assert not fold(LINE, remove_snapshots(), remove_snapshots(77, 78)).changed


def test_a_snapshot_added_and_removed_in_one_commit_leaves_no_trace() -> None:
    """But the sequence number stays spent."""
    after = result(LINE, add_snapshot(snapshot(4, 3, 4)), remove_snapshots(4))
    assert ([item.snapshot_id for item in after.snapshots], after.last_sequence_number) == ([1, 2, 3], 4)


def test_statistics_have_one_entry_per_snapshot() -> None:
    """The later one stays; the same again and the removal of none are no change."""
    base = result(LINE, *set_statistics(3, "old"), *set_statistics(3, "new"))
    assert [file.path for file in (*base.statistics, *base.partition_statistics)] == ["new", "new"]
    assert not fold(base, *set_statistics(3, "new")).changed
    remove = [{"action": f"remove-{kind}", "snapshot-id": 3} for kind in ("statistics", "partition-statistics")]
    after = result(base, *remove)
    assert (after.statistics, after.partition_statistics) == ((), ())
    assert not fold(after, *remove).changed


def test_statistics_survive_unrelated_commits() -> None:
    """Text unchanged."""
    base = result(LINE, *set_statistics(1), *set_statistics(3))
    after = result(base, {"action": "set-properties", "updates": {"a": "b"}})
    assert (after.statistics, after.partition_statistics) == (base.statistics, base.partition_statistics)


def test_a_large_backlog_is_expired_in_one_pass() -> None:
    """60,000 snapshots, 59,990 removed at once or one by one, with equal results and without quadratic cost (O-23)."""
    history = [snapshot(at, at - 1 if at else None, at + 1, at=1_000_000 + at) for at in range(60_000)]
    base = parse_table_metadata(encode(with_history(*history)))
    gone = list(range(59_990))
    at_once = decode(encode([remove_snapshots(*gone)]))
    one_by_one = decode(encode([remove_snapshots(snapshot_id) for snapshot_id in gone]))
    results = []
    for updates in (at_once, one_by_one):
        started = time.process_time()
        after = apply(base, "f", parse_table_updates(updates), LATER, "u").metadata
        spent = time.process_time() - started
        assert spent < 5, f"{spent:.1f} s"
        results.append(written(after))
    assert results[0] == results[1]
    assert [item["snapshot-id"] for item in results[0]["snapshots"]] == list(range(59_990, 60_000))
    assert len(results[0]["snapshot-log"]) == 10


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_first_snapshot_may_name_its_missing_parent_minus_one(version: int) -> None:
    """As old writers do: it is stored without a parent."""
    sent = snapshot(7, -1, 0 if version == 1 else 1) | {"first-row-id": 0, "added-rows": 1}
    after = result(parsed(document(version)), add_snapshot(sent), set_ref(7))
    del sent["parent-snapshot-id"]
    assert written(after)["snapshots"] == [sent]


NO_OPERATION: list[dict[str, Any] | None] = [None, {}, {"added-records": "3"}]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("summary", NO_OPERATION)
def test_a_snapshot_that_names_no_operation_is_an_overwrite(version: int, summary: dict[str, Any] | None) -> None:
    """As Java reads it; everything else stays as sent."""
    sent = snapshot(1, number=1) | {"summary": summary, "first-row-id": 0, "added-rows": 1, "x": [1]}
    after = result(parsed(document(version)), add_snapshot(sent), set_ref(1))
    assert written(after)["snapshots"] == [sent | {"summary": {"operation": "overwrite", **(summary or {})}}]
    assert after.snapshots.find(1).operation == "overwrite"  # type: ignore[union-attr]


@pytest.mark.parametrize("summary", NO_OPERATION)
def test_in_version_1_the_summary_stays_as_sent(summary: dict[str, Any] | None) -> None:
    """There it is optional."""
    sent = snapshot(1) | {"summary": summary}
    after = result(parsed(document(1)), add_snapshot(sent), set_ref(1))
    assert written(after)["snapshots"] == [{key: value for key, value in sent.items() if value is not None}]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("lists", [{"manifest-list": None}, {}])
def test_manifests_are_listed_in_a_file_from_version_2_on(version: int, lists: dict[str, Any]) -> None:
    """In place of the manifest-list or beside it, the member manifests is version 1 alone."""
    number = {} if version == 1 else {"sequence-number": 1}
    sent = snapshot(1) | number | {"manifests": ["s3://b/m.avro"], "first-row-id": 0, "added-rows": 1} | lists
    base = parsed(document(version))
    if version == 1:
        assert result(base, add_snapshot(sent)).snapshots.find(1).manifests == ["s3://b/m.avro"]  # type: ignore[union-attr]
        return
    with pytest.raises(ValidationFailed, match="must name its manifests in a manifest-list"):
        fold(base, add_snapshot(sent))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_snapshot_without_any_manifests_is_refused(version: int) -> None:
    """No reader knows what it holds."""
    with pytest.raises(SpecError, match="needs manifest-list or manifests"):
        fold(parsed(document(version)), add_snapshot(snapshot(1) | {"manifest-list": None}))
