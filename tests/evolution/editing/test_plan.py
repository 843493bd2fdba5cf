"""Plans: the commit that operations amount to, and what follows a column that is renamed or dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.evolution.editing.operations import parse_operations
from app.evolution.editing.plan import (
    Plan,
    at_schema,
    plan,
    requirements_to_json,
    same_meaning,
    updates_to_json,
)
from app.iceberg.name_mapping import NAME_MAPPING_PROPERTY
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.schema import schema_to_json
from app.iceberg.table import TableMetadata
from app.iceberg.update import parse_table_updates
from app.metadata import requirements as commit_requirements
from app.metadata.tables import apply
from tests.evolution.tables import NOW, UUID, branch, field, list_of, schema, snapshot, struct, table, tag, warnings

Json = dict[str, Any]
ORDERS = schema(
    field(1, "id", "long", True),
    field(2, "sku", "string"),
    field(3, "address", struct(field(4, "city", "string"))),
    field(5, "lines", list_of(6, struct(field(7, "pieces", "int")))),
)
DROP = {"op": "drop", "path": "sku"}
DROP_LINES = {"op": "drop", "path": "lines"}
RENAME = {"op": "rename", "path": "sku", "to": "article"}


def planned(*operations: Json, of: TableMetadata | None = None, **more: Any) -> Plan:
    return plan(of or table(ORDERS), parse_operations(list(operations)), **more)


def actions(made: Plan) -> list[str]:
    return [update["action"] for update in updates_to_json(made.updates)]


def test_the_commit_of_a_plan_gives_the_schema_of_the_plan() -> None:
    """Its requirements hold on the table it was made for, and its updates parse back to themselves."""
    base = table(ORDERS)
    made = planned(RENAME, {"op": "add", "path": "note", "type": "string"}, of=base)
    requirements = parse_table_requirements(requirements_to_json(made.requirements))
    commit_requirements.check_table(requirements, base)
    assert requirements == made.requirements
    after = apply(base, None, parse_table_updates(updates_to_json(made.updates)), NOW + 20_000, UUID).metadata
    assert schema_to_json(after.schema) == schema_to_json(made.schema)
    assert actions(made) == ["add-schema", "set-current-schema"]


def test_ids_are_guarded_where_they_are_given_out() -> None:
    """A plan that adds needs the counter it counted from; one that only renames does not."""
    assert [r["type"] for r in requirements_to_json(planned(RENAME).requirements)] == [
        "assert-table-uuid", "assert-current-schema-id",
    ]  # fmt: skip
    adding = planned({"op": "add", "path": "note", "type": "string"})
    assert requirements_to_json(adding.requirements)[-1] == {
        "type": "assert-last-assigned-field-id", "last-assigned-field-id": 7,
    }  # fmt: skip


def test_a_schema_that_the_table_has_already_is_made_current_again() -> None:
    """No second copy of it is added."""
    renamed = schema(field(1, "id", "long", True), field(2, "article", "string"), schema_id=1)
    base = table(schema(field(1, "id", "long", True), field(2, "sku", "string")), renamed)
    made = planned({"op": "rename", "path": "article", "to": "sku"}, of=base)
    assert updates_to_json(made.updates) == [{"action": "set-current-schema", "schema-id": 0}]


def test_without_a_change_there_is_no_commit() -> None:
    """Neither updates nor requirements."""
    made = planned({"op": "rename", "path": "sku", "to": "sku"})
    assert (made.updates, made.requirements, bool(made.changes)) == ((), (), False)


def test_the_hash_stands_for_the_commit() -> None:
    """Equal for equal commits, another for another base or other operations."""
    assert planned(RENAME).digest == planned(RENAME).digest
    assert planned(RENAME).digest != planned(DROP).digest
    adding = {"op": "add", "path": "note", "type": "string"}
    assert planned(adding).digest != planned(adding, of=table(ORDERS, last_column_id=9)).digest


def data(**more: Any) -> TableMetadata:
    return table(ORDERS, snapshots=[snapshot(1, 0)], **{"refs": {"main": branch(1)}, **more})


def test_a_tag_is_taken_before_a_drop() -> None:
    """Of the current snapshot, under a name that tells why, guarded against a commit in between."""
    made = planned(DROP, of=data(), tag_before_drop=True)
    assert made.tag == "before-drop-sku"
    assert updates_to_json(made.updates)[0] == {
        "action": "set-snapshot-ref", "ref-name": "before-drop-sku", "snapshot-id": 1, "type": "tag",
    }  # fmt: skip
    guards = [r for r in requirements_to_json(made.requirements) if r["type"] == "assert-ref-snapshot-id"]
    assert {(r["ref"], r["snapshot-id"]) for r in guards} == {("main", 1), ("before-drop-sku", None)}


@pytest.mark.parametrize(
    ("operation", "held", "name"),
    [
        (RENAME, data(), None),
        (DROP, table(ORDERS), None),
        (DROP, data(refs={"main": branch(1), "before-drop-sku": tag(1)}), "before-drop-sku-2"),
        ({"op": "drop", "path": "address"}, data(), "before-drop-address"),
    ],
    ids=["nothing is dropped", "there is no data", "the name is taken", "a struct"],
)
def test_a_tag_is_taken_only_for_a_drop_with_data(operation: Json, held: TableMetadata, name: str | None) -> None:
    """Under a name of its own."""
    assert planned(operation, of=held, tag_before_drop=True).tag == name


MAPPING = [
    {"field-id": 1, "names": ["id"]},
    {"field-id": 2, "names": ["sku", "stock_keeping_unit"]},
    {"field-id": 3, "names": ["address"], "fields": [{"field-id": 4, "names": ["city"]}]},
]


def mapped(*operations: Json, of: list[Json] | str = MAPPING, held: Json = ORDERS) -> Any:
    text = of if isinstance(of, str) else json.dumps(of)
    made = planned(*operations, of=table(held, properties={NAME_MAPPING_PROPERTY: text}))
    for update in updates_to_json(made.updates):
        if update["action"] == "set-properties":
            return json.loads(update["updates"][NAME_MAPPING_PROPERTY])
    return None


def test_a_name_mapping_keeps_old_names_and_learns_new_ones() -> None:
    """At every depth; a dropped column stays in it, because files with it stay."""
    city = {"op": "rename", "path": "address.city", "to": "town"}
    street = {"op": "add", "path": "address.street", "type": {"type": "list", "element": "string"}}
    assert mapped(RENAME, city, street, {"op": "drop", "path": "id"}) == [
        {"field-id": 1, "names": ["id"]},
        {"field-id": 2, "names": ["sku", "stock_keeping_unit", "article"]},
        {"field-id": 3, "names": ["address"], "fields": [
            {"field-id": 4, "names": ["city", "town"]},
            {"field-id": 8, "names": ["street"], "fields": [{"field-id": 9, "names": ["element"]}]},
        ]},
    ]  # fmt: skip


def test_a_name_that_another_column_takes_is_that_columns() -> None:
    """The new column answers to it, the old one to its other names."""
    found = mapped({"op": "replace-as", "path": "sku", "type": "long", "keep-as": "sku_text"})
    assert {entry["field-id"]: entry["names"] for entry in found} == {
        1: ["id"], 2: ["stock_keeping_unit", "sku_text"], 3: ["address"], 8: ["sku"],
    }  # fmt: skip


def test_a_mapping_that_needs_no_change_is_left_alone() -> None:
    """As is one that cannot be parsed: then the plan says so."""
    assert mapped(DROP) is None
    assert mapped(RENAME, of="no json") is None
    broken = planned(RENAME, of=table(ORDERS, properties={NAME_MAPPING_PROPERTY: "no json"}))
    assert broken.notes == (f"{NAME_MAPPING_PROPERTY} cannot be parsed and stays as it is",)


METRICS = "write.metadata.metrics.column."


def properties_after(*operations: Json, **properties: str) -> dict[str, str]:
    base = table(ORDERS, properties=properties)
    made = planned(*operations, of=base)
    return dict(apply(base, None, made.updates, NOW + 20_000, UUID).metadata.properties)


def test_properties_follow_the_column_that_they_name() -> None:
    """Also when it is the struct around the column that is renamed."""
    assert properties_after(
        RENAME, {"op": "rename", "path": "lines", "to": "items"},
        **{f"{METRICS}sku": "full", f"{METRICS}lines.element.pieces": "none", "other": "sku"},
    ) == {f"{METRICS}article": "full", f"{METRICS}items.element.pieces": "none", "other": "sku"}  # fmt: skip


def test_properties_of_a_dropped_column_go() -> None:
    """A column that comes later under its name does not inherit them."""
    bloom = "write.parquet.bloom-filter-enabled.column.sku"
    assert properties_after(DROP, **{bloom: "true", "write.orc.bloom.filter.columns": "sku, id"}) == {
        "write.orc.bloom.filter.columns": "id"
    }
    assert properties_after(DROP, **{"write.orc.bloom.filter.columns": "sku"}) == {}


def test_columns_that_swap_names_swap_their_properties() -> None:
    """No setting is lost on the way."""
    held = schema(field(1, "a", "int"), field(2, "b", "int"))
    base = table(held, properties={f"{METRICS}a": "full", f"{METRICS}b": "none"})
    swap = [{"op": "rename", "path": "a", "to": "b"}, {"op": "rename", "path": "b", "to": "a"}]
    made = planned(*swap, of=base)
    after = apply(base, None, made.updates, NOW + 20_000, UUID).metadata
    assert dict(after.properties) == {f"{METRICS}a": "none", f"{METRICS}b": "full"}


def test_a_rollback_moves_the_branch_and_the_schema() -> None:
    """Guarded by where the branch was, so that nobody's newer commit is undone unseen."""
    later = schema(field(1, "id", "long", True), schema_id=1)
    base = table(
        ORDERS, later, snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1)], refs={"main": branch(2)}, last_column_id=7
    )
    made = planned({"op": "rollback-to", "snapshot-id": 1}, of=base)
    assert updates_to_json(made.updates) == [
        {"action": "set-current-schema", "schema-id": 0},
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"},
    ]
    assert {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2} in requirements_to_json(
        made.requirements
    )


def test_a_rollback_brings_main_back_where_a_replacement_took_it() -> None:
    """CREATE OR REPLACE leaves no main: it is made again, unless somebody else makes one first."""
    later = schema(field(8, "other", "string"), schema_id=1)
    base = table(ORDERS, later, snapshots=[snapshot(1, 0)], last_column_id=8)
    made = planned({"op": "rollback-to", "snapshot-id": 1}, of=base)
    after = apply(base, None, made.updates, NOW + 20_000, UUID).metadata
    assert (after.current_snapshot_id, after.current_schema_id) == (1, 0)
    assert {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None} in requirements_to_json(
        made.requirements
    )
    assert any("main is gone" in note for note in made.notes)


def test_a_plan_of_an_older_schema_is_compared_with_one_of_the_present() -> None:
    """The columns it is about are as they were: same meaning. One of them is not: another."""
    later = schema(*ORDERS["fields"], field(8, "note", "string"), schema_id=1)
    base = table(ORDERS, later)
    earlier = at_schema(base, 0)
    assert earlier is not None and at_schema(base, 7) is None
    assert same_meaning(planned(RENAME, of=earlier), planned(RENAME, of=base))
    renamed = table(ORDERS, schema(field(1, "id", "long", True), field(3, "sku", "string"), schema_id=1))
    assert not same_meaning(planned(RENAME, of=at_schema(renamed, 0)), planned(RENAME, of=renamed))


def test_required_columns_with_defaults_are_pointed_out() -> None:
    """Old rows answer with the default, where the reader knows how."""
    made = planned(
        {"op": "add", "path": "region", "type": "string", "required": True, "default": "eu"},
        {"op": "add", "path": "note", "type": "string"},
        of=table(ORDERS, version=3),
    )
    assert [slot.path for slot in made.required] == ["region"]
    assert [slot.path for slot in made.assigned] == ["region", "note"]


def test_a_plan_leaves_nothing_stale_behind() -> None:
    """The rules about name mappings and column properties have nothing to say of a planned rename and add."""
    properties = {NAME_MAPPING_PROPERTY: json.dumps(MAPPING), f"{METRICS}sku": "full"}
    base = data(properties=properties)
    made = planned(RENAME, {"op": "add", "path": "address.street", "type": "string"}, DROP_LINES, of=base)
    codes = set(warnings(base, updates_to_json(made.updates)))
    assert codes & {"ICE602", "ICE603"} == set()
    assert {"ICE602", "ICE603"} <= set(warnings(base, updates_to_json(made.updates[:2])))
