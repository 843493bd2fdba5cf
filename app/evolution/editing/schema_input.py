"""Schemas and types as people and programs write them: field IDs may be left out, a field may say what it was called.

Three forms: Iceberg's JSON (a struct with `fields`), a bare list of fields as PyIceberg dumps them, and an Arrow IPC
schema message. Whatever comes without IDs gets placeholders, which are below zero and never reach a table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Final

import msgspec

from app.errors import BadRequest, SpecError
from app.evolution.editing.arrow_ipc import fields_of
from app.iceberg.json.codec import Json, as_int32_list, as_list, as_object, as_str, describe
from app.iceberg.schema import Schema
from app.iceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    parse_fields,
    parse_type,
)

RENAMED_FROM: Final = "renamed-from"
"""In a declared field: the name that its column has in the table so far."""

_FORMS: Final = ("schema", "fields", "arrow-ipc-schema")


class Wanted(msgspec.Struct, frozen=True):
    """A schema that somebody asks for. `numbered` tells whether every field came with an ID of its own."""

    fields: tuple[NestedField, ...]
    numbered: bool
    identifier_names: tuple[str, ...] | None = None
    identifier_ids: tuple[int, ...] = ()

    def schema(self) -> Schema:
        """As a schema by its own IDs; SpecError when they or the names clash."""
        return Schema(0, _without_hints(self.fields), self.identifier_ids)


def is_given(body: Mapping[str, Json]) -> bool:
    """Whether the object holds a schema in one of the three forms."""
    return any(body.get(form) is not None for form in _FORMS)


def wanted_schema(body: Mapping[str, Json], path: str = "$") -> Wanted:
    """The schema that an object holds under `schema`, `fields` or `arrow-ipc-schema` (base64).

    `identifier-fields`, a list of full names, may stand beside any of them. BadRequest unless there is exactly one.
    """
    given = [form for form in _FORMS if body.get(form) is not None]
    if len(given) != 1:
        raise BadRequest(f"Exactly one of {', '.join(_FORMS)} is needed at {path}")
    form, value, here = given[0], body[given[0]], f"{path}.{given[0]}"
    if form == "arrow-ipc-schema":
        wanted = Wanted(_of_arrow(value, here), False)
    elif form == "fields" or type(value) is list:
        wanted = _of_fields({"fields": as_list(value, here)}, here)
    else:
        wanted = _of_fields(as_object(value, here), here)
    names = body.get("identifier-fields")
    if names is None:
        return wanted
    texts = as_list(names, f"{path}.identifier-fields")
    return msgspec.structs.replace(
        wanted, identifier_names=tuple(as_str(name, f"{path}.identifier-fields") for name in texts)
    )


def wanted_type(value: Json, path: str = "$") -> Type:
    """A type in Iceberg's JSON form, in which nested IDs and `required` may be left out."""
    return parse_type(_numbered(value, count(-2, -1)), path)


def renamed_from(field: NestedField) -> str | None:
    """The former name that a declared field gives; SpecError unless it is a string."""
    hint = field.extra.get(RENAMED_FROM)
    return None if hint is None else as_str(hint, f"$.{field.name}.{RENAMED_FROM}")


def _of_fields(value: Mapping[str, Json], path: str) -> Wanted:
    kind = value.get("type", "struct")
    if kind != "struct":
        raise SpecError(f"Cannot create schema, not a struct type: {describe(kind)}", path)
    fields = as_list(value.get("fields"), f"{path}.fields")
    parsed = parse_fields(_numbered({"type": "struct", "fields": fields}, count(-2, -1)), path)
    identifiers = value.get("identifier-field-ids")
    return Wanted(
        parsed,
        bool(fields) and all(_all_numbered(field) for field in fields),
        identifier_ids=() if identifiers is None else as_int32_list(identifiers, f"{path}.identifier-field-ids"),
    )


def _of_arrow(value: Json, path: str) -> tuple[NestedField, ...]:
    try:
        message = base64.b64decode(as_str(value, path), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"Not base64 at {path}") from None
    fields = fields_of(message)
    return parse_fields(_numbered({"type": "struct", "fields": fields}, count(-2, -1)), path)


def _numbered(value: Json, fresh: Iterator[int]) -> Json:
    """The JSON type with placeholders for missing IDs and `false` for missing `required`s."""
    if type(value) is not dict:
        return value
    kind = value.get("type")
    if kind == "struct" and type(value.get("fields")) is list:
        return {**value, "fields": [_numbered_field(field, fresh) for field in value["fields"]]}
    if kind == "list":
        return {
            "element-required": False,
            **value,
            "element-id": _id(value, "element-id", fresh),
            "element": _numbered(value.get("element"), fresh),
        }
    if kind == "map":
        return {
            "value-required": False,
            **value,
            "key-id": _id(value, "key-id", fresh),
            "value-id": _id(value, "value-id", fresh),
            "key": _numbered(value.get("key"), fresh),
            "value": _numbered(value.get("value"), fresh),
        }
    return value


def _numbered_field(field: Json, fresh: Iterator[int]) -> Json:
    if type(field) is not dict:
        return field
    required = field.get("required")
    return {
        **field,
        "id": _id(field, "id", fresh),
        "required": False if required is None else required,
        "type": _numbered(field.get("type"), fresh),
    }


def _id(value: Mapping[str, Json], key: str, fresh: Iterator[int]) -> Json:
    known = value.get(key)
    return next(fresh) if known is None else known


def _all_numbered(value: Json) -> bool:
    """Whether every ID that the JSON form has a place for is there."""
    if type(value) is not dict:
        return True
    kind = value.get("type")
    wanted: tuple[str, ...] = ("id",) if "name" in value else ()
    if kind in ("list", "map") and "name" not in value:
        wanted = ("element-id",) if kind == "list" else ("key-id", "value-id")
    if any(value.get(key) is None for key in wanted):
        return False
    inner: Iterable[Json] = (value.get("type"), value.get("element"), value.get("key"), value.get("value"))
    fields = value.get("fields")
    return all(map(_all_numbered, inner)) and (type(fields) is not list or all(map(_all_numbered, fields)))


def _without_hints(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    return tuple(plain_field(field) for field in fields)


def plain_field(field: NestedField) -> NestedField:
    """The field without hints about its past, at every depth."""
    extra = {key: value for key, value in field.extra.items() if key != RENAMED_FROM}
    return msgspec.structs.replace(field, field_type=plain_type(field.field_type), extra=extra)


def plain_type(field_type: Type) -> Type:
    """As `plain_field`, for a type."""
    if isinstance(field_type, StructType):
        return StructType(_without_hints(field_type.fields), field_type.extra)
    if isinstance(field_type, ListType):
        return msgspec.structs.replace(field_type, element=plain_type(field_type.element))
    if isinstance(field_type, MapType):
        return msgspec.structs.replace(field_type, key=plain_type(field_type.key), value=plain_type(field_type.value))
    return field_type
