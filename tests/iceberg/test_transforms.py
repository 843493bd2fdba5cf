"""Transforms and their hash."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError, ValidationFailed
from app.iceberg.transforms import (
    VOID,
    Transform,
    bucket,
    hash_value,
    murmur3,
    parse_transform,
    truncate,
)
from app.iceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    Type,
    parse_type,
)
from app.iceberg.values import parse_value
from tests.iceberg.strategies import INT32, LEAVES, TEXT, TRANSFORMS, typed_values


@given(st.binary(max_size=70))
def test_murmur3_agrees_with_the_reference_implementation(data: bytes) -> None:
    """Every length, tails included."""
    assert murmur3(data) == mmh3.hash(data)


SPEC_HASHES: list[tuple[str, Any, int]] = [
    ("int", 34, 2017239379),
    ("long", 34, 2017239379),
    ("decimal(9,2)", "14.20", -500754589),
    ("date", "2017-11-16", -653330422),
    ("time", "22:31:08", -662762989),
    ("timestamp", "2017-11-16T22:31:08", -2047944441),
    ("timestamp", "2017-11-16T22:31:08.000001", -1207196810),
    ("timestamptz", "2017-11-16T22:31:08+00:00", -2047944441),
    ("timestamptz", "2017-11-16T22:31:08.000001+00:00", -1207196810),
    ("timestamp_ns", "2017-11-16T22:31:08", -2047944441),
    ("timestamp_ns", "2017-11-16T22:31:08.000001001", -1207196810),
    ("timestamptz_ns", "2017-11-16T22:31:08+00:00", -2047944441),
    ("timestamptz_ns", "2017-11-16T22:31:08.000001001+00:00", -1207196810),
    ("string", "iceberg", 1210000089),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340),
    ("fixed[4]", "00010203", -188683207),
    ("binary", "00010203", -188683207),
    ("boolean", True, 1392991556),
    ("float", 1.0, -142385009),
    ("float", 0.0, 1669671676),
    ("float", -0.0, 1669671676),
    ("double", 1.0, -142385009),
    ("double", 0.0, 1669671676),
    ("double", -0.0, 1669671676),
]


@pytest.mark.parametrize(("type_string", "json", "expected"), SPEC_HASHES, ids=repr)
def test_hashes_of_the_spec(type_string: str, json: Any, expected: int) -> None:
    """The table of Appendix B."""
    value_type = parse_type(type_string)
    assert hash_value(value_type, parse_value(value_type, json)) == expected


def test_hash_notes_of_the_spec() -> None:
    """False hashes like 0, all NaN alike, and types without a hash say so."""
    assert hash_value(parse_type("boolean"), False) == murmur3(b"\x00" * 8)
    assert hash_value(DoubleType(), float("nan")) == murmur3(b"\x00\x00\x00\x00\x00\x00\xf8\x7f")
    assert hash_value(FloatType(), -float("nan")) == hash_value(DoubleType(), float("nan"))
    with pytest.raises(ValidationFailed):
        hash_value(parse_type("variant"), b"")


@given(INT32, st.integers(1, 2**31 - 1))
def test_promotion_of_an_int_keeps_its_bucket(value: int, buckets: int) -> None:
    """int and long hash alike, so bucketed columns may be promoted."""
    assert bucket(buckets).apply(IntegerType(), value) == bucket(buckets).apply(LongType(), value)


def test_promotion_of_a_date_changes_its_bucket() -> None:
    """2017-11-16 is in bucket 10 of 16 as a date and in bucket 6 as a timestamp."""
    days = parse_value(DateType(), "2017-11-16")
    micros = parse_value(TimestampType(), "2017-11-16T00:00:00")
    assert bucket(16).apply(DateType(), days) == 10
    assert bucket(16).apply(TimestampType(), micros) == 6


@given(TRANSFORMS)
def test_every_transform_reads_back(transform: Transform) -> None:
    """Printing and parsing a transform gives an equal one."""
    assert parse_transform(str(transform)) == transform


@pytest.mark.parametrize(
    ("text", "printed"),
    [("IDENTITY", "identity"), ("Bucket[16]", "bucket[16]"), ("truncate[020]", "truncate[20]"), ("Void", "void")],
)
def test_transforms_are_read_in_any_letter_case(text: str, printed: str) -> None:
    """They are written in lower case."""
    assert str(parse_transform(text)) == printed


@pytest.mark.parametrize(
    "text", ["", "years", "bucket", "bucket[]", "bucket[a]", "bucket[-1]", "bucket[ 16 ]", "zorder[3]", "year[3]", "x"]
)
def test_other_transforms_are_kept_as_unknown(text: str) -> None:
    """Readers must ignore, not refuse, transforms that they do not know."""
    unknown = parse_transform(text)
    assert unknown.is_unknown
    assert str(unknown) == text
    assert unknown.accepts(parse_type("variant"))
    assert unknown.result_type(IntegerType()) == StringType()
    with pytest.raises(ValidationFailed):
        unknown.apply(IntegerType(), 5)


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[2147483648]", "truncate[99999999999999999999]"])
def test_impossible_widths_are_refused(text: str) -> None:
    """No reader could load a spec with zero buckets; the fault names its path (O-14)."""
    with pytest.raises(SpecError) as caught:
        parse_transform(text, "$.fields[0].transform")
    assert caught.value.path == "$.fields[0].transform"
    for build in (bucket, truncate):
        with pytest.raises(SpecError):
            build(0)


@given(TEXT)
def test_any_text_is_a_transform_or_a_spec_error(text: str) -> None:
    """The parser never fails in another way."""
    try:
        assert parse_transform(str(parse_transform(text))) == parse_transform(text)
    except SpecError:
        assert "[" in text


ALL = {
    "boolean", "int", "long", "float", "double", "decimal(9, 2)", "date", "time", "timestamp", "timestamptz",
    "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[4]", "binary", "unknown", "variant", "geometry",
    "geography",
}  # fmt: skip
MOMENTS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
SOURCES = {
    "identity": ALL - {"variant", "geometry", "geography"},
    "bucket[4]": ALL - {"boolean", "float", "double", "unknown", "variant", "geometry", "geography"},
    "truncate[4]": {"int", "long", "decimal(9, 2)", "string", "binary"},
    "year": MOMENTS | {"date"},
    "month": MOMENTS | {"date"},
    "day": MOMENTS | {"date"},
    "hour": MOMENTS,
    "void": ALL,
}


@pytest.mark.parametrize("text", SOURCES)
def test_source_types_of_the_spec(text: str) -> None:
    """The table of partition transforms; nested types are no sources of any but void."""
    transform = parse_transform(text)
    assert {name for name in ALL if transform.accepts(parse_type(name))} == SOURCES[text]
    nested = parse_type({"type": "list", "element-id": 1, "element": "int", "element-required": False})
    assert transform.accepts(nested) == transform.is_void


def test_result_types_of_the_spec() -> None:
    """Source type, int or date."""
    assert parse_transform("identity").result_type(DoubleType()) == DoubleType()
    assert truncate(3).result_type(DecimalType(9, 2)) == DecimalType(9, 2)
    assert bucket(3).result_type(StringType()) == IntegerType()
    assert parse_transform("day").result_type(TimestampType()) == DateType()
    assert parse_transform("month").result_type(DateType()) == IntegerType()
    assert VOID.result_type(StringType()) == StringType()


@given(TRANSFORMS.filter(lambda transform: not transform.is_unknown), LEAVES)
def test_null_stays_null(transform: Transform, source: Type) -> None:
    """Every transform maps null to null, for the types it accepts, and refuses the others."""
    if transform.accepts(source):
        assert transform.apply(source, None) is None
    else:
        with pytest.raises(ValidationFailed):
            transform.apply(source, None)


@given(typed_values(), st.integers(1, 1000))
def test_buckets_are_in_range_and_truncation_is_stable(typed: tuple[Type, Any], width: int) -> None:
    """A bucket is 0..N-1; truncating twice is truncating once and never goes up."""
    value_type, value = typed
    if bucket(width).accepts(value_type):
        assert 0 <= bucket(width).apply(value_type, value) < width
    if truncate(width).accepts(value_type):
        once = truncate(width).apply(value_type, value)
        assert truncate(width).apply(value_type, once) == once
        assert once <= value
    assert VOID.apply(value_type, value) is None


@pytest.mark.parametrize(
    ("type_string", "width", "value", "expected"),
    [
        ("int", 10, 1, 0),
        ("int", 10, -1, -10),
        ("long", 10, 15, 10),
        ("decimal(9,2)", 50, Decimal("10.65"), Decimal("10.50")),
        ("decimal(9,2)", 50, Decimal("-0.01"), Decimal("-0.50")),
        ("string", 3, "iceberg", "ice"),
        ("string", 2, "𝒳yz", "𝒳y"),
        ("binary", 3, b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
    ],
)
def test_truncation_examples_of_the_spec(type_string: str, width: int, value: Any, expected: Any) -> None:
    """Remainders are positive, strings are cut by code points."""
    assert truncate(width).apply(parse_type(type_string), value) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_time_transforms_agree_with_python(moment: datetime) -> None:
    """Years, months, days and hours from 1970, before it as well, whatever the unit of the source."""
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds
    day = (moment.date() - date(1970, 1, 1)).days
    expected = {
        "year": moment.year - 1970,
        "month": (moment.year - 1970) * 12 + moment.month - 1,
        "day": day,
        "hour": day * 24 + moment.hour,
    }
    for name, result in expected.items():
        assert parse_transform(name).apply(TimestampType(), micros) == result
        assert parse_transform(name).apply(TimestampNsType(), micros * 1000 + 999) == result
        if name != "hour":
            assert parse_transform(name).apply(DateType(), day) == result


def test_identity_gives_the_value_itself() -> None:
    """Of any primitive type."""
    value = UUID(int=5)
    assert parse_transform("identity").is_identity
    assert parse_transform("identity").apply(parse_type("uuid"), value) is value
