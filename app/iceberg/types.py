"""Nested types and fields, and the JSON form of every type (spec: Schemas and Data Types, Appendix C).

Instances are immutable and compare structurally, unknown extra keys included. Types without parameters are
interned by the parser. Defaults are kept as decoded JSON and are not judged here: `msgspec.UNSET` means there is
none, and a null in the document counts as none. A bare integer as default of float or double becomes a float,
because readers of the reference implementation refuse `1` where `1.0` is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET

from app.errors import SpecError
from app.iceberg.json.codec import (
    INT32_MAX,
    INT32_MIN,
    NO_EXTRA,
    Json,
    as_int32,
    describe,
    extra_of,
)
from app.iceberg.primitives import (
    KNOWN_TYPES,
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
    UnknownType,
    UuidType,
    VariantType,
    is_primitive,
    min_format_version,
    parse_type_string,
)

__all__ = [
    "KNOWN_TYPES",
    "MAX_TYPE_DEPTH",
    "NESTED_TYPES",
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "Int32",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNsType",
    "TimestampType",
    "TimestamptzNsType",
    "TimestamptzType",
    "Type",
    "UnknownType",
    "UuidType",
    "VariantType",
    "field_to_json",
    "is_primitive",
    "min_format_version",
    "parse_fields",
    "parse_type",
    "parse_type_string",
    "settled_default",
    "type_to_json",
]

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]

MAX_TYPE_DEPTH: Final = 128
"""Deeper nesting of types is refused: every walk over a type is recursive and must fit any caller's stack."""


if TYPE_CHECKING:
    Kept = Any
    KeptMembers = Mapping[str, Any]
else:

    class Kept:
        """Marks a member that needs more than its JSON value: the fast decoder must give up on it."""

    KeptMembers = Kept


class NestedField(
    msgspec.Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    rename={
        "field_id": "id",
        "field_type": "type",
        "initial_default": "initial-default",
        "write_default": "write-default",
    },
):
    """A field of a struct; also what stands for a list element, map key or map value in a schema's index.

    Defaults are decoded JSON; UNSET means none. The class doubles as wire form of the fast schema decoder, which
    hands `Kept` members to its hook.
    """

    field_id: Int32
    name: str
    required: bool
    field_type: Type
    doc: str | None = None
    initial_default: Kept = UNSET
    write_default: Kept = UNSET
    extra: KeptMembers = NO_EXTRA

    @property
    def optional(self) -> bool:
        return not self.required

    @property
    def has_initial_default(self) -> bool:
        """Null counts as none."""
        return self.initial_default is not UNSET and self.initial_default is not None

    @property
    def has_write_default(self) -> bool:
        """Null counts as none."""
        return self.write_default is not UNSET and self.write_default is not None

    def __str__(self) -> str:
        return f"{self.field_id}: {self.name}: {'required' if self.required else 'optional'} {self.field_type}"


class StructType(Type, msgspec.Struct, frozen=True):
    fields: tuple[NestedField, ...]
    extra: Mapping[str, Any] = NO_EXTRA

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


class ListType(Type, msgspec.Struct, frozen=True):
    element_id: int
    element: Type
    element_required: bool
    extra: Mapping[str, Any] = NO_EXTRA

    @property
    def element_field(self) -> NestedField:
        return NestedField(self.element_id, "element", self.element_required, self.element)

    def __str__(self) -> str:
        return f"list<{self.element}>"


class MapType(Type, msgspec.Struct, frozen=True):
    """Keys are always required."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool
    extra: Mapping[str, Any] = NO_EXTRA

    @property
    def key_field(self) -> NestedField:
        return NestedField(self.key_id, "key", True, self.key)

    @property
    def value_field(self) -> NestedField:
        return NestedField(self.value_id, "value", self.value_required, self.value)

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


NESTED_TYPES: Final = (StructType, ListType, MapType)


def parse_type(json: Json, path: str = "$", depth: int = 0) -> Type:
    """The type that a type string or a struct, list or map object describes. Raises SpecError with the path."""
    if type(json) is str:
        try:
            return parse_type_string(json)
        except SpecError as fault:
            raise SpecError(fault.reason, path) from None
    if type(json) is not dict:
        raise SpecError(f"Cannot parse type: {describe(json)}", path)
    if depth >= MAX_TYPE_DEPTH:
        raise SpecError(f"Types are nested deeper than {MAX_TYPE_DEPTH} levels", path)
    kind = json.get("type")
    if kind == "struct":
        return StructType(parse_fields(json, path, depth), extra_of(json, _STRUCT_KEYS))
    if kind == "list":
        return _parse_list(json, path, depth)
    if kind == "map":
        return _parse_map(json, path, depth)
    raise SpecError(f"Cannot parse type: {describe(json)}", path)


_STRUCT_KEYS: Final = frozenset({"type", "fields"})
_LIST_KEYS: Final = frozenset({"type", "element-id", "element", "element-required"})
_MAP_KEYS: Final = frozenset({"type", "key-id", "key", "value-id", "value", "value-required"})
_FIELD_KEYS: Final = frozenset({"id", "name", "required", "type", "doc", "initial-default", "write-default"})


def parse_fields(json: dict[str, Json], path: str, depth: int = 0) -> tuple[NestedField, ...]:
    """The fields of a struct (or schema) object."""
    items = json.get("fields")
    if type(items) is not list:
        reason = "Cannot parse missing field: fields" if items is None else "Cannot parse struct fields from non-array"
        raise SpecError(reason, path)
    known = KNOWN_TYPES.get
    fields: list[NestedField] = []
    for at, item in enumerate(items):
        # The common case (no default, no unknown key, a known type string) inline: wide schemas are parsed often.
        if type(item) is dict:
            field_id, name, required, kind = item.get("id"), item.get("name"), item.get("required"), item.get("type")
            if (
                len(item) == 4
                and type(kind) is str
                and (field_type := known(kind)) is not None
                and type(field_id) is int
                and INT32_MIN <= field_id <= INT32_MAX
                and type(name) is str
                and type(required) is bool
            ):
                fields.append(NestedField(field_id, name, required, field_type))
                continue
        fields.append(_parse_field(item, f"{path}.fields[{at}]", depth))
    return tuple(fields)


def _parse_field(json: Json, path: str, depth: int) -> NestedField:
    if type(json) is not dict:
        raise SpecError(f"Cannot parse struct field from non-object: {describe(json)}", path)
    field_id = _int_member(json, "id", path)
    name = json.get("name")
    if type(name) is not str:
        raise _bad_member(json, "name", "string", path)
    field_type = parse_type(_type_member(json, "type", path), f"{path}.type", depth + 1)
    doc = json.get("doc")
    if doc is not None and type(doc) is not str:
        raise _bad_member(json, "doc", "string", path)
    return NestedField(
        field_id,
        name,
        _bool_member(json, "required", path),
        field_type,
        doc,
        settled_default(field_type, json.get("initial-default")),
        settled_default(field_type, json.get("write-default")),
        extra_of(json, _FIELD_KEYS),
    )


def _parse_list(json: dict[str, Json], path: str, depth: int) -> ListType:
    return ListType(
        _int_member(json, "element-id", path),
        parse_type(_type_member(json, "element", path), f"{path}.element", depth + 1),
        _bool_member(json, "element-required", path),
        extra_of(json, _LIST_KEYS),
    )


def _parse_map(json: dict[str, Json], path: str, depth: int) -> MapType:
    return MapType(
        _int_member(json, "key-id", path),
        parse_type(_type_member(json, "key", path), f"{path}.key", depth + 1),
        _int_member(json, "value-id", path),
        parse_type(_type_member(json, "value", path), f"{path}.value", depth + 1),
        _bool_member(json, "value-required", path),
        extra_of(json, _MAP_KEYS),
    )


def settled_default(field_type: Type, value: Any) -> Any:
    """A default as it is kept: UNSET for null, a float where a float type was given a bare integer."""
    if value is None or value is UNSET:
        return UNSET
    if type(value) is int and isinstance(field_type, (FloatType, DoubleType)):
        try:
            return float(value)
        except OverflowError:
            return value
    return value


def _int_member(json: dict[str, Json], key: str, path: str) -> int:
    value = json.get(key)
    if value is None:
        raise SpecError(f"Cannot parse missing field: {key}", path)
    return as_int32(value, f"{path}.{key}")


def _bool_member(json: dict[str, Json], key: str, path: str) -> bool:
    value = json.get(key)
    if type(value) is not bool:
        raise _bad_member(json, key, "boolean", path)
    return value


def _type_member(json: dict[str, Json], key: str, path: str) -> Json:
    value = json.get(key)
    if value is None:
        raise SpecError(f"Cannot parse missing field: {key}", path)
    return value


def _bad_member(json: dict[str, Json], key: str, kind: str, path: str) -> SpecError:
    value = json.get(key)
    if value is None:
        return SpecError(f"Cannot parse missing field: {key}", path)
    return SpecError(f"Cannot parse to a {kind}: {describe(value)}", f"{path}.{key}")


def type_to_json(field_type: Type) -> Json:
    """The JSON form: a type string, or an object for struct, list and map. Unknown extra keys are written back."""
    if not isinstance(field_type, NESTED_TYPES):
        return str(field_type)
    if isinstance(field_type, StructType):
        return {"type": "struct", "fields": [field_to_json(field) for field in field_type.fields], **field_type.extra}
    if isinstance(field_type, ListType):
        return {
            "type": "list",
            "element-id": field_type.element_id,
            "element": type_to_json(field_type.element),
            "element-required": field_type.element_required,
            **field_type.extra,
        }
    return {
        "type": "map",
        "key-id": field_type.key_id,
        "key": type_to_json(field_type.key),
        "value-id": field_type.value_id,
        "value": type_to_json(field_type.value),
        "value-required": field_type.value_required,
        **field_type.extra,
    }


def field_to_json(field: NestedField) -> dict[str, Json]:
    """The JSON form of a struct field; an absent or null doc or default is left out."""
    out: dict[str, Json] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.field_type),
    }
    if field.doc is not None:
        out["doc"] = field.doc
    if field.has_initial_default:
        out["initial-default"] = settled_default(field.field_type, field.initial_default)
    if field.has_write_default:
        out["write-default"] = settled_default(field.field_type, field.write_default)
    if field.extra:
        out.update(field.extra)
    return out
