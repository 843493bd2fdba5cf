"""Adding, choosing and removing schemas."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import CommitFailed, ValidationFailed
from tests.iceberg.documents import column, document, parsed, schema, snapshot, with_history
from tests.metadata.folding import add_schema, add_snapshot, fold, result, set_current

ID, NAME = column(1, "id", required=True), column(2, "name", "string")
BASE = parsed(document())


def test_nested_ids_advance_the_counter() -> None:
    """The highest id at any depth counts (O-01)."""
    nested = column(3, "s", {"type": "struct", "fields": [column(4, "x"), column(5, "y")]})
    assert result(BASE, add_schema(schema(1, ID, NAME, nested)), set_current()).last_column_id == 5


@pytest.mark.parametrize("more", [{}, {"last-column-id": 1}, {"last-column-id": 90}, {"last-column-id": "x"}])
def test_the_counter_never_falls_and_is_never_sent(more: dict[str, Any]) -> None:
    """Dropping the newest column keeps the counter, whatever the request says of it (O-02)."""
    after = result(BASE, add_schema(schema(1, ID)) | more, set_current())
    assert after.last_column_id == 2
    assert result(after, add_schema(schema(2, ID, column(3, "c"))), set_current()).last_column_id == 3


def test_an_equal_schema_is_not_stored_twice() -> None:
    """Its id is found again, and -1 then means it (O-08)."""
    wider = result(BASE, add_schema(schema(1, ID, NAME, column(3, "c"))), set_current())
    back = result(wider, add_schema(schema(-1, ID, NAME)), set_current())
    assert (back.current_schema_id, back.schemas.ids, back.last_column_id) == (0, (0, 1), 3)
    assert result(wider, set_current(0)).current_schema_id == 0


def test_adding_what_is_current_changes_nothing() -> None:
    """No new document for a schema that is there already."""
    applied = fold(BASE, add_schema(schema(5, ID, NAME)), set_current())
    assert (applied.changed, applied.metadata, applied.effective) == (False, BASE, ())


@pytest.mark.parametrize("schema_id", [-1, 77])
def test_only_known_schemas_can_be_current(schema_id: int) -> None:
    """-1 without an added schema and unknown ids are refused (O-08)."""
    with pytest.raises(ValidationFailed):
        fold(BASE, set_current(schema_id))


def test_the_server_numbers_schemas() -> None:
    """The sent id is ignored, but resolves within the request when nothing else has it."""
    after = result(BASE, add_schema(schema(40, ID)), set_current(40))
    assert (after.schemas.ids, after.current_schema_id) == ((0, 1), 1)


def test_ids_of_schemas_removed_in_the_same_commit_are_not_recycled() -> None:
    """Removing the highest id and adding a new schema stores it under a fresh one."""
    two = result(BASE, add_schema(schema(1, ID)))
    after = result(
        two,
        {"action": "remove-schemas", "schema-ids": [1]},
        add_schema(schema(1, ID, NAME, column(3, "c"))),
        set_current(),
    )
    assert (after.schemas.ids, after.current_schema_id) == ((0, 2), 2)


def test_ids_that_snapshots_name_are_not_recycled() -> None:
    """A snapshot that kept the id of a schema long gone must not be read with another one."""
    base = parsed(with_history(snapshot(1) | {"schema-id": 8}))
    assert result(base, add_schema(schema(1, ID))).schemas.ids == (0, 9)


def test_the_end_of_the_id_range_is_survived() -> None:
    """A schema-id of 2^31-1 leaves lower ids to be used."""
    base = parsed(with_history(snapshot(1) | {"schema-id": 2**31 - 1}))
    assert result(base, add_schema(schema(1, ID))).schemas.ids == (0, 1)


def test_removal_spares_the_current_schema() -> None:
    """Unknown ids are ignored, the current one is refused, and removing nothing is no change."""
    two = result(BASE, add_schema(schema(1, ID)))
    assert result(two, {"action": "remove-schemas", "schema-ids": [1, 99]}).schemas.ids == (0,)
    assert not fold(two, {"action": "remove-schemas", "schema-ids": [99]}).changed
    with pytest.raises(ValidationFailed, match="current schema"):
        fold(two, {"action": "remove-schemas", "schema-ids": [0]})


def test_a_removed_schema_cannot_be_made_current() -> None:
    """Neither by its id nor as the last added."""
    remove = {"action": "remove-schemas", "schema-ids": [1]}
    for choose in (set_current(1), set_current()):
        with pytest.raises(ValidationFailed):
            fold(BASE, add_schema(schema(1, ID)), remove, choose)


def test_a_snapshot_follows_its_schema_to_another_number() -> None:
    """A writer that guessed 1 gets 2 because 1 was taken meanwhile; its snapshot is stored with 2."""
    raced = result(BASE, add_schema(schema(1, ID)))
    sent = snapshot(5) | {"schema-id": 1, "x": 1}
    after = result(raced, add_schema(schema(1, ID, NAME, column(3, "c"))), set_current(), add_snapshot(sent))
    stored = after.snapshots.get(5)
    assert stored is not None
    assert after.current_schema_id == 2
    assert stored.to_json() == sent | {"schema-id": 2}


def test_a_snapshot_keeps_a_schema_that_nobody_renumbered() -> None:
    """Added before the new schema, or naming 0 beside a client that numbers every schema 0."""
    wider = add_schema(schema(0, ID, NAME, column(3, "c")))
    for updates in ([add_snapshot(snapshot(5)), wider], [wider, add_snapshot(snapshot(5))]):
        stored = result(BASE, *updates).snapshots.get(5)
        assert stored is not None
        assert stored.schema_id == 0


def test_a_snapshot_may_name_the_last_added_schema() -> None:
    """-1 is resolved before it is stored."""
    after = result(BASE, add_schema(schema(None, ID)), add_snapshot(snapshot(5) | {"schema-id": -1}))
    assert [item.schema_id for item in after.snapshots] == [1]


def test_a_snapshot_of_an_unknown_schema_is_stale() -> None:
    """The table moved on: a refresh cures it."""
    with pytest.raises(CommitFailed, match="unknown schema 3"):
        fold(BASE, add_snapshot(snapshot(5) | {"schema-id": 3}))
