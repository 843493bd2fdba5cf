"""An Arrow IPC schema message as Iceberg fields, without Arrow.

A schema message is one small FlatBuffers table (Arrow columnar format: Schema message), and reading it takes less than
what loading Arrow costs. Types that Iceberg lacks are refused by name; unsigned integers up to 32 bits take the next
wider type. Field IDs in the metadata of a Parquet-made schema are not taken over: columns are matched by name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.errors import BadRequest

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_SCHEMA_HEADER: Final = 1
_MAX_DEPTH: Final = 64
_MAX_FIELDS: Final = 100_000
# Offsets may lead to one place again and again, so that a message of some kilobytes spells fields without end. What is
# honest is read about once; strings that several fields share leave it below this many times.
_MAX_READS: Final = 4

(_NULL, _INT, _FLOAT, _BINARY, _UTF8, _BOOL, _DECIMAL, _DATE, _TIME, _TIMESTAMP) = range(1, 11)
_LIST, _STRUCT, _FIXED_BINARY, _FIXED_LIST, _MAP = 12, 13, 15, 16, 17
_LARGE_BINARY, _LARGE_UTF8, _LARGE_LIST, _BINARY_VIEW, _UTF8_VIEW, _LIST_VIEW, _LARGE_LIST_VIEW = (
    19, 20, 21, 23, 24, 25, 26,
)  # fmt: skip
_LISTS: Final = frozenset({_LIST, _FIXED_LIST, _LARGE_LIST, _LIST_VIEW, _LARGE_LIST_VIEW})
_PLAIN: Final = {
    _NULL: "unknown", _BINARY: "binary", _LARGE_BINARY: "binary", _BINARY_VIEW: "binary", _UTF8: "string",
    _LARGE_UTF8: "string", _UTF8_VIEW: "string", _BOOL: "boolean", _DATE: "date",
}  # fmt: skip
_FOREIGN: Final = {11: "interval", 14: "union", 18: "duration", 22: "run-end-encoded"}
_NANOS: Final = 3
_OFFSET_BYTES: Final = 4


def fields_of(message: bytes) -> list[dict[str, Any]]:
    """The fields in Iceberg's JSON form, without IDs. BadRequest for what is no schema or has no Iceberg type.

    `message` is an IPC message with or without its length prefix, as `pyarrow.Schema.serialize()` makes it, or the
    start of an IPC stream.
    """
    try:
        return list(_fields(_schema(_body(message))))
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError):
        raise BadRequest("Malformed Arrow IPC schema") from None


class _Message:
    """The bytes of a message, and how many of them may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._left = _MAX_READS * len(data)

    def spend(self, size: int) -> None:
        """Account for `size` bytes; BadRequest when the message has been read more often than there is reason to."""
        self._left -= size
        if self._left < 0:
            raise BadRequest("Malformed Arrow IPC schema: its fields share so much that they are larger than it")


class _Table:
    """A FlatBuffers table: members by their number, through its vtable."""

    def __init__(self, message: _Message, at: int) -> None:
        message.spend(_OFFSET_BYTES)
        self.message = message
        self.data = data = message.data
        self.at = at
        self._vtable = at - _read("<i", data, at)
        if self._vtable < 0:
            raise IndexError("vtable")
        self._size = _read("<H", data, self._vtable)

    def _place(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return None
        offset = _read("<H", self.data, self._vtable + slot)
        return self.at + offset if offset else None

    def scalar(self, number: int, form: str, default: int = 0) -> int:
        place = self._place(number)
        return default if place is None else _read(form, self.data, place)

    def table(self, number: int) -> _Table | None:
        place = self._place(number)
        return None if place is None else _Table(self.message, place + _read("<I", self.data, place))

    def text(self, number: int) -> str:
        place = self._place(number)
        if place is None:
            return ""
        start = place + _read("<I", self.data, place)
        size = _read("<I", self.data, start)
        self.message.spend(size)
        raw = self.data[start + 4 : start + 4 + size]
        if len(raw) != size:
            raise IndexError("string")
        return raw.decode("utf-8")

    def tables(self, number: int) -> Iterator[_Table]:
        place = self._place(number)
        if place is None:
            return
        start = place + _read("<I", self.data, place)
        size = _read("<I", self.data, start)
        if size > _MAX_FIELDS:
            raise IndexError("vector")
        for at in range(size):
            entry = start + 4 + 4 * at
            yield _Table(self.message, entry + _read("<I", self.data, entry))


def _read(form: str, data: bytes, at: int) -> int:
    if at < 0:
        raise IndexError("offset")
    value: int = struct.unpack_from(form, data, at)[0]
    return value


def _body(message: bytes) -> bytes:
    """The FlatBuffers part of a message in any of its framings."""
    if message[:4] == _CONTINUATION:
        return message[8 : 8 + _read("<I", message, 4)]
    if len(message) > 8 and _read("<I", message, 0) == len(message) - 4:
        return message[4:]
    return message


def _schema(body: bytes) -> _Table:
    message = _Table(_Message(body), _read("<I", body, 0))
    header = message.table(2)
    if message.scalar(1, "<B") != _SCHEMA_HEADER or header is None:
        raise BadRequest("Not an Arrow IPC schema message")
    return header


def _fields(schema: _Table) -> Iterator[dict[str, Any]]:
    return (_field(field, 0) for field in schema.tables(1))


def _field(field: _Table, depth: int) -> dict[str, Any]:
    name, metadata = field.text(0), _metadata(field)
    out: dict[str, Any] = {
        "name": name,
        "required": not field.scalar(1, "<B"),
        "type": _type(field, metadata, name, depth),
    }
    doc = metadata.get("PARQUET:field_doc", metadata.get("doc"))
    if doc:
        out["doc"] = doc
    return out


def _metadata(field: _Table) -> dict[str, str]:
    return {entry.text(0): entry.text(1) for entry in field.tables(6)}


def _type(field: _Table, metadata: Mapping[str, str], name: str, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise BadRequest("Malformed Arrow IPC schema: nested too deeply")
    kind, detail = field.scalar(2, "<B"), field.table(3)
    if kind == _STRUCT:
        return {"type": "struct", "fields": [_field(child, depth + 1) for child in field.tables(5)]}
    if kind in _LISTS:
        (element,) = _children(field, 1, name)
        return {
            "type": "list",
            "element": _type(element, _metadata(element), name, depth + 1),
            "element-required": not element.scalar(1, "<B"),
        }
    if kind == _MAP:
        (entries,) = _children(field, 1, name)
        key, value = _children(entries, 2, name)
        return {
            "type": "map",
            "key": _type(key, _metadata(key), name, depth + 1),
            "value": _type(value, _metadata(value), name, depth + 1),
            "value-required": not value.scalar(1, "<B"),
        }
    if metadata.get("ARROW:extension:name") == "arrow.uuid":
        return "uuid"
    if kind in _PLAIN:
        return _PLAIN[kind]
    if detail is None:
        raise BadRequest(f"Malformed Arrow IPC schema: column {name} has no type")
    return _parametric(kind, detail, name)


def _children(field: _Table, wanted: int, name: str) -> list[_Table]:
    found = list(field.tables(5))
    if len(found) != wanted:
        raise BadRequest(f"Malformed Arrow IPC schema: column {name} has {len(found)} children")
    return found


def _parametric(kind: int, detail: _Table, name: str) -> str:
    if kind == _INT:
        return _integer(detail.scalar(0, "<i"), bool(detail.scalar(1, "<B")), name)
    if kind == _FLOAT:
        return "double" if detail.scalar(0, "<h") == 2 else "float"
    if kind == _DECIMAL:
        return f"decimal({detail.scalar(0, '<i')}, {detail.scalar(1, '<i')})"
    if kind == _TIME:
        return "time"
    if kind == _FIXED_BINARY:
        return f"fixed[{detail.scalar(0, '<i')}]"
    if kind == _TIMESTAMP:
        zoned, nanos = bool(detail.text(1)), detail.scalar(0, "<h") == _NANOS
        return f"timestamp{'tz' if zoned else ''}{'_ns' if nanos else ''}"
    raise BadRequest(f"Column {name} has the Arrow type {_FOREIGN.get(kind, kind)}, which Iceberg does not have")


def _integer(bits: int, signed: bool, name: str) -> str:
    if bits < 32 or (bits == 32 and signed):
        return "int"
    if bits == 32 or signed:
        return "long"
    raise BadRequest(f"Column {name} has the Arrow type uint64, which no Iceberg type holds")
