"""Type strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.spec.primitives import (
    BinaryType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    StringType,
    TimestampNsType,
    Type,
    VariantType,
    is_primitive,
    min_format_version,
    parse_type_string,
)
from tests.spec.strategies import LEAVES


@given(LEAVES)
def test_every_type_string_reads_back(leaf: Type) -> None:
    """Printing a type and parsing the print gives an equal type with an equal hash."""
    again = parse_type_string(str(leaf))
    assert again == leaf
    assert hash(again) == hash(leaf)
    assert type(again) is type(leaf)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("decimal(9,2)", "decimal(9, 2)"),
        ("decimal( 9 , 2 )", "decimal(9, 2)"),
        ("DECIMAL(38, 0)", "decimal(38, 0)"),
        ("decimal(3,9)", "decimal(3, 9)"),
        ("decimal(009, 02)", "decimal(9, 2)"),
        ("fixed[ 16 ]", "fixed[16]"),
        ("fixed[0]", "fixed[0]"),
        ("INT", "int"),
        ("Timestamptz_NS", "timestamptz_ns"),
        ("geometry", "geometry(OGC:CRS84)"),
        ("geometry( srid:4326 )", "geometry(srid:4326)"),
        ("Geometry(EPSG:4326)", "geometry(EPSG:4326)"),
        ("geometry('OGC:CRS84')", "geometry('OGC:CRS84')"),
        ("geography", "geography(OGC:CRS84, spherical)"),
        ("geography(srid:4326)", "geography(srid:4326, spherical)"),
        ("geography( srid:4326 , KARNEY )", "geography(srid:4326, karney)"),
    ],
)
def test_type_strings_are_read_leniently_and_printed_in_one_form(text: str, printed: str) -> None:
    """Letter case, blanks and left-out parameters do not matter; the print is that of the reference implementation."""
    assert str(parse_type_string(text)) == printed
    assert parse_type_string(text) == parse_type_string(printed)


@pytest.mark.parametrize(
    "text",
    [
        "", "integer", "int ", " int", "decimal", "decimal()", "decimal(9)", "decimal(39,2)", "decimal(0,0)",
        "decimal(9,-2)", "decimal(-9,2)", "decimal(9.0,2)", "decimal(9,99999999999)", "decimal(9,2)x", "fixed",
        "fixed[]", "fixed[-1]", "fixed(16)", "fixed[2147483648]", "fixed[99999999999999999999]", "geometry()",
        "geometry( )", "geography()", "geography(, spherical)", "geography(c, euclid)", "geography(c, )",
        "list<int>", "struct", "timestamp_ms", "decimal(٩,٢)",
    ],
)  # fmt: skip
def test_what_no_reader_knows_is_refused(text: str) -> None:
    """Unknown names and impossible parameters are SpecErrors, twice alike (nothing bad is remembered)."""
    for _ in range(2):
        with pytest.raises(SpecError):
            parse_type_string(text)


@given(st.text(max_size=30))
def test_any_text_is_a_type_or_a_spec_error(text: str) -> None:
    """The parser of type strings never fails in another way."""
    try:
        parsed = parse_type_string(text)
    except SpecError:
        return
    assert parse_type_string(str(parsed)) == parsed


def test_types_with_parameters_check_them() -> None:
    """A decimal or fixed that cannot be loaded cannot be built."""
    for precision, scale in ((0, 0), (39, 0), (9, -1)):
        with pytest.raises(SpecError):
            DecimalType(precision, scale)
    with pytest.raises(SpecError):
        FixedType(-1)
    with pytest.raises(SpecError):
        GeographyType("OGC:CRS84", "flat")


def test_simple_types_are_interned() -> None:
    """Parsing the same type string twice gives the very same object."""
    for text in ("int", "variant", "decimal(9, 2)", "fixed[16]"):
        assert parse_type_string(text) is parse_type_string(text)


def test_coordinate_systems_compare_without_letter_case() -> None:
    """ogc:crs84 is OGC:CRS84, as the reference implementation has it; the spelling is kept."""
    assert GeometryType("ogc:crs84") == GeometryType()
    assert hash(GeometryType("ogc:crs84")) == hash(GeometryType())
    assert GeographyType("ogc:crs84") == GeographyType()
    assert hash(GeographyType("ogc:crs84")) == hash(GeographyType())
    assert str(GeometryType("ogc:crs84")) == "geometry(ogc:crs84)"
    assert (GeometryType("ogc:crs84") != GeometryType()) is False
    assert (GeographyType("ogc:crs84") != GeographyType()) is False
    assert GeographyType(algorithm="karney") != GeographyType()
    assert GeometryType() != StringType()


def test_distinct_types_differ() -> None:
    """Types without parameters are not equal just because they have none."""
    assert len({IntegerType(), LongType(), StringType(), BinaryType(), VariantType(), IntegerType()}) == 5
    assert DecimalType(9, 2) != DecimalType(9, 3)


def test_format_versions_of_types() -> None:
    """Nanosecond timestamps, unknown, variant and the geospatial types came with version 3."""
    late = {"timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"}
    early = {"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid",
             "binary", "decimal(9, 2)", "fixed[4]"}  # fmt: skip
    assert {text for text in late | early if min_format_version(parse_type_string(text)) == 3} == late
    assert is_primitive(TimestampNsType())
    assert not is_primitive(VariantType())


def test_a_type_string_has_a_limit_that_its_refusal_names() -> None:
    """Coordinate reference systems may be defined in full; a megabyte of anything is no type."""
    assert parse_type_string(f"geometry({'c' * 10_000})") == GeometryType("c" * 10_000)
    with pytest.raises(SpecError, match=r"has 200012 characters, and 16384 are allowed"):
        parse_type_string("geography(" + " " * 200_000 + "c)")


def test_long_type_strings_are_not_remembered() -> None:
    """What is kept of the strings that clients choose is short."""
    text = f"geometry({'d' * 1_000})"
    assert parse_type_string(text) is not parse_type_string(text)
