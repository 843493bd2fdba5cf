"""Plans against the reference Python client: the same operations, the same IDs, order and nesting."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema as TheirSchema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.update.schema import UpdateSchema

from app.errors import IcekeelError
from app.evolution.editing.operations import parse_operations
from app.evolution.editing.plan import plan
from app.iceberg.schema import parse_schema, schema_to_json
from app.iceberg.table import TableMetadata
from tests.evolution.tables import field, list_of, map_of, schema, struct, table

Json = dict[str, Any]
PRIMITIVES = ("int", "long", "float", "double", "decimal(9, 2)", "string", "date", "boolean")
WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}
DOCS: tuple[Json, ...] = ({}, {"doc": "d"})
NAMES = ("a", "b", "c", "d", "e")


@st.composite
def types(draw: st.DrawFn, ids: Any, depth: int) -> Any:
    shape = draw(st.sampled_from(["value"] * 3 + ["struct", "list", "map"])) if depth else "value"
    if shape == "struct":
        return struct(*draw(columns(ids, depth - 1)))
    if shape == "list":
        return list_of(next(ids), draw(types(ids, depth - 1)), draw(st.booleans()))
    if shape == "map":
        return map_of(next(ids), "string", next(ids), draw(types(ids, depth - 1)), draw(st.booleans()))
    return draw(st.sampled_from(PRIMITIVES))


@st.composite
def columns(draw: st.DrawFn, ids: Any, depth: int) -> list[Json]:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 3))]
    return [
        field(next(ids), name, draw(types(ids, depth)), draw(st.booleans()), **draw(st.sampled_from(DOCS)))
        for name in names
    ]


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableMetadata, Json]:
    ids = iter(range(1, 500))
    made = schema(*draw(columns(ids, 2)))
    gap = draw(st.integers(0, 3))
    base = table(made)
    return table(made, last_column_id=base.last_column_id + gap), made


def theirs(base: TableMetadata, made: Json) -> UpdateSchema:
    """PyIceberg's builder on the same table."""
    metadata = TableMetadataV2.model_construct(
        schemas=[TheirSchema.model_validate(made)],
        current_schema_id=made["schema-id"],
        last_column_id=base.last_column_id,
        partition_specs=[],
    )
    return UpdateSchema(SimpleNamespace(table_metadata=metadata), allow_incompatible_changes=True)  # type: ignore[arg-type]


@st.composite
def operations(draw: st.DrawFn, made: Json) -> list[Json]:
    """Operations on original columns; each is given to both sides, and most of them have a meaning."""
    parsed = parse_schema(made)
    fields = [i for i in parsed.by_id if parsed.kind_of(i) == "field"]
    fresh = iter(range(1000, 2000))
    gone: set[int] = set()
    out: list[Json] = []
    for _ in range(draw(st.integers(1, 5))):
        fields = [i for i in fields if i not in gone and not any(a.field_id in gone for a in parsed.ancestors(i))]
        if not fields:
            break
        field_id = draw(st.sampled_from(fields))
        column, path = parsed.by_id[field_id], parsed.name_of(field_id)
        parent = parsed.parents[field_id]
        siblings = [parsed.name_of(i) for i in fields if parsed.parents[i] == parent and i != field_id]
        place = {"first": True} if not siblings or draw(st.booleans()) else {
            draw(st.sampled_from(["before", "after"])): draw(st.sampled_from(siblings))
        }  # fmt: skip
        prefix = "" if parent is None else f"{parsed.name_of(parent)}."
        kind = column.field_type
        match draw(st.sampled_from(["add", "add", "drop", "rename", "move", "promote", "optional", "doc"])):
            case "add":
                name = f"n{next(fresh)}"
                kind, doc = draw(types(iter(range(1, 99)), 2)), draw(st.sampled_from([None, "new"]))
                added = {"op": "add", "path": f"{prefix}{name}", "type": kind, "doc": doc}
                out.append({**added, **(place if draw(st.booleans()) else {})})
                if draw(st.booleans()) and siblings:
                    out.append({"op": "move", "path": f"{prefix}{name}", **place})
            case "drop":
                out.append({"op": "drop", "path": path})
                gone.add(field_id)
            case "rename":
                out.append({"op": "rename", "path": path, "to": f"r{next(fresh)}"})
            case "move":
                out.append({"op": "move", "path": path, **place})
            case "promote" if str(kind) in WIDER:
                out.append({"op": "promote", "path": path, "type": WIDER[str(kind)]})
            case "optional":
                out.append({"op": "make-optional", "path": path})
            case _:
                out.append({"op": "set-doc", "path": path, "doc": "changed"})
    return out


def carried_out(builder: UpdateSchema, ops: list[Json]) -> TheirSchema:
    for op in ops:
        path = tuple(op["path"].split("."))
        match op["op"]:
            case "add":
                builder.add_column(path, _their_type(op["type"]), doc=op["doc"])
                _move(builder, op)
            case "drop":
                builder.delete_column(path)
            case "rename":
                builder.rename_column(path, op["to"])
            case "move":
                _move(builder, op)
            case "promote":
                builder.update_column(path, _their_type(op["type"]))
            case "make-optional":
                builder.make_column_optional(path)
            case "set-doc":
                builder.update_column(path, doc=op["doc"])
    return builder._apply()


def _move(builder: UpdateSchema, op: Json) -> None:
    if op.get("first"):
        builder.move_first(op["path"])
    elif "before" in op:
        builder.move_before(op["path"], op["before"])
    elif "after" in op:
        builder.move_after(op["path"], op["after"])


def _their_type(kind: Any) -> Any:
    wrapped = TheirSchema.model_validate(schema(field(9999, "x", kind)))
    return wrapped.fields[0].field_type


def as_json(of: TheirSchema) -> Json:
    made = json.loads(of.model_dump_json())
    return {**made, "schema-id": 0}


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data())
def test_a_plan_is_what_pyiceberg_makes_of_the_same_operations(data: st.DataObject) -> None:
    """Whatever both accept comes out as the same schema: IDs, order, nesting, docs."""
    base, made = data.draw(tables())
    ops = data.draw(operations(made))
    try:
        expected = as_json(carried_out(theirs(base, made), ops))
    except (ValueError, ValidationError, StopIteration, KeyError):
        # PyIceberg takes fewer sequences than we do: no drop of what was edited before, no struct that becomes empty.
        return
    assert our_schema(base, ops) == normal(expected)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_union_by_name_is_what_pyiceberg_makes_of_it(data: st.DataObject) -> None:
    """Nested columns come before those of the struct around them; types only widen, docs follow."""
    base, made = data.draw(tables())
    wanted = schema(*optional(data.draw(columns(iter(range(1, 500)), 2))))
    builder = theirs(base, made)
    try:
        builder.union_by_name(TheirSchema.model_validate(wanted))
        expected = as_json(builder._apply())
    except (ValueError, ValidationError, AttributeError):
        return
    try:
        ours = our_schema(base, [{"op": "union-by-name", "schema": wanted}])
    except IcekeelError:
        # PyIceberg, told to allow incompatible changes, retypes what cannot be united.
        return
    assert ours == normal(expected)


def optional(kind: Any) -> Any:
    """New columns come as optional in any case."""
    if isinstance(kind, list):
        return [optional(one) for one in kind]
    if isinstance(kind, dict):
        return {key: False if key == "required" else optional(value) for key, value in kind.items()}
    return kind


def our_schema(base: TableMetadata, ops: list[Json]) -> Json:
    return normal(schema_to_json(plan(base, parse_operations(ops)).schema.with_id(0)))


def normal(made: Json) -> Json:
    """Through our own parser, so that spelling does not matter."""
    return schema_to_json(parse_schema({k: v for k, v in made.items() if k != "identifier-field-ids" or v}))
