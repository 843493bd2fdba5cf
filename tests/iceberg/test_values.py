"""Single values as JSON, and equality of defaults."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from app.errors import SpecError
from app.iceberg.json.codec import decode, encode
from app.iceberg.types import (
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    parse_type,
)
from app.iceberg.values import equal_values, parse_value, value_to_json
from tests.iceberg.strategies import JSON_VALUES, LEAVES, VALUED_PRIMITIVES, typed_values, types

POINT = StructType(
    (NestedField(13, "x", False, IntegerType()), NestedField(14, "y", False, ListType(15, StringType(), False)))
)


@given(typed_values())
def test_every_value_reads_back(typed: tuple[Type, Any]) -> None:
    """Writing a canonical value and parsing it, through JSON text, gives the same value."""
    value_type, value = typed
    again = parse_value(value_type, decode(encode(value_to_json(value_type, value))))
    assert again == value
    assert type(again) is type(value)
    assert equal_values(value_type, value_to_json(value_type, value), value_type, value_to_json(value_type, again))


@given(types(), JSON_VALUES)
def test_any_json_is_a_value_or_a_spec_error(any_type: Type, json: Any) -> None:
    """The parser never fails in another way, and what it takes can be written and read again."""
    try:
        value = parse_value(any_type, json)
    except SpecError:
        return
    assert parse_value(any_type, value_to_json(any_type, value)) == value


@given(VALUED_PRIMITIVES, st.text(max_size=40))
def test_any_text_is_a_value_or_a_spec_error(value_type: Type, text: str) -> None:
    """Strings, the form of most types, included."""
    try:
        value = parse_value(value_type, text)
    except SpecError:
        return
    assert parse_value(value_type, value_to_json(value_type, value)) == value


ACCEPTED: list[tuple[str, Any, Any, Any]] = [
    ("boolean", True, True, True),
    ("int", -34, -34, -34),
    ("int", 2**31 - 1, 2**31 - 1, 2**31 - 1),
    ("long", -(2**63), -(2**63), -(2**63)),
    ("float", 1.0, 1.0, 1.0),
    ("float", 1, 1.0, 1.0),
    ("float", 0.1, 0.10000000149011612, 0.1),
    ("double", 1, 1.0, 1.0),
    ("double", 1e300, 1e300, 1e300),
    ("decimal(9,2)", "14.20", Decimal("14.20"), "14.20"),
    ("decimal(9,2)", "+014.20", Decimal("14.20"), "14.20"),
    ("decimal(9,2)", "1420e-2", Decimal("14.20"), "14.20"),
    ("decimal(9,2)", "-.50", Decimal("-0.50"), "-0.50"),
    ("decimal(9,2)", "1234567.89", Decimal("1234567.89"), "1234567.89"),
    ("decimal(9,0)", "5.", Decimal(5), "5"),
    ("decimal(3,9)", "0.000000123", Decimal("1.23E-7"), "0.000000123"),
    ("date", "2017-11-16", 17486, "2017-11-16"),
    ("date", "1969-12-31", -1, "1969-12-31"),
    ("date", "+10000-01-01", 2932897, "+10000-01-01"),
    ("time", "22:31:08.123456", 81068123456, "22:31:08.123456"),
    ("time", "22:31", 81060000000, "22:31:00.000000"),
    ("time", "22:31:08.1234567", 81068123456, "22:31:08.123456"),
    ("timestamp", "2017-11-16T22:31:08.123456", 1510871468123456, "2017-11-16T22:31:08.123456"),
    ("timestamp", "2017-11-16T22:31:08", 1510871468000000, "2017-11-16T22:31:08.000000"),
    ("timestamp", "1969-12-31T23:59:59.9999999", 0, "1970-01-01T00:00:00.000000"),
    ("timestamptz", "2017-11-16T22:31:08.1Z", 1510871468100000, "2017-11-16T22:31:08.100000+00:00"),
    ("timestamptz", "2017-11-16T22:31:08.100000+00:00", 1510871468100000, "2017-11-16T22:31:08.100000+00:00"),
    ("timestamp_ns", "2017-11-16T22:31:08.123456789", 1510871468123456789, "2017-11-16T22:31:08.123456789"),
    ("timestamptz_ns", "1970-01-01T00:00Z", 0, "1970-01-01T00:00:00.000000000+00:00"),
    ("string", "iceberg", "iceberg", "iceberg"),
    ("string", "", "", ""),
    ("uuid", "F79C3E09-677C-4bbd-a479-3f349cb785e7", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
     "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("fixed[4]", "000102FF", b"\x00\x01\x02\xff", "000102ff"),
    ("fixed[0]", "", b"", ""),
    ("binary", "000102fF", b"\x00\x01\x02\xff", "000102ff"),
]  # fmt: skip


@pytest.mark.parametrize(("type_string", "json", "value", "written"), ACCEPTED, ids=repr)
def test_accepted_values(type_string: str, json: Any, value: Any, written: Any) -> None:
    """What the reference implementation reads is read, and written in the canonical form."""
    value_type = parse_type(type_string)
    parsed = parse_value(value_type, json)
    assert parsed == value
    assert type(parsed) is type(value)
    assert encode(value_to_json(value_type, parsed)) == encode(written)


REFUSED: list[tuple[str, list[Any]]] = [
    ("boolean", [0, 1, "true", [], {}]),
    ("int", ["34", 34.0, True, 2**31, -(2**31) - 1, [1]]),
    ("long", ["34", 34.0, False, 2**63, -(2**63) - 1]),
    ("float", ["1.0", True, 1e300, 10**400, "NaN"]),
    ("double", ["1.0", False, 10**400]),
    ("decimal(9,2)", ["14.2", "14.200", "14", 14.2, 14, "12345678.90", "", ".", "1.2.3", "1e", "0x1.00", " 1.00",
                      "1_0.00", "NaN", "١٤.٢٠", "1" * 5000 + ".00", "1.00e99999999999"]),
    ("decimal(9,0)", ["2E+20", "-2E+1"]),
    ("date", ["2017-13-01", "2017-02-30", 17486, "2017-11-16T00:00", "+999999999-01-01", "-999999999-01-01"]),
    ("time", ["24:00:00", "22:31:08Z", 5, "22:31:08.1234567890"]),
    ("timestamp", ["2017-11-16T22:31:08Z", "2017-11-16 22:31:08", 5, "2017-11-16", "+300000-01-01T00:00:00"]),
    ("timestamptz", ["2017-11-16T22:31:08", "2017-11-16T22:31:08-08:00", "2017-11-16T22:31:08+00:00[UTC]"]),
    ("timestamp_ns", ["2262-04-12T00:00:00", "1677-09-21T00:00:00", "2017-11-16T22:31:08Z"]),
    ("timestamptz_ns", ["2262-04-12T00:00:00Z", "2017-11-16T22:31:08-08:00"]),
    ("string", [1, True, ["a"]]),
    ("uuid", ["f79c3e09677c4bbda4793f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e", "g" * 36,
              "{f79c3e09-677c-4bbd-a479-3f349cb785}", 5]),
    ("fixed[4]", ["0001", "000102fg", "00 01 02", "0001020304", 5]),
    ("binary", ["0", "zz", "0 ", 5]),
    ("unknown", ["x", 0, False]),
    ("variant", ["x", {}]),
    ("geometry", ["POINT (30 10)"]),
    ("geography", ["POINT (30 10)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("type_string", "json"), [(name, json) for name, many in REFUSED for json in many], ids=lambda part: repr(part)[:40]
)
def test_refused_values(type_string: str, json: Any) -> None:
    """Other kinds, ranges, scales, precisions, zones and lengths are SpecErrors that name the path."""
    with pytest.raises(SpecError) as caught:
        parse_value(parse_type(type_string), json, "$.initial-default")
    assert caught.value.path == "$.initial-default"


@given(LEAVES)
def test_null_is_a_value_of_every_type(value_type: Type) -> None:
    """Absent defaults are null for all types, also for those without other values."""
    assert parse_value(value_type, None) is None
    assert value_to_json(value_type, None) is None


def test_types_without_values_are_not_written() -> None:
    """There is no JSON for a variant, geometry or unknown value."""
    for name in ("variant", "geometry", "geography", "unknown"):
        with pytest.raises(SpecError):
            value_to_json(parse_type(name), "POINT (30 10)")


def test_struct_values_are_keyed_by_field_id() -> None:
    """Missing fields are null, unknown ids are ignored, null fields are not written."""
    value = parse_value(POINT, {"13": 1, "99": "?"})
    assert value == (1, None)
    assert value_to_json(POINT, value) == {"13": 1}
    assert value_to_json(POINT, parse_value(POINT, {"13": 2, "14": ["a", None]})) == {"13": 2, "14": ["a", None]}
    assert parse_value(POINT, {}) == (None, None)
    wrongs: tuple[Any, ...] = ([], "x", {"13": "1"}, {"14": {}})
    for wrong in wrongs:
        with pytest.raises(SpecError):
            parse_value(POINT, wrong)


def test_map_values_are_parallel_lists() -> None:
    """Keys are unique and not null; the order of entries does not matter."""
    by_name = MapType(1, StringType(), 2, IntegerType(), False)
    value = parse_value(by_name, {"keys": ["b", "a"], "values": [2, None]})
    assert value == parse_value(by_name, {"keys": ["a", "b"], "values": [None, 2]})
    assert value_to_json(by_name, value) == {"keys": ["a", "b"], "values": [None, 2]}
    wrongs: tuple[Any, ...] = (
        {"keys": ["a"], "values": []}, {"keys": ["a", "a"], "values": [1, 2]}, {"keys": [None], "values": [1]},
        {"keys": ["a"]}, [], {"keys": [1], "values": [1]},
    )  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(SpecError):
            parse_value(by_name, wrong)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_are_written_with_their_own_digits(value: float) -> None:
    """A 32-bit float is written with no more digits than it has, and still reads back."""
    written = value_to_json(FloatType(), value)
    assert struct.pack("<f", written) == struct.pack("<f", value)
    assert len(repr(abs(written)).replace(".", "").split("e")[0].strip("0")) <= 9


def test_an_absurd_scale_costs_nothing() -> None:
    """A scale of nine hundred million is written with an exponent instead of digits."""
    wide = DecimalType(9, 900_000_000)
    written = value_to_json(wide, parse_value(wide, "1E-900000000"))
    assert written == "1E-900000000"
    assert parse_value(wide, written) is not None


EQUAL: list[tuple[str, Any, str, Any]] = [
    ("int", None, "int", None),
    ("int", UNSET, "int", None),
    ("int", 34, "long", 34),
    ("float", 0.1, "double", 0.1),
    ("float", 0.1, "double", 0.10000000149011612),
    ("float", 0.1, "float", 0.10000000149011612),
    ("float", 1, "double", 1.0),
    ("double", 1, "double", 1.0),
    ("decimal(9,2)", "14.20", "decimal(18,2)", "14.20"),
    ("decimal(9,2)", "14.20", "decimal(9,2)", "1420E-2"),
    ("date", "2017-11-16", "timestamp", "2017-11-16T00:00"),
    ("date", "2017-11-16", "timestamp", "2017-11-16T00:00:00.000000"),
    ("date", "1969-12-31", "timestamp_ns", "1969-12-31T00:00:00.000000000"),
    ("timestamptz", "2017-11-16T22:31:08Z", "timestamptz", "2017-11-16T22:31:08.000000+00:00"),
    ("fixed[2]", "00fF", "fixed[2]", "00FF"),
    ("binary", "ab", "binary", "AB"),
    ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("unknown", None, "string", UNSET),
    ("int", "not an int", "int", "not an int"),
    ("string", "same", "binary", "same"),
]

UNEQUAL: list[tuple[str, Any, str, Any]] = [
    ("int", None, "int", 0),
    ("string", "", "string", None),
    ("int", 34, "long", 35),
    ("float", 0.1, "double", 0.2),
    ("double", 0.1, "double", 0.10000000149011612),
    ("double", 0.0, "double", -0.0),
    ("decimal(9,2)", "14.20", "decimal(18,2)", "14.21"),
    ("date", "2017-11-16", "timestamp", "2017-11-16T00:00:00.000001"),
    ("date", "2300-01-01", "timestamp_ns", "2262-04-11T00:00:00"),
    ("timestamp", "2017-11-16T22:31:08", "timestamp", "2017-11-16T22:31:08.000001"),
    ("int", "not an int", "int", 5),
    ("int", 1, "int", True),
    ("int", 1, "string", "1"),
    ("float", 0.1, "double", 1e300),
]


@pytest.mark.parametrize(("before", "a", "after", "b"), EQUAL, ids=repr)
def test_defaults_of_one_value_are_equal(before: str, a: Any, after: str, b: Any) -> None:
    """Spelling and promotion do not change a default."""
    assert equal_values(parse_type(before), a, parse_type(after), b)


@pytest.mark.parametrize(("before", "a", "after", "b"), UNEQUAL, ids=repr)
def test_defaults_of_different_values_are_not(before: str, a: Any, after: str, b: Any) -> None:
    """Null is no value, signs of zero count, and nothing else passes for equal."""
    assert not equal_values(parse_type(before), a, parse_type(after), b)


def test_an_empty_struct_default_survives_changes_of_its_struct() -> None:
    """The frozen value is the marker {}; children may come and go."""
    assert equal_values(POINT, {}, StructType(POINT.fields[:1]), {})
    assert not equal_values(POINT, {}, StructType(POINT.fields[:1]), {"13": 1})
    assert equal_values(ListType(1, IntegerType(), False), [1], ListType(1, LongType(), False), [1])


@given(types(), JSON_VALUES, types(), JSON_VALUES)
def test_equality_is_total(one: Type, a: Any, other: Type, b: Any) -> None:
    """Any two defaults can be compared, and each equals itself."""
    assert equal_values(one, a, other, b) in (True, False)
    assert equal_values(one, a, one, a)
