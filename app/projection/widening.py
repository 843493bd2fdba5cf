"""Which stored types a column can be read from (table spec: Schema Evolution, Appendix A).

Kept apart from the rules about schema changes on purpose: what a change may do and what a reader can do are checked
against each other, which proves something only if each says it for itself.
"""

from __future__ import annotations

from app.iceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    TimestampNsType,
    TimestampType,
    Type,
    UnknownType,
    UuidType,
)


def readable(stored: Type, wanted: Type) -> bool:
    """Whether every stored value is, or widens to, a value of the wanted type.

    Not asked of nested types. Plain bytes of length 16 are taken for a uuid and plain bytes for a geometry or
    geography: writers that lack the annotation store them so.
    """
    if stored == wanted:
        return True
    match stored, wanted:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return stored.scale == wanted.scale and stored.precision <= wanted.precision
        case (DateType(), TimestampType() | TimestampNsType()):
            return True
        case UnknownType(), _:
            return True
        case FixedType(length=16), UuidType():
            return True
        case BinaryType(), GeometryType() | GeographyType():
            return True
    return False
