"""Names of namespaces, tables and views."""

from __future__ import annotations

import pytest

from app.errors import BadRequest
from app.spec.names import SEPARATOR, validate_level, validate_levels, validate_name

GOOD = ["a", "a.b", "p/q", "e f", "x+y", "100%", "...", ".hidden", "Grüße", "表", "n" * 300, "a\u200bb", "'\"\\"]
BAD = ["", ".", "..", "\x00", "a\x1fb", "a\nb", "\x7f", "a\x85b", "\ud800"]


@pytest.mark.parametrize("name", GOOD, ids=ascii)
def test_almost_any_name_is_allowed(name: str) -> None:
    """Dots, slashes, blanks, quotes and any script are names (O-36)."""
    assert validate_name(name) == name
    assert validate_level(name) == name


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_names_that_no_path_can_carry_are_refused(name: str) -> None:
    """Empty, dot names, control characters and lone surrogates are a bad request, in printable words."""
    for validate in (validate_name, validate_level):
        with pytest.raises(BadRequest) as caught:
            validate(name)
        assert caught.value.message.isprintable()


def test_names_are_strings() -> None:
    """A JSON number or null is no name."""
    for value in (None, 5, ["a"]):
        with pytest.raises(BadRequest):
            validate_name(value)


def test_a_namespace_has_at_least_one_level() -> None:
    """["a.b"] and ["a","b"] are different, [] is refused."""
    assert validate_levels(["a.b"]) == ("a.b",)
    assert validate_levels(["a", "b"]) == ("a", "b")
    with pytest.raises(BadRequest):
        validate_levels([])
    with pytest.raises(BadRequest):
        validate_levels(["a", ""])


def test_the_separator_can_never_be_part_of_a_name() -> None:
    """Joining levels by the separator is unambiguous."""
    with pytest.raises(BadRequest):
        validate_level(f"a{SEPARATOR}b")


@pytest.mark.parametrize("name", ["n" * 1025, "ü" * 513, "表" * 342, "n" * 100_000])
def test_names_that_no_index_can_hold_are_refused(name: str) -> None:
    """The limit is one of bytes; the refusal does not repeat the name."""
    for validate in (validate_name, validate_level):
        with pytest.raises(BadRequest, match="bytes, and 1024 are allowed") as caught:
            validate(name)
        assert len(caught.value.message) < 200
    assert validate_name(name[: len(name) * 1024 // len(name.encode())])


def test_a_namespace_is_no_longer_than_a_name() -> None:
    """However many levels it has."""
    assert len(validate_levels(["n"] * 512)) == 512
    for levels in (["n"] * 513, ["n"] * 100_000, ["n" * 512, "m" * 512]):
        with pytest.raises(BadRequest, match="Invalid namespace: it has"):
            validate_levels(levels)


def test_a_long_name_is_refused_for_its_length_before_anything_is_quoted() -> None:
    """A refusal does not repeat a megabyte of control characters."""
    with pytest.raises(BadRequest, match="it has 1000000 bytes, and 1024 are allowed"):
        validate_name("\x00" * 1_000_000)
    with pytest.raises(BadRequest, match="it has 3000 bytes, and 1024 are allowed"):
        validate_name("\ud800" * 1_000)
