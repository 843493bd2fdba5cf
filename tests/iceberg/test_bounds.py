"""Single values in binary."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyiceberg import conversions
from pyiceberg.types import NestedField

from app.errors import SpecError
from app.iceberg.bounds import from_bytes, to_bytes
from app.iceberg.types import (
    FixedType,
    GeographyType,
    GeometryType,
    TimestampNsType,
    TimestamptzNsType,
    Type,
    parse_type,
)
from tests.iceberg.strategies import typed_values, types


@given(typed_values())
def test_every_value_reads_back(typed: tuple[Type, Any]) -> None:
    """Binary and back is the identity for every primitive type."""
    value_type, value = typed
    again = from_bytes(value_type, to_bytes(value_type, value))
    assert again == value
    assert type(again) is type(value)


@given(typed_values())
def test_bytes_agree_with_pyiceberg(typed: tuple[Type, Any]) -> None:
    """PyIceberg writes the same bytes, for the types it knows."""
    value_type, value = typed
    assume(not isinstance(value_type, TimestampNsType | TimestamptzNsType))
    known = NestedField(1, "a", str(value_type), required=False).field_type
    assert conversions.to_bytes(known, value) == to_bytes(value_type, value)  # type: ignore[arg-type]


@given(types(), st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_spec_error(any_type: Type, data: bytes) -> None:
    """The reader never fails in another way."""
    try:
        value = from_bytes(any_type, data)
    except SpecError:
        return
    if not isinstance(any_type, FixedType) or len(data) == any_type.length:
        assert from_bytes(any_type, to_bytes(any_type, value)) == value or value != value or isinstance(value, tuple)


@pytest.mark.parametrize(
    ("type_string", "value", "expected"),
    [
        ("boolean", True, "01"),
        ("boolean", False, "00"),
        ("int", 34, "22000000"),
        ("long", -1, "ffffffffffffffff"),
        ("float", 1.0, "0000803f"),
        ("double", 1.0, "000000000000f03f"),
        ("date", 17486, "4e440000"),
        ("decimal(9,2)", Decimal("14.20"), "058c"),
        ("decimal(9,2)", Decimal("0.00"), "00"),
        ("decimal(9,2)", Decimal("-0.01"), "ff"),
        ("decimal(9,2)", Decimal("1.28"), "0080"),
        ("string", "é", "c3a9"),
        ("uuid", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09677c4bbda4793f349cb785e7"),
        ("fixed[2]", b"\x00\xff", "00ff"),
        ("binary", b"", ""),
    ],
)
def test_known_bytes(type_string: str, value: Any, expected: str) -> None:
    """Little-endian numbers, big-endian decimals and uuids."""
    assert to_bytes(parse_type(type_string), value).hex() == expected


@pytest.mark.parametrize(
    ("current", "data", "value"),
    [
        ("long", struct.pack("<i", -34), -34),
        ("double", struct.pack("<f", 1.5), 1.5),
        ("timestamp", struct.pack("<i", 17486), 1510790400000000),
        ("timestamp_ns", struct.pack("<i", -1), -86_400_000_000_000),
        ("decimal(18,2)", bytes.fromhex("058c"), Decimal("14.20")),
    ],
)
def test_bounds_from_before_a_promotion(current: str, data: bytes, value: Any) -> None:
    """The length tells the type at write time; dates become their midnight, not a number of micros."""
    assert from_bytes(parse_type(current), data) == value


@pytest.mark.parametrize(
    ("type_string", "data"),
    [
        ("int", b"\x00" * 8), ("int", b""), ("long", b"\x00" * 5), ("date", b"\x00" * 8), ("float", b"\x00" * 8),
        ("timestamptz", b"\x00" * 4), ("timestamptz_ns", b"\x00" * 4), ("time", b"\x00" * 4), ("boolean", b""),
        ("boolean", b"\x00\x00"), ("string", b"\xff"), ("uuid", b"\x00" * 15), ("fixed[2]", b"\x00" * 3),
        ("decimal(9,2)", b""), ("decimal(2,0)", b"\x64"), ("decimal(38,0)", b"\x01" * 18),
        ("timestamp", struct.pack("<i", 106751992)), ("timestamp_ns", struct.pack("<i", 106752)),
        ("geometry", b"\x00" * 8), ("unknown", b"\x00"), ("variant", b"\x00"),
    ],
)  # fmt: skip
def test_bytes_that_no_legal_writer_made(type_string: str, data: bytes) -> None:
    """Wrong lengths, digits beyond the precision and dates outside the range are SpecErrors."""
    with pytest.raises(SpecError):
        from_bytes(parse_type(type_string), data)


@pytest.mark.parametrize(
    ("type_string", "value"),
    [("int", 2**31), ("long", 2**63), ("float", 1e300), ("fixed[2]", b"\x00"), ("variant", {})],
)
def test_values_that_do_not_fit_are_refused(type_string: str, value: Any) -> None:
    """A number beyond its type's range or a fixed of another length has no binary form."""
    with pytest.raises(SpecError):
        to_bytes(parse_type(type_string), value)


def test_a_cut_fixed_is_a_bound() -> None:
    """Bounds of bytes may be shortened."""
    assert from_bytes(FixedType(4), b"\x00\x01") == b"\x00\x01"


@pytest.mark.parametrize("geo", [GeometryType(), GeographyType()])
@pytest.mark.parametrize(
    ("point", "size"), [((1.0, 2.0, None, None), 16), ((1.0, 2.0, 3.0, None), 24), ((1.0, 2.0, 3.0, 4.0), 32),
                        ((1.0, 2.0, None, 4.0), 32)]
)  # fmt: skip
def test_geospatial_bounds_are_points(geo: Type, point: tuple[float | None, ...], size: int) -> None:
    """x:y, x:y:z, x:y:z:m, and NaN in place of z when only m is there."""
    data = to_bytes(geo, point)
    assert len(data) == size
    assert from_bytes(geo, data) == point
