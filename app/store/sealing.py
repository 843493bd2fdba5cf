"""AES-256-GCM for the secrets of warehouses."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES: Final = 12


class AesGcm:
    """`secrets.Sealer`. Random nonces are safe here for some billions of changes under one key."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = [AESGCM(key) for key in keys]

    def seal(self, text: str, about: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._ciphers[0].encrypt(nonce, text.encode(), about.encode())).decode()

    def open(self, sealed: str, about: str) -> str | None:
        try:
            data = base64.b64decode(sealed, validate=True)
        except binascii.Error:
            return None
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], about.encode()).decode()
            except (InvalidTag, ValueError):
                continue
        return None
