"""Iceberg types as Arrow types and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from app.iceberg.schema import Schema
from app.iceberg.types import (
    FixedType,
    GeographyType,
    GeometryType,
    Type,
    UuidType,
    VariantType,
    parse_type,
)
from app.projection.file_schema import FileField, FileSchema
from tests.iceberg.strategies import LEAVES, schemas
from tests.projection.oracle.arrow_types import arrow_schema, arrow_type, file_schema
from tests.projection.parquet_files import stored_schema
from tests.projection.shorthand import field, list_of, map_of, of, struct


@given(LEAVES)
def test_types_survive_the_way_to_arrow_and_back(kind: Type) -> None:
    """Except for what Arrow has no type of its own for: a uuid is 16 bytes, a shape bytes, a variant two parts."""
    (found,) = file_schema(pa.schema([pa.field("a", arrow_type(kind))])).fields
    match kind:
        case UuidType():
            assert found.value_type == FixedType(16)
        case GeometryType() | GeographyType():
            assert found.value_type == parse_type("binary")
        case VariantType():
            assert [child.name for child in found.children] == ["metadata", "value"]
        case _:
            assert found.value_type == kind


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_ids_names_and_shapes_survive_the_way_through_a_footer(schema: Schema) -> None:
    """At every depth; negative IDs mean "none" in a footer."""
    expected, found = FileSchema.of(schema).fields, file_schema(arrow_schema(stored_schema(schema))).fields
    assert list(map(_outline, expected)) == list(map(_outline, found))


def _outline(column: FileField) -> tuple[object, ...]:
    field_id = column.field_id if column.field_id is not None and column.field_id >= 0 else None
    parts = [child.name for child in column.children] == ["metadata", "value"]
    variant = parts or isinstance(column.value_type, VariantType)
    shape = "variant" if variant else column.shape
    return column.name, field_id, shape, () if variant else tuple(map(_outline, column.children))


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.int8(), "int"),
        (pa.int16(), "int"),
        (pa.uint8(), "int"),
        (pa.uint16(), "int"),
        (pa.uint32(), "long"),
        (pa.uint64(), None),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.large_binary(), "binary"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.uuid(), "uuid"),
        (pa.binary(16), "fixed[16]"),
        (pa.timestamp("ms"), "timestamp"),
        (pa.timestamp("s", "Europe/Oslo"), "timestamptz"),
        (pa.timestamp("ns"), "timestamp_ns"),
        (pa.timestamp("ns", "UTC"), "timestamptz_ns"),
        (pa.time32("ms"), "time"),
        (pa.time64("ns"), None),
        (pa.duration("us"), None),
        (pa.decimal256(50, 2), None),
        (pa.decimal32(5, 2), "decimal(5, 2)"),
        (pa.null(), "unknown"),
    ],
)
def test_what_other_writers_store(stored: Any, kind: str | None) -> None:
    """The Iceberg type that holds every stored value, None where there is none."""
    (found,) = file_schema(pa.schema([pa.field("a", stored)])).fields
    assert found.value_type == (None if kind is None else parse_type(kind))


@pytest.mark.parametrize(
    "stored",
    [
        pa.list_(pa.int32()),
        pa.large_list(pa.int32()),
        pa.list_(pa.int32(), 3),
        pa.list_view(pa.int32()),
        pa.large_list_view(pa.int32()),
    ],
)
def test_every_kind_of_list_is_a_list(stored: Any) -> None:
    """With one child."""
    (found,) = file_schema(pa.schema([pa.field("a", stored)])).fields
    assert (found.shape, len(found.children)) == ("list", 1)


def test_fields_carry_ids_names_and_nullability() -> None:
    """What a Parquet writer needs to store them, nested fields included."""
    schema = of(
        field(1, "a", "int", True),
        field(2, "l", list_of(3, struct(field(4, "x", "uuid", True)), True)),
        field(5, "m", map_of(6, "string", 7, "decimal(9, 2)")),
    )
    found = arrow_schema(schema)
    assert [f.nullable for f in found] == [False, True, True]
    element = found.field("l").type.value_field
    assert (element.nullable, element.metadata) == (False, {b"PARQUET:field_id": b"3"})
    assert element.type.field("x").metadata == {b"PARQUET:field_id": b"4"}
    assert found.field("m").type.key_field.metadata == {b"PARQUET:field_id": b"6"}
    assert found.field("m").type.item_type == pa.decimal128(9, 2)


@pytest.mark.parametrize("given_id", [b"-1", b"", b"x"])
def test_what_is_no_id_is_none(given_id: bytes) -> None:
    """Some writers put -1 where there is none."""
    (found,) = file_schema(pa.schema([pa.field("a", pa.int32(), metadata={b"PARQUET:field_id": given_id})])).fields
    assert found.field_id is None
