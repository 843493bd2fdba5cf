"""Name mappings: which changes of one move a name from field to field (ICE607), and how plans keep one right."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.commit.tables import apply
from app.evolution.change import Evidence
from app.evolution.judge import judge
from app.evolution.mapping import moved_names
from app.evolution.operations import parse_operations
from app.evolution.planning import plan
from app.rules import Policy, Severity
from app.spec.name_mapping import NAME_MAPPING_PROPERTY, MappedField, NameMapping
from app.spec.table import TableMetadata
from tests.evolution.tables import (
    NOW,
    UUID,
    Json,
    branch,
    commit,
    evolve,
    field,
    judged,
    list_of,
    refusals,
    schema,
    snapshot,
    struct,
    table,
    tag,
    warnings,
)

ID, V, W = field(1, "id", "long"), field(2, "v", "string"), field(2, "w", "string")
NEW_V = field(3, "v", "string")


def text(*entries: tuple[Any, ...]) -> str:
    """Entries as (field-id or None, names in one word each, children)."""
    return json.dumps([_entry(*entry) for entry in entries])


def _entry(field_id: int | None, names: str, *children: tuple[Any, ...]) -> Json:
    out: Json = {"names": names.split()} | ({} if field_id is None else {"field-id": field_id})
    return out | ({"fields": [_entry(*child) for child in children]} if children else {})


def stored(*schemas: Json, mapping: str | None, **more: Any) -> TableMetadata:
    """A table with data, its schemas oldest first."""
    given: dict[str, Any] = {"snapshots": [snapshot(1, 0)], "refs": {"main": branch(1)}, **more}
    properties = {} if mapping is None else {NAME_MAPPING_PROPERTY: mapping}
    numbered = [{**one, "schema-id": at} for at, one in enumerate(schemas)]
    return table(*numbered, properties=properties, **given)


def mapped(*entries: tuple[Any, ...]) -> Json:
    return {"action": "set-properties", "updates": {NAME_MAPPING_PROPERTY: text(*entries)}}


RENAMED = stored(schema(ID, V), schema(ID, W), mapping=text((1, "id"), (2, "v w")))
MOVED = mapped((1, "id"), (2, "w"), (3, "v"))


def test_a_rename_as_clients_send_it_passes() -> None:
    """The mapping learns the new name and keeps the old one."""
    before = stored(schema(ID, V), mapping=text((1, "id"), (2, "v")))
    assert judged(before, [*evolve(ID, W), mapped((1, "id"), (2, "v w"))]).findings == ()


def test_a_new_column_takes_no_name_from_a_renamed_one() -> None:
    """The message names both columns, the other ways, and the property."""
    (found,) = judged(RENAMED, [*evolve(ID, W, NEW_V), MOVED]).findings
    assert (found.code, found.severity, found.field_id, found.path) == ("ICE607", Severity.ERROR, 3, "v")
    assert "goes from column w (field 2) to column v (field 3)" in found.message
    assert "Use another name, keep v on field 2, or unset schema.name-mapping.default" in found.fix


def test_dropped_and_added_again_in_one_commit() -> None:
    """The new column would get the old one's values."""
    before = stored(schema(ID, V), mapping=text((1, "id"), (2, "v")))
    found = judged(before, [*evolve(ID, NEW_V), mapped((1, "id"), (2, ""), (3, "v"))]).findings
    assert [(f.code, f.before, f.after) for f in found if f.refuses] == [("ICE607", "field 2", "field 3")]


@pytest.mark.parametrize("left", ["v", "", None])
def test_dropped_and_added_again_later(left: str | None) -> None:
    """Whether the mapping kept the dropped column, its entry without names, or nothing of it."""
    entries = [(1, "id")] + ([] if left is None else [(2, left)])
    before = stored(schema(ID, V), schema(ID), mapping=text(*entries))
    (found,) = (f for f in judged(before, [*evolve(ID, NEW_V), mapped((1, "id"), (3, "v"))]).findings if f.refuses)
    assert found.code == "ICE607"
    assert "the dropped column v (field 2)" in found.message


def test_a_commit_of_its_own_does_not_move_a_name_either() -> None:
    """Neither together with the column nor after it; nor does it give a name to a second field."""
    both = stored(schema(ID, V), schema(ID, W, NEW_V), mapping=text((1, "id"), (2, "v w"), (3, "")))
    assert refusals(both, [MOVED]) == ["ICE607"]
    assert refusals(both, [mapped((1, "id"), (2, "v w"), (3, "v"))]) == ["ICE607"]
    assert refusals(both, [mapped((1, "id"), (2, "w"), (3, "v"))]) == ["ICE607"]


def test_a_name_taken_out_and_given_to_another_field_later() -> None:
    """Two commits do what one may not: the earlier schemas tell whose name it was first."""
    before = stored(schema(ID, V), schema(ID, W), schema(ID, W, NEW_V), mapping=text((1, "id"), (2, "w")))
    assert refusals(before, [MOVED]) == ["ICE607"]
    assert refusals(before, [mapped((1, "id"), (2, "v w"))]) == []


NESTED = schema(
    ID, field(2, "s", struct(field(3, "x", "int"))), field(4, "l", list_of(5, struct(field(6, "y", "int"))))
)
NESTED_MAPPING = ((1, "id"), (2, "s", (3, "x")), (4, "l", (5, "element", (6, "y"))))


@pytest.mark.parametrize(
    ("entries", "codes"),
    [
        (((1, "id"), (2, "s", (3, ""), (7, "x")), (4, "l", (5, "element", (6, "y")))), ["ICE607"]),
        (((1, "id"), (2, "s", (3, "x")), (4, "l", (5, "element", (6, "z"), (8, "y")))), ["ICE607"]),
        (((1, "id"), (2, "", (3, "x")), (7, "s", (8, "x"))), ["ICE607"]),
        (((1, "id"), (2, "s t", (3, "x z"), (7, "y")), (4, "l", (5, "element", (6, "y")))), []),
        (((1, "id"), (2, "s", (3, "x"), (7, "id"))), []),
    ],
    ids=["in a struct", "in a list", "a struct's own", "more names and fields", "the same name elsewhere"],
)
def test_names_inside_structs_and_lists(entries: tuple[Any, ...], codes: list[str]) -> None:
    """A name is looked at within the field that encloses it, at every depth."""
    assert refusals(stored(NESTED, mapping=text(*NESTED_MAPPING)), [mapped(*entries)]) == codes


@pytest.mark.parametrize(
    ("before", "update"),
    [
        (stored(schema(ID, V), schema(ID, W), mapping=text((1, "id"), (2, "v w")), snapshots=[], refs={}), MOVED),
        (RENAMED, mapped((1, "id"), (2, "v w"), (3, "u"))),
        (RENAMED, mapped((1, "id"), (2, "v w x"))),
        (RENAMED, mapped((1, "id"), (2, "w"))),
        (RENAMED, mapped((2, "w v"), (1, "id"))),
        (RENAMED, {"action": "remove-properties", "removals": [NAME_MAPPING_PROPERTY]}),
        (RENAMED, {"action": "set-properties", "updates": {NAME_MAPPING_PROPERTY: "[{"}}),
        (stored(schema(ID, V), schema(ID, W), mapping="[{"), MOVED),
        (stored(schema(ID, V), schema(ID, W), mapping=None), MOVED),
        (stored(schema(ID, V), mapping=text((1, "id"), (2, "v"), (None, "u"))), mapped((1, "id"), (2, "v"), (3, "u"))),
    ],
    ids=[
        "no data", "a new name", "an alias", "a name less", "another order", "unset", "broken", "broken before",
        "no mapping before", "a column of the files that the table lacked",
    ],
)  # fmt: skip
def test_what_moves_no_name_passes(before: TableMetadata, update: Json) -> None:
    """The near misses."""
    assert refusals(before, [update]) == []


def test_a_table_that_keeps_a_tag_has_data() -> None:
    """Without a branch, too: what the tag holds is read through the mapping."""
    kept = stored(schema(ID, V), schema(ID, W), mapping=text((1, "id"), (2, "v w")), refs={"t": tag(1)})
    assert refusals(kept, [MOVED]) == ["ICE607"]
    assert refusals(kept, [{"action": "remove-snapshots", "snapshot-ids": [1]}, MOVED]) == []


@pytest.mark.parametrize(("seen", "refused"), [(None, True), (True, True), (False, False)])
def test_only_proof_that_all_files_have_ids_lets_a_name_move(seen: bool | None, refused: bool) -> None:
    """Nobody having looked is no proof."""
    after = commit(RENAMED, [MOVED])
    assert judge(RENAMED, after, Evidence(files_without_ids=seen), Policy(), NOW).refused is refused


def test_the_policy_can_lower_it() -> None:
    """To a warning, or off."""
    assert refusals(RENAMED, [MOVED], lowered={"ICE607": Severity.WARN}) == []
    assert warnings(RENAMED, [MOVED], lowered={"ICE607": Severity.WARN}) == ["ICE607"]


def test_no_advice_leads_into_the_refusal() -> None:
    """A column under a name that is another field's in the mapping is told to take another one, not to map it."""
    (found,) = judged(RENAMED, evolve(ID, W, NEW_V)).findings
    assert found.code == "ICE602"
    assert found.fix.startswith("Use another name")


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "v", "type": "string"}],
        [{"op": "rename", "path": "w", "to": "u"}, {"op": "add", "path": "w", "type": "string"}],
        [{"op": "drop", "path": "w"}, {"op": "add", "path": "v", "type": "string"}],
        [{"op": "rename", "path": "id", "to": "v"}],
        [{"op": "replace-as", "path": "w", "type": "long", "keep-as": "w_text"}],
    ],
    ids=["an old name", "the present name", "after a drop", "a rename", "a replacement"],
)
def test_a_plan_moves_no_name_of_a_table_with_data(operations: list[Json]) -> None:
    """The name stays with its field, the plan says so, and its commit is accepted."""
    made = plan(RENAMED, parse_operations(operations))
    assert any(NAME_MAPPING_PROPERTY in note for note in made.notes)
    after = apply(RENAMED, None, made.updates, NOW + 20_000, UUID).metadata
    assert not judge(RENAMED, after, Evidence(), Policy(), NOW).refused


def test_a_plan_moves_names_of_a_table_without_data() -> None:
    """Files that are imported later have the names of the columns as they are then."""
    empty = stored(schema(ID, V), schema(ID, W), mapping=text((1, "id"), (2, "v w")), snapshots=[], refs={})
    made = plan(empty, parse_operations([{"op": "add", "path": "v", "type": "string"}]))
    after = apply(empty, None, made.updates, NOW + 20_000, UUID).metadata
    assert [(e["field-id"], e["names"]) for e in json.loads(after.properties[NAME_MAPPING_PROPERTY])] == [
        (1, ["id"]), (2, ["w"]), (3, ["v"]),
    ]  # fmt: skip


ENTRIES = st.recursive(
    st.builds(MappedField, st.lists(st.sampled_from("abc"), max_size=2).map(tuple), st.none() | st.integers(1, 6)),
    lambda inner: st.builds(
        MappedField,
        st.lists(st.sampled_from("abc"), max_size=2).map(tuple),
        st.none() | st.integers(1, 6),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=8,
)
MAPPINGS = st.lists(ENTRIES, max_size=4).map(lambda entries: NameMapping(tuple(entries)))
PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)


def unambiguous(mapping: NameMapping) -> bool:
    """Whether Java reads it: no ID twice, and no name twice within one field."""
    ids = mapping.ids()
    levels = [mapping.fields, *(entry.fields for _, entry in mapping.walk())]
    names = [[name for entry in level for name in set(entry.names)] for level in levels]
    return len(set(ids)) == len(ids) and all(len(set(level)) == len(level) for level in names)


@given(before=MAPPINGS.filter(unambiguous), after=MAPPINGS.filter(unambiguous), path=PATHS)
def test_without_a_move_no_path_of_a_file_comes_to_another_field(
    before: NameMapping, after: NameMapping, path: list[str]
) -> None:
    """Where no name is told to move, whatever column of a file was one field is that field, or none."""
    if list(moved_names(before, after, ())):
        return
    one, other = before, after
    for depth in range(1, len(path) + 1):
        old, new = one.find(path[:depth]), other.find(path[:depth])
        if old is None or new is None or old.field_id is None or new.field_id is None:
            return
        assert old.field_id == new.field_id


def test_the_work_grows_with_the_mapping() -> None:
    """Not with its square: twenty thousand entries, all moved, are compared in well under a second."""
    count = 20_000
    before = NameMapping(tuple(MappedField((f"c{at}",), at) for at in range(count)))
    after = NameMapping(tuple(MappedField((f"c{at}",), at + 1) for at in range(count)))
    began = time.perf_counter()
    assert len(list(moved_names(before, after, ()))) == count
    assert time.perf_counter() - began < 1.0
