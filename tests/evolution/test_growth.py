"""Planning, judging and assessing operations takes work in proportion to what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.catalog.assessments import assess
from app.commit.tables import apply
from app.errors import BadRequest
from app.evolution.change import Evidence
from app.evolution.judge import judge
from app.evolution.operations import MOST_DECLARATIONS, MOST_OPERATIONS, parse_operations
from app.evolution.planning import plan
from app.rules import Policy
from app.spec.table import TableMetadata
from tests.evolution.tables import NOW, UUID, branch, field, list_of, part, schema, snapshot, struct, table
from tests.work import MOST_GROWTH, growth

Json = dict[str, Any]
Operations = Callable[[int], list[Json]]


def wide(size: int) -> TableMetadata:
    """As many columns, and as much that follows them: a name mapping, properties, a partition field each."""
    mapping = [{"field-id": at + 1, "names": [f"c{at}"]} for at in range(size)]
    metrics = {f"write.metadata.metrics.column.c{at}": "full" for at in range(size)}
    return table(
        schema(*[field(at + 1, f"c{at}", "int") for at in range(size)]),
        specs=[[part(at + 1, "bucket[8]", f"p{at}", 1000 + at) for at in range(size)]],
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
        properties={"schema.name-mapping.default": json.dumps(mapping), **metrics},
    )


def each(size: int, **more: Any) -> list[Json]:
    return [{"path": f"c{at}", **more} for at in range(size)]


def kind(size: int, name: str = "n") -> Json:
    return {"type": "struct", "fields": [{"name": f"{name}{at}", "type": "int"} for at in range(size)]}


OPERATIONS: dict[str, Operations] = {
    "rename": lambda n: [{"op": "rename", "path": f"c{at}", "to": f"d{at}"} for at in range(n)],
    "rename, then by the new names": lambda n: [
        *({"op": "rename", "path": f"c{at}", "to": f"d{at}"} for at in range(n)),
        *({"op": "set-doc", "path": f"d{at}", "doc": "x"} for at in range(n)),
    ],
    "move first": lambda n: each(n, op="move", first=True),
    "move after": lambda n: [{"op": "move", "path": f"c{at}", "after": f"c{(at + 1) % n}"} for at in range(n)],
    "drop": lambda n: each(n, op="drop")[1:],
    "add": lambda n: [{"op": "add", "path": f"n{at}", "type": "int"} for at in range(n)],
    "add first": lambda n: [{"op": "add", "path": f"n{at}", "type": "int", "first": True} for at in range(n)],
    "add and drop": lambda n: [
        one for at in range(n) for one in ({"op": "add", "path": "x", "type": "int"}, {"op": "drop", "path": "x"})
    ],
    "add inside": lambda n: [
        {"op": "add", "path": "s", "type": struct()},
        *({"op": "add", "path": f"s.n{at}", "type": "int"} for at in range(n)),
    ],
    "add one wide struct": lambda n: [{"op": "add", "path": "s", "type": list_of(0, kind(n))}],
    "promote": lambda n: each(n, op="promote", type="long"),
    "make-optional": lambda n: each(n, op="make-optional"),
    "set-doc": lambda n: each(n, op="set-doc", doc="x"),
    "set-write-default": lambda n: each(n, op="set-write-default", value=3),
    "set-identifier-fields": lambda n: [{"op": "set-identifier-fields", "paths": []}] * n,
    "union-by-name": lambda n: [{"op": "union-by-name", "schema": kind(1, f"u{at}_")} for at in range(n)],
    "a wide union-by-name": lambda n: [{"op": "union-by-name", "schema": kind(n)}],
    "a wide declare": lambda n: [{"op": "declare", "schema": kind(n, "c")}],
    "replace-as": lambda n: [
        {"op": "replace-as", "path": f"c{at}", "type": "string", "keep-as": f"k{at}"} for at in range(n)
    ],
}


def asked(base: TableMetadata, operations: list[Json]) -> Callable[[], object]:
    """What a check of operations does, the reading of files aside."""

    def work() -> None:
        made = plan(base, parse_operations(operations))
        after = apply(base, None, made.updates, NOW + 1_000_000, UUID).metadata
        verdict = judge(base, after, Evidence(specs_in_use=None, now_ms=NOW), Policy(), NOW)
        assess(base, None, after, verdict.findings)

    return work


@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=list(OPERATIONS))
def test_twice_the_operations_on_twice_the_columns_are_twice_the_work(operations: Operations) -> None:
    """Every kind of operation finds, names and places its column without going through all of them."""
    assert growth(lambda size: asked(wide(size), operations(size))) <= MOST_GROWTH


def test_restoring_looks_into_each_retained_schema_once() -> None:
    """Not once for each column that comes back."""

    def work(size: int) -> Callable[[], object]:
        full = schema(*[field(at + 1, f"c{at}", "int") for at in range(size)])
        base = table(full, schema(field(1, "c0", "int"), schema_id=1), last_column_id=size)
        return asked(base, [{"op": "restore", "field-id": at + 1} for at in range(1, size)])

    assert growth(work) <= MOST_GROWTH


def test_operations_of_one_plan_are_bounded() -> None:
    """With the limit in the message; declarations, which go through the whole schema, more narrowly."""
    with pytest.raises(BadRequest, match=f"at most {MOST_OPERATIONS} make one plan"):
        parse_operations([{"op": "drop", "path": "x"}] * (MOST_OPERATIONS + 1))
    with pytest.raises(BadRequest, match=f"at most {MOST_DECLARATIONS} are in one plan"):
        parse_operations([{"op": "declare", "schema": kind(1)}] * (MOST_DECLARATIONS + 1))
