"""Operations by column path: what each makes of a schema, and which it refuses for having no meaning."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, ValidationFailed
from app.evolution.editing.edit import edit, missing
from app.evolution.editing.operations import parse_operations
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata
from tests.evolution.tables import branch, commit, evolve, field, list_of, map_of, schema, snapshot, struct, table

Json = dict[str, Any]

ORDERS = schema(
    field(1, "id", "long", True),
    field(2, "sku", "string", doc="stock keeping unit"),
    field(3, "price", "int"),
    field(4, "address", struct(field(5, "city", "string"), field(6, "zip", "int", True))),
    field(7, "lines", list_of(8, struct(field(9, "pieces", "int")))),
    field(10, "attrs", map_of(11, "string", 12, struct(field(13, "x", "int")))),
)


def edited(*operations: Json, of: TableMetadata | None = None) -> Schema:
    return edit(of or table(ORDERS), parse_operations(list(operations))).schema


def outline(made: Schema) -> list[tuple[int, str]]:
    return [(field_id, made.name_of(field_id)) for field_id in made.by_id]


def names(made: Schema) -> list[str]:
    return [column.name for column in made.fields]


def refused(*operations: Json, of: TableMetadata | None = None) -> str:
    with pytest.raises(BadRequest) as caught:
        edited(*operations, of=of)
    return caught.value.message


def test_a_nested_column_takes_its_own_id_before_what_is_inside() -> None:
    """First the column, then the fields of its struct, then what is in them."""
    inner = struct(field(0, "a", struct(field(0, "b", "int"))), field(0, "c", "int"))
    made = edited({"op": "add", "path": "x", "type": inner})
    assert outline(made)[-4:] == [(14, "x"), (15, "x.a"), (17, "x.a.b"), (16, "x.c")]


def test_a_type_needs_neither_ids_nor_required() -> None:
    """People write what they know; IDs are the catalog's to give."""
    kind = {"type": "map", "key": "string", "value": {"type": "list", "element": "long"}}
    made = edited({"op": "add", "path": "x", "type": kind})
    assert str(made.fields[-1].field_type) == "map<string, list<long>>"
    assert [i for i in made.by_id if i > 13] == [14, 15, 16, 17]


@pytest.mark.parametrize("path", ["lines.note", "lines.element.note", ["lines", "note"]])
def test_a_path_leads_into_elements(path: Any) -> None:
    """By the full name or by the short one of engines."""
    assert edited({"op": "add", "path": path, "type": "string"}).name_of(14) == "lines.element.note"


def test_a_path_leads_into_map_values() -> None:
    """Keys cannot be added to, values can."""
    assert edited({"op": "add", "path": "attrs.note", "type": "string"}).name_of(14) == "attrs.value.note"


def test_a_name_with_dots_is_written_as_a_list() -> None:
    """A string is split at its dots."""
    assert edited({"op": "add", "path": ["a.b"], "type": "int"}).fields[-1].name == "a.b"
    assert "No such column: a" in refused({"op": "add", "path": "a.b", "type": "int"})


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ({"first": True}, ["x", "id", "sku", "price"]),
        ({"after": "id"}, ["id", "x", "sku", "price"]),
        ({"before": "sku"}, ["id", "x", "sku", "price"]),
        ({}, ["id", "sku", "price", "address"]),
    ],
)
def test_a_new_column_goes_where_it_is_put(place: Json, order: list[str]) -> None:
    """First, after or before a sibling, else last."""
    assert names(edited({"op": "add", "path": "x", "type": "int", **place}))[:4] == order


def test_siblings_go_by_name_or_full_path() -> None:
    """Both mean the same inside a struct."""
    for sibling in ("zip", "address.zip"):
        made = edited({"op": "move", "path": "address.city", "after": sibling})
        assert outline(made)[3:6] == [(4, "address"), (6, "address.zip"), (5, "address.city")]


def test_a_column_of_another_struct_is_no_sibling() -> None:
    """A move never leaves its struct."""
    assert "not in the same struct" in refused({"op": "move", "path": "address.city", "after": "sku"})


def test_paths_are_those_before_the_plan() -> None:
    """Two columns can swap names, and a renamed one keeps its old path for the rest of the plan."""
    made = edited(
        {"op": "rename", "path": "sku", "to": "price"},
        {"op": "rename", "path": "price", "to": "sku"},
        {"op": "promote", "path": "price", "type": "long"},
    )
    assert [(c.field_id, c.name, str(c.field_type)) for c in made.fields[1:3]] == [
        (2, "price", "string"), (3, "sku", "long"),
    ]  # fmt: skip


def test_a_new_name_works_where_nobody_had_it() -> None:
    """`rename a to b`, then `set-doc b`."""
    made = edited({"op": "rename", "path": "sku", "to": "article"}, {"op": "set-doc", "path": "article", "doc": None})
    assert (made.fields[1].name, made.fields[1].doc) == ("article", None)


def test_everything_else_of_a_field_stays() -> None:
    """Renaming touches the name alone."""
    made = edited({"op": "rename", "path": "sku", "to": "article"})
    assert made.fields[1].doc == "stock keeping unit"
    assert made.fields[3:] == table(ORDERS).schema.fields[3:]


def test_write_defaults_come_and_go() -> None:
    """Null takes one back; the initial-default is never touched."""
    made = edited({"op": "set-write-default", "path": "price", "value": 7})
    assert made.fields[2].write_default == 7 and not made.fields[2].has_initial_default
    given = table(schema(field(1, "a", "int", initial=1, write=2)), version=3)
    again = edited({"op": "set-write-default", "path": "a", "value": None}, of=given)
    assert again.fields[0].initial_default == 1 and not again.fields[0].has_write_default


def test_identifier_fields_are_set_by_path() -> None:
    """As IDs, whatever the columns are called."""
    made = edited({"op": "rename", "path": "id", "to": "key"}, {"op": "set-identifier-fields", "paths": ["id"]})
    assert made.identifier_field_ids == (1,)


def test_an_identifier_field_cannot_be_dropped_unawares() -> None:
    """First the identifier fields are set without it."""
    keyed = table(schema(field(1, "id", "long", True), field(2, "a", "int"), identifiers=[1]))
    assert "identifier field" in refused({"op": "drop", "path": "id"}, of=keyed)
    made = edited({"op": "set-identifier-fields", "paths": []}, {"op": "drop", "path": "id"}, of=keyed)
    assert names(made) == ["a"]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "add", "path": "sku", "type": "int"}, "Column sku already exists (field 2)"),
        ({"op": "add", "path": "sku.x", "type": "int"}, "Column sku is no struct"),
        ({"op": "drop", "path": "nope"}, "No such column: nope"),
        ({"op": "drop", "path": "lines.element"}, "Cannot drop the element of lines"),
        ({"op": "rename", "path": "attrs.key", "to": "k"}, "Cannot rename the key of attrs"),
        ({"op": "rename", "path": "sku", "to": "price"}, "already exists"),
        ({"op": "move", "path": "sku", "before": "sku"}, "Cannot move sku before itself"),
        ({"op": "move", "path": "sku"}, "One of first, before and after"),
        ({"op": "move", "path": "sku", "first": True, "after": "id"}, "Only one of first, before and after"),
        ({"op": "fly", "path": "sku"}, "Unknown operation: fly"),
        ({"op": "drop", "path": 7}, "Not the path of a column"),
        ({"op": "set-doc", "path": "sku"}, "Missing field: doc"),
        ({"op": "restore"}, "Exactly one of field-id and path"),
        ({"op": "restore", "field-id": 2}, "is not dropped: it is sku"),
        ({"op": "restore", "path": "gone"}, "no retained schema has a dropped column gone"),
        ({"op": "rollback-to", "snapshot-id": 9}, "snapshot 9 is not retained"),
        ({"op": "union-by-name"}, "Exactly one of schema, fields, arrow-ipc-schema"),
        ({"op": "declare", "fields": [{"name": "a", "type": "int"}], "match": "id"}, "Invalid match"),
    ],
)
def test_what_has_no_meaning_is_refused(operation: Json, reason: str) -> None:
    """In one line that names the column."""
    assert reason in refused(operation)


def test_no_operations_are_no_plan() -> None:
    """An empty list is a mistake."""
    with pytest.raises(BadRequest, match="No operations"):
        parse_operations([])


def test_an_operation_on_a_dropped_column_is_refused() -> None:
    """Also on what is inside of it."""
    message = refused({"op": "drop", "path": "address"}, {"op": "rename", "path": "address.city", "to": "town"})
    assert message == "Cannot rename address.city: Column address.city is dropped by an earlier operation of this plan"


def evolved(*fields: Json, **more: Any) -> TableMetadata:
    """ORDERS with a snapshot, then evolved to these fields."""
    held = table(ORDERS, snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, **more)
    return commit(held, evolve(*fields))


def test_a_restored_column_is_what_it_was_but_optional() -> None:
    """Same ID, type, doc and children; rows written meanwhile have no value, so it cannot be required."""
    held = evolved(field(1, "id", "long", True), field(3, "price", "int"))
    made = edited({"op": "restore", "path": "address"}, {"op": "restore", "field-id": 2, "as": "article"}, of=held)
    assert outline(made) == [
        (1, "id"), (3, "price"), (4, "address"), (5, "address.city"), (6, "address.zip"), (2, "article"),
    ]  # fmt: skip
    assert made.fields[3].doc == "stock keeping unit"
    back = edited({"op": "restore", "field-id": 1, "first": True}, of=evolved(field(3, "price", "int")))
    assert (back.fields[0].field_id, back.fields[0].required) == (1, False)


def test_a_child_comes_back_only_into_its_parent() -> None:
    """A dropped struct is restored first, and a present one takes the child."""
    gone = evolved(field(1, "id", "long", True))
    assert "address (field 4) is dropped too" in refused({"op": "restore", "field-id": 5}, of=gone)
    there = evolved(field(1, "id", "long", True), field(4, "address", struct(field(6, "zip", "int", True))))
    assert outline(edited({"op": "restore", "path": "address.city"}, of=there))[1:] == [
        (4, "address"), (6, "address.zip"), (5, "address.city"),
    ]  # fmt: skip


def test_a_taken_name_needs_another_one() -> None:
    """Somebody added a column under the old name meanwhile."""
    held = evolved(field(1, "id", "long", True), field(14, "sku", "int"))
    assert "restore the old one under another name" in refused({"op": "restore", "field-id": 2}, of=held)
    assert names(edited({"op": "restore", "field-id": 2, "as": "old_sku"}, of=held)) == ["id", "sku", "old_sku"]


def test_replacing_keeps_the_old_column_beside_the_new_one() -> None:
    """The new one stands where the old one stood, with a new ID and the old doc."""
    made = edited({"op": "replace-as", "path": "sku", "type": "uuid", "keep-as": "sku_text"})
    assert [(c.field_id, c.name, str(c.field_type), c.doc) for c in made.fields[1:3]] == [
        (14, "sku", "uuid", "stock keeping unit"), (2, "sku_text", "string", "stock keeping unit"),
    ]  # fmt: skip


def test_a_declaration_renames_adds_drops_and_orders() -> None:
    """Matched by name, or by the former name; what is not named goes."""
    made = edited({"op": "declare", "fields": [
        {"name": "article", "renamed-from": "sku", "type": "string"},
        {"name": "id", "type": "long", "required": True},
        {"name": "address", "type": {"type": "struct", "fields": [
            {"name": "town", "renamed-from": "city", "type": "string"}, {"name": "street", "type": "string"}]}},
        {"name": "price", "type": "long"},
    ], "identifier-fields": ["id"]})  # fmt: skip
    assert outline(made) == [
        (2, "article"), (1, "id"), (4, "address"), (5, "address.town"), (14, "address.street"), (3, "price"),
    ]  # fmt: skip
    assert made.identifier_field_ids == (1,)
    assert made.fields[0].doc == "stock keeping unit" and "renamed-from" not in made.fields[0].extra


def test_a_declaration_holds_after_it_was_applied() -> None:
    """Its `renamed-from` may stay: the second time nothing changes."""
    operation = {"op": "declare", "fields": [{"name": "article", "renamed-from": "sku", "type": "string"}]}
    once = edited(operation)
    assert names(once) == ["article"]
    held = table(schema(field(2, "article", "string", doc="stock keeping unit")), last_column_id=13)
    assert edited(operation, of=held).same_content(held.schema)


def test_a_declaration_with_ids_is_taken_by_its_ids() -> None:
    """As an engine would send it."""
    made = edited({"op": "declare", "schema": schema(field(2, "article", "string"), field(30, "new", "int"))})
    assert outline(made) == [(2, "article"), (30, "new")]


def test_a_declaration_that_names_nothing_known_is_refused() -> None:
    """A former name that no column has is a mistake, not an add."""
    message = refused({"op": "declare", "fields": [{"name": "a", "renamed-from": "b", "type": "int"}]})
    assert "declared as renamed from b, and neither exists" in message


def test_a_union_only_adds_and_widens() -> None:
    """New ones optional and last, narrower ones wider, the rest as it is."""
    made = edited({"op": "union-by-name", "fields": [
        {"name": "price", "type": "long"}, {"name": "id", "type": "int"},
        {"name": "new", "type": "string", "required": True},
        {"name": "lines", "type": {"type": "list", "element": {"type": "struct", "fields": [
            {"name": "note", "type": "string"}]}}},
    ]})  # fmt: skip
    assert [str(c.field_type) for c in made.fields[:3]] == ["long", "string", "long"]
    assert made.name_of(14) == "lines.element.note"
    assert (made.fields[-1].name, made.fields[-1].required, made.fields[-1].field_id) == ("new", False, 15)


def test_a_union_refuses_what_cannot_be_united() -> None:
    """Neither type can be read as the other, or the shapes differ."""
    assert "Cannot unite column sku of type string with int" in refused(
        {"op": "union-by-name", "fields": [{"name": "sku", "type": "int"}]}
    )
    kind = {"type": "list", "element": "int"}
    assert "Cannot unite column sku" in refused({"op": "union-by-name", "fields": [{"name": "sku", "type": kind}]})


@pytest.mark.parametrize(
    ("operation", "meanwhile", "same"),
    [
        ({"op": "rename", "path": "sku", "to": "x"}, {"op": "set-doc", "path": "sku", "doc": "new"}, True),
        ({"op": "rename", "path": "sku", "to": "x"}, {"op": "add", "path": "y", "type": "int"}, True),
        ({"op": "promote", "path": "price", "type": "long"}, {"op": "rename", "path": "sku", "to": "y"}, True),
        ({"op": "set-doc", "path": "sku", "doc": "mine"}, {"op": "set-doc", "path": "sku", "doc": "theirs"}, False),
        ({"op": "drop", "path": "address"}, {"op": "add", "path": "address.x", "type": "int"}, False),
        ({"op": "drop", "path": "address"}, {"op": "add", "path": "x", "type": "int"}, True),
        ({"op": "make-optional", "path": "id"}, {"op": "make-optional", "path": "id"}, False),
        ({"op": "promote", "path": "price", "type": "long"}, {"op": "promote", "path": "price", "type": "long"}, False),
        ({"op": "declare", "fields": [{"name": "a", "type": "int"}]}, {"op": "drop", "path": "id"}, False),
        ({"op": "set-identifier-fields", "paths": ["id"]}, {"op": "rename", "path": "sku", "to": "y"}, True),
    ],
)  # fmt: skip
def test_an_operation_means_the_same_when_what_it_touched_is_as_it_was(
    operation: Json, meanwhile: Json, same: bool
) -> None:
    """A column under the same ID, place and path, with the traits that the operation depends on."""
    base = table(ORDERS)
    moved = table({**_json(edited(meanwhile)), "schema-id": 0}, last_column_id=20)
    mine = parse_operations([operation])
    lost = missing(edit(base, mine).touches, edit(moved, mine).touches)
    assert (lost == ()) is same


def _json(made: Schema) -> Json:
    return schema_to_json(made)


def test_a_rollback_stands_alone() -> None:
    """What else would its paths be about?"""
    held = table(ORDERS, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    with pytest.raises(ValidationFailed, match="must be the only operation"):
        edited({"op": "rollback-to", "snapshot-id": 1}, {"op": "drop", "path": "sku"}, of=held)


@pytest.mark.parametrize(
    ("name", "fault"),
    [("audit", r"no branch is called audit \(branches: main\)"), ("v1", "v1 is a tag, and only branches go back")],
)
def test_only_a_branch_that_is_there_goes_back(name: str, fault: str) -> None:
    """A name that was mistyped makes no branch; main alone is made again where it is gone."""
    refs = {"main": branch(1), "v1": {**branch(1), "type": "tag"}}
    held = table(ORDERS, snapshots=[snapshot(1, 0)], refs=refs)
    with pytest.raises(ValidationFailed, match=fault):
        edited({"op": "rollback-to", "snapshot-id": 1, "branch": name}, of=held)
