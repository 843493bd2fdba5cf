"""The promotion table of the spec, and what transforms make of it."""

from __future__ import annotations

import itertools

import pytest

from app.evolution.engine.promotion import changes_output, outgrows, promotable, wider_type
from app.iceberg.transforms import parse_transform
from app.iceberg.types import parse_type
from app.iceberg.values import parse_value

PRIMITIVES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 2)",
    "decimal(18, 2)",
    "decimal(18, 4)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "uuid",
    "fixed[16]",
    "fixed[8]",
    "binary",
    "unknown",
    "variant",
    "geometry",
    "geography",
)
FROM_V1 = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(18, 2)")}
FROM_V3 = {("date", "timestamp"), ("date", "timestamp_ns")}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_only_the_edges_of_the_spec(version: int) -> None:
    """Of all ordered pairs of types, exactly those of the spec's table are promotions, by format version."""
    legal = set(FROM_V1)
    if version >= 3:
        legal |= FROM_V3 | {("unknown", other) for other in PRIMITIVES if other != "unknown"}
    found = {
        (one, other)
        for one, other in itertools.product(PRIMITIVES, PRIMITIVES)
        if promotable(parse_type(one), parse_type(other), version)
    }
    assert found == legal


def test_unknown_becomes_nested_types_too() -> None:
    """The spec says any type."""
    nested = parse_type({"type": "list", "element-id": 2, "element": "int", "element-required": False})
    assert promotable(parse_type("unknown"), nested, 3)
    assert not promotable(nested, parse_type("unknown"), 3)


VALUES = {"int": 34, "date": "2017-11-16", "decimal(9, 2)": "14.20", "float": 1.5}


@pytest.mark.parametrize(("one", "other"), sorted(FROM_V1 | FROM_V3))
@pytest.mark.parametrize("name", ["identity", "bucket[16]", "truncate[10]", "year", "month", "day", "void"])
def test_changed_output_is_what_the_transforms_yield(one: str, other: str, name: str) -> None:
    """Whether a transform's output changes is what applying it to a value before and after promotion shows."""
    before, after, transform = parse_type(one), parse_type(other), parse_transform(name)
    if not transform.accepts(before) or not transform.accepts(after):
        assert not changes_output(transform, before, after)
        return
    text = VALUES[one]
    promoted = f"{text}T00:00:00" if one == "date" else text
    old, new = (transform.apply(t, parse_value(t, v)) for t, v in ((before, text), (after, promoted)))
    assert changes_output(transform, before, after) == (old != new)


def test_the_example_of_the_spec_section() -> None:
    """2017-11-16 is in bucket 10 of 16 as a date and in bucket 6 as a timestamp."""
    bucket = parse_transform("bucket[16]")
    day, moment = parse_type("date"), parse_type("timestamp")
    assert bucket.apply(day, parse_value(day, "2017-11-16")) == 10
    assert bucket.apply(moment, parse_value(moment, "2017-11-16T00:00:00")) == 6


def test_outgrown_transforms() -> None:
    """identity takes unknown but not geometry; void takes everything; a new hour is no loss."""
    unknown, geometry = parse_type("unknown"), parse_type("geometry")
    assert outgrows(parse_transform("identity"), unknown, geometry)
    assert not outgrows(parse_transform("void"), unknown, geometry)
    assert not outgrows(parse_transform("hour"), parse_type("date"), parse_type("timestamp"))


@pytest.mark.parametrize(
    ("kind", "version", "named"),
    [
        ("int", 1, "long"),
        ("float", 2, "double"),
        ("date", 2, None),
        ("date", 3, "timestamp or timestamp_ns"),
        ("string", 3, None),
        ("decimal(38, 2)", 3, None),
    ],
)
def test_the_wider_type_that_messages_name(kind: str, version: int, named: str | None) -> None:
    """A message names a wider type only where the table's version has one."""
    assert wider_type(parse_type(kind), version) == named
