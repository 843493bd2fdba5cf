"""Exact decimals at the scale of their type, whatever the process-wide decimal context says."""

from __future__ import annotations

from decimal import Decimal


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The decimal with `scale` digits after the point."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def unscaled_of(value: Decimal, scale: int) -> int:
    """The integer that `value` is at `scale` digits after the point; `value` must fit that scale exactly."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled: int = int("".join(map(str, digits)) or "0") * 10 ** (scale + exponent)
    return -unscaled if sign else unscaled


def minimal_bytes(unscaled: int) -> bytes:
    """Two's complement, big-endian, in the fewest bytes (at least one)."""
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
