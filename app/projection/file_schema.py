"""The columns of one data file as its footer tells them: names, field ids if any, and stored types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from app.iceberg.schema import Schema
from app.iceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
)

Shape = Literal["value", "struct", "list", "map"]

LIST_CHILDREN = ("element",)
MAP_CHILDREN = ("key", "value")


class FileField(msgspec.Struct, frozen=True):
    """One column at any depth.

    `value_type` is the stored type of a `value` shape, None where Iceberg has no such type; `text` is how messages
    print the stored type. A list has one child, a map two (key, value); their names count as `element`, `key` and
    `value` whatever the file calls them.
    """

    name: str
    field_id: int | None
    shape: Shape
    text: str
    value_type: Type | None = None
    children: tuple[FileField, ...] = ()

    def walk(self) -> Iterator[FileField]:
        """This column and everything inside it."""
        yield self
        for child in self.children:
            yield from child.walk()


class FileSchema(msgspec.Struct, frozen=True):
    """The top-level columns in file order."""

    fields: tuple[FileField, ...] = ()

    @property
    def has_ids(self) -> bool:
        """Whether any column, however deep, carries a field id: then the file is read by ids alone."""
        return any(field.field_id is not None for column in self.fields for field in column.walk())

    @classmethod
    def of(cls, schema: Schema) -> FileSchema:
        """The file that a conforming writer makes under `schema`: every column but those of type unknown."""
        return cls(_stored(schema.fields))


def _stored(fields: tuple[NestedField, ...]) -> tuple[FileField, ...]:
    return tuple(_stored_field(field) for field in fields if not isinstance(field.field_type, UnknownType))


def _stored_field(field: NestedField) -> FileField:
    stored, name, field_id = field.field_type, field.name, field.field_id
    match stored:
        case StructType():
            return FileField(name, field_id, "struct", str(stored), None, _stored(stored.fields))
        case ListType():
            return FileField(name, field_id, "list", str(stored), None, (_stored_field(stored.element_field),))
        case MapType():
            children = (_stored_field(stored.key_field), _stored_field(stored.value_field))
            return FileField(name, field_id, "map", str(stored), None, children)
    return FileField(name, field_id, "value", str(stored), stored)
