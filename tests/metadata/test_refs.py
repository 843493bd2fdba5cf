"""Branches, tags and the snapshot log."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import ValidationFailed
from app.iceberg.table import TableMetadata, check_invariants
from tests.iceberg.documents import (
    NOW,
    column,
    document,
    parsed,
    schema,
    snapshot,
    with_history,
)
from tests.metadata.folding import (
    LATER,
    add_schema,
    add_snapshot,
    fold,
    remove_snapshots,
    result,
    set_current,
    set_properties,
    set_ref,
)

LINE = parsed(with_history(snapshot(1, at=NOW - 20), snapshot(2, 1, at=NOW - 10), snapshot(3, 2, at=NOW)))
REMOVE_MAIN = {"action": "remove-snapshot-ref", "ref-name": "main"}


def log(table: TableMetadata) -> list[tuple[int, int]]:
    return [(entry.timestamp_ms, entry.snapshot_id) for entry in table.snapshot_log]


def test_a_new_snapshot_is_logged_with_its_own_time() -> None:
    """While the table is updated now (O-28)."""
    after = result(LINE, add_snapshot(snapshot(4, 3, 1, at=NOW + 400)), set_ref(4))
    assert log(after)[-1] == (NOW + 400, 4)
    assert after.last_updated_ms == LATER


def test_a_rollback_is_logged_with_the_time_of_the_commit() -> None:
    """Setting the same again changes nothing."""
    after = result(LINE, set_ref(1))
    assert log(after) == [*log(LINE), (LATER, 1)]
    assert not fold(after, set_ref(1)).changed


@pytest.mark.parametrize(("sent", "logged"), [(0, NOW), (NOW + 10**9, LATER), (-5, NOW)])
def test_log_times_stay_between_the_last_entry_and_now(sent: int, logged: int) -> None:
    """A writer's clock cannot make the table unreadable."""
    after = result(LINE, add_snapshot(snapshot(4, 3, 1, at=sent)), set_ref(4))
    assert log(after)[-1] == (logged, 4)
    check_invariants(after)


def test_time_never_runs_backwards() -> None:
    """A commit on a machine whose clock is late is dated as the one before it."""
    after = result(LINE, set_properties(a="b"), now_ms=NOW - 10**7)
    assert after.last_updated_ms == NOW


def test_snapshots_that_main_only_passed_through_leave_no_trace() -> None:
    """One commit, one entry."""
    after = result(
        LINE, add_snapshot(snapshot(4, 3, 1)), set_ref(4), add_snapshot(snapshot(5, 4, 2)), set_ref(5), set_ref(5)
    )
    assert log(after) == [*log(LINE), (NOW, 5)]


def test_a_removed_snapshot_takes_the_history_before_it_along() -> None:
    """A gap would tell that another snapshot was current then."""
    assert log(result(LINE, remove_snapshots(2))) == log(LINE)[2:]
    assert log(result(LINE, remove_snapshots(1))) == log(LINE)[1:]
    assert log(result(LINE, remove_snapshots(2), set_ref(1))) == [log(LINE)[2], (LATER, 1)]


def test_moves_to_a_snapshot_that_goes_are_cut_too() -> None:
    """Main went to 1, then to 3, and 1 was removed."""
    after = result(LINE, set_ref(1), set_ref(3), remove_snapshots(1))
    assert log(after) == [(LATER, 3)]


def test_without_main_the_log_stays() -> None:
    """A replacement removes main and keeps history (O-25)."""
    wider = [add_schema(schema(1, column(1, "id", "string"))), set_current()]
    base = result(LINE, set_ref(1, "k", "tag"))
    gone = result(base, REMOVE_MAIN, *wider, set_properties(a="b"))
    assert (gone.current_snapshot_id, set(gone.refs), log(gone)) == (None, {"k"}, log(LINE))
    replaced = result(base, REMOVE_MAIN, *wider, add_snapshot(snapshot(9, None, 9)), set_ref(9))
    assert [item.snapshot_id for item in replaced.snapshots] == [1, 2, 3, 9]
    assert (replaced.current_snapshot_id, [entry[1] for entry in log(replaced)]) == (9, [1, 2, 3, 9])


def test_removing_an_absent_ref_is_no_change() -> None:
    """But main goes even where a document names a current snapshot and no main."""
    assert not fold(LINE, REMOVE_MAIN | {"ref-name": "x"}).changed
    odd = parsed(with_history(snapshot(1), refs={}))
    assert fold(odd, REMOVE_MAIN).metadata.current_snapshot_id is None
    assert fold(odd, REMOVE_MAIN).changed


@pytest.mark.parametrize("ref", [set_ref(9), set_ref(9, "x"), set_ref(1, "main", "tag")])
def test_refs_point_to_listed_snapshots_and_main_is_a_branch(ref: dict[str, Any]) -> None:
    """Everything else is refused (O-27)."""
    with pytest.raises(ValidationFailed):
        fold(LINE, ref)


def test_retention_changes_are_changes_without_a_log_entry() -> None:
    """Main stays where it is."""
    after = fold(LINE, set_ref(3, **{"max-ref-age-ms": 5}), set_ref(1, "k", "tag", **{"max-ref-age-ms": 5}))
    assert after.changed
    assert log(after.metadata) == log(LINE)
    assert after.metadata.refs["main"].max_ref_age_ms == 5


def test_a_ref_may_change_its_kind() -> None:
    """A tag may become a branch of the same name."""
    base = result(LINE, set_ref(1, "x", "tag"))
    assert result(base, set_ref(2, "x")).refs["x"].is_branch


def test_the_first_snapshot_starts_the_log() -> None:
    """With its own time, however old."""
    after = result(parsed(document()), add_snapshot(snapshot(1, at=5, number=1)), set_ref(1))
    assert log(after) == [(5, 1)]
