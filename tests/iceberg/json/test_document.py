"""Documents taken apart at their top level."""

from __future__ import annotations

import pytest

from app.errors import SpecError
from app.iceberg.json.codec import required_int32
from app.iceberg.json.document import Document


def test_members_stay_text() -> None:
    """Unknown members come out byte for byte; null counts as absent for known ones."""
    document = Document(b'{"a": 1, "b": null, "x": { "y":1.50}, "n":null}', "$")
    assert document.required("a", required_int32) == 1
    assert document.raw("b") is None
    assert document.optional("b", required_int32) is None
    assert {key: bytes(text) for key, text in document.extra(frozenset({"a", "b"})).items()} == {
        "x": b'{ "y":1.50}',
        "n": b"null",
    }


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"1", b'{"a":1', b'{"a":1}x', b'{"a":"\xff"}', b'\xef\xbb\xbf{"a":1}', b'{"a":NaN}', b"null", b"\x00"],
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    """Also bytes that are not UTF-8 inside text that nobody decodes."""
    with pytest.raises(SpecError):
        Document(data, "$")


def test_a_missing_member_is_named() -> None:
    """The message says which."""
    with pytest.raises(SpecError, match="format-version"):
        Document(b"{}", "$").required("format-version", required_int32)
