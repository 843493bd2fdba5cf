"""Maps and lists of strings as the JSON text kept in one column."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_map = msgspec.json.Decoder(dict[str, str])
_strings = msgspec.json.Decoder(tuple[str, ...])


def encode(values: Mapping[str, str]) -> str:
    return msgspec.json.encode(values).decode() if values else "{}"


def decode_map(text: str) -> dict[str, str]:
    return {} if text == "{}" else _map.decode(text)


def decode_strings(text: str) -> tuple[str, ...]:
    return _strings.decode(text)
