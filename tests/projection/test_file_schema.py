"""What a file is known to hold."""

from __future__ import annotations

from app.projection.file_schema import FileField, FileSchema
from tests.projection.shorthand import bare, field, list_of, map_of, of, struct


def test_a_conforming_writer_stores_all_columns_but_unknown_ones() -> None:
    """At every depth; their IDs and types stay as the schema has them."""
    schema = of(
        field(1, "a", "int"),
        field(2, "u", "unknown"),
        field(3, "s", struct(field(4, "v", "unknown"), field(5, "x", "date"))),
        field(6, "l", list_of(7, "string")),
        field(8, "m", map_of(9, "int", 10, "long")),
    )
    found = {f.field_id: (f.name, f.shape) for column in FileSchema.of(schema).fields for f in column.walk()}
    assert found == {
        1: ("a", "value"),
        3: ("s", "struct"),
        5: ("x", "value"),
        6: ("l", "list"),
        7: ("element", "value"),
        8: ("m", "map"),
        9: ("key", "value"),
        10: ("value", "value"),
    }


def test_one_id_at_any_depth_is_enough() -> None:
    """Then the file has IDs."""
    schema = of(field(1, "s", struct(field(2, "x", "int"))))
    assert FileSchema.of(schema).has_ids
    assert not bare(schema).has_ids
    inner = FileField("x", 2, "value", "int32")
    assert FileSchema((FileField("s", None, "struct", "struct", None, (inner,)),)).has_ids
    assert not FileSchema().has_ids
