"""Tables from createTable requests."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, ValidationFailed
from app.iceberg.partition import parse_unbound_partition_spec
from app.iceberg.schema import parse_schema
from app.iceberg.sort import parse_sort_order
from app.iceberg.table import TableMetadata, parse_table_metadata, render_table_metadata
from app.metadata.tables import new_table
from tests.iceberg.documents import NOW, UUID, column, schema

NESTED = schema(
    9,
    column(5, "id", required=True),
    column(7, "addr", {"type": "struct", "fields": [column(20, "city", "string"), column(21, "zip", "int")]}),
    column(6, "tags", {"type": "list", "element-id": 30, "element": "string", "element-required": False}),
    column(8, "ts", "timestamp"),
    **{"identifier-field-ids": [5]},
)


def create(value: dict[str, Any] = NESTED, spec: Any = None, order: Any = None, **properties: str) -> TableMetadata:
    return new_table(
        parse_schema(value),
        None if spec is None else parse_unbound_partition_spec({"fields": spec}),
        None if order is None else parse_sort_order({"order-id": 77, "fields": order}),
        "s3://bucket/t/",
        {key.replace("_", "-"): item for key, item in properties.items()},
        NOW,
        UUID,
    )


def part(source_id: int, transform: str, name: str, **more: Any) -> dict[str, Any]:
    return {"source-id": source_id, "transform": transform, "name": name, **more}


def sort_field(source_id: int) -> dict[str, Any]:
    return {"source-id": source_id, "transform": "identity", "direction": "desc", "null-order": "nulls-first"}


def test_column_ids_are_assigned_from_1() -> None:
    """One struct level first, then inside; identifier fields follow."""
    table = create()
    ids = {table.schema.name_of(field_id): field_id for field_id in table.schema.by_id}
    assert ids == {"id": 1, "addr": 2, "tags": 3, "ts": 4, "addr.city": 5, "addr.zip": 6, "tags.element": 7}
    assert (table.schema.identifier_field_ids, table.last_column_id, table.current_schema_id) == ((1,), 7, 0)


def test_sources_are_bound_to_the_new_ids() -> None:
    """Partition fields count from 1000 whatever was sent; the sort order is 1."""
    table = create(
        spec=[part(8, "day", "d", **{"field-id": 5}), part(20, "identity", "addr.city")], order=[sort_field(5)]
    )
    assert [(field.source_ids, field.field_id) for field in table.default_spec.fields] == [((4,), 1000), ((5,), 1001)]
    assert (table.default_spec_id, table.last_partition_id) == (0, 1001)
    assert (table.default_sort_order_id, table.default_sort_order.fields[0].source_ids) == (1, (1,))


def test_an_unsorted_unpartitioned_table() -> None:
    """Spec 0 without fields, order 0, and the counter before the first partition field."""
    table = create()
    assert (table.default_spec.fields, table.default_sort_order_id, table.last_partition_id) == ((), 0, 999)
    assert parse_table_metadata(render_table_metadata(table)).location == "s3://bucket/t"


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_the_property_chooses_the_version(version: str) -> None:
    """And is consumed, as are all reserved ones (O-29)."""
    table = create(format_version=version, uuid="x", current_schema="y", keep="z")
    assert table.format_version == int(version)
    assert table.properties == {"write.parquet.compression-codec": "zstd", "keep": "z"}


def test_a_chosen_compression_stays() -> None:
    """The default is for tables that say nothing."""
    properties = {"write.parquet.compression-codec": "snappy"}
    table = new_table(parse_schema(schema(0)), None, None, "s3://b/t", properties, NOW, UUID)
    assert table.properties == properties


@pytest.mark.parametrize("version", ["4", "0", "two", "", "2.0"])
def test_other_versions_are_refused(version: str) -> None:
    """With a clear message."""
    with pytest.raises(ValidationFailed, match="ormat version"):
        create(format_version=version)


@pytest.mark.parametrize(
    "properties",
    [
        {"commit.retry.num-retries": "many"},
        {"commit.retry.min-wait-ms": "-1"},
        {"write.metadata.previous-versions-max": "x"},
        {"write.metadata.metrics.column.nope": "full"},
        {"encryption.key-id": "k"},
    ],
)
def test_properties_that_would_break_the_table_are_refused(properties: dict[str, str]) -> None:
    """Numbers that are none, metrics of columns that are none, encryption before version 3."""
    with pytest.raises(ValidationFailed):
        create(**properties)


def test_metrics_may_name_any_column() -> None:
    """Nested ones too."""
    create(**{"write.metadata.metrics.column.addr.city": "full", "commit.retry.num-retries": "0"})


@pytest.mark.parametrize(
    "spec",
    [[part(99, "identity", "x")], [part(5, "day", "x")], [part(7, "identity", "x")], [part(5, "zorder", "x")],
     [part(30, "identity", "x")], [part(5, "identity", "ts")], [part(5, "identity", "")]],
)  # fmt: skip
def test_a_spec_must_fit(spec: Any) -> None:
    """Source ids are those of the request."""
    with pytest.raises(BadRequest):
        create(spec=spec)


def test_an_order_must_fit() -> None:
    """As for specs."""
    with pytest.raises(ValidationFailed, match="source column"):
        create(order=[sort_field(1)])


def test_defaults_go_with_their_columns() -> None:
    """Renumbering keeps initial and write defaults."""
    value = schema(0, column(9, "a", "int", **{"initial-default": 1, "write-default": 2}))
    field = create(value, format_version="3").schema.fields[0]
    assert (field.field_id, field.initial_default, field.write_default) == (1, 1, 2)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_codec_that_is_not_written_is_refused(codec: str) -> None:
    """It would be ignored without a word."""
    with pytest.raises(ValidationFailed, match=r"write\.metadata\.compression-codec"):
        create(**{"write.metadata.compression-codec": codec})
