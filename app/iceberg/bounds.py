"""Single values in binary, as lower and upper bounds keep them (spec: Appendix D, Bound serialization)."""

from __future__ import annotations

import struct
from typing import Any, Final
from uuid import UUID

from app.errors import SpecError
from app.iceberg.decimals import decimal_of, minimal_bytes, unscaled_of
from app.iceberg.promotion import promote_value
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

_PACKED: Final[dict[type[Type], str]] = {
    IntegerType: "<i",
    DateType: "<i",
    LongType: "<q",
    TimeType: "<q",
    TimestampType: "<q",
    TimestamptzType: "<q",
    TimestampNsType: "<q",
    TimestamptzNsType: "<q",
    FloatType: "<f",
    DoubleType: "<d",
}
"""struct formats of the types with a fixed-width little-endian number."""

_NARROWER: Final[dict[type[Type], Type]] = {
    LongType: IntegerType(),
    DoubleType: FloatType(),
    TimestampType: DateType(),
    TimestampNsType: DateType(),
}
"""What a 4-byte bound of a wider type was written as (spec: Schema Evolution)."""


def to_bytes(value_type: Type, value: Any) -> bytes:
    """The binary form of a canonical value.

    Geometry and geography take the point of a bound, (x, y, z or None, m or None). Raises SpecError for types without
    a binary form and for numbers outside their type's range.
    """
    packed = _PACKED.get(type(value_type))
    if packed is not None:
        try:
            return struct.pack(packed, value)
        except (struct.error, OverflowError) as fault:
            raise SpecError(f"Value {value!r} is outside the range of {value_type}") from fault
    match value_type:
        case BooleanType():
            return b"\x01" if value else b"\x00"
        case StringType():
            return bytes(value.encode())
        case UuidType():
            return bytes(value.bytes)
        case BinaryType():
            return bytes(value)
        case FixedType(length=length):
            if len(value) != length:
                raise SpecError(f"Value of {len(value)} bytes is no {value_type}")
            return bytes(value)
        case DecimalType(scale=scale):
            return minimal_bytes(unscaled_of(value, scale))
        case GeometryType() | GeographyType():
            x, y, z, m = value
            coordinates = [x, y] if z is None and m is None else [x, y, float("nan") if z is None else z]
            return struct.pack(f"<{len(coordinates)}d", *coordinates) + (b"" if m is None else struct.pack("<d", m))
    raise SpecError(f"Type {value_type} has no binary single value")


def from_bytes(value_type: Type, data: bytes) -> Any:
    """The canonical value of a bound, promoted to `value_type` if it was written before a promotion.

    Four bytes of a long, double, timestamp or timestamp_ns are an int, float or date; a fixed may be cut short like
    any bound of bytes. Raises SpecError for lengths and contents that fit no legal writer.
    """
    packed = _PACKED.get(type(value_type))
    if packed is not None:
        narrower = _NARROWER.get(type(value_type))
        if narrower is not None and len(data) == 4:
            return promote_value(narrower, struct.unpack(_PACKED[type(narrower)], data)[0], value_type)
        if len(data) != struct.calcsize(packed):
            raise _bad_bytes(value_type, data)
        return struct.unpack(packed, data)[0]
    match value_type:
        case BooleanType() if len(data) == 1:
            return data != b"\x00"
        case StringType():
            try:
                return data.decode()
            except UnicodeDecodeError as fault:
                raise _bad_bytes(value_type, data) from fault
        case UuidType() if len(data) == 16:
            return UUID(bytes=bytes(data))
        case BinaryType():
            return bytes(data)
        case FixedType(length=length) if len(data) <= length:
            return bytes(data)
        case DecimalType(precision=precision, scale=scale) if 1 <= len(data) <= 17:
            unscaled = int.from_bytes(data, "big", signed=True)
            if abs(unscaled) < 10**precision:
                return decimal_of(unscaled, scale)
        case GeometryType() | GeographyType() if len(data) in (16, 24, 32):
            x, y, *rest = struct.unpack(f"<{len(data) // 8}d", data)
            z = rest[0] if rest and rest[0] == rest[0] else None
            return x, y, z, rest[1] if len(rest) == 2 else None
    raise _bad_bytes(value_type, data)


def _bad_bytes(value_type: Type, data: bytes) -> SpecError:
    if isinstance(value_type, (StructType, ListType, MapType, UnknownType, VariantType)):
        return SpecError(f"Type {value_type} has no binary single value")
    return SpecError(f"Cannot read {len(data)} bytes as a {value_type} value")
