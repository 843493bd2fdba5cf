"""What a table has to say about its rows, kept apart from the program.

Rows are trees by field id, as they were written. `expect` says what each of them must read as under another schema:
the stored value, widened where the format widens it, and for a column that the file lacks the default that the column
was published with. Where nothing can be right, `BROKEN` stands, which equals nothing.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.iceberg.partition import PartitionSpec
from app.iceberg.schema import Schema
from app.iceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNsType,
    TimestampType,
    Type,
    UnknownType,
)
from app.iceberg.values import parse_value
from tests.projection.parquet_files import Row


class _Broken:
    """Equals nothing, itself included."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN: Final = _Broken()


@dataclasses.dataclass(eq=False, slots=True)
class DataFile:
    """One Parquet file: what was written, under which schema and partition spec, and the metrics of its manifest."""

    number: int
    written: Schema
    rows: list[Row]
    data: io.BytesIO
    spec: PartitionSpec
    partition: dict[int, Any]
    bounds: dict[int, tuple[bytes, bytes]]


@dataclasses.dataclass(eq=False, slots=True)
class Written:
    """One snapshot: its files, its ancestry whether retained or not, and the schema that it names."""

    snapshot_id: int
    schema: Schema
    names_schema: bool
    ancestry: tuple[Written, ...]
    files: tuple[DataFile, ...]
    added: frozenset[int]

    def since(self, file: DataFile) -> list[Schema]:
        """The schemas of the snapshots from the one that added the file up to this one."""
        line = [*self.ancestry, self]
        start = next((at for at, snapshot in enumerate(line) if file.number in snapshot.added), len(line) - 1)
        return [snapshot.schema for snapshot in line[start:]]


Published = Mapping[int, tuple[Type, Any]]
"""The type and initial-default (decoded JSON, None for none) that a field was first published with."""


def published(schemas: Sequence[Schema], later: Published) -> dict[int, tuple[Type, Any]]:
    """First come, first served: what the schemas say in order, then what `later` says."""
    found: dict[int, tuple[Type, Any]] = {}
    for schema in schemas:
        for field_id, field in schema.by_id.items():
            found.setdefault(field_id, default_of(field))
    for field_id, entry in later.items():
        found.setdefault(field_id, entry)
    return found


def default_of(field: NestedField) -> tuple[Type, Any]:
    return field.field_type, field.initial_default if field.has_initial_default else None


def expect(file: DataFile, requested: Schema, defaults: Published) -> list[Row]:
    """The rows as they must read under the requested schema."""
    return [_struct(file.written, requested.fields, row, defaults) for row in file.rows]


def _struct(written: Schema, wanted: Sequence[NestedField], stored: Mapping[int, Any], defaults: Published) -> Row:
    out: Row = {}
    for field in wanted:
        if field.field_id in stored:
            out[field.field_id] = _value(
                written, written.by_id[field.field_id], field, stored[field.field_id], defaults
            )
        elif not written.by_id.keys().isdisjoint(_ids(field)):
            out[field.field_id] = BROKEN  # the file has it, or something inside it, at another place
        else:
            out[field.field_id] = _default(field, defaults)
    return out


def _ids(field: NestedField) -> set[int]:
    return set(Schema(0, (field,)).by_id)


def _default(field: NestedField, defaults: Published) -> Any:
    kind, default = defaults.get(field.field_id, default_of(field))
    if default is None:
        return BROKEN if field.required else None
    value = parse_value(kind, default)
    found = widened(kind, value, field.field_type)
    if found is BROKEN and field.has_initial_default:
        # A column that was promoted and dropped unwritten may come back as it was: the value must be the same.
        own = parse_value(field.field_type, field.initial_default)
        return own if widened(field.field_type, own, kind) == value else BROKEN
    return found


def _value(written: Schema, old: NestedField, new: NestedField, value: Any, defaults: Published) -> Any:
    before, after = old.field_type, new.field_type
    if isinstance(before, UnknownType):
        return BROKEN if new.required else None
    if value is None:
        same_kind = isinstance(before, PrimitiveType) or type(before) is type(after)
        return BROKEN if new.required or not same_kind else None
    match before, after:
        case StructType(), StructType(fields=fields):
            return _struct(written, fields, value, defaults)
        case ListType(), ListType():
            if before.element_id != after.element_id:
                return BROKEN
            old, new = before.element_field, after.element_field
            return [_value(written, old, new, item, defaults) for item in value]
        case MapType(), MapType():
            if (before.key_id, before.value_id) != (after.key_id, after.value_id):
                return BROKEN
            keys, values = (before.key_field, after.key_field), (before.value_field, after.value_field)
            return [
                (_value(written, *keys, key, defaults), _value(written, *values, item, defaults)) for key, item in value
            ]
    return widened(before, value, after)


def widened(before: Type, value: Any, after: Type) -> Any:
    """A value after a promotion of the spec's table, BROKEN after any other change of type."""
    match before, after:
        case _ if before == after:
            return value
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return value
        case DecimalType(), DecimalType() if before.scale == after.scale and before.precision <= after.precision:
            return value
        case DateType(), TimestampType():
            return value * 24 * 60 * 60 * 1_000_000
        case DateType(), TimestampNsType():
            return value * 24 * 60 * 60 * 1_000_000_000
    return BROKEN
