"""Values under type promotion (spec: Schema Evolution). Whether a column may be promoted is a rule, not said here."""

from __future__ import annotations

from typing import Any

from app.errors import SpecError
from app.iceberg.datetimes import MICROS_PER_DAY, NANOS_PER_DAY, format_date
from app.iceberg.json.codec import INT64_MAX, INT64_MIN
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
)


def promote_value(from_type: Type, value: Any, to_type: Type) -> Any:
    """A canonical value of `from_type` as one of `to_type`.

    Raises SpecError where the format has no such promotion, or the value (a date) is outside the wider type's range.
    """
    if value is None or from_type == to_type:
        return value
    match from_type, to_type:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return value
        case DecimalType(), DecimalType() if (
            from_type.scale == to_type.scale and from_type.precision <= to_type.precision
        ):
            return value
        case DateType(), TimestampType() | TimestampNsType():
            moment = value * (MICROS_PER_DAY if isinstance(to_type, TimestampType) else NANOS_PER_DAY)
            if not INT64_MIN <= moment <= INT64_MAX:
                raise SpecError(f"Date {format_date(value)} is outside the range of {to_type}")
            return moment
    raise SpecError(f"Cannot promote {from_type} to {to_type}")
