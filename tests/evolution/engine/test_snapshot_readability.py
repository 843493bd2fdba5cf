"""Whether new snapshots can be read with the schemas they name: by tag and by ID, for good."""

from __future__ import annotations

import pytest

from app.evolution.engine.change import Change, Evidence
from app.evolution.engine.snapshot_readability import UnreadableSnapshot, burdens
from app.iceberg.table import TableMetadata
from app.rules import Severity
from tests.evolution.tables import (
    Json,
    add_schema,
    branch,
    commit,
    evolve,
    field,
    judged,
    refusals,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    snapshot,
    table,
    tag,
)

NARROW, WIDE, TEXT = field(1, "a", "int"), field(1, "a", "long"), field(1, "a", "string")
NAME, NEEDED = field(2, "name", "string"), field(2, "name", "string", True)


def added(snapshot_id: int, schema_id: int | None, parent: int | None, **more: object) -> Json:
    """An add-snapshot update for a version 2 table."""
    sent = {**snapshot(snapshot_id, schema_id, parent), **more}
    return {
        "action": "add-snapshot",
        "snapshot": {key: value for key, value in sent.items() if key not in ("first-row-id", "added-rows")},
    }


def promoted(**refs: Json) -> TableMetadata:
    """Column 1 was int in schema 0 and is long in schema 1; snapshots 1 and 2 were written under these."""
    return table(
        schema(NARROW),
        schema(WIDE, schema_id=1),
        snapshots=[snapshot(1, 0), snapshot(2, 1, 1)],
        refs=refs or {"main": branch(2)},
    )


def replaced(*, tags: bool = True) -> TableMetadata:
    """Column 1 was long and is string since CREATE OR REPLACE; snapshot 1 is from before."""
    return table(
        schema(WIDE),
        schema(TEXT, schema_id=1),
        snapshots=[snapshot(1, 0), snapshot(2, 1)],
        refs={"main": branch(2), **({"v1": tag(1)} if tags else {})},
    )


REF_OF: dict[str, list[Json]] = {
    "no ref": [],
    "tag": [set_ref("t", 3, "tag")],
    "branch": [set_ref("main", 3)],
    "new branch": [set_ref("audit", 3)],
}


@pytest.mark.parametrize("updates", REF_OF.values(), ids=REF_OF)
def test_a_schema_that_was_widened_since_is_outdated(updates: list[Json]) -> None:
    """Snapshot 3 says int and may hold the longs of snapshot 2, whatever leads to it."""
    assert refusals(promoted(), [added(3, 0, 2), *updates]) == ["ICE509"]
    assert refusals(promoted(), [added(3, 1, 2), *updates]) == []


def test_on_the_parent_from_before_the_promotion_the_old_schema_is_right() -> None:
    """A writer that saw snapshot 1 as the head of a branch, and schema 0 as the current one."""
    stored = promoted(main=branch(2), audit=branch(1))
    assert refusals(stored, [added(3, 0, 1), set_ref("audit", 3)]) == []


def test_columns_that_came_or_went_are_no_obstacle() -> None:
    """A late writer whose schema lacks a column, or has one that was dropped, as long as it may be null."""
    more = table(schema(WIDE), schema(WIDE, NAME, schema_id=1), snapshots=[snapshot(1, 1)], refs={"main": branch(1)})
    assert refusals(more, [added(2, 0, 1), set_ref("main", 2)]) == []
    less = table(schema(WIDE, NAME), schema(WIDE, schema_id=1), snapshots=[snapshot(1, 1)], refs={"main": branch(1)})
    assert refusals(less, [added(2, 0, 1), set_ref("main", 2)]) == []


def test_a_required_column_that_the_parent_lacks_is_one() -> None:
    """Schema 0 requires a column that snapshot 1 was written without."""
    stored = table(
        schema(WIDE, NEEDED), schema(WIDE, schema_id=1), snapshots=[snapshot(1, 1)], refs={"main": branch(1)}
    )
    found = judged(stored, [added(2, 0, 1), set_ref("main", 2)]).findings
    assert [(f.code, f.field_id) for f in found if f.refuses] == [("ICE509", 2)]
    assert "snapshot 2 names schema 0" in found[0].message and "schema 1" in found[0].message


@pytest.mark.parametrize("updates", [[], [set_ref("t", 3, "tag")], [set_ref("v1", 3, "tag")]])
def test_a_snapshot_of_the_replacement_does_not_stand_on_one_from_before(updates: list[Json]) -> None:
    """Neither the current schema nor an older one may claim to read what it cannot."""
    assert refusals(replaced(), [added(3, 1, 1), *updates]) == ["ICE510"]
    assert refusals(replaced(), [added(3, 0, 2), *updates]) == ["ICE510"]
    assert refusals(replaced(), [added(3, 0, 1), *updates]) == []
    assert refusals(replaced(), [added(3, 1, 2), *updates]) == []


def test_an_overwrite_that_says_it_dropped_everything_is_not_believed() -> None:
    """A summary proves nothing; what starts afresh has no parent."""
    summary = {"operation": "overwrite", "deleted-data-files": "7", "total-data-files": "1"}
    assert refusals(replaced(), [added(3, 1, 1, summary=summary)]) == ["ICE510"]
    assert refusals(replaced(), [added(3, 1, None, summary=summary)]) == []


def test_a_parent_that_the_same_commit_removes_counts() -> None:
    """Its files stay in the snapshot that follows it."""
    stored = replaced(tags=False)
    gone = {"action": "remove-snapshots", "snapshot-ids": [1]}
    assert refusals(stored, [added(3, 1, 1), gone]) == ["ICE510"]
    assert refusals(stored, [added(3, 0, 1), gone]) == []


def test_a_parent_that_came_and_went_within_the_commit_counts_as_one_on_a_branch() -> None:
    """Nobody can tell what it stood on."""
    gone = {"action": "remove-snapshots", "snapshot-ids": [3]}
    assert refusals(promoted(), [added(3, 1, 2), added(4, 0, 3, **{"sequence-number": 4}), gone]) == ["ICE510"]
    assert refusals(promoted(), [added(3, 1, 2), added(4, 1, 3, **{"sequence-number": 4}), gone]) == []


def test_snapshots_of_one_commit_are_judged_one_by_one() -> None:
    """The second one stands on the first, which stands on a branch."""
    second = added(4, 0, 3, **{"sequence-number": 4})
    assert refusals(promoted(), [added(3, 1, 2), second, set_ref("main", 4)]) == ["ICE510"]


def test_a_schema_made_by_the_commit_and_written_aside_is_held_to_its_parent() -> None:
    """With main gone the table is free to change; the tagged snapshot on the old parent is not."""
    updates = [remove_ref("main"), *evolve(TEXT), added(3, -1, 2), set_ref("t", 3, "tag")]
    assert refusals(promoted(), updates) == ["ICE510"]
    afresh = [remove_ref("main"), *evolve(TEXT), added(3, -1, None), set_ref("main", 3)]
    assert refusals(promoted(), afresh) == []


def test_a_schema_that_is_not_made_current_is_held_too() -> None:
    """The snapshot names it all the same."""
    assert refusals(promoted(), [add_schema(TEXT), added(3, 2, 2), set_ref("t", 3, "tag")]) == ["ICE510"]


def test_what_a_table_arrived_with_is_no_reason() -> None:
    """A registered table whose current schema could never read its branch can still be written to, late or not."""
    broken = table(
        schema(WIDE),
        schema(TEXT, schema_id=1),
        schema(TEXT, NAME, schema_id=2),
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    assert refusals(broken, [added(2, 2, 1), set_ref("main", 2)]) == []
    assert refusals(broken, [added(2, 1, 1), set_ref("main", 2)]) == []


def test_snapshots_without_schema_tell_nothing() -> None:
    """Neither as parent nor as child."""
    stored = table(schema(NARROW), schema(WIDE, schema_id=1), snapshots=[snapshot(1, None)], refs={"main": branch(1)})
    assert refusals(stored, [added(2, 0, 1), set_ref("main", 2)]) == []
    assert refusals(promoted(), [added(3, None, 2), set_ref("main", 3)]) == []


def lost(*gone: int) -> TableMetadata:
    """Column 2 was int, then long, then dropped; snapshot 3 was written without it, and what was before has expired.
    `gone` are the schemas that clean-up took away."""
    schemas = [
        schema(field(1, "a", "int"), field(2, "b", "int")),
        schema(field(1, "a", "int"), field(2, "b", "long"), schema_id=1),
        schema(field(1, "a", "int"), schema_id=2),
        schema(field(1, "a", "int"), field(3, "c", "int"), schema_id=3),
        schema(field(1, "a", "int"), field(3, "c", "long"), schema_id=4),
    ]
    kept = [s for s in schemas if s["schema-id"] not in gone]
    return table(*kept, snapshots=[snapshot(3, 2, parent=2)], refs={"main": branch(3)})


def test_a_lost_past_is_held_against_older_schemas() -> None:
    """Files from the days of schema 1 hold longs where schema 0 says int."""
    assert refusals(lost(), [added(4, 0, 3), set_ref("t", 4, "tag")]) == ["ICE509"]
    assert refusals(lost(), [added(4, 1, 3), set_ref("t", 4, "tag")]) == []


def test_a_missing_schema_leaves_a_dropped_column_in_the_dark() -> None:
    """With schema 1 removed nothing tells that column 2 ever was a long."""
    assert refusals(lost(1), [added(4, 0, 3), set_ref("t", 4, "tag")]) == ["ICE509"]


def test_a_column_that_came_later_is_in_no_file_of_the_past() -> None:
    """A late writer of schema 3, whose column 3 was widened while it wrote: no snapshot has it yet."""
    assert refusals(lost(), [added(4, 3, 3), set_ref("main", 4)]) == []


def test_the_number_of_a_schema_does_not_tell_when_it_was_current() -> None:
    """A change that is taken back brings an old number back; an older snapshot with a younger schema gives it away."""
    gone = commit(
        table(
            schema(field(1, "a", "int"), schema_id=1),
            schema(field(1, "a", "int"), field(2, "b", "int"), schema_id=2),
            schema(field(1, "a", "int"), field(2, "b", "long"), schema_id=3),
            current=1,
            snapshots=[snapshot(4, 2, parent=3), snapshot(6, 1, parent=5)],
            refs={"main": branch(6), "t": tag(4)},
        ),
        [{"action": "remove-schemas", "schema-ids": [3]}],
    )
    assert refusals(gone, [added(7, 2, 6)]) == ["ICE509"]
    forgotten = commit(gone, [remove_ref("t"), {"action": "remove-snapshots", "snapshot-ids": [4]}])
    assert refusals(forgotten, [added(7, 2, 6)]) == []


def test_a_snapshot_that_takes_the_id_of_another_is_judged_as_new() -> None:
    """Removed and added by one commit: main stands where it stood by ID alone."""
    gone = {"action": "remove-snapshots", "snapshot-ids": [2]}
    again = added(2, 0, None, **{"sequence-number": 3})
    assert refusals(replaced(), [gone, again, set_ref("main", 2)]) == ["ICE503"]
    assert refusals(replaced(), [gone, {**again, "snapshot": {**again["snapshot"], "schema-id": 1}}]) == []
    on_the_past = added(2, 1, 1, **{"sequence-number": 3})
    assert refusals(replaced(), [gone, on_the_past]) == ["ICE510"]


def test_policy_lowers_both_rules() -> None:
    """Where such writers must be tolerated, they are."""
    lowered = {"ICE509": Severity.WARN, "ICE510": Severity.WARN}
    assert refusals(promoted(), [added(3, 0, 2), set_ref("main", 3)], lowered=lowered) == []
    assert refusals(replaced(), [added(3, 1, 1)], lowered=lowered) == []


def test_only_what_a_refresh_cures_is_outdated() -> None:
    """Not a schema that the current one cannot read: written again under that, its files would be misread."""
    stored = promoted()
    assert [b.outdated for b in _burdens(stored, [added(3, 0, 2)])] == [True]
    free = [remove_ref("main"), *evolve(TEXT), added(3, 0, 2)]
    assert [b.outdated for b in _burdens(stored, free)] == [False]


def test_a_rollback_of_the_schema_needs_no_mercy() -> None:
    """After a legal undo the new snapshot names the narrow schema on the narrow parent."""
    stored = table(schema(NARROW), schema(WIDE, schema_id=1), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    undone = commit(stored, [set_schema(0)])
    assert refusals(undone, [added(2, 0, 1), set_ref("main", 2)]) == []


def _burdens(stored: TableMetadata, updates: list[Json]) -> list[UnreadableSnapshot]:
    after = commit(stored, updates)
    return list(burdens(Change(stored, after, stored.schema, after.schema, Evidence())))
