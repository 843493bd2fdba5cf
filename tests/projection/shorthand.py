"""Schemas and plans in the shorthand of the reader's tests."""

from __future__ import annotations

from typing import Any

import msgspec

from app.iceberg.name_mapping import NameMapping, parse_name_mapping
from app.iceberg.schema import Schema, parse_schema
from app.iceberg.types import parse_type
from app.projection.file_schema import FileSchema
from app.projection.projection import (
    Answer,
    Column,
    Constant,
    PartitionValue,
    Projected,
    Projection,
    Unreadable,
    project,
)
from tests.evolution.tables import field, list_of, map_of, struct

__all__ = ["answers", "bare", "field", "list_of", "map_of", "mapping", "of", "part", "plan", "struct"]


def of(*fields: dict[str, Any]) -> Schema:
    return parse_schema({"type": "struct", "schema-id": 0, "fields": list(fields)})


def mapping(text: str) -> NameMapping:
    return parse_name_mapping(text)


def part(type_text: str, value: Any) -> PartitionValue:
    return PartitionValue(parse_type(type_text), value)


def bare(schema: Schema) -> FileSchema:
    """The file that a writer without field ids makes."""

    def strip(found: Any) -> Any:
        return msgspec.structs.replace(found, field_id=None, children=tuple(map(strip, found.children)))

    return FileSchema(tuple(map(strip, FileSchema.of(schema).fields)))


def plan(
    file: FileSchema | Schema, requested: Schema, names: str | None = None, **partition: PartitionValue
) -> Projection:
    """`f3=part("int", 7)` is the partition value of field 3."""
    values = {int(key[1:]): value for key, value in partition.items()}
    return project(file, requested, None if names is None else mapping(names), values)


def answers(projection: Projection) -> dict[int, Any]:
    """By field id: a file column as its position, a constant as its rule and value, a fault as None."""
    return {found.field.field_id: _answer(found) for found in projection.walk()}


def _answer(found: Projected) -> Any:
    match found:
        case Column(position=position):
            return position
        case Constant(answer=Answer.NULL):
            return "null"
        case Constant(answer=answer, value=value):
            return answer, value
        case Unreadable():
            return None
