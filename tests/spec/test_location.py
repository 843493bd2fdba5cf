"""Comparing and building locations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.spec import location as loc

SEGMENT = st.text(st.sampled_from("abz-_. %20="), min_size=1, max_size=5).filter(lambda s: s.strip("."))
PARENTS = st.sampled_from(
    ["s3://wh", "s3a://wh/db", "file:///wh", "/wh/db", "abfss://c@acc.dfs.core.windows.net/x", "gs://b/p"]
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/x/y", "file:///x/y"),
        ("file:///x/y", "/x/y"),
        ("file://localhost/x/y", "/x/y"),
        ("FILE:///x/y", "/x/y/"),
        ("/x//y", "/x/y"),
        ("s3a://b/k", "s3://b/k"),
        ("s3n://b/k/", "S3://b/k"),
        ("abfs://c@Acc.dfs.core.windows.net/k", "abfss://c@acc.dfs.core.windows.net/k"),
        ("s3://b", "s3://b/"),
        ("s3://b/a//c", "s3://b/a/c"),
    ],
)
def test_spellings_of_one_place_are_equal(one: str, other: str) -> None:
    """Scheme aliases, slashes and the local host do not make another place (O-41)."""
    assert loc.canonical(one) == loc.canonical(other)
    assert loc.overlaps(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/t", "s3://b/t2"),
        ("s3://b/t", "s3://b/T"),
        ("s3://b/k", "gs://b/k"),
        ("s3://b/k", "s3://B/k"),
        ("s3://b/k", "/b/k"),
        ("s3://b/a%20c", "s3://b/a c"),
        ("/x/t", "/x/t-1"),
        ("abfs://c@acc.dfs.core.windows.net/k", "abfs://d@acc.dfs.core.windows.net/k"),
    ],
)
def test_siblings_and_strangers_do_not_overlap(one: str, other: str) -> None:
    """A shared prefix of characters is no shared place; percent signs are literal."""
    assert loc.canonical(one) != loc.canonical(other)
    assert not loc.overlaps(one, other)


@pytest.mark.parametrize(
    "location",
    [
        "", "x/y", "file:x", "s3:b/k", "s3:/b/k", "s3://", "s3:///k", "//../x", "/wh/../etc", "s3://b/./k", "s3://b/a/..",
        "s3://b/%2e%2e/k", "s3://b/%2E./k", "s3://b/a%2f..%2fk", "s3://b/%252e%252e/k", "/wh/..\\x", "s3://b/a%5c..",
        "s3://b/%2525252525252e%2e", "file://other-host/x", "s3://b/k?versionId=1", "s3://b/k#f", "s3://b\\c/k",
        "s3://b%2fc/k", "s3://b/a\x00b", "s3://b/a\nb", "/x\x7f", "s3://b/\ud800",
    ],
    ids=ascii,
)  # fmt: skip
def test_places_that_are_not_what_they_seem_have_no_canonical_form(location: str) -> None:
    """Relative, climbing (encoded too), remote or ambiguous locations are a bad request in printable words."""
    for compare in (loc.canonical, lambda place: loc.contains("s3://b", place), loc.local_path):
        with pytest.raises(BadRequest) as caught:
            compare(location)
        assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "location",
    ["s3://b/dt=2020-01-01%2012%3A00/f", "s3://b/a%2Fb", "s3://b/..a/b..", "/home/C#/x?y", "/a b/%zz", "s3://b/100%"],
)
def test_literal_percent_signs_and_dots_are_fine(location: str) -> None:
    """What engines write for partition values is a plain path."""
    assert loc.contains(location, location)


@given(PARENTS, st.lists(SEGMENT, min_size=1, max_size=3))
def test_what_is_joined_lies_within(parent: str, parts: list[str]) -> None:
    """join builds places below its base, without double slashes, in the spelling of the base."""
    child = loc.join(f"{parent}/", *parts)
    assert loc.contains(parent, child)
    assert child.startswith(f"{parent}/")
    assert "//" not in child.partition("://")[2]
    assert not loc.contains(child, parent)
    assert loc.overlaps(child, parent)
    assert not loc.contains(f"{parent}2", child)


@given(st.text(max_size=20) | st.builds("{}{}".format, st.sampled_from(["s3://", "file:/", "/", "s3://b/"]), st.text()))
def test_any_text_is_compared_or_refused(text: str) -> None:
    """canonical is total (BadRequest or a text) and idempotent."""
    try:
        once = loc.canonical(text)
    except BadRequest:
        return
    assert loc.canonical(once) == once
    assert loc.is_absolute(text)


@pytest.mark.parametrize(
    ("location", "stripped"),
    [
        ("s3://b/t/", "s3://b/t"), ("s3://b/t//", "s3://b/t"), ("s3://b/t", "s3://b/t"), ("s3://b/", "s3://b"),
        ("s3://", "s3://"), ("/", "/"), ("//", "/"), ("/x/", "/x"), ("file:///", "file:///"), ("file:/", "file:/"),
        ("", ""), ("/a:/", "/a:"),
    ],
)  # fmt: skip
def test_trailing_slashes_are_stripped_but_roots_stay_roots(location: str, stripped: str) -> None:
    """The spelling is otherwise untouched."""
    assert loc.strip_trailing_slash(location) == stripped


@pytest.mark.parametrize(
    ("base", "parts", "joined"),
    [
        ("s3://b", ("ns", "t"), "s3://b/ns/t"), ("s3://b/", ("/ns/", "t/"), "s3://b/ns/t"), ("/", ("x",), "/x"),
        ("file:///", ("x",), "file:///x"), ("s3://b/t", (), "s3://b/t"), ("s3://b/t/", ("",), "s3://b/t"),
        ("/wh", ("metadata", "a/b.json"), "/wh/metadata/a/b.json"),
    ],
)  # fmt: skip
def test_joining_puts_one_slash_between_parts(base: str, parts: tuple[str, ...], joined: str) -> None:
    """Slashes around the parts do not count."""
    assert loc.join(base, *parts) == joined


def test_schemes() -> None:
    """Plain paths are local, schemes are lower-cased."""
    assert loc.scheme("S3A://b/k") == "s3a"
    assert loc.scheme("/x") == "file"
    assert loc.is_local("file:/x") and loc.is_local("/x") and not loc.is_local("s3://b/k")


def test_local_paths_are_literal() -> None:
    """The path on disk is the text of the location: nothing is decoded."""
    assert loc.local_path("file:///a%20b/c d/") == "/a%20b/c d"
    assert loc.local_path("/a//b") == "/a/b"
    assert loc.local_path("file:///") == "/"
    with pytest.raises(BadRequest):
        loc.local_path("s3://b/k")


def test_absolute_locations() -> None:
    """A scheme needs an authority, except for files."""
    for good in ("/x", "file:/x", "file:///x", "s3://b", "gs://b/k"):
        assert loc.is_absolute(good)
    for bad in ("", "x", "file:x", "s3:x", "s3:/x", "s3://", "s3:///x"):
        assert not loc.is_absolute(bad)


def test_a_location_has_a_limit_that_its_refusal_names() -> None:
    """No store takes keys that long, and all that is compared with it would wait."""
    with pytest.raises(BadRequest, match="has 200010 characters, and 8192 are allowed") as refused:
        loc.canonical("s3://b/" + "a/" * 100_000 + "end")
    assert len(refused.value.message) < 300
