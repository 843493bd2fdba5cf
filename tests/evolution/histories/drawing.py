"""Random types, values and fields. `Draw` is a `random.Random` or Hypothesis' shrinking stand-in for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from app.iceberg.decimals import decimal_of
from app.iceberg.schema import Schema
from app.iceberg.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
    parse_type,
)
from app.iceberg.values import value_to_json
from tests.evolution.tables import Json, field, list_of, map_of, struct
from tests.projection.parquet_files import Row

Draw = random.Random

OLD_TYPES = (
    "int",
    "int",
    "long",
    "float",
    "float",
    "double",
    "decimal(9, 2)",
    "decimal(12, 2)",
    "decimal(12, 4)",
    "date",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[16]",
    "fixed[3]",
    "binary",
    "boolean",
)
NEW_TYPES = (
    "timestamp_ns",
    "timestamptz_ns",
    "unknown",
    "variant",
    "geometry(OGC:CRS84)",
    "geography(OGC:CRS84, spherical)",
)
KEY_TYPES = ("int", "string", "date", "decimal(9, 2)", "long")
NULL_ONLY = ("unknown", "variant", "geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)")
DAYS = 100_000
"""Dates stay where every timestamp type can follow: beyond that readers must fail, which is no misreading."""

NewId = Callable[[], int]


def chance(draw: Draw, percent: int) -> bool:
    return draw.randrange(100) < percent


def primitive(draw: Draw, version: int) -> str:
    return draw.choice(NEW_TYPES if version >= 3 and chance(draw, 25) else OLD_TYPES)


def any_type(draw: Draw, version: int, new_id: NewId, name: Callable[[], str], depth: int = 2) -> Any:
    """A type in JSON form with fresh ids inside. Unknown columns occur as fields of structs only: nothing else has a
    place for them in a file."""
    kind = draw.randrange(10) if depth else 9
    if kind == 0:
        count = draw.randint(1, 3)
        fields = [any_field(draw, version, new_id, name, depth - 1) for _ in range(count)]
        if all(f["type"] == "unknown" for f in fields):
            fields[0]["type"] = "int"
        return struct(*fields)
    if kind == 1:
        element = stored_type(draw, version, new_id, name, depth - 1)
        return list_of(new_id(), element, chance(draw, 30))
    if kind == 2:
        key_id, value_id = new_id(), new_id()
        key: Any = draw.choice(KEY_TYPES)
        if chance(draw, 15):
            key = struct(field(new_id(), name(), "int", True), field(new_id(), name(), "string", chance(draw, 50)))
        return map_of(key_id, key, value_id, stored_type(draw, version, new_id, name, depth - 1), chance(draw, 30))
    return primitive(draw, version)


def stored_type(draw: Draw, version: int, new_id: NewId, name: Callable[[], str], depth: int) -> Any:
    kind = any_type(draw, version, new_id, name, depth)
    return "string" if kind == "unknown" else kind


def any_field(draw: Draw, version: int, new_id: NewId, name: Callable[[], str], depth: int = 2) -> Json:
    field_id = new_id()
    kind = any_type(draw, version, new_id, name, depth)
    return field(field_id, name(), kind, kind != "unknown" and chance(draw, 35))


def default_for(draw: Draw, kind: Any) -> Any:
    """A default in JSON form, None where the type has none but null."""
    if not isinstance(kind, str) or kind in NULL_ONLY:
        return None
    parsed = parse_type(kind)
    return value_to_json(parsed, value(draw, parsed))


_EDGES: dict[str, Sequence[Any]] = {
    "int": (0, 1, -1, 2**31 - 1, -(2**31)),
    "long": (0, 7, 2**63 - 1, -(2**63)),
    "float": (0.5, -2.0, 1.5, 1024.25),
    "double": (0.25, -1e300, 3.5),
    "date": (1, -1, 17486, DAYS, -DAYS),
    "time": (0, 86_399_999_999, 1),
    "boolean": (True, False),
    "string": ("", "a", "ü.x", "zz"),
    "binary": (b"", b"a", b"\xff\0"),
}


def value(draw: Draw, kind: Type) -> Any:
    """A canonical value of a type that files store."""
    edges = _EDGES.get(str(kind))
    if edges is not None:
        return draw.choice(edges)
    match kind:
        case DecimalType(precision=precision, scale=scale):
            return decimal_of(draw.choice((0, 1420, -5, 10**precision - 1)), scale)
        case FixedType(length=length):
            return bytes([draw.randrange(256)]) * length
        case UuidType():
            return UUID(int=draw.choice((1, 2**127 + 5)))
        case VariantType():
            return {"metadata": b"\x01\0\0", "value": draw.choice((b"\x0c\x01", b"\0"))}
        case GeometryType() | GeographyType():
            return draw.choice((b"\x01\x01", b"wkb"))
    return draw.choice((0, -1, 10**15, 2 * 10**17))


def row(draw: Draw, fields: Sequence[NestedField], null_from: int | None) -> Row:
    """A row, or the inside of a struct. What may be null is null from this depth on, and nothing above it; without a
    depth, anything may be."""
    return {f.field_id: _filled(draw, f, null_from) for f in fields}


def _filled(draw: Draw, column: NestedField, null_from: int | None) -> Any:
    kind = column.field_type
    if isinstance(kind, UnknownType):
        return None
    if column.optional and (null_from == 0 or (null_from is None and chance(draw, 30))):
        return None
    inner = None if null_from is None else null_from - 1
    match kind:
        case StructType(fields=fields):
            return row(draw, fields, inner)
        case ListType():
            count = 1 if null_from is not None else draw.randint(0, 2)
            return [_filled(draw, kind.element_field, inner) for _ in range(count)]
        case MapType():
            return [(_filled(draw, kind.key_field, _NEVER), _filled(draw, kind.value_field, inner))]
    return value(draw, kind)


_NEVER = 1000


def rows(draw: Draw, schema: Schema) -> list[Row]:
    """Rows that show every fault: nothing null, everything null from each depth on, and whatever comes."""
    return [row(draw, schema.fields, null_from) for null_from in (_NEVER, *range(_depth(schema.fields)), None)]


def _depth(fields: Sequence[NestedField]) -> int:
    return max((1 + _depth(_children(f.field_type)) for f in fields), default=0)


def _children(kind: Type) -> Sequence[NestedField]:
    match kind:
        case StructType(fields=fields):
            return fields
        case ListType():
            return (kind.element_field,)
        case MapType():
            return (kind.key_field, kind.value_field)
    return ()


def storable(schema: Schema) -> bool:
    """Whether Parquet can hold it: it has a column, and no struct without any that is stored."""
    structs = [
        schema.fields,
        *(f.field_type.fields for f in schema.by_id.values() if isinstance(f.field_type, StructType)),
    ]
    return all(any(not isinstance(f.field_type, UnknownType) for f in fields) for fields in structs)
