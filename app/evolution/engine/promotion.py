"""Which primitive types may become which, and what a partition or sort transform makes of it (spec: Schema
Evolution)."""

from __future__ import annotations

from typing import Final

from app.iceberg.transforms import Transform
from app.iceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    TimestampNsType,
    TimestampType,
    Type,
    UnknownType,
)

LATE_PROMOTIONS: Final = 3
"""The format version from which date and unknown columns can be promoted."""

_FROM_V1: Final = frozenset({(IntegerType, LongType), (FloatType, DoubleType)})
_FROM_V3: Final = frozenset({(DateType, TimestampType), (DateType, TimestampNsType)})


def promotable(before: Type, after: Type, format_version: int) -> bool:
    """Whether stored values and bounds of `before` stay readable as `after`. Equal types are no promotion."""
    if _widens_precision(before, after):
        return True
    pair = (type(before), type(after))
    if pair in _FROM_V1:
        return True
    if format_version < LATE_PROMOTIONS:
        return False
    return pair in _FROM_V3 or (isinstance(before, UnknownType) and not isinstance(after, UnknownType))


def _widens_precision(before: Type, after: Type) -> bool:
    return (
        isinstance(before, DecimalType)
        and isinstance(after, DecimalType)
        and after.scale == before.scale
        and after.precision > before.precision
    )


def wider_type(before: Type, format_version: int) -> str | None:
    """The legal target to name in a message, None when the type cannot be promoted at all."""
    if isinstance(before, IntegerType):
        return "long"
    if isinstance(before, FloatType):
        return "double"
    if isinstance(before, DecimalType) and before.precision < 38:
        return f"decimal(38, {before.scale}) or any precision between"
    if isinstance(before, DateType) and format_version >= LATE_PROMOTIONS:
        return "timestamp or timestamp_ns"
    return None


def changes_output(transform: Transform, before: Type, after: Type) -> bool:
    """Whether a legal promotion changes what the transform makes of values already stored.

    Only date to timestamp does: a day's hash and its stored number differ from those of its midnight, while the year,
    month and day stay. What an unknown transform does cannot be told; readers ignore such fields.
    """
    if not isinstance(before, DateType) or not isinstance(after, (TimestampType, TimestampNsType)):
        return False
    return transform.kind in ("identity", "bucket")


def outgrows(transform: Transform, before: Type, after: Type) -> bool:
    """Whether the transform takes `before` but not `after`, so that its field could no longer be evaluated."""
    return transform.accepts(before) and not transform.accepts(after)
