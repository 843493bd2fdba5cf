"""Real Parquet bytes from rows, and rows from what a reader returns.

A row is a tree of canonical values: a struct is a dict by field id, a list a list, a map a list of pairs. Writing
follows the table spec (field ids in every column, unknown columns left out) and shares no code with the reader but
the table of Arrow types.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from app.iceberg.schema import Schema
from app.iceberg.types import (
    DateType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
)
from tests.projection.oracle.arrow_types import arrow_schema

Row = dict[int, Any]

_COUNTED: dict[type[Type], Any] = {
    DateType: pa.int32(),
    TimeType: pa.int64(),
    TimestampType: pa.int64(),
    TimestamptzType: pa.int64(),
    TimestampNsType: pa.int64(),
    TimestamptzNsType: pa.int64(),
}
"""Types whose canonical value is a count of days, micro- or nanoseconds."""


def stored_schema(schema: Schema) -> Schema:
    """The columns that a conforming writer stores: all but those of type unknown."""
    return Schema(schema.schema_id, _stored(schema.fields))


def _stored(fields: Sequence[NestedField]) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(f.field_id, f.name, f.required, _stored_type(f.field_type))
        for f in fields
        if not isinstance(f.field_type, UnknownType)
    )


def _stored_type(kind: Type) -> Type:
    match kind:
        case StructType(fields=fields):
            return StructType(_stored(fields))
        case ListType():
            return ListType(kind.element_id, _stored_type(kind.element), kind.element_required)
        case MapType():
            return MapType(
                kind.key_id, _stored_type(kind.key), kind.value_id, _stored_type(kind.value), kind.value_required
            )
    return kind


def parquet(schema: Schema, rows: Sequence[Row], *, ids: bool = True) -> io.BytesIO:
    """A data file of these rows, written under the schema; with `ids` False as a foreign writer would."""
    stored = stored_schema(schema)
    layout = arrow_schema(stored)
    columns = [
        pa.array([_python(f.field_type, row[f.field_id]) for row in rows], layout.field(at).type)
        for at, f in enumerate(stored.fields)
    ]
    table = pa.Table.from_arrays(columns, schema=layout)
    if not ids:
        table = table.cast(without_ids(layout))
    file = io.BytesIO()
    pq.write_table(table, file)
    file.seek(0)
    return file


def without_ids(layout: pa.Schema) -> pa.Schema:
    return pa.schema([_bare(field) for field in layout])


def _bare(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_bare(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_bare(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(_bare(kind.key_field), _bare(kind.item_field))
    return pa.field(field.name, kind, field.nullable)


def _python(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case StructType(fields=fields):
            # Pairs, not a dict: names of struct fields need not differ in the ways that a dict needs.
            return [(f.name, _python(f.field_type, value[f.field_id])) for f in fields]
        case ListType():
            return [_python(kind.element, item) for item in value]
        case MapType():
            return [(_python(kind.key, key), _python(kind.value, item)) for key, item in value]
        case UuidType():
            return value.bytes
    return value


def rows(table: pa.Table, schema: Schema) -> list[Row]:
    """The rows of a table that was read under the schema."""
    assert table.schema.equals(arrow_schema(schema)), f"{table.schema} is not {arrow_schema(schema)}"
    table.validate(full=True)
    columns = {f.field_id: trees(table.column(at).combine_chunks(), f.field_type) for at, f in enumerate(schema.fields)}
    return [{field_id: column[at] for field_id, column in columns.items()} for at in range(table.num_rows)]


def trees(array: Any, kind: Type) -> list[Any]:
    """The canonical values of an Arrow array."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    nulls = array.is_null().to_pylist()
    match kind:
        case StructType(fields=fields):
            children = [(f.field_id, trees(array.field(at), f.field_type)) for at, f in enumerate(fields)]
            found: list[Any] = [{i: values[at] for i, values in children} for at in range(len(array))]
        case ListType():
            inner, offsets = trees(array.values, kind.element), array.offsets.to_pylist()
            found = [inner[start:stop] for start, stop in itertools.pairwise(offsets)]
        case MapType():
            pairs = list(zip(trees(array.keys, kind.key), trees(array.items, kind.value), strict=True))
            offsets = array.offsets.to_pylist()
            found = [pairs[start:stop] for start, stop in itertools.pairwise(offsets)]
        case UuidType():
            found = [None if value is None else UUID(bytes=value) for value in array.to_pylist()]
        case _:
            counted = _COUNTED.get(type(kind))
            found = (array if counted is None else array.cast(counted)).to_pylist()
    return [None if null else value for null, value in zip(nulls, found, strict=True)]
