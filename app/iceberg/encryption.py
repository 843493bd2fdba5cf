"""Encryption keys kept in table metadata (table spec: Encryption Keys). The key material is itself encrypted."""

from __future__ import annotations

import base64
import binascii

import msgspec

from app.errors import SpecError
from app.iceberg.json.append_log import NO_TEXT, kebab, parse_array
from app.iceberg.json.codec import Json, encode
from app.iceberg.json.typed import convert_typed, drop_nulls


class EncryptedKey(msgspec.Struct, frozen=True, kw_only=True, rename=kebab):
    """One key; `raw` is its whole entry as JSON text, `encrypted_key_metadata` is base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None
    body: msgspec.Raw = NO_TEXT

    @property
    def raw(self) -> bytes:
        return bytes(self.body)


def _check(key: EncryptedKey, path: str) -> None:
    try:
        base64.b64decode(key.encrypted_key_metadata, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SpecError("Not base64", f"{path}.encrypted-key-metadata") from error


def encrypted_key_from_json(value: Json, path: str) -> EncryptedKey:
    """What a client sends; SpecError when it is no object or the key is not base64."""
    cleaned = drop_nulls(value, path)
    key = convert_typed(cleaned, EncryptedKey, path)
    _check(key, path)
    return msgspec.structs.replace(key, body=msgspec.Raw(encode(cleaned)))


def parse_encryption_keys(raw: msgspec.Raw, path: str) -> tuple[EncryptedKey, ...]:
    """The `encryption-keys` array of a stored document; texts stay as they are."""
    keys = tuple(parse_array(raw.copy(), path, EncryptedKey))
    for at, key in enumerate(keys):
        _check(key, f"{path}[{at}]")
    return keys
