"""The life of one field ID."""

from __future__ import annotations

from app.evolution.editing.field_biography import biography
from app.evolution.engine.readers import honours_initial_default
from app.iceberg.table import TableMetadata
from tests.evolution.tables import branch, field, schema, snapshot, struct, table, tag


def lived() -> TableMetadata:
    """Field 2 was added, renamed, widened and dropped; a tag leads back to it."""
    return table(
        schema(field(1, "id", "long")),
        schema(field(1, "id", "long"), field(2, "n", "int"), schema_id=1),
        schema(field(1, "id", "long"), field(2, "number", "int"), schema_id=2),
        schema(field(2, "number", "long"), field(1, "id", "long"), schema_id=4),
        schema(field(1, "id", "long"), schema_id=5),
        snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1), snapshot(3, 2, parent=2), snapshot(4, 5, parent=3)],
        refs={"main": branch(4), "kept": tag(3)},
        last_column_id=9,
    )


def test_a_dropped_column_tells_its_whole_life() -> None:
    """Every definition, the schemas and snapshots that still carry it, and the ways back."""
    told = biography(lived(), 2)
    assert told.state == "dropped"
    assert [(one.schema_id, one.slot.path, str(one.slot.type)) for one in told.definitions] == [
        (1, "n", "int"), (2, "number", "int"), (4, "number", "long"),
    ]  # fmt: skip
    assert told.slot is not None and str(told.slot.type) == "long"
    assert told.schema_ids == (1, 2, 4)
    assert told.snapshots.count == 2
    assert told.snapshots.oldest is not None and told.snapshots.oldest.snapshot_id == 2
    assert told.snapshots.newest is not None and told.snapshots.newest.snapshot_id == 3
    assert told.refs == ("kept",)


def test_a_present_column_is_current() -> None:
    """Its place among its siblings is part of its definition."""
    told = biography(lived(), 1)
    assert (told.state, told.schema_ids) == ("current", (0, 1, 2, 4, 5))
    assert [(one.schema_id, one.slot.position) for one in told.definitions] == [(0, 0), (4, 1), (5, 0)]


def test_an_id_that_no_schema_has_was_forgotten_or_never_given_out() -> None:
    """The counter tells them apart."""
    assert biography(lived(), 7).state == "forgotten"
    assert biography(lived(), 10).state == "never-assigned"
    assert biography(lived(), -1).state == "never-assigned"


def test_a_struct_does_not_change_with_its_children() -> None:
    """A child is a column of its own."""
    held = table(
        schema(field(1, "a", struct(field(2, "x", "int")))),
        schema(field(1, "a", struct(field(2, "y", "int"), field(3, "z", "int"))), schema_id=1),
    )
    assert len(biography(held, 1).definitions) == 1
    assert [one.slot.path for one in biography(held, 2).definitions] == ["a.x", "a.y"]


def test_a_client_honours_initial_default_from_a_version_on() -> None:
    """An unknown client or version is unknown, never a yes."""
    assert honours_initial_default("PyIceberg", "0.12.0") == "yes"
    assert honours_initial_default("pyiceberg", "0.9.1") == "no"
    assert honours_initial_default("pyiceberg", "1") == "yes"
    assert honours_initial_default("iceberg-java", "1.7.2") == "no"
    assert honours_initial_default("iceberg-java", "1.10.0-SNAPSHOT") == "yes"
    assert honours_initial_default("iceberg-rs", "0.7.0") == honours_initial_default("duckdb", "1.5.5") == "yes"
    assert honours_initial_default("goiceberg", "0.5.0") == honours_initial_default("iceberg-rs", "0.3.0") == "no"
    assert honours_initial_default("pyiceberg", "") == honours_initial_default("sail", "1.5.5") == "unknown"
    assert honours_initial_default("iceberg-java", "unspecified") == "unknown"
