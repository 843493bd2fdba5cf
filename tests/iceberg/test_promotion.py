"""Values under type promotion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from app.errors import SpecError
from app.iceberg.decimals import decimal_of
from app.iceberg.promotion import promote_value
from app.iceberg.types import Type, UnknownType, parse_type
from tests.iceberg.strategies import LEAVES, typed_values


@given(typed_values(), LEAVES)
def test_the_same_type_and_null_always_promote(typed: tuple[Type, Any], other: Type) -> None:
    """A value stays itself within its type; null goes anywhere, as unknown columns do."""
    value_type, value = typed
    assert promote_value(value_type, value, value_type) is value
    assert promote_value(UnknownType(), None, other) is None


@pytest.mark.parametrize(
    ("before", "value", "after", "promoted"),
    [
        ("int", 34, "long", 34),
        ("float", 1.5, "double", 1.5),
        ("decimal(9,2)", decimal_of(1420, 2), "decimal(38,2)", decimal_of(1420, 2)),
        ("date", 17486, "timestamp", 1510790400000000),
        ("date", -1, "timestamp_ns", -86_400_000_000_000),
        ("date", 106751991, "timestamp", 106751991 * 86_400_000_000),
    ],
)
def test_legal_promotions(before: str, value: Any, after: str, promoted: Any) -> None:
    """The table of the spec: a date becomes its midnight."""
    assert promote_value(parse_type(before), value, parse_type(after)) == promoted


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("long", 34, "int"),
        ("double", 1.5, "float"),
        ("decimal(9,2)", decimal_of(1420, 2), "decimal(9,3)"),
        ("decimal(9,2)", decimal_of(1420, 2), "decimal(8,2)"),
        ("date", 0, "timestamptz"),
        ("date", 0, "timestamptz_ns"),
        ("int", 1, "string"),
        ("string", "a", "binary"),
        ("timestamp", 0, "timestamp_ns"),
        ("date", 106751992, "timestamp"),
        ("date", 106752, "timestamp_ns"),
        ("date", -106753, "timestamp_ns"),
    ],
)
def test_illegal_promotions(before: str, value: Any, after: str) -> None:
    """Narrowing, zones and dates outside the range of the wider type fail, as the spec demands at run time."""
    with pytest.raises(SpecError):
        promote_value(parse_type(before), value, parse_type(after))
