"""Primitive types and variant, and the type strings that name them (spec: Primitive Types, Appendix C).

Instances are immutable and compare by value. Type strings are read in any letter case with blanks around parameters
and printed in the form of the reference implementation: `decimal(9, 2)`, `fixed[16]`, `geometry(OGC:CRS84)`,
`geography(OGC:CRS84, spherical)`; geometry and geography always with their parameters.
"""

from __future__ import annotations

from typing import Final

import msgspec

from app.errors import SpecError
from app.spec.codec import INT32_MAX, describe

MAX_DECIMAL_PRECISION: Final = 38
DEFAULT_CRS: Final = "OGC:CRS84"
DEFAULT_ALGORITHM: Final = "spherical"
EDGE_ALGORITHMS: Final = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})


class Type:
    """Any type of a column, list element, map key or map value."""

    __slots__ = ()


class PrimitiveType(Type):
    """A type that holds one value. Variant is neither primitive nor nested."""

    __slots__ = ()


class BooleanType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "boolean"


class IntegerType(PrimitiveType, msgspec.Struct, frozen=True):
    """32-bit signed; spelled `int`."""

    def __str__(self) -> str:
        return "int"


class LongType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "long"


class FloatType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "float"


class DoubleType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "double"


class DecimalType(PrimitiveType, msgspec.Struct, frozen=True):
    """`precision` in 1..38 digits, `scale` of them after the point; a scale above the precision is tolerated."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise SpecError(f"Invalid decimal precision: {self.precision} (must be 1 to {MAX_DECIMAL_PRECISION})")
        if not 0 <= self.scale <= INT32_MAX:
            raise SpecError(f"Invalid decimal scale: {self.scale}")

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


class DateType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "date"


class TimeType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "time"


class TimestampType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "timestamp"


class TimestamptzType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "timestamptz"


class TimestampNsType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "timestamp_ns"


class TimestamptzNsType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "timestamptz_ns"


class StringType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "string"


class UuidType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "uuid"


class FixedType(PrimitiveType, msgspec.Struct, frozen=True):
    """`length` in bytes."""

    length: int

    def __post_init__(self) -> None:
        if not 0 <= self.length <= INT32_MAX:
            raise SpecError(f"Invalid fixed length: {self.length}")

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


class BinaryType(PrimitiveType, msgspec.Struct, frozen=True):
    def __str__(self) -> str:
        return "binary"


class UnknownType(PrimitiveType, msgspec.Struct, frozen=True):
    """A column of which only nulls are known; must be optional."""

    def __str__(self) -> str:
        return "unknown"


class GeometryType(PrimitiveType, msgspec.Struct, frozen=True):
    """Two are equal when their coordinate reference systems differ at most in letter case."""

    crs: str = DEFAULT_CRS

    def __post_init__(self) -> None:
        if not self.crs:
            raise SpecError("Invalid geometry: the coordinate reference system is empty")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeometryType) and self.crs.lower() == other.crs.lower()

    def __hash__(self) -> int:
        return hash((GeometryType, self.crs.lower()))

    def __str__(self) -> str:
        return f"geometry({self.crs})"


class GeographyType(PrimitiveType, msgspec.Struct, frozen=True):
    """Equality ignores the letter case of the coordinate reference system; `algorithm` is lower case."""

    crs: str = DEFAULT_CRS
    algorithm: str = DEFAULT_ALGORITHM

    def __post_init__(self) -> None:
        if not self.crs:
            raise SpecError("Invalid geography: the coordinate reference system is empty")
        if self.algorithm not in EDGE_ALGORITHMS:
            raise SpecError(f"Invalid edge interpolation algorithm: {describe(self.algorithm)}")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GeographyType)
            and self.crs.lower() == other.crs.lower()
            and self.algorithm == other.algorithm
        )

    def __hash__(self) -> int:
        return hash((GeographyType, self.crs.lower(), self.algorithm))

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"


class VariantType(Type, msgspec.Struct, frozen=True):
    """Semi-structured; neither primitive nor nested."""

    def __str__(self) -> str:
        return "variant"


_V3_TYPES: Final = (TimestampNsType, TimestamptzNsType, UnknownType, VariantType, GeometryType, GeographyType)

KNOWN_TYPES: Final[dict[str, Type]] = {
    str(simple): simple
    for simple in (
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        TimestampNsType(),
        TimestamptzNsType(),
        StringType(),
        UuidType(),
        BinaryType(),
        UnknownType(),
        VariantType(),
    )
} | {"geometry": GeometryType(), "geography": GeographyType()}
"""Type strings already understood, and their interned types. Bounded, because clients choose the strings."""

_MAX_KNOWN_TYPES: Final = 4096
_MAX_KNOWN_CHARS: Final = 64

MAX_TYPE_CHARS: Final = 16_384
"""In a type string. The longest that mean something hold the definition of a coordinate reference system."""


def is_primitive(field_type: Type) -> bool:
    return isinstance(field_type, PrimitiveType)


def min_format_version(field_type: Type) -> int:
    """The first format version that has this type itself; types inside a nested type count for themselves."""
    return 3 if isinstance(field_type, _V3_TYPES) else 1


def parse_type_string(text: str) -> Type:
    """The type a type string names; letter case and blanks around parameters do not matter. Raises SpecError."""
    known = KNOWN_TYPES.get(text)
    if known is None:
        known = _parse_type_string(text)
        if len(text) <= _MAX_KNOWN_CHARS and len(KNOWN_TYPES) < _MAX_KNOWN_TYPES:
            KNOWN_TYPES[text] = known
    return known


def _parse_type_string(text: str) -> Type:
    """Each character is looked at a fixed number of times: clients choose the text, and everybody waits for it."""
    if len(text) > MAX_TYPE_CHARS:
        raise SpecError(
            f"Cannot parse type: {describe(text)} has {len(text)} characters, and {MAX_TYPE_CHARS} are allowed"
        )
    simple = KNOWN_TYPES.get(text.lower())
    if simple is not None:
        return simple
    if (bare := text.rstrip().lower()) in ("geometry", "geography"):
        return KNOWN_TYPES[bare]
    if (inside := _parameters(text, "decimal", "()")) is not None:
        precision, _, scale = inside.partition(",")
        return DecimalType(_number(precision.rstrip(), text), _number(scale.lstrip(), text))
    if (inside := _parameters(text, "fixed", "[]")) is not None:
        return FixedType(_number(inside, text))
    if (inside := _parameters(text, "geometry", "()")) is not None and ")" not in inside:
        return GeometryType(inside)
    if (inside := _parameters(text, "geography", "()")) is not None:
        crs, comma, algorithm = inside.partition(",")
        return GeographyType(crs.rstrip(), algorithm.strip().lower() if comma else DEFAULT_ALGORITHM)
    raise SpecError(f"Cannot parse type: {describe(text)}")


def _parameters(text: str, name: str, brackets: str) -> str | None:
    """What stands in the brackets behind `name`, without blanks around it; None for text of another form."""
    if text[: len(name)].lower() != name:
        return None
    rest = text[len(name) :].lstrip()
    return rest[1:-1].strip() if rest.startswith(brackets[0]) and rest.endswith(brackets[1]) else None


def _number(digits: str, text: str) -> int:
    value = digits.lstrip("0") or digits[:1]
    if not (value.isascii() and value.isdecimal()) or len(value) > 10 or int(value) > INT32_MAX:
        raise SpecError(f"Cannot parse type: {describe(text)}")
    return int(value)
