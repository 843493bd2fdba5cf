"""Exact decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.iceberg.decimals import decimal_of, minimal_bytes, unscaled_of

UNSCALED = st.integers(-(10**38), 10**38)


@given(UNSCALED, st.integers(0, 60))
def test_decimals_are_exact_in_any_context(unscaled: int, scale: int) -> None:
    """Building and taking apart a decimal loses nothing, even with a context of one digit."""
    with localcontext() as context:
        context.prec = 1
        value = decimal_of(unscaled, scale)
        assert unscaled_of(value, scale) == unscaled
        assert value.as_tuple().exponent == -scale
    assert value == Decimal(unscaled).scaleb(-scale) if abs(unscaled) < 10**28 else True


@given(UNSCALED)
def test_bytes_are_minimal_and_signed(unscaled: int) -> None:
    """Two's complement reads back, and one byte less could not hold the number."""
    data = minimal_bytes(unscaled)
    assert int.from_bytes(data, "big", signed=True) == unscaled
    if len(data) > 1:
        bits = 8 * (len(data) - 1) - 1
        assert not -(1 << bits) <= unscaled < 1 << bits


@pytest.mark.parametrize(
    ("unscaled", "expected"), [(0, "00"), (-1, "ff"), (127, "7f"), (128, "0080"), (-128, "80"), (1420, "058c")]
)
def test_known_bytes(unscaled: int, expected: str) -> None:
    """The edges of one byte, and the decimal 14.20 of the spec."""
    assert minimal_bytes(unscaled).hex() == expected


def test_a_value_of_a_smaller_scale_is_scaled_up() -> None:
    """14.2 at scale 2 is 1420."""
    assert unscaled_of(Decimal("14.2"), 2) == 1420
    assert unscaled_of(Decimal("-0.00"), 2) == 0
