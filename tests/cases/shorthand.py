"""The shorthand in which public failures are told: `1:id long!, 2:addr struct<3:city string>` becomes schema JSON.

`!` marks required. A list is `list<5: string>`, a map `map<9: string, 10: long!>`; the mark on an element or a value
follows its type. Types keep their arguments: `decimal(9,2)`, `fixed[16]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?\d+")
_NAME = re.compile(r"[^\s:,<>!]+")
_ARGUMENTS = re.compile(r"\([^)]*\)|\[[^\]]*\]")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> str:
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError(f"unexpected text at {self.at}: {self.text[self.at :]!r}")
        self.at = found.end()
        return found.group()

    def accept(self, sign: str) -> bool:
        self.skip()
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise ValueError(f"{sign!r} expected at {self.at}: {self.text[self.at :]!r}")

    def fields(self) -> list[Json]:
        out: list[Json] = []
        self.skip()
        while self.at < len(self.text) and not self.text.startswith(">", self.at):
            out.append(self.field())
            self.accept(",")
            self.skip()
        return out

    def field(self) -> Json:
        field_id = int(self.take(_NUMBER))
        self.expect(":")
        name = self.take(_NAME)
        field_type = self.type()
        return {"id": field_id, "name": name, "required": self.accept("!"), "type": field_type}

    def type(self) -> Json:
        word = self.take(_WORD)
        if word == "struct":
            self.expect("<")
            fields = self.fields()
            self.expect(">")
            return {"type": "struct", "fields": fields}
        if word == "list":
            self.expect("<")
            element_id = int(self.take(_NUMBER))
            self.expect(":")
            element = self.type()
            required = self.accept("!")
            self.expect(">")
            return {"type": "list", "element-id": element_id, "element": element, "element-required": required}
        if word == "map":
            return self.map()
        found = _ARGUMENTS.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return word + found.group()
        return word

    def map(self) -> Json:
        self.expect("<")
        key_id = int(self.take(_NUMBER))
        self.expect(":")
        key = self.type()
        self.expect(",")
        value_id = int(self.take(_NUMBER))
        self.expect(":")
        value = self.type()
        required = self.accept("!")
        self.expect(">")
        return {
            "type": "map",
            "key-id": key_id,
            "key": key,
            "value-id": value_id,
            "value": value,
            "value-required": required,
        }


def fields(text: str) -> list[Json]:
    """The fields of one struct level, nested ones included."""
    reader = _Reader(text)
    out = reader.fields()
    if reader.at != len(text):
        raise ValueError(f"unexpected text at {reader.at}: {text[reader.at :]!r}")
    return out


def schema(
    text: str,
    *,
    schema_id: int | None = None,
    identifiers: Sequence[int] = (),
    extra: Mapping[int, Mapping[str, Json]] | None = None,
) -> Json:
    """Schema JSON; `extra` adds keys (doc, defaults) to the top-level field of that id."""
    out: Json = {"type": "struct", "fields": fields(text)}
    for field in out["fields"]:
        field.update((extra or {}).get(field["id"], {}))
    if schema_id is not None:
        out["schema-id"] = schema_id
    if identifiers:
        out["identifier-field-ids"] = list(identifiers)
    return out


def highest_id(part: Json) -> int:
    """The highest id in a schema or type, counting fields, elements, keys and values."""
    return max(every_id(part), default=0)


def every_id(part: Json) -> list[int]:
    """All ids of a schema or type in document order."""
    if isinstance(part, str):
        return []
    if part["type"] == "list":
        return [part["element-id"], *every_id(part["element"])]
    if part["type"] == "map":
        return [part["key-id"], part["value-id"], *every_id(part["key"]), *every_id(part["value"])]
    out: list[int] = []
    for field in part["fields"]:
        out += [field["id"], *every_id(field["type"])]
    return out


def find(part: Json, name: str) -> Json:
    """The field of that dotted name (struct levels only); KeyError if there is none."""
    head, _, rest = name.partition(".")
    for field in part["fields"]:
        if field["name"] == head:
            return find(field["type"], rest) if rest else field
    raise KeyError(name)


def plain(part: Json) -> Json:
    """The same JSON with the blanks inside type strings removed, so that `decimal(9, 2)` equals `decimal(9,2)`."""
    if isinstance(part, dict):
        return {
            key: value.replace(" ", "") if key in _TYPED and isinstance(value, str) else plain(value)
            for key, value in part.items()
        }
    return [plain(item) for item in part] if isinstance(part, list) else part


_TYPED = frozenset({"type", "element", "key", "value"})
