"""`app.edge.raw_path`: what travels in a path arrives as it was meant."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.edge.raw_path import decode_levels, decode_query, decode_segment, routed
from app.errors import BadRequest

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(NAMES)
def test_every_name_survives_percent_encoding(name: str) -> None:
    """Any name that a client percent-encodes as one segment is read back as it was."""
    assert decode_segment(quote(name, safe="")) == name


@given(NAMES)
def test_every_name_survives_form_encoding(name: str) -> None:
    """Java writes form encoding into paths, where a blank is a plus and a plus is %2B."""
    assert decode_segment(quote_plus(name)) == name


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f"), min_size=1, max_size=9),
        min_size=1,
        max_size=4,
    )
)
def test_levels_are_split_before_they_are_decoded(levels: list[str]) -> None:
    """Levels joined by an encoded separator come back whatever characters are in them."""
    assert decode_levels("%1F".join(quote(level, safe="") for level in levels)) == tuple(levels)


@given(NAMES, NAMES)
def test_an_encoded_slash_stays_in_its_segment(namespace: str, table: str) -> None:
    """Splitting the routed path on slashes gives the segments that the client wrote."""
    raw = f"/v1/wh/namespaces/{quote(namespace, safe='')}/tables/{quote(table, safe='')}"
    parts = routed(raw.encode(), "default").split("/")
    assert [decode_segment(part) for part in parts[1:]] == ["v1", "wh", "namespaces", namespace, "tables", table]


@pytest.mark.parametrize("raw", ["%", "%2", "%zz", "a%", "%C3%28", "%FF", "%ED%A0%80", "%C0%AF"])
def test_a_segment_that_is_not_encoded_utf8_is_refused(raw: str) -> None:
    """Broken escapes, invalid UTF-8, surrogates and overlong slashes are bad requests."""
    with pytest.raises(BadRequest):
        decode_segment(raw)


def test_lower_case_separator_is_one_too() -> None:
    """Hexadecimal digits of an escape have no case."""
    assert decode_levels("a%1fb") == ("a", "b")


def test_a_double_encoded_separator_is_text() -> None:
    """%251F is decoded once and splits nothing."""
    assert decode_levels("a%251Fb") == ("a%1Fb",)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/v1/namespaces", "/v1/default/namespaces"),
        ("/v1/namespaces/a/tables/t", "/v1/default/namespaces/a/tables/t"),
        ("/v1/tables/rename", "/v1/default/tables/rename"),
        ("/v1/views/rename", "/v1/default/views/rename"),
        ("/v1/transactions/commit", "/v1/default/transactions/commit"),
        ("/v1/default/namespaces", "/v1/default/namespaces"),
        ("/v1/config", "/v1/config"),
        ("/v1/oauth/tokens", "/v1/oauth/tokens"),
        ("/v1", "/v1"),
        ("/icekeel/v1/namespaces", "/icekeel/v1/namespaces"),
        ("http://host:1/v1/namespaces", "/v1/default/namespaces"),
        ("http://host:1", "/"),
        ("//v1/config", "/v1/config"),
        ("///v1/namespaces", "/v1/default/namespaces"),
        ("/v1/a/namespaces//tables/t", "/v1/a/namespaces//tables/t"),
    ],
)
def test_the_default_warehouse_is_put_where_none_is_named(raw: str, path: str) -> None:
    """Only where /v1/ is followed by a word of the protocol is the prefix missing."""
    assert routed(raw.encode(), "default") == path


@pytest.mark.parametrize("raw", [b"*", b"/v1/\xff", b"v1/config"])
def test_a_target_that_is_no_path_is_refused(raw: bytes) -> None:
    """Raw bytes beyond ASCII and relative targets are bad requests."""
    with pytest.raises(BadRequest):
        routed(raw, "default")


def test_query_values_are_decoded_once() -> None:
    """A blank value is kept, and escapes are read once."""
    assert decode_query(b"pageToken=&parent=c%1Fd+e%2520") == {"pageToken": "", "parent": "c\x1fd e%20"}


def test_a_parameter_given_twice_must_say_the_same() -> None:
    """Whoever stands in front may have read the first one: two values are one too many."""
    assert decode_query(b"a=1&b=&a=1") == {"a": "1", "b": ""}
    with pytest.raises(BadRequest, match="'purgeRequested' was given more than once, with different values"):
        decode_query(b"purgeRequested=false&purgeRequested=true")


@pytest.mark.parametrize("raw", [b"a=%ff", b"a=\xc3\xa9", b"%ff=a"])
def test_a_query_that_is_not_utf8_is_refused(raw: bytes) -> None:
    """Names and values alike."""
    with pytest.raises(BadRequest, match="not well-formed UTF-8"):
        decode_query(raw)


def test_an_endless_query_is_refused_as_what_it_is() -> None:
    """No operation has more than 64 parameters; that many are read."""
    fields = [f"p{number}=x".encode() for number in range(65)]
    assert len(decode_query(b"&".join(fields[:64]))) == 64
    with pytest.raises(BadRequest, match="more than 64 parameters"):
        decode_query(b"&".join(fields))
