"""Warnings about engines, properties and the life of a table, beyond the twin fixtures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.iceberg.table import TableMetadata
from tests.evolution.tables import (
    Json,
    branch,
    evolve,
    field,
    judged,
    list_of,
    remove_ref,
    schema,
    snapshot,
    struct,
    table,
    tag,
    upgrade,
    warnings,
)

ID, NAME = field(1, "id", "long", True), field(2, "name", "string")
MAPPING = "schema.name-mapping.default"


def stored(*fields: Json, **more: Any) -> TableMetadata:
    """A table with data."""
    given: dict[str, Any] = {"snapshots": [snapshot(1, 0)], "refs": {"main": branch(1)}, **more}
    return table(schema(*fields), **given)


@pytest.mark.parametrize("text", ["", "{", "[]]", '{"a": 1}', '[{"field-id": "x"}]', "[" * 5000])
def test_a_broken_name_mapping_is_left_alone(text: str) -> None:
    """A mapping that cannot be read neither refuses nor warns: it is an opaque property."""
    assert judged(stored(ID, NAME, properties={MAPPING: text}), evolve(ID, NAME, field(3, "x", "int"))).findings == ()


def test_names_inside_structs_and_entries_without_id() -> None:
    """Nested fields are looked for by ID wherever the mapping has them; entries without ID do not disturb."""
    mapping = json.dumps(
        [
            {"field-id": 1, "names": ["id"]},
            {"names": ["left out"]},
            {"field-id": 2, "names": [], "fields": [{"field-id": 3, "names": ["x"]}]},
        ]
    )
    before = stored(ID, field(2, "s", struct(field(3, "x", "int"))), properties={MAPPING: mapping})
    known = evolve(ID, field(2, "s", struct(field(3, "x", "long"))))
    assert warnings(before, known) == []
    grown = evolve(ID, field(2, "s", struct(field(3, "x", "int"), field(4, "y", "int"))))
    assert warnings(before, grown) == ["ICE602"]


def test_properties_of_nested_columns() -> None:
    """Renaming a struct takes the setting of its child away, too."""
    before = stored(
        ID,
        field(2, "s", struct(field(3, "x", "int"))),
        properties={
            "write.parquet.bloom-filter-enabled.column.s.x": "true",
            "write.orc.bloom.filter.columns": "id, s.x",
        },
    )
    renamed = judged(before, evolve(ID, field(2, "t", struct(field(3, "x", "int")))))
    assert [(f.code, f.field_id) for f in renamed.findings] == [("ICE603", 3), ("ICE603", 3)]


def test_positions_may_grow_and_shrink_at_the_end() -> None:
    """Adding last and dropping last keep positions; a drop in the middle shifts them."""
    before = stored(ID, NAME, field(3, "x", "int"), refs={"main": branch(1), "t": tag(1)})
    assert warnings(before, evolve(ID, NAME)) == []
    assert warnings(before, evolve(ID, field(3, "x", "int"))) == ["ICE601"]


def test_a_replacement_gives_no_advice_on_drops() -> None:
    """CREATE OR REPLACE drops columns on purpose: no tag is asked for."""
    assert "ICE801" not in warnings(stored(ID, NAME), [remove_ref("main"), *evolve(field(3, "other", "string"))])


def test_a_dropped_struct_is_told_once() -> None:
    """The children of a dropped struct are not told of one by one."""
    before = stored(ID, field(2, "s", struct(field(3, "x", "int"), field(4, "l", list_of(5, "int")))))
    assert [(f.code, f.field_id) for f in judged(before, evolve(ID)).findings] == [("ICE801", 2)]


def test_tags_of_several_schemas_count_together() -> None:
    """Of two dropped columns, the one that no tagged snapshot has is told."""
    before = table(
        schema(ID, NAME, schema_id=0),
        schema(ID, NAME, field(3, "x", "int"), schema_id=1),
        snapshots=[snapshot(1, 0), snapshot(2, 1, 1)],
        refs={"main": branch(2), "t": tag(1)},
    )
    told = judged(before, evolve(ID)).findings
    assert [(f.code, f.field_id) for f in told] == [("ICE801", 3)]
    assert "Tag snapshot 2" in told[0].fix


def test_nanosecond_defaults_are_told() -> None:
    """A default on timestamp_ns is accepted on v3 and told, also on a table without data."""
    column = field(2, "t", "timestamp_ns", write="2020-01-01T00:00:00.000000000")
    assert warnings(table(schema(ID), version=3), evolve(ID, column)) == ["ICE605"]


def test_an_upgrade_alone_is_silent() -> None:
    """A v2 table without defaults is upgraded without a word."""
    assert judged(stored(ID, NAME), [upgrade()]).findings == ()
