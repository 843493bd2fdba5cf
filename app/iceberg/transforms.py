"""Partition and sort transforms, and the 32-bit hash behind buckets (spec: Partition Transforms, Appendix B)."""

from __future__ import annotations

import re
import struct
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from app.errors import SpecError, ValidationFailed
from app.iceberg.datetimes import MICROS_PER_DAY, NANOS_PER_DAY, civil_from_days
from app.iceberg.decimals import decimal_of, minimal_bytes, unscaled_of
from app.iceberg.json.codec import INT32_MAX, describe
from app.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)

TransformKind = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour", "void", "unknown"]

_MICROS: Final = (TimestampType, TimestamptzType)
_NANOS: Final = (TimestampNsType, TimestamptzNsType)
_TIMESTAMPS: Final = (*_MICROS, *_NANOS)
_INTEGERS: Final = (IntegerType, LongType)
_BUCKETED: Final = (
    *_INTEGERS,
    DecimalType,
    DateType,
    TimeType,
    *_TIMESTAMPS,
    StringType,
    UuidType,
    FixedType,
    BinaryType,
)
_TRUNCATED: Final = (*_INTEGERS, DecimalType, StringType, BinaryType)
_NOT_IDENTITY: Final = (GeometryType, GeographyType)

_HOURS_PER_DAY: Final = 24
_WITH_WIDTH: Final = re.compile(r"(\w+)\[([0-9]+)\]")


class Transform(msgspec.Struct, frozen=True):
    """One transform. `width` is the N of bucket[N] or the W of truncate[W]; `text` the spelling of an unknown one."""

    kind: TransformKind
    width: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        if self.kind == "unknown":
            return self.text or ""
        return self.kind if self.width is None else f"{self.kind}[{self.width}]"

    @property
    def is_void(self) -> bool:
        return self.kind == "void"

    @property
    def is_identity(self) -> bool:
        return self.kind == "identity"

    @property
    def is_unknown(self) -> bool:
        return self.kind == "unknown"

    @property
    def takes_several(self) -> bool:
        """Whether it can be of several columns; who wrote an unknown one knows."""
        return self.kind in ("bucket", "void", "unknown")

    def accepts(self, source_type: Type) -> bool:
        """Whether the transform is defined for this type; void and unknown transforms take any."""
        match self.kind:
            case "void" | "unknown":
                return True
            case "identity":
                return isinstance(source_type, PrimitiveType) and not isinstance(source_type, _NOT_IDENTITY)
            case "bucket":
                return isinstance(source_type, _BUCKETED)
            case "truncate":
                return isinstance(source_type, _TRUNCATED)
            case "hour":
                return isinstance(source_type, _TIMESTAMPS)
            case _:
                return isinstance(source_type, (DateType, *_TIMESTAMPS))

    def result_type(self, source_type: Type) -> Type:
        """The type of transformed values; string for an unknown transform, as the reference implementation has it."""
        match self.kind:
            case "identity" | "truncate" | "void":
                return source_type
            case "day":
                return DateType()
            case "unknown":
                return StringType()
            case _:
                return IntegerType()

    def apply(self, source_type: Type, value: Any) -> Any:
        """The transformed value of a canonical value (`app.iceberg.values`); None for None.

        Raises ValidationFailed for an unknown transform and for a type that the transform does not accept.
        """
        if self.kind == "unknown" or not self.accepts(source_type):
            raise ValidationFailed(f"Cannot apply transform {self} to a value of type {source_type}")
        if value is None or self.kind == "void":
            return None
        match self.kind:
            case "identity":
                return value
            case "bucket":
                assert self.width is not None
                return (hash_value(source_type, value) & INT32_MAX) % self.width
            case "truncate":
                assert self.width is not None
                return _truncate(source_type, value, self.width)
            case "hour":
                return value // (_per_day(source_type) // _HOURS_PER_DAY)
        days = value // _per_day(source_type)
        if self.kind == "day":
            return days
        year, month, _ = civil_from_days(days)
        return year - 1970 if self.kind == "year" else (year - 1970) * 12 + month - 1


IDENTITY: Final = Transform("identity")
VOID: Final = Transform("void")
_PLAIN: Final[dict[str, Transform]] = {
    "identity": IDENTITY,
    "year": Transform("year"),
    "month": Transform("month"),
    "day": Transform("day"),
    "hour": Transform("hour"),
    "void": VOID,
}


def bucket(buckets: int) -> Transform:
    """Raises SpecError unless there is at least one bucket."""
    if not 0 < buckets <= INT32_MAX:
        raise SpecError(f"Invalid number of buckets: {buckets} (must be > 0)")
    return Transform("bucket", buckets)


def truncate(width: int) -> Transform:
    """Raises SpecError unless the width is positive."""
    if not 0 < width <= INT32_MAX:
        raise SpecError(f"Invalid truncate width: {width} (must be > 0)")
    return Transform("truncate", width)


def parse_transform(text: str, path: str = "$") -> Transform:
    """The transform that `text` names, in any letter case. Anything else is kept as an unknown transform.

    Raises SpecError for a bucket count or truncate width that is not in 1..2147483647.
    """
    plain = _PLAIN.get(text) or _PLAIN.get(text.lower())
    if plain is not None:
        return plain
    match = _WITH_WIDTH.fullmatch(text)
    if match is not None and match[1].lower() in ("bucket", "truncate"):
        digits = match[2].lstrip("0") or "0"
        if len(digits) > 10:
            raise SpecError(f"Invalid transform: {describe(text)}", path)
        try:
            return (bucket if match[1].lower() == "bucket" else truncate)(int(digits))
        except SpecError as fault:
            raise SpecError(fault.reason, path) from None
    return Transform("unknown", None, text)


def _per_day(source_type: Type) -> int:
    if isinstance(source_type, _MICROS):
        return MICROS_PER_DAY
    return NANOS_PER_DAY if isinstance(source_type, _NANOS) else 1


def _truncate(source_type: Type, value: Any, width: int) -> Any:
    if isinstance(source_type, DecimalType):
        unscaled = unscaled_of(value, source_type.scale)
        return decimal_of(unscaled - unscaled % width, source_type.scale)
    if isinstance(source_type, _INTEGERS):
        return value - value % width
    return value[:width]


def hash_value(source_type: Type, value: Any) -> int:
    """The spec's 32-bit hash of a canonical value, as a signed integer (Appendix B).

    Covers the types that buckets accept, and boolean, float and double, for which the spec fixes the hash as well.
    Raises ValidationFailed for any other type.
    """
    match source_type:
        case StringType():
            return murmur3(value.encode())
        case UuidType():
            assert isinstance(value, UUID)
            return murmur3(value.bytes)
        case FixedType() | BinaryType():
            return murmur3(value)
        case DecimalType(scale=scale):
            return murmur3(minimal_bytes(unscaled_of(value, scale)))
        case FloatType() | DoubleType():
            canonical = float("nan") if value != value else value + 0.0
            return murmur3(struct.pack("<d", canonical))
        case TimestampNsType() | TimestamptzNsType():
            return murmur3(struct.pack("<q", value // 1000))
        case BooleanType() | IntegerType() | LongType() | DateType() | TimeType() | TimestampType() | TimestamptzType():
            return murmur3(struct.pack("<q", int(value)))
    raise ValidationFailed(f"No hash is defined for type {source_type}")


def murmur3(data: bytes) -> int:
    """Murmur3, x86 32-bit variant, seed 0, as a signed 32-bit integer."""
    mask = 0xFFFFFFFF
    whole = len(data) // 4
    hashed = 0
    for block in struct.unpack_from(f"<{whole}I", data):
        block = block * 0xCC9E2D51 & mask
        block = ((block << 15 | block >> 17) & mask) * 0x1B873593 & mask
        hashed ^= block
        hashed = ((hashed << 13 | hashed >> 19) & mask) * 5 + 0xE6546B64 & mask
    tail = int.from_bytes(data[whole * 4 :], "little") * 0xCC9E2D51 & mask
    hashed ^= ((tail << 15 | tail >> 17) & mask) * 0x1B873593 & mask
    hashed ^= len(data)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & mask
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & mask
    hashed ^= hashed >> 16
    return hashed - 0x100000000 if hashed & 0x80000000 else hashed
