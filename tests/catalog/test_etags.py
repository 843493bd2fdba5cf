"""Entity tags."""

from __future__ import annotations

import time

import pytest

from app.catalog.etags import etag, matched, of_gzip

TAG = etag("s3://b/t/metadata/1.json", "all", {})


def test_every_part_changes_the_tag() -> None:
    """Version, representation and client configuration each make another tag; the order of options does not."""
    tags = {
        TAG,
        etag("s3://b/t/metadata/2.json", "all", {}),
        etag("s3://b/t/metadata/1.json", "refs", {}),
        etag("s3://b/t/metadata/1.json", "all", {"a": "1", "b": "2"}),
        etag("s3://b/t/metadata/1.json", "all", {"b": "2", "a": "1"}),
    }
    assert len(tags) == 4


def test_a_tag_is_a_strong_quoted_string() -> None:
    """RFC 9110 8.8.3: a quoted string without the weak mark."""
    assert TAG.startswith('"') and TAG.endswith('"') and len(TAG) > 10


@pytest.mark.parametrize(
    "header", [TAG, f"W/{TAG}", f'"x", {TAG}', f'"x" , W/{TAG} , "y"', "*", TAG.strip('"'), f"  {TAG}  "]
)
def test_forms_that_name_the_tag(header: str) -> None:
    """Weak, listed, unquoted and starred forms all match, and what is answered is the tag."""
    assert matched(header, TAG) == TAG
    if header != "*":
        assert matched(header.replace(TAG.strip('"'), of_gzip(TAG).strip('"')), TAG) == of_gzip(TAG)


@pytest.mark.parametrize(
    "header", [None, "", '"x"', f'"a{TAG[1:]}', f'{TAG[:-2]}"', ",,,", '"', "W/", f"{TAG} x", f"x{TAG}"]
)
def test_forms_that_do_not(header: str | None) -> None:
    """Nothing else does, malformed headers included."""
    assert matched(header, TAG) is None


def test_the_gzip_form_has_another_strong_tag() -> None:
    """RFC 9110 8.8.3: other bytes, another tag; and no other representation has it."""
    assert of_gzip(TAG) != TAG and of_gzip(TAG)[0] == of_gzip(TAG)[-1] == '"'
    assert of_gzip(etag("s3://b/t/metadata/1.json", "refs", {})) != of_gzip(TAG)
    assert matched(TAG, of_gzip(TAG)) is None


@pytest.mark.parametrize("unit", ["a", " ", '"', '"a', "W/", "W/ ", "a ", ",", "\t"])
@pytest.mark.parametrize("end", ["", '"', "x"])
def test_a_header_is_read_in_time_that_its_length_says(unit: str, end: str) -> None:
    """16 KB of anything take milliseconds: nobody else is answered meanwhile."""
    header = unit * (16_000 // len(unit)) + end
    began = time.process_time()
    assert matched(header, TAG) is None
    assert time.process_time() - began < 0.2
    assert matched(f"{header},{TAG}", TAG) == TAG or header.count('"') % 2
