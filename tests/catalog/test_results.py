"""The tag of a version."""

from __future__ import annotations

from app.catalog.results import version_tag


def test_every_part_changes_the_tag() -> None:
    """Version, representation and client configuration each make another tag; the order of options does not."""
    tags = {
        version_tag("s3://b/t/metadata/1.json", "all", {}),
        version_tag("s3://b/t/metadata/2.json", "all", {}),
        version_tag("s3://b/t/metadata/1.json", "refs", {}),
        version_tag("s3://b/t/metadata/1.json", "all", {"a": "1", "b": "2"}),
        version_tag("s3://b/t/metadata/1.json", "all", {"b": "2", "a": "1"}),
    }
    assert len(tags) == 4
