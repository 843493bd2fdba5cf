"""Which stored types can be read as which."""

from __future__ import annotations

from hypothesis import given

from app.errors import SpecError
from app.evolution.engine.promotion import promotable
from app.iceberg.promotion import promote_value
from app.iceberg.types import (
    BinaryType,
    FixedType,
    GeographyType,
    GeometryType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
    parse_type,
)
from app.projection.widening import readable
from tests.iceberg.strategies import LEAVES


@given(LEAVES)
def test_every_type_reads_as_itself(stored: Type) -> None:
    """Files written under the present schema are always readable."""
    assert readable(stored, stored)


@given(LEAVES, LEAVES)
def test_what_may_change_is_what_can_be_read(stored: Type, wanted: Type) -> None:
    """Rules and reader say each for itself which promotions there are; version 3 knows all of them. The reader takes
    plain bytes for a uuid or a shape as well."""
    loose = (stored == FixedType(16) and isinstance(wanted, UuidType)) or (
        stored == BinaryType() and isinstance(wanted, (GeometryType, GeographyType))
    )
    if stored != wanted and not loose:
        assert readable(stored, wanted) == promotable(stored, wanted, 3)


@given(LEAVES, LEAVES)
def test_what_can_be_read_can_be_promoted(stored: Type, wanted: Type) -> None:
    """Single values follow the same promotions; null follows from unknown."""
    if isinstance(stored, (UnknownType, VariantType, GeometryType, GeographyType)) or stored == wanted:
        return
    if isinstance(wanted, (UuidType, GeometryType, GeographyType)):
        return
    try:
        promote_value(stored, 0, wanted)
    except SpecError:
        assert not readable(stored, wanted)
    else:
        assert readable(stored, wanted)


def test_all_pairs_of_types() -> None:
    """The whole table, for the types without parameters and some with."""
    names = [
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "binary",
        "fixed[16]",
        "fixed[8]",
        "decimal(9, 2)",
        "decimal(12, 2)",
        "decimal(12, 4)",
        "variant",
        "geometry(OGC:CRS84)",
        "geography(OGC:CRS84, spherical)",
    ]
    legal = {
        ("int", "long"),
        ("float", "double"),
        ("decimal(9, 2)", "decimal(12, 2)"),
        ("date", "timestamp"),
        ("date", "timestamp_ns"),
        ("fixed[16]", "uuid"),
        ("binary", "geometry(OGC:CRS84)"),
        ("binary", "geography(OGC:CRS84, spherical)"),
    }
    found = {(a, b) for a in names for b in names if a != b and readable(parse_type(a), parse_type(b))}
    assert found == legal
