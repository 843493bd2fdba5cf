"""Random schemas and random changes of them, for laws that hold for all."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from app.iceberg.schema import Schema, parse_schema
from tests.evolution.tables import Json, list_of, map_of, schema, struct

PRIMITIVES = (
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 2)",
    "decimal(12, 2)",
    "decimal(12, 4)",
    "date",
    "timestamp",
    "string",
    "binary",
    "uuid",
    "fixed[16]",
    "unknown",
    "variant",
)
NAMES = ("a", "b", "c", "d", "e", "f")


@st.composite
def _type(draw: st.DrawFn, ids: list[int], depth: int) -> Any:
    """A type that takes its inner IDs from `ids`, a shuffled pool; a primitive once that is empty."""
    shapes = ["primitive", "primitive", "struct", "list", "map"] if depth and ids else ["primitive"]
    shape = draw(st.sampled_from(shapes))
    if shape == "struct":
        return struct(*draw(_fields(ids, depth - 1, 3)))
    if shape == "list":
        return list_of(ids.pop(), *draw(_optional_type(ids, depth - 1)))
    if shape == "map" and len(ids) > 1:
        key_id, value_id = ids.pop(), ids.pop()
        key = draw(_type(ids, depth - 1).filter(lambda t: t != "unknown"))
        return map_of(key_id, key, value_id, *draw(_optional_type(ids, depth - 1)))
    return draw(st.sampled_from(PRIMITIVES))


@st.composite
def _optional_type(draw: st.DrawFn, ids: list[int], depth: int) -> tuple[Any, bool]:
    kind = draw(_type(ids, depth))
    return kind, kind != "unknown" and draw(st.booleans())


@st.composite
def _fields(draw: st.DrawFn, ids: list[int], depth: int, most: int) -> list[Json]:
    names = draw(st.permutations(NAMES))
    out = []
    for name in names[: draw(st.integers(1, most))]:
        if not ids:
            break
        field_id = ids.pop()
        kind = draw(_type(ids, depth))
        out.append(
            {
                "id": field_id,
                "name": name,
                "type": kind,
                "required": kind != "unknown" and draw(st.booleans()),
                **({"doc": "x"} if draw(st.integers(0, 5)) == 0 else {}),
                **({"initial-default": 1} if kind == "int" and draw(st.booleans()) else {}),
            }
        )
    return out


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2, most_ids: int = 12) -> Schema:
    """A schema with IDs from a small pool, so that two of them share IDs in other places and with other types."""
    ids = draw(st.permutations(range(1, most_ids + 1)))
    return parse_schema(schema(*draw(_fields(list(ids), depth, 4))))
