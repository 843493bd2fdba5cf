"""Name mappings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.iceberg.json.codec import encode
from app.iceberg.name_mapping import (
    MAX_MAPPING_DEPTH,
    MappedField,
    NameMapping,
    parse_name_mapping,
    render_name_mapping,
)
from tests.iceberg.strategies import EXTRA, INT32, JSON_VALUES, TEXT

EXAMPLE = """
[ { "field-id": 1, "names": ["id", "record_id"] },
  { "field-id": 2, "names": ["da\\u0074a", "a.b", "\\"q\\""] },
  { "field-id": 3, "names": ["location"], "fields": [
      { "field-id": 4, "names": ["latitude", "lat"] },
      { "names": ["extra"] } ] },
  { "field-id": 5, "names": [] } ]
"""

ENTRIES = st.recursive(
    st.builds(MappedField, st.lists(TEXT, max_size=3).map(tuple), st.none() | INT32, st.just(()), EXTRA),
    lambda inner: st.builds(
        MappedField, st.lists(TEXT, max_size=2).map(tuple), st.none() | INT32, st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


@given(st.lists(ENTRIES, max_size=4).map(lambda entries: NameMapping(tuple(entries))))
def test_every_mapping_reads_back(mapping: NameMapping) -> None:
    """Rendering and parsing gives an equal mapping; every id is found."""
    assert parse_name_mapping(render_name_mapping(mapping)) == mapping
    for field_id in mapping.ids():
        found = mapping.find_id(field_id)
        assert found is not None
        assert found.field_id == field_id


@given(JSON_VALUES.map(lambda value: encode(value).decode()) | st.text(max_size=30))
def test_any_text_is_a_mapping_or_a_spec_error(text: str) -> None:
    """Users write this property by hand: nothing but SpecError comes of it."""
    try:
        parse_name_mapping(text)
    except SpecError as fault:
        assert fault.message


def test_names_are_literal() -> None:
    """A dot is part of a name, escapes are JSON's, and a path walks from entry to entry."""
    mapping = parse_name_mapping(EXAMPLE)
    expected: dict[tuple[str, ...], int | None] = {
        ("id",): 1, ("record_id",): 1, ("data",): 2, ("a.b",): 2, ('"q"',): 2, ("location", "lat"): 4,
        ("location", "extra"): None,
    }  # fmt: skip
    for path, field_id in expected.items():
        found = mapping.find(path)
        assert found is not None
        assert found.field_id == field_id
    for path in ((), ("a", "b"), ("location.lat",), ("lat",), ("location", "lat", "x"), ("Id",)):
        assert mapping.find(path) is None
    assert mapping.ids() == (1, 2, 3, 4, 5)
    assert mapping.find_id(9) is None
    assert mapping.fields[2].child("latitude") == MappedField(("latitude", "lat"), 4)


def test_walking_gives_parents_first() -> None:
    """Each entry comes with the entries that enclose it."""
    mapping = parse_name_mapping(EXAMPLE)
    walked = [(len(above), entry.names[:1]) for above, entry in mapping.walk()]
    assert walked == [(0, ("id",)), (0, ("data",)), (0, ("location",)), (1, ("latitude",)), (1, ("extra",)), (0, ())]


def test_missing_members_are_empty() -> None:
    """names, field-id and fields may be absent or null."""
    nothing = MappedField(())
    assert parse_name_mapping('[{}, {"names": null, "field-id": null, "fields": null}]').fields == (nothing, nothing)
    assert render_name_mapping(NameMapping((nothing,))) == '[{"names":[]}]'


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", "$"), ("{}", "$"), ("null", "$"), ("[1]", "$[0]"), ('[{"names": "id"}]', "$[0].names"),
        ('[{"names": [1]}]', "$[0].names[0]"), ('[{"field-id": "1"}]', "$[0].field-id"),
        ('[{"field-id": 2147483648}]', "$[0].field-id"),
        ('[{}, {"fields": [{"fields": {}}]}]', "$[1].fields[0].fields"),
    ],
)  # fmt: skip
def test_faults_name_their_path(text: str, path: str) -> None:
    """What is no mapping is refused where it is wrong."""
    with pytest.raises(SpecError) as caught:
        parse_name_mapping(text)
    assert caught.value.path == path


def test_nesting_is_limited_and_the_limit_is_usable() -> None:
    """A mapping as deep as a type may be is read and rendered; far deeper is a SpecError."""
    json: list[Any] = []
    for _ in range(MAX_MAPPING_DEPTH):
        json = [{"names": ["a"], "fields": json}]
    mapping = parse_name_mapping(encode(json))
    assert mapping.find(["a"] * MAX_MAPPING_DEPTH) is not None
    assert parse_name_mapping(render_name_mapping(mapping)) == mapping
    with pytest.raises(SpecError, match="nested deeper"):
        parse_name_mapping(encode([{"names": ["a"], "fields": [{"names": ["b"], "fields": json}]}]))
