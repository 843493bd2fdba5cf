"""Single values: JSON form (defaults), binary form (bounds), and equality across promotion (spec: Appendix D).

Canonical Python values: bool, int, float (rounded to 32 bits for float), `Decimal` at the type's scale, int days for
date, int microseconds for time, timestamp and timestamptz, int nanoseconds for the _ns types, str, `UUID`, bytes for
fixed and binary; tuples by position for struct and list, a frozenset of pairs for map. None is null.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET

from app.errors import SpecError
from app.iceberg.bounds import from_bytes, to_bytes
from app.iceberg.datetimes import (
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
)
from app.iceberg.decimals import decimal_of
from app.iceberg.json.codec import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Json,
    describe,
    encode,
)
from app.iceberg.promotion import promote_value
from app.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    UuidType,
)

__all__ = ["check_uuid", "equal_values", "from_bytes", "parse_value", "promote_value", "to_bytes", "value_to_json"]

_BIG_DECIMAL: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_MAX_PLAIN_SCALE: Final = 1000
"""A type string may claim a scale of two thousand million: writing that out in digits would exhaust memory."""
_FLOAT32_DIGITS: Final = range(1, 10)
"""Nine digits tell any two 32-bit floats apart."""

_MICROS_ZONED: Final[dict[type[Type], bool]] = {TimestampType: False, TimestamptzType: True}
_NANOS_ZONED: Final[dict[type[Type], bool]] = {TimestampNsType: False, TimestamptzNsType: True}


def parse_value(value_type: Type, json: Json, path: str = "$") -> Any:
    """The canonical value of a single-value JSON; None for null.

    Accepts what the reference implementation accepts (either letter case of hex, `Z` for the zero offset, optional
    seconds, digits beyond the precision cut towards zero) and a bare integer for float and double. Raises SpecError
    for the rest, for decimals beyond the precision and numbers beyond the range, and for any non-null value of a
    type without single values (unknown, variant, geometry, geography).
    """
    if json is None:
        return None
    if isinstance(value_type, StructType):
        return _parse_struct(value_type, json, path)
    if isinstance(value_type, ListType):
        if type(json) is not list:
            raise _misfit(value_type, json, path)
        return tuple(parse_value(value_type.element, item, f"{path}[{at}]") for at, item in enumerate(json))
    if isinstance(value_type, MapType):
        return _parse_map(value_type, json, path)
    parser = _PARSERS.get(type(value_type))
    if parser is None:
        raise SpecError(f"Values of type {value_type} can only be null: {describe(json)}", path)
    value = parser(value_type, json)
    if value is None:
        raise _misfit(value_type, json, path)
    return value


def check_uuid(text: str, path: str) -> None:
    """SpecError for what is no UUID of 36 characters, in either letter case."""
    if not _UUID.fullmatch(text):
        raise SpecError(f"Not a UUID: {describe(text)}", path)


def _misfit(value_type: Type, json: Json, path: str) -> SpecError:
    return SpecError(f"Cannot parse as a {value_type} value: {describe(json)}", path)


def _parse_struct(value_type: StructType, json: Json, path: str) -> tuple[Any, ...]:
    """By field id; a missing field is null, an unknown id is ignored."""
    if type(json) is not dict:
        raise _misfit(value_type, json, path)
    return tuple(
        parse_value(child.field_type, json.get(str(child.field_id)), f"{path}.{child.field_id}")
        for child in value_type.fields
    )


def _parse_map(value_type: MapType, json: Json, path: str) -> frozenset[tuple[Any, Any]]:
    """Parallel `keys` and `values`; keys are unique and not null."""
    keys, values = (json.get("keys"), json.get("values")) if type(json) is dict else (None, None)
    if type(keys) is not list or type(values) is not list or len(keys) != len(values):
        raise _misfit(value_type, json, path)
    parsed = [parse_value(value_type.key, key, f"{path}.keys[{at}]") for at, key in enumerate(keys)]
    if None in parsed or len(set(parsed)) != len(parsed):
        raise SpecError("Map keys must be unique and not null", f"{path}.keys")
    items = [parse_value(value_type.value, item, f"{path}.values[{at}]") for at, item in enumerate(values)]
    return frozenset(zip(parsed, items, strict=True))


def _boolean(_type: Type, json: Json) -> bool | None:
    return json if type(json) is bool else None


def _int32(_type: Type, json: Json) -> int | None:
    return json if type(json) is int and INT32_MIN <= json <= INT32_MAX else None


def _int64(_type: Type, json: Json) -> int | None:
    return json if type(json) is int and INT64_MIN <= json <= INT64_MAX else None


def _double(_type: Type, json: Json) -> float | None:
    if type(json) not in (int, float):
        return None
    try:
        value = float(json)
    except OverflowError:
        return None
    return value if value - value == 0 else None


def _float(value_type: Type, json: Json) -> float | None:
    value = _double(value_type, json)
    return None if value is None else _rounded_to_float32(value)


def _rounded_to_float32(value: float) -> float | None:
    """The nearest 32-bit float, None beyond their range."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return rounded


def _decimal(value_type: Type, json: Json) -> Decimal | None:
    assert isinstance(value_type, DecimalType)
    match = _BIG_DECIMAL.fullmatch(json) if type(json) is str else None
    if match is None or not (match[2] or match[3]):
        return None
    fraction = match[3] or ""
    digits = (match[2] + fraction).lstrip("0")
    if len(fraction) - int(match[4] or 0) != value_type.scale or len(digits) > value_type.precision:
        return None
    unscaled = int(digits or "0")
    return decimal_of(-unscaled if match[1] == "-" else unscaled, value_type.scale)


def _string(_type: Type, json: Json) -> str | None:
    return json if type(json) is str else None


def _uuid(_type: Type, json: Json) -> UUID | None:
    return UUID(json) if type(json) is str and _UUID.fullmatch(json) else None


def _binary(_type: Type, json: Json) -> bytes | None:
    return bytes.fromhex(json) if type(json) is str and _HEX.fullmatch(json) else None


def _fixed(value_type: Type, json: Json) -> bytes | None:
    assert isinstance(value_type, FixedType)
    value = _binary(value_type, json)
    return value if value is not None and len(value) == value_type.length else None


def _date(_type: Type, json: Json) -> int | None:
    days = parse_date(json) if type(json) is str else None
    return days if days is not None and INT32_MIN <= days <= INT32_MAX else None


def _time(_type: Type, json: Json) -> int | None:
    nanos = parse_time(json) if type(json) is str else None
    return None if nanos is None else nanos // 1000


def _micros(value_type: Type, json: Json) -> int | None:
    nanos = parse_timestamp(json, zoned=_MICROS_ZONED[type(value_type)]) if type(json) is str else None
    if nanos is None:
        return None
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    return micros if INT64_MIN <= micros <= INT64_MAX else None


def _nanos(value_type: Type, json: Json) -> int | None:
    nanos = parse_timestamp(json, zoned=_NANOS_ZONED[type(value_type)]) if type(json) is str else None
    return nanos if nanos is not None and INT64_MIN <= nanos <= INT64_MAX else None


_PARSERS: Final[dict[type[Type], Callable[[Any, Json], Any]]] = {
    BooleanType: _boolean,
    IntegerType: _int32,
    LongType: _int64,
    FloatType: _float,
    DoubleType: _double,
    DecimalType: _decimal,
    DateType: _date,
    TimeType: _time,
    TimestampType: _micros,
    TimestamptzType: _micros,
    TimestampNsType: _nanos,
    TimestamptzNsType: _nanos,
    StringType: _string,
    UuidType: _uuid,
    FixedType: _fixed,
    BinaryType: _binary,
}


def value_to_json(value_type: Type, value: Any) -> Json:
    """The single-value JSON of a canonical value: floats with a fraction, lower-case hex, all fraction digits.

    Raises SpecError for a type without single values; the value must be canonical for its type.
    """
    if value is None:
        return None
    match value_type:
        case StructType(fields=fields):
            pairs = zip(fields, value, strict=True)
            return {
                str(child.field_id): value_to_json(child.field_type, item) for child, item in pairs if item is not None
            }
        case ListType(element=element):
            return [value_to_json(element, item) for item in value]
        case MapType(key=key_type, value=item_type):
            entries = [(value_to_json(key_type, key), value_to_json(item_type, item)) for key, item in value]
            entries.sort(key=lambda entry: encode(entry[0]))
            return {"keys": [key for key, _ in entries], "values": [item for _, item in entries]}
        case BooleanType() | IntegerType() | LongType() | StringType():
            return value
        case FloatType():
            return _shortest_float32(value)
        case DoubleType():
            return float(value)
        case DecimalType(scale=scale):
            return f"{value:f}" if scale <= _MAX_PLAIN_SCALE else str(value)
        case DateType():
            return format_date(value)
        case TimeType():
            return format_time(value, digits=6)
        case TimestampType() | TimestamptzType():
            return format_timestamp(value, digits=6, zoned=isinstance(value_type, TimestamptzType))
        case TimestampNsType() | TimestamptzNsType():
            return format_timestamp(value, digits=9, zoned=isinstance(value_type, TimestamptzNsType))
        case UuidType():
            return str(value)
        case FixedType() | BinaryType():
            return value.hex()
    raise SpecError(f"Values of type {value_type} can only be null")


def _shortest_float32(value: float) -> float:
    """The double with the fewest digits that rounds to this 32-bit float: 0.1 rather than 0.10000000149011612."""
    candidates = (float(f"{value:.{digits}g}") for digits in _FLOAT32_DIGITS)
    return next(short for short in candidates if _rounded_to_float32(short) == value)


def equal_values(from_type: Type, from_json: Json, to_type: Type, to_json: Json) -> bool:
    """Whether two defaults mean the same value, the first one after promotion to `to_type`.

    Null and UNSET are equal. Float and double compare as 32-bit floats when the one was promoted to the other,
    because writers re-encode them differently. What is no value of its type equals only the very same JSON.
    """
    before = None if from_json is UNSET else from_json
    after = None if to_json is UNSET else to_json
    if before is None or after is None:
        return before is after
    try:
        promoted = promote_value(from_type, parse_value(from_type, before), to_type)
        current = parse_value(to_type, after)
    except SpecError:
        return encode(before) == encode(after)
    if isinstance(from_type, FloatType) and isinstance(to_type, DoubleType):
        current = _rounded_to_float32(current)
    if isinstance(promoted, float) and isinstance(current, float):
        return struct.pack("<d", promoted) == struct.pack("<d", current)
    return bool(promoted == current)
