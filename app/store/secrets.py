"""Secrets of warehouses at rest: sealed on their way into the database, opened on their way out."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from app.errors import BadRequest, BadSettings
from app.ports import PutWarehouse, Warehouse
from app.store.json_text import decode_map, encode

SETTING: Final = "ICEKEEL_SECRET_KEY"
_SEALED: Final = "sealed"


class Sealer(Protocol):
    """Authenticated encryption. `about` is bound to the text: what was sealed for one warehouse opens for no other."""

    def seal(self, text: str, about: str) -> str: ...

    def open(self, sealed: str, about: str) -> str | None:
        """The text, or None when no key at hand opens it."""


def sealer(keys: Sequence[bytes]) -> Sealer | None:
    """The first key seals, every key opens. Cryptography is loaded only where there is a key."""
    if not keys:
        return None
    made: Sealer = importlib.import_module("app.store.sealing").AesGcm(keys)
    return made


def sealed(op: PutWarehouse, by: Sealer | None) -> PutWarehouse:
    """The operation with its secrets unreadable; BadRequest without a key to do that with."""
    secrets = op.warehouse.secrets
    if not secrets:
        return op
    if by is None:
        raise BadRequest(
            f"Warehouse {op.warehouse.name} has secret options ({', '.join(sorted(secrets))}) and nothing to encrypt "
            f"them with: set {SETTING} on every server (openssl rand -base64 32)"
        )
    hidden = {_SEALED: by.seal(encode(secrets), op.warehouse.name)}
    return msgspec.structs.replace(op, warehouse=msgspec.structs.replace(op.warehouse, secrets=hidden))


def opened(warehouse: Warehouse, by: Sealer | None) -> Warehouse:
    """The warehouse as it was put; BadSettings where the key that sealed its secrets is not at hand."""
    if not warehouse.secrets:
        return warehouse
    text = None if by is None else by.open(warehouse.secrets[_SEALED], warehouse.name)
    if text is None:
        raise BadSettings(
            f"The secrets of warehouse {warehouse.name} cannot be read: {SETTING} must hold the key that they were "
            "encrypted with, on every server"
        )
    found: Mapping[str, str] = decode_map(text)
    return msgspec.structs.replace(warehouse, secrets=found)
