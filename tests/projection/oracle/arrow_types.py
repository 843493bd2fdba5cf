"""Iceberg types as Arrow types and back (table spec: Appendix A, Parquet)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

from app.iceberg.schema import Schema
from app.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)
from app.projection.file_schema import FileField, FileSchema

FIELD_ID_KEY: Final = b"PARQUET:field_id"
"""Where Arrow keeps the field id of a Parquet column."""

_UUID_LENGTH: Final = 16
_ARROW: Final[dict[type[Type], Any]] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", tz="UTC"),
    TimestampNsType: pa.timestamp("ns"),
    TimestamptzNsType: pa.timestamp("ns", tz="UTC"),
    StringType: pa.string(),
    UuidType: pa.binary(_UUID_LENGTH),
    BinaryType: pa.binary(),
    UnknownType: pa.null(),
    GeometryType: pa.binary(),
    GeographyType: pa.binary(),
    VariantType: pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())]),
}
_ICEBERG: Final[dict[Any, Type]] = {
    pa.null(): UnknownType(),
    pa.bool_(): BooleanType(),
    pa.int8(): IntegerType(),
    pa.int16(): IntegerType(),
    pa.int32(): IntegerType(),
    pa.uint8(): IntegerType(),
    pa.uint16(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint32(): LongType(),
    pa.float16(): FloatType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    pa.time32("ms"): TimeType(),
    pa.time64("us"): TimeType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.string_view(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.binary_view(): BinaryType(),
}


def arrow_type(wanted: Type) -> Any:
    """The Arrow type that columns of this type are read as; a variant is its two binary parts.

    Nested fields carry their names, nullability and field ids, the latter as Parquet writers expect them.
    """
    match wanted:
        case StructType(fields=fields):
            return pa.struct([arrow_field(field) for field in fields])
        case ListType():
            return pa.list_(arrow_field(wanted.element_field))
        case MapType():
            return pa.map_(arrow_field(wanted.key_field), arrow_field(wanted.value_field))
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case FixedType(length=length):
            return pa.binary(length)
    return _ARROW[type(wanted)]


def arrow_field(field: NestedField) -> Any:
    metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
    return pa.field(field.name, arrow_type(field.field_type), nullable=field.optional, metadata=metadata)


def arrow_schema(schema: Schema) -> Any:
    """The Arrow schema of data read under an Iceberg schema."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def file_schema(schema: Any) -> FileSchema:
    """The columns of a Parquet file, from the Arrow schema of its footer."""
    return FileSchema(_fields(schema))


def _fields(fields: Iterable[Any]) -> tuple[FileField, ...]:
    return tuple(_field(field) for field in fields)


def _field(field: Any) -> FileField:
    stored = plain_type(field.type)
    field_id, text = _field_id(field), str(stored)
    if pat.is_struct(stored):
        return FileField(field.name, field_id, "struct", text, None, _fields(stored))
    if is_list(stored):
        return FileField(field.name, field_id, "list", text, None, _fields([stored.value_field]))
    if pat.is_map(stored):
        return FileField(field.name, field_id, "map", text, None, _fields([stored.key_field, stored.item_field]))
    return FileField(field.name, field_id, "value", text, _value_type(field.type))


def _field_id(field: Any) -> int | None:
    """None where the footer has no id; parquet-format's -1 stands for none as well."""
    try:
        field_id = int((field.metadata or {}).get(FIELD_ID_KEY, b""))
    except ValueError:
        return None
    return field_id if field_id >= 0 else None


def plain_type(stored: Any) -> Any:
    """The type under dictionary encoding and extension types, which are a matter of storage."""
    while True:
        if pat.is_dictionary(stored):
            stored = stored.value_type
        elif isinstance(stored, pa.BaseExtensionType):
            stored = stored.storage_type
        else:
            return stored


def is_list(stored: Any) -> bool:
    return bool(
        pat.is_list(stored)
        or pat.is_large_list(stored)
        or pat.is_fixed_size_list(stored)
        or pat.is_list_view(stored)
        or pat.is_large_list_view(stored)
    )


def _value_type(stored: Any) -> Type | None:
    """The Iceberg type that holds every value of a stored type; None if there is none."""
    if isinstance(stored, pa.BaseExtensionType) and stored.extension_name == "arrow.uuid":
        return UuidType()
    plain = plain_type(stored)
    if pat.is_decimal(plain):
        return DecimalType(plain.precision, plain.scale) if plain.precision <= 38 and plain.scale >= 0 else None
    if pat.is_fixed_size_binary(plain):
        return FixedType(plain.byte_width)
    if pat.is_timestamp(plain):
        if plain.unit == "ns":
            return TimestampNsType() if plain.tz is None else TimestamptzNsType()
        return TimestampType() if plain.tz is None else TimestamptzType()
    return _ICEBERG.get(plain)
