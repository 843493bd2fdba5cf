"""The diff by field ID."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from app.evolution.engine.compatibility import slot_of
from app.evolution.engine.diff import Delta, diff, same_type
from app.iceberg.schema import Schema, parse_schema
from tests.evolution.schemas import schemas
from tests.evolution.tables import Json, field, list_of, map_of, schema, struct


def changes(before: list[Json], after: list[Json], **more: Any) -> list[tuple[str, int]]:
    """(change, field-id) of each entry, in order."""
    found = diff(parse_schema(schema(*before)), parse_schema(schema(*after)), **more)
    return [(str(e["change"]), int(str(e["field-id"]))) for e in found.to_json()]


A, B, C = field(1, "a", "int"), field(2, "b", "string"), field(3, "c", "date")


def test_equal_schemas_have_no_diff() -> None:
    """A schema does not differ from itself, nor from an equal one."""
    assert not diff(parse_schema(schema(A, B)), parse_schema(schema(A, B)))
    assert changes([A, B], [A, B]) == []


def test_every_field_of_a_first_schema_is_added() -> None:
    """Against nothing, fields at every depth are added, outer before inner."""
    only = parse_schema(schema(A, field(2, "s", struct(field(3, "x", list_of(4, "int"))))))
    assert [e["field-id"] for e in diff(None, only).to_json()] == [1, 2, 3, 4]
    assert {e["change"] for e in diff(None, only).to_json()} == {"added"}


def test_added_restored_and_dropped() -> None:
    """An ID above the counter is added, one at or below it is restored, a missing one is dropped."""
    assert changes([A, B], [A, field(7, "n", "int"), field(5, "r", "int")], last_column_id=6) == [
        ("added", 7),
        ("restored", 5),
        ("dropped", 2),
    ]


def test_rename_keeps_the_entry_short() -> None:
    """A rename is one entry with both paths."""
    found = diff(parse_schema(schema(A)), parse_schema(schema(field(1, "z", "int")))).to_json()
    assert found == [{"change": "renamed", "field-id": 1, "path": "z", "before": "a", "after": "z"}]


def test_a_renamed_parent_does_not_change_its_children() -> None:
    """Children of a renamed struct have no entry of their own."""
    inner = struct(field(5, "x", "int"))
    assert changes([field(4, "s", inner)], [field(4, "t", inner)]) == [("renamed", 4)]


def test_moves_are_the_fewest_that_explain_the_order() -> None:
    """One column moved to the front is one move, not three; adds and drops are none."""
    assert changes([A, B, C], [C, A, B]) == [("moved", 3)]
    assert changes([A, B, C], [A, C]) == [("dropped", 2)]
    assert changes([A, B], [field(4, "n", "int"), A, B]) == [("added", 4)]


def test_nested_moves_are_found() -> None:
    """Order inside a struct counts as well."""
    x, y = field(5, "x", "int"), field(6, "y", "int")
    assert changes([field(4, "s", struct(x, y))], [field(4, "s", struct(y, x))]) in ([("moved", 5)], [("moved", 6)])


def test_reparenting_is_one_entry_with_both_paths() -> None:
    """A field that moves into a struct is neither added nor dropped."""
    before = [A, B, field(4, "s", struct(field(5, "x", "int")))]
    after = [A, field(4, "s", struct(field(5, "x", "int"), B))]
    found = diff(parse_schema(schema(*before)), parse_schema(schema(*after))).to_json()
    assert found == [{"change": "re-parented", "field-id": 2, "path": "s.b", "before": "b", "after": "s.b"}]


def test_every_aspect_has_its_entry() -> None:
    """Type, requiredness, comment and both defaults are told one by one."""
    before = field(1, "a", "int", True, doc="x", initial=1)
    after = field(1, "a", "long", False, doc="y", initial=2, write=3)
    assert changes([before], [after]) == [
        ("type-changed", 1),
        ("made-optional", 1),
        ("doc-changed", 1),
        ("initial-default-changed", 1),
        ("write-default-changed", 1),
    ]


def test_true_is_not_one() -> None:
    """A default that changes from 1 to true is a change, although Python holds the two equal."""
    assert changes([field(1, "a", "int", initial=1, doc="x")], [field(1, "a", "int", initial=True)]) == [
        ("doc-changed", 1),
        ("initial-default-changed", 1),
    ]


def test_elements_keys_and_values_are_found_by_id() -> None:
    """A promoted element, a value made required and a changed key type are entries of their own IDs."""
    before = [field(1, "l", list_of(2, "int")), field(3, "m", map_of(4, "int", 5, "int"))]
    after = [field(1, "l", list_of(2, "long")), field(3, "m", map_of(4, "long", 5, "int", True))]
    assert changes(before, after) == [("type-changed", 2), ("type-changed", 4), ("made-required", 5)]


def test_identifier_fields_are_told() -> None:
    """Fields that begin or cease to identify rows are told."""
    one, two = field(1, "a", "int", True), field(2, "b", "int", True)
    before = parse_schema(schema(one, two, identifiers=[1]))
    after = parse_schema(schema(one, two, identifiers=[2]))
    assert diff(before, after).to_json() == [
        {"change": "identifier-added", "field-id": 2},
        {"change": "identifier-removed", "field-id": 1},
    ]


def _ids(of: Schema) -> set[int]:
    return set(of.by_id)


@given(schemas(), schemas())
@settings(max_examples=100, deadline=None)
def test_the_diff_is_what_comparing_every_id_gives(before: Schema, after: Schema) -> None:
    """For any two schemas, the deltas are exactly the IDs whose definition or place differs, or whose order does."""
    found = diff(before, after).deltas
    for field_id in _ids(before) | _ids(after):
        old, new = slot_of(before, field_id), slot_of(after, field_id)
        delta = found.get(field_id)
        if old is None or new is None:
            assert delta is not None and (delta.before is None, delta.after is None) == (old is None, new is None)
            continue
        same = (
            (old.field.name, old.required, old.field.doc, old.initial_default, old.parent, old.role)
            == (new.field.name, new.required, new.field.doc, new.initial_default, new.parent, new.role)
        ) and same_type(old.type, new.type)
        assert (delta is None or (delta.moved and same)) if same else delta is not None, (field_id, delta)
        if delta is not None:
            assert delta.before is not None and delta.after is not None
            assert (delta.before.path, delta.after.path) == (old.path, new.path)
            assert (delta.before.in_key, delta.after.in_key) == (old.in_key, new.in_key)


@given(schemas(), schemas())
@settings(max_examples=60, deadline=None)
def test_the_diff_reversed_is_the_reverse(before: Schema, after: Schema) -> None:
    """Forth and back concern the same IDs, moves aside: which of two swapped fields moved is a matter of taste."""

    def told(found: dict[int, Delta]) -> set[int]:
        return {i for i, d in found.items() if not d.moved}

    there, back = dict(diff(before, after).deltas), dict(diff(after, before).deltas)
    moved = {i for i, d in (*there.items(), *back.items()) if d.moved}
    assert told(there) - moved == told(back) - moved
