"""What a table forgot: restored columns and branches whose files nobody can explain any more."""

from __future__ import annotations

import pytest

from app.iceberg.table import TableMetadata
from tests.evolution.tables import (
    Json,
    branch,
    commit,
    evolve,
    field,
    refusals,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    snapshot,
    struct,
    table,
    tag,
    warnings,
)

B = field(1, "b", "string")
INT = field(2, "a", "int")
LONG = field(2, "a", "long")


def forgotten(*snapshots: Json, tags: dict[str, Json] | None = None, head: int = 4) -> TableMetadata:
    """Column a was int (schema 0), long (1) and dropped (2); schema 1 is gone."""
    kept = list(snapshots) or [snapshot(3, 2, parent=2), snapshot(4, 2, parent=3)]
    return table(schema(B, INT), schema(B, schema_id=2), snapshots=kept, refs={"main": branch(head), **(tags or {})})


def expire(*ids: int) -> Json:
    return {"action": "remove-snapshots", "snapshot-ids": list(ids)}


def forget(*ids: int) -> Json:
    return {"action": "remove-schemas", "schema-ids": list(ids)}


@pytest.mark.parametrize("updates", [[set_schema(0)], evolve(B, INT), evolve(B, {**INT, "name": "other"})])
def test_a_column_does_not_come_back_without_evidence(updates: list[Json]) -> None:
    """By its old schema or by its ID, under its name or another."""
    assert refusals(forgotten(), updates) == ["ICE109"]


def test_a_fresh_id_is_the_way_out() -> None:
    """The fix that the message names is accepted."""
    assert refusals(forgotten(), evolve(B, field(3, "a", "int"))) == []


def test_a_tag_on_the_first_snapshot_explains_nothing_of_those_after_it() -> None:
    """Only the snapshot of the wide days expired."""
    held = forgotten(snapshot(1, 0), snapshot(3, 2, parent=2), head=3, tags={"v1": tag(1)})
    assert refusals(held, [set_schema(0)]) == ["ICE109"]


def test_snapshots_that_name_no_schema_explain_nothing() -> None:
    """Their history is whole, but it may have been written under the schema that is gone."""
    held = forgotten(snapshot(1), snapshot(2, parent=1), snapshot(3, 2, parent=2), head=3)
    assert refusals(held, [set_schema(0)]) == ["ICE109"]


def test_a_nested_column_is_no_exception() -> None:
    """Struct and child are as unknown as a top-level column."""
    held = table(
        schema(B, field(2, "s", struct(field(3, "x", "int")))),
        schema(B, schema_id=2),
        snapshots=[snapshot(3, 2, parent=2)],
        refs={"main": branch(3)},
    )
    assert refusals(held, [set_schema(0)]) == ["ICE109"]


def test_a_required_column_with_defaults_is_no_exception() -> None:
    """It may have been optional, with nulls in files, under the schema that is gone."""
    column = field(2, "a", "int", True, initial=5, write=5)
    held = table(
        schema(B, column),
        schema(B, schema_id=2),
        version=3,
        snapshots=[snapshot(3, 2, parent=2)],
        refs={"main": branch(3)},
    )
    assert refusals(held, [set_schema(0)]) == ["ICE109"]


def test_a_whole_history_explains_itself_whatever_schemas_are_gone() -> None:
    """Nothing was written under schema 1."""
    assert refusals(forgotten(snapshot(1, 0), snapshot(2, 2, parent=1), head=2), [set_schema(0)]) == []


def test_a_known_snapshot_that_has_the_column_speaks_for_all_before_it() -> None:
    """Schema 0 could read whatever lies behind snapshot 5."""
    assert refusals(forgotten(snapshot(5, 0, parent=4), snapshot(6, 2, parent=5), head=6), [set_schema(0)]) == []


def test_a_broken_history_with_every_schema_at_hand_is_judged_by_them() -> None:
    """With schema 1 kept, the wide column may return and the narrow one may not."""
    held = table(
        schema(B, INT),
        schema(B, LONG, schema_id=1),
        schema(B, schema_id=2),
        snapshots=[snapshot(3, 2, parent=2)],
        refs={"main": branch(3)},
    )
    assert refusals(held, [set_schema(1)]) == []
    assert refusals(held, [set_schema(0)]) == ["ICE201"]


def test_schemas_older_than_the_column_do_not_matter() -> None:
    """Schema 1 had no ID as high as 2, so the ones before it did not have column 2 either."""
    held = table(
        schema(B, schema_id=1),
        schema(B, INT, schema_id=2),
        schema(field(1, "c", "string"), schema_id=3),
        snapshots=[snapshot(3, 3, parent=2)],
        refs={"main": branch(3)},
    )
    assert refusals(held, [set_schema(2)]) == []


def test_the_highest_schema_is_missed_too() -> None:
    """Its removal leaves no gap in the list, so the table remembers its ID and gives it to no other schema."""
    base = table(
        schema(B),
        schema(B, INT, schema_id=1),
        schema(B, LONG, schema_id=2),
        current=0,
        snapshots=[snapshot(2, 2, parent=1), snapshot(3, 0, parent=2)],
        refs={"main": branch(3)},
    )
    after = commit(base, [expire(2), forget(2)])
    assert after.schemas.ids == (0, 1)
    assert refusals(after, [set_schema(1)]) == ["ICE109"]
    again = commit(after, evolve(B, field(3, "d", "int")))
    assert again.schemas.ids == (0, 1, 3)
    assert "icekeel.last-schema-id" in after.extra and "icekeel.last-schema-id" not in again.extra


def rolled_back(*schemas: Json) -> TableMetadata:
    """Main went back to snapshot 1 and schema 0; snapshot 3 was written after the drop, snapshot 2 is gone."""
    return table(
        *schemas,
        current=0,
        last_column_id=2,
        snapshots=[snapshot(1, 0), snapshot(3, 2, parent=2)],
        refs={"main": branch(1)},
    )


def test_a_branch_does_not_come_to_a_past_that_a_retained_schema_makes_unreadable() -> None:
    """Snapshot 3 has no column a, but the files behind it may be long."""
    base = rolled_back(schema(B, INT), schema(B, LONG, schema_id=1), schema(B, schema_id=2))
    assert refusals(base, [set_ref("main", 3)]) == ["ICE503"]
    assert refusals(base, [set_ref("other", 3)]) == ["ICE503"]
    assert refusals(base, [set_ref("kept", 3, "tag")]) == []
    assert refusals(base, [set_ref("main", 3), set_schema(2)]) == []


def test_a_branch_does_not_come_to_a_past_whose_schema_is_gone() -> None:
    """The same after schema 1 was removed."""
    base = rolled_back(schema(B, INT), schema(B, schema_id=2))
    assert refusals(base, [set_ref("main", 3)]) == ["ICE503"]
    assert refusals(base, [set_ref("main", 3), set_schema(2)]) == []


def test_a_branch_may_come_to_a_tag_whose_past_expired() -> None:
    """The schema of the tagged snapshot could read what is behind it, and the later column is not there yet."""
    base = table(
        schema(B),
        schema(B, INT, schema_id=2),
        snapshots=[snapshot(2, 0, parent=1), snapshot(9, 2, parent=8)],
        refs={"main": branch(9), "v1": tag(2)},
    )
    assert refusals(base, [set_ref("main", 2)]) == []


def test_an_append_may_expire_its_parent() -> None:
    """What the branch held before needs no second look."""
    base = table(schema(B, INT), schema(B, schema_id=2), snapshots=[snapshot(3, 2, parent=2)], refs={"main": branch(3)})
    added: Json = {"action": "add-snapshot", "snapshot": snapshot(4, 2, parent=3)}
    del added["snapshot"]["first-row-id"], added["snapshot"]["added-rows"]
    assert refusals(base, [added, set_ref("main", 4), expire(3)]) == []


def test_an_old_id_under_a_new_name_is_told() -> None:
    """Legal, since it may be the old column that returns; its own name is no news."""
    base = table(
        schema(B, INT),
        schema(B, schema_id=1),
        snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1)],
        refs={"main": branch(2)},
    )
    assert warnings(base, evolve(B, {**INT, "name": "visits"})) == ["ICE111"]
    assert warnings(base, evolve(B, INT)) == []


def test_a_branch_that_comes_to_a_reused_schema_may_hold_what_younger_ones_had() -> None:
    """Column 2 came as int (schema 1), became long (2) and was dropped, which made schema 0 current again. Snapshot 6
    names it, and snapshot 4 from before names schema 1: so the lost snapshot between them may have been of schema 2."""
    schemas = [schema(B), schema(B, INT, schema_id=1), schema(B, LONG, schema_id=2)]
    listed = [snapshot(4, 1, parent=3), snapshot(6, 0, parent=5), snapshot(7, 1)]
    stored = commit(
        table(*schemas, current=1, snapshots=listed, refs={"main": branch(7), "t": tag(4), "v": tag(6)}), [forget(2)]
    )
    assert refusals(stored, [set_ref("main", 6)]) == ["ICE503"]
    assert refusals(stored, [set_ref("main", 6), set_schema(0)]) == []
    untold = commit(stored, [remove_ref("t"), expire(4)])
    assert refusals(untold, [set_ref("main", 6)]) == []
