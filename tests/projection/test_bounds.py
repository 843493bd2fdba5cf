"""Bounds under the schema that a reader uses."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.iceberg.bounds import to_bytes
from app.iceberg.promotion import promote_value
from app.iceberg.types import PrimitiveType, UnknownType, VariantType, parse_type
from tests.iceberg.strategies import values
from tests.projection.oracle.bounds import Bounds, decode_bounds
from tests.projection.shorthand import field, list_of, of

PROMOTIONS = [
    ("int", "long"),
    ("float", "double"),
    ("decimal(9, 2)", "decimal(30, 2)"),
    ("date", "timestamp"),
    ("date", "timestamp_ns"),
    ("long", "long"),
    ("timestamp", "timestamp"),
    ("string", "string"),
    ("uuid", "uuid"),
]
DAY = (date(2017, 11, 16) - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("current", "data", "value"),
    [
        ("long", b"\x07\x00\x00\x00", 7),
        ("long", b"\x07\x00\x00\x00\x01\x00\x00\x00", 7 + 2**32),
        ("double", b"\x00\x00\x00\x3f", 0.5),
        ("timestamp", DAY.to_bytes(4, "little"), DAY * 86_400_000_000),
        ("timestamp_ns", DAY.to_bytes(4, "little"), DAY * 86_400_000_000_000),
        ("timestamp", (1).to_bytes(8, "little"), 1),
        ("decimal(30, 2)", b"\x05\x8c", Decimal("14.20")),
    ],
)
def test_length_tells_what_a_bound_was_written_as(current: str, data: bytes, value: Any) -> None:
    """Four bytes under a wider type are of the narrower one; a date's day number becomes its midnight."""
    found = decode_bounds(of(field(1, "a", current)), {1: data}, {1: data})
    assert found.by_id == {1: Bounds(value, value)}
    assert not found.faults


@given(st.data())
def test_bounds_of_old_files_hold_after_promotion(data: st.DataObject) -> None:
    """Whatever a writer stored as a bound is that value, promoted."""
    stored, wanted = map(parse_type, data.draw(st.sampled_from(PROMOTIONS)))
    value = data.draw(st.integers(-100_000, 100_000) if str(stored) == "date" else values(stored))
    schema = of(field(1, "a", str(wanted)))
    found = decode_bounds(schema, {1: to_bytes(stored, value)}, {})
    assert found.by_id == {1: Bounds(promote_value(stored, value, wanted), None)}


def test_dropped_and_nested_columns_are_left_out() -> None:
    """Bounds of an ID that the schema lacks are nobody's; a list has no bounds of its own."""
    schema = of(field(1, "l", list_of(2, "int")))
    found = decode_bounds(schema, {1: b"\x01", 2: (5).to_bytes(4, "little"), 9: b"x"}, {})
    assert found.by_id == {2: Bounds(5, None)}
    assert not found.faults


def test_a_bound_that_cannot_be_decoded_hides_no_row() -> None:
    """It is as if there were none, and it is told."""
    found = decode_bounds(of(field(1, "a", "int")), {1: b"\x01\x02"}, {1: (5).to_bytes(4, "little")})
    assert found.by_id == {}
    assert set(found.faults) == {1}


def test_null_only_types_have_no_bounds() -> None:
    """A bound under a type without single values is a fault, not a value."""
    assert isinstance(UnknownType(), PrimitiveType) and not isinstance(VariantType(), PrimitiveType)
    found = decode_bounds(of(field(1, "u", "unknown"), field(2, "v", "variant")), {1: b"\x01", 2: b"\x01"}, {})
    assert found.by_id == {}
    assert set(found.faults) == {1}
