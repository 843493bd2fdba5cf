"""Effective defaults (table spec: Default values)."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import SpecError
from app.iceberg.types import NestedField
from app.projection.defaults import effective_default
from tests.projection.shorthand import field, list_of, map_of, of, struct


def _only(json: dict[str, Any]) -> NestedField:
    return of(json).fields[0]


def test_absent_and_null_are_no_default() -> None:
    """Both stand for null, also in a struct whose children have defaults."""
    assert effective_default(_only(field(1, "a", "int")), "initial") is None
    assert effective_default(_only(field(1, "a", "int", initial=None)), "initial") is None
    point = _only(field(1, "p", struct(field(2, "x", "int", initial=0)), initial=None))
    assert effective_default(point, "initial") is None


def test_readers_and_writers_use_their_own_default() -> None:
    """The kind holds at every depth."""
    child = field(2, "x", "int", initial=1, write=2)
    point = _only(field(1, "p", struct(child, field(3, "y", "int", write=5)), initial={}, write={}))
    assert effective_default(point, "initial") == (1, None)
    assert effective_default(point, "write") == (2, 5)


def test_structs_are_composed_at_every_depth() -> None:
    """A child struct without default is null inside its parent's."""
    inner = field(3, "in", struct(field(4, "x", "int", initial=7)), initial={})
    other = field(5, "no", struct(field(6, "y", "int", initial=8)))
    assert effective_default(_only(field(1, "out", struct(inner, other), initial={})), "initial") == ((7,), None)


@pytest.mark.parametrize(
    "bad",
    [
        field(1, "p", struct(field(2, "x", "int", True)), initial={}),
        field(1, "p", struct(field(2, "x", "int", True, write=1)), initial={}),
        field(1, "p", struct(field(2, "x", "int")), initial={"2": 1}),
        field(1, "p", struct(field(2, "x", "int", initial="1")), initial={}),
        field(1, "n", "int", initial="34"),
        field(1, "g", "geometry", initial="POINT (1 1)"),
    ],
)
def test_what_is_no_default_is_refused(bad: dict[str, Any]) -> None:
    """A hole, values inside a struct's default, a value of another type."""
    with pytest.raises(SpecError):
        effective_default(_only(bad), "initial")


def test_lists_and_maps_have_defaults_by_the_spec() -> None:
    """Their JSON forms are single values as well."""
    assert effective_default(_only(field(1, "l", list_of(2, "int"), initial=[1, None])), "initial") == (1, None)
    pairs = _only(field(1, "m", map_of(2, "string", 3, "int"), initial={"keys": ["a"], "values": [1]}))
    assert effective_default(pairs, "initial") == frozenset({("a", 1)})


def test_known_values_come_before_defaults() -> None:
    """A value that is known for a child is used for it, and fills a hole."""
    point = _only(field(1, "p", struct(field(2, "x", "int", True), field(3, "y", "int", initial=4)), initial={}))
    assert effective_default(point, "initial", {2: 9}) == (9, 4)
    with pytest.raises(SpecError):
        effective_default(point, "initial", {2: None})
