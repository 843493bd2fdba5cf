"""Names and locations as comparable columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.iceberg.location import overlaps
from app.store.paths import (
    ancestors,
    below,
    descendants,
    is_path,
    levels_of,
    location_key,
    parent_of,
    path_of,
    storable,
)

LEVEL = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\x1f"), min_size=1, max_size=4
)  # fmt: skip
LEVELS = st.lists(LEVEL, min_size=1, max_size=4).map(tuple)
SEGMENTS = st.lists(st.sampled_from(["a", "b", "a0", "a.b", "a-", "A", "ab", "%2F", "ü", "a b", "/"]), max_size=4)
LOCATIONS = st.builds(
    lambda root, segments, slash: root + "/".join(segments) + slash,
    st.sampled_from(["s3://k/", "s3a://k/", "s3://k2/", "gs://k/", "/", "file:///", "file:/", "file://localhost/"]),
    SEGMENTS,
    st.sampled_from(["", "/"]),
)


@given(LEVELS)
def test_a_path_is_its_levels(levels: tuple[str, ...]) -> None:
    """Every namespace that can exist comes back from its stored form."""
    assert levels_of(path_of(levels)) == levels
    assert parent_of(path_of(levels)) == (path_of(levels[:-1]) if len(levels) > 1 else None)


@given(LEVELS, LEVELS)
def test_paths_tell_namespaces_apart(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Two namespaces share a path only if they are equal."""
    assert (path_of(one) == path_of(other)) is (one == other)


@given(LEVELS, LEVELS)
def test_what_lies_below_a_namespace_is_one_range(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """The bounds hold exactly the paths that continue a namespace by a level."""
    start, end = below(path_of(one))
    inside = start <= path_of(other) < end
    assert inside is (len(other) > len(one) and other[: len(one)] == one)


@pytest.mark.parametrize("levels", [(), ("",), ("a", ""), ("a\x1fb",), ("a\x00",), ("\udc80",)])
def test_what_cannot_be_a_namespace_has_no_path(levels: tuple[str, ...]) -> None:
    """No levels, an empty one, one with the separator, or text that no database holds."""
    assert not is_path(levels)
    with pytest.raises(BadRequest):
        path_of(levels)


@given(st.text(st.characters(), max_size=5))
def test_storable_text_is_utf8_without_nul(text: str) -> None:
    """Both databases can hold it, or neither is asked to."""
    fits = "\x00" not in text and not any(0xD800 <= ord(char) <= 0xDFFF for char in text)
    assert storable(text) is fits


@given(LOCATIONS, LOCATIONS)
def test_index_ranges_find_exactly_the_overlapping_locations(one: str, other: str) -> None:
    """Ancestors by equality and descendants by range agree with the comparison of whole segments."""
    stored, asked = location_key(one), location_key(other)
    start, end = descendants(asked)
    found = stored in set(ancestors(asked)) or start <= stored < end
    assert found is overlaps(one, other)
