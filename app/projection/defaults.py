"""Effective defaults of fields, composed through nested structs (table spec: Default values)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from app.errors import SpecError
from app.iceberg.json.codec import describe
from app.iceberg.types import NestedField, StructType
from app.iceberg.values import parse_value

DefaultKind = Literal["initial", "write"]

_NOTHING: Final[Mapping[int, Any]] = {}


def effective_default(field: NestedField, kind: DefaultKind, known: Mapping[int, Any] = _NOTHING) -> Any:
    """The canonical value (`app.iceberg.values`) that stands in for the field as a whole; None for null.

    A struct's default is null, whatever its fields' defaults are, or `{}`: then it is built from the fields' own.
    `known` holds values by field id that come before a default (partition values of the struct's fields). Readers
    use "initial", writers "write". Whether null may stand in for the field itself is the caller's to judge.

    Raises SpecError for a default that is no value of the type, and for `{}` where a required field has no default.
    """
    default = field.initial_default if kind == "initial" else field.write_default
    present = field.has_initial_default if kind == "initial" else field.has_write_default
    if not present:
        return None
    if not isinstance(field.field_type, StructType):
        return parse_value(field.field_type, default)
    if default != {}:
        raise SpecError(f"Default of struct {field.name} must be null or {{}}: {describe(default)}")
    return tuple(_child_default(child, kind, known) for child in field.field_type.fields)


def _child_default(child: NestedField, kind: DefaultKind, known: Mapping[int, Any]) -> Any:
    value = known[child.field_id] if child.field_id in known else effective_default(child, kind, known)
    if value is None and child.required:
        raise SpecError(f"Field {child.name} (field {child.field_id}) is required and has no {kind} default")
    return value
