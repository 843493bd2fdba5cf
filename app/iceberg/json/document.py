"""A stored JSON document, taken apart at its top level only: each member is text until somebody needs its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from app.errors import SpecError
from app.iceberg.json.codec import Json, decode
from app.iceberg.json.typed import decode_typed

T = TypeVar("T")

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL = b"null"


class Document:
    """Members of a JSON object as raw text. A member that is null counts as absent."""

    __slots__ = ("_members", "path")

    def __init__(self, data: bytes, path: str) -> None:
        """SpecError unless `data` is one JSON object in valid UTF-8."""
        if not data.isascii():
            # Skipped text is not decoded below, and a stray byte in it would reach every client.
            try:
                str(data, "utf-8")
            except UnicodeDecodeError as error:
                raise SpecError("Malformed JSON: not valid UTF-8", path) from error
        self.path = path
        self._members = decode_typed(_MEMBERS, data, path)

    def raw(self, key: str) -> msgspec.Raw | None:
        """The text of a member, still a view into the document."""
        text = self._members.get(key)
        return None if text is None or bytes(memoryview(text)[:5]) == _NULL else text

    def value(self, key: str, default: Json = None) -> Json:
        """The decoded value of a member, or `default`."""
        text = self.raw(key)
        return default if text is None else decode(bytes(text), f"{self.path}.{key}")

    def required(self, key: str, reader: Callable[[Mapping[str, Json], str, str], T]) -> T:
        """The member as one of `codec`'s required_... readers gives it."""
        return reader({key: self.value(key)}, key, self.path)

    def optional(self, key: str, reader: Callable[[Mapping[str, Json], str, str], T]) -> T | None:
        """The member as one of `codec`'s required_... readers gives it, or None when it is absent."""
        value = self.value(key)
        return None if value is None else reader({key: value}, key, self.path)

    def extra(self, known: frozenset[str]) -> Mapping[str, msgspec.Raw]:
        """Members this product does not know, to be written back as they came."""
        return {key: text.copy() for key, text in self._members.items() if key not in known}
