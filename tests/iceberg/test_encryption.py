"""Encryption keys."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.encryption import encrypted_key_from_json, parse_encryption_keys
from app.iceberg.json.codec import encode


def test_a_key_keeps_everything() -> None:
    """Known and unknown members come out as they went in."""
    value = {"key-id": "k", "encrypted-key-metadata": "AAEC", "encrypted-by-id": "m", "properties": {"a": "b"}, "x": 1}
    assert msgspec.json.decode(encrypted_key_from_json(value, "$").raw) == value
    assert [key.key_id for key in parse_encryption_keys(msgspec.Raw(encode([value])), "$")] == ["k"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"key-id": "k"},
        {"key-id": 1, "encrypted-key-metadata": ""},
        {"key-id": "k", "encrypted-key-metadata": "*"},
    ],
)
def test_what_is_no_key_is_refused(value: Any) -> None:
    """A key is an object with an id and base64."""
    with pytest.raises(SpecError):
        encrypted_key_from_json(value, "$.encryption-key")
