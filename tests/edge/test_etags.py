"""Entity tags on the wire."""

from __future__ import annotations

import time

import pytest

from app.edge.etags import IfNoneMatch, written

TAG = "174a2f55b8c1783c942ba375cc4df484"


def matched(header: str, tag: str = TAG) -> str | None:
    """The tag that a 304 to this header names; None where the table is sent."""
    held = IfNoneMatch(header)
    return held.written(tag) if tag in held else None


def test_a_tag_is_a_strong_quoted_string() -> None:
    """RFC 9110 8.8.3: a quoted string without the weak mark."""
    assert written(TAG) == f'"{TAG}"'


@pytest.mark.parametrize(
    "header", [f'"{TAG}"', f'W/"{TAG}"', f'"x", "{TAG}"', f'"x" , W/"{TAG}" , "y"', "*", TAG, f'  "{TAG}"  ']
)
def test_forms_that_name_the_tag(header: str) -> None:
    """Weak, listed, unquoted and starred forms all match, and what is answered is the tag."""
    assert matched(header) == written(TAG)
    if header != "*":
        assert matched(header.replace(TAG, f"{TAG}-gzip")) == written(TAG, gzip=True)


@pytest.mark.parametrize(
    "header", ["", '"x"', f'"a{TAG}"', f'"{TAG[:-1]}"', ",,,", '"', "W/", f'"{TAG}" x', f'x"{TAG}"']
)
def test_forms_that_do_not(header: str) -> None:
    """Nothing else does, malformed headers included."""
    assert matched(header) is None


def test_the_gzip_form_has_another_strong_tag() -> None:
    """RFC 9110 8.8.3: other bytes, another tag; and the plain one does not stand for it."""
    assert written(TAG, gzip=True) != written(TAG)
    assert matched(written(TAG), f"{TAG}-gzip") is None


@pytest.mark.parametrize("unit", ["a", " ", '"', '"a', "W/", "W/ ", "a ", ",", "\t"])
@pytest.mark.parametrize("end", ["", '"', "x"])
def test_a_header_is_read_in_time_that_its_length_says(unit: str, end: str) -> None:
    """16 KB of anything take milliseconds: nobody else is answered meanwhile."""
    header = unit * (16_000 // len(unit)) + end
    began = time.process_time()
    assert matched(header) is None
    assert time.process_time() - began < 0.2
    assert matched(f'{header},"{TAG}"') == written(TAG) or header.count('"') % 2
