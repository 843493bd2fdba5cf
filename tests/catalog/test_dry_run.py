"""What files of each retained schema return for the columns that a change adds or alters."""

from __future__ import annotations

from typing import Any

from app.catalog.dry_run import ColumnRead, changes, dry_run, reads_by_schema
from app.evolution.editing.operations import parse_operations
from app.evolution.editing.plan import plan
from app.evolution.engine.diff import diff
from app.iceberg.table import TableMetadata
from tests.evolution.tables import branch, commit, evolve, field, schema, snapshot, struct, table

Json = dict[str, Any]
OLD = schema(field(1, "id", "long", True), field(2, "n", "int"), field(3, "s", struct(field(4, "x", "int"))))
NEW = schema(field(1, "id", "long", True), field(3, "s", struct(field(4, "x", "int"))), schema_id=1)


def held(**more: Any) -> TableMetadata:
    return table(OLD, NEW, snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1)], refs={"main": branch(2)}, **more)


def readings(base: TableMetadata, *operations: Json) -> dict[int, dict[str, ColumnRead]]:
    """By schema id and path."""
    made = plan(base, parse_operations(list(operations)))
    found = reads_by_schema(base, made.schema, diff(base.schema, made.schema, last_column_id=base.last_column_id))
    return {one.schema_id: {read.slot.path: read for read in one.columns} for one in found}


def test_a_new_column_reads_as_null_everywhere() -> None:
    """No file has its ID."""
    found = readings(held(), {"op": "add", "path": "note", "type": "string"})
    assert {number: one["note"].returns for number, one in found.items()} == {0: "null", 1: "null"}


def test_a_new_column_with_a_default_reads_as_that() -> None:
    """As the JSON value of its type."""
    found = readings(held(version=3), {"op": "add", "path": "d", "type": "date", "default": "2026-01-02"})
    assert (found[0]["d"].returns, found[0]["d"].value) == ("initial-default", "2026-01-02")


def test_a_restored_column_has_values_where_it_was_written() -> None:
    """And null in files of the time between."""
    found = readings(held(), {"op": "restore", "field-id": 2})
    assert (found[0]["n"].returns, found[1]["n"].returns) == ("value", "null")


def test_a_promoted_column_names_the_type_in_the_file() -> None:
    """Readers widen it."""
    found = readings(held(), {"op": "promote", "path": "s.x", "type": "long"})
    assert (found[0]["s.x"].returns, found[0]["s.x"].stored_as) == ("value", "int")


def test_what_no_reader_can_make_of_a_file_is_said_with_the_reason() -> None:
    """The rules refuse it, and this shows why."""
    found = readings(held(), {"op": "promote", "path": "s.x", "type": "string"})
    assert found[1]["s.x"].returns == "unreadable"
    assert found[1]["s.x"].reason == "the file stores it as int, which cannot be read as string"


def test_a_field_of_a_new_struct_is_as_absent_as_the_struct() -> None:
    """Null inside of null."""
    kind = {"type": "struct", "fields": [{"name": "a", "type": "int", "required": True}]}
    found = readings(held(), {"op": "add", "path": "new", "type": kind})
    assert {path: one.returns for path, one in found[0].items()} == {"new": "null", "new.a": "null"}


def test_nothing_changed_is_nothing_to_tell() -> None:
    """Drops return nothing either."""
    assert readings(held(), {"op": "drop", "path": "s"}) == {}


def test_snapshots_of_each_schema_are_counted() -> None:
    """With none, there may be no such file."""
    base = held()
    made = plan(base, parse_operations([{"op": "add", "path": "note", "type": "string"}]))
    found = reads_by_schema(base, made.schema, made.changes)
    assert [(one.schema_id, one.snapshots) for one in found] == [(0, 1), (1, 1)]


def test_the_difference_names_what_becomes_another() -> None:
    """Schemas by id, properties and refs by those that differ."""
    base = held()
    after = commit(base, [*evolve(field(1, "id", "long", True)), {"action": "set-properties", "updates": {"a": "b"}}])
    assert changes(base, after) == {
        "current-schema-id": (1, 2), "schemas": ([0, 1], [0, 1, 2]), "properties": ({}, {"a": "b"}),
    }  # fmt: skip
    assert dry_run(base, None, base, ()).changed == {}
