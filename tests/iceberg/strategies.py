"""Hypothesis strategies for types, fields, schemas, specs and orders, unknown extra keys included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from app.iceberg.decimals import decimal_of
from app.iceberg.json.codec import NO_EXTRA
from app.iceberg.partition import PartitionField, PartitionSpec
from app.iceberg.schema import Schema
from app.iceberg.sort import Direction, NullOrder, SortField, SortOrder
from app.iceberg.transforms import Transform, bucket, parse_transform, truncate
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

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
EXTRA: st.SearchStrategy[Mapping[str, Any]] = st.just(NO_EXTRA) | st.dictionaries(
    TEXT.map(lambda text: f"x-{text}"), JSON_VALUES, min_size=1, max_size=2
)

DECIMALS = st.builds(DecimalType, st.integers(1, 38), st.integers(0, 38))
CRS = st.sampled_from(["OGC:CRS84", "EPSG:4326", "srid:0", "projjson:prop"])
VALUED_PRIMITIVES: st.SearchStrategy[Type] = st.one_of(
    st.sampled_from(
        [
            BooleanType(),
            IntegerType(),
            LongType(),
            FloatType(),
            DoubleType(),
            DateType(),
            TimeType(),
            TimestampType(),
            TimestamptzType(),
            TimestampNsType(),
            TimestamptzNsType(),
            StringType(),
            UuidType(),
            BinaryType(),
        ]
    ),
    DECIMALS,
    st.builds(FixedType, st.integers(0, 20)),
)
GEO: st.SearchStrategy[Type] = st.builds(GeometryType, CRS) | st.builds(
    GeographyType, CRS, st.sampled_from(["spherical", "vincenty", "thomas", "andoyer", "karney"])
)
PRIMITIVES: st.SearchStrategy[Type] = VALUED_PRIMITIVES | GEO | st.just(UnknownType())
LEAVES: st.SearchStrategy[Type] = PRIMITIVES | st.just(VariantType())


def defaults(field_type: Type) -> st.SearchStrategy[Any]:
    """Any kept JSON: float types never hold a bare integer, nothing holds null."""
    values = JSON_VALUES.filter(lambda value: value is not None)
    if isinstance(field_type, FloatType | DoubleType):
        values = values.filter(lambda value: type(value) is not int)
    return st.just(UNSET) | values


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Type:
    """Any type; ids and names inside may collide, which only a schema minds."""
    if depth == 0:
        return draw(LEAVES)
    match draw(st.integers(0, 5)):
        case 0:
            return StructType(tuple(draw(st.lists(fields(depth - 1), max_size=3))), draw(EXTRA))
        case 1:
            return ListType(draw(INT32), draw(types(depth - 1)), draw(st.booleans()), draw(EXTRA))
        case 2:
            key, value = draw(types(depth - 1)), draw(types(depth - 1))
            return MapType(draw(INT32), key, draw(INT32), value, draw(st.booleans()), draw(EXTRA))
        case _:
            return draw(LEAVES)


@st.composite
def fields(draw: st.DrawFn, depth: int = 2) -> NestedField:
    field_type = draw(types(depth))
    return NestedField(
        draw(INT32),
        draw(TEXT),
        draw(st.booleans()),
        field_type,
        draw(st.none() | TEXT),
        draw(defaults(field_type)),
        draw(defaults(field_type)),
        draw(EXTRA),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A loadable schema: ids and names made unique, unknown columns optional, some legal identifier fields."""
    ids = iter(draw(st.lists(INT32, unique=True, min_size=60, max_size=60)))
    drawn = draw(st.lists(fields(), max_size=5))

    def sound(field: NestedField, at: int) -> NestedField:
        required = field.required and not isinstance(field.field_type, UnknownType)
        name = f"{field.name.replace('.', '_')}{at}"
        return NestedField(
            next(ids),
            name,
            required,
            sound_type(field.field_type),
            field.doc,
            field.initial_default,
            field.write_default,
            field.extra,
        )

    def sound_type(old: Type) -> Type:
        match old:
            case StructType():
                return StructType(tuple(sound(child, at) for at, child in enumerate(old.fields)), old.extra)
            case ListType():
                required = old.element_required and not isinstance(old.element, UnknownType)
                return ListType(next(ids), sound_type(old.element), required, old.extra)
            case MapType():
                key = StringType() if isinstance(old.key, UnknownType) else sound_type(old.key)
                required = old.value_required and not isinstance(old.value, UnknownType)
                return MapType(next(ids), key, next(ids), sound_type(old.value), required, old.extra)
        return old

    columns = tuple(sound(field, at) for at, field in enumerate(drawn))
    eligible = [
        column.field_id
        for column in columns
        if column.required and isinstance(column.field_type, IntegerType | StringType | DateType | UuidType)
    ]
    chosen = draw(st.lists(st.sampled_from(eligible), unique=True)) if eligible else []
    return Schema(draw(INT32), columns, tuple(chosen), draw(EXTRA))


TRANSFORMS: st.SearchStrategy[Transform] = st.one_of(
    st.sampled_from(["identity", "year", "month", "day", "hour", "void"]).map(parse_transform),
    st.integers(1, 2**31 - 1).map(bucket),
    st.integers(1, 2**31 - 1).map(truncate),
    TEXT.map(lambda text: parse_transform(f"zorder-{text}")),
)
SOURCES = st.lists(INT32, min_size=1, max_size=3).map(tuple)


@st.composite
def partition_specs(draw: st.DrawFn) -> PartitionSpec:
    names = draw(st.lists(TEXT.filter(bool), unique=True, max_size=4))
    parts = tuple(PartitionField(draw(SOURCES), draw(INT32), name, draw(TRANSFORMS), draw(EXTRA)) for name in names)
    return PartitionSpec(draw(INT32), parts, draw(EXTRA))


@st.composite
def sort_orders(draw: st.DrawFn) -> SortOrder:
    directions: tuple[Direction, ...] = ("asc", "desc")
    null_orders: tuple[NullOrder, ...] = ("nulls-first", "nulls-last")
    ways = st.tuples(st.sampled_from(directions), st.sampled_from(null_orders))
    parts = tuple(
        SortField(draw(SOURCES), draw(TRANSFORMS), direction, nulls, draw(EXTRA))
        for direction, nulls in draw(st.lists(ways, max_size=3))
    )
    return SortOrder(draw(INT32.filter(bool)) if parts else 0, parts, draw(EXTRA))


@st.composite
def values(draw: st.DrawFn, value_type: Type) -> Any:
    """A canonical value of a primitive type that has values."""
    match value_type:
        case BooleanType():
            return draw(st.booleans())
        case IntegerType() | DateType():
            return draw(INT32)
        case LongType() | TimestampType() | TimestamptzType() | TimestampNsType() | TimestamptzNsType():
            return draw(INT64)
        case TimeType():
            return draw(st.integers(0, 86_400_000_000 - 1))
        case FloatType():
            return draw(st.floats(width=32, allow_nan=False, allow_infinity=False))
        case DoubleType():
            return draw(st.floats(allow_nan=False, allow_infinity=False))
        case DecimalType(precision=precision, scale=scale):
            unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
            return decimal_of(unscaled, scale)
        case StringType():
            return draw(TEXT)
        case UuidType():
            return draw(st.uuids())
        case FixedType(length=length):
            return draw(st.binary(min_size=length, max_size=length))
        case BinaryType():
            return draw(st.binary(max_size=20))
    raise AssertionError(value_type)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Type, Any]:
    value_type = draw(VALUED_PRIMITIVES)
    return value_type, draw(values(value_type))
