"""The highest schema ID that a table ever gave out."""

from __future__ import annotations

import msgspec
import pytest

from app.iceberg.schema_counter import LAST_SCHEMA_ID, remembered_schema_id, with_remembered


@pytest.mark.parametrize("text", [b'"7"', b"null", b"[]", b"1.5"])
def test_what_is_no_id_is_remembered_as_none(text: bytes) -> None:
    """A document from elsewhere may hold anything under the name."""
    assert remembered_schema_id({LAST_SCHEMA_ID: msgspec.Raw(text)}) == -1
    assert remembered_schema_id({}) == -1


def test_the_member_is_there_only_while_the_list_does_not_tell() -> None:
    """Written when the highest schema is gone, taken away once a higher one is listed; other members stay."""
    other = {"x": msgspec.Raw(b"1")}
    written = with_remembered(other, 5, 3)
    assert remembered_schema_id(written) == 5 and written["x"] == other["x"]
    assert with_remembered(written, 6, 6) == other
    assert with_remembered(other, 3, 3) is other
