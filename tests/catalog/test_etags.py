"""Entity tags."""

from __future__ import annotations

import pytest

from app.catalog.etags import etag, matches

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
    """Weak, listed, unquoted and starred forms all match."""
    assert matches(header, TAG)


@pytest.mark.parametrize("header", [None, "", '"x"', f'"a{TAG[1:]}', f'{TAG[:-2]}"', ",,,", '"', "W/"])
def test_forms_that_do_not(header: str | None) -> None:
    """Nothing else does, malformed headers included."""
    assert not matches(header, TAG)
