"""Name mappings: column names in files without field ids, by path of literal names (spec: Column Projection, App. C).

A dot in a name is part of the name. An entry may have no names (a table column that such files lack) or no field id
(a file column that the table lacks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.errors import SpecError
from app.iceberg.json.codec import (
    NO_EXTRA,
    Json,
    as_list,
    as_object,
    as_str_list,
    decode,
    encode,
    extra_of,
    optional_int32,
)

NAME_MAPPING_PROPERTY: Final = "schema.name-mapping.default"
MAX_MAPPING_DEPTH: Final = 128

_ENTRY_KEYS: Final = frozenset({"field-id", "names", "fields"})


class MappedField(msgspec.Struct, frozen=True):
    """One column of the files; children of a list are named `element`, of a map `key` and `value`."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()
    extra: Mapping[str, Any] = NO_EXTRA

    def child(self, name: str) -> MappedField | None:
        return _named(self.fields, name)


class NameMapping(msgspec.Struct, frozen=True):
    fields: tuple[MappedField, ...] = ()

    def find(self, path: Sequence[str]) -> MappedField | None:
        """The entry of a column, by the literal names from the root to it; the first entry wins."""
        entry: MappedField | None = None
        fields = self.fields
        for name in path:
            entry = _named(fields, name)
            if entry is None:
                return None
            fields = entry.fields
        return entry

    def walk(self) -> Iterator[tuple[tuple[MappedField, ...], MappedField]]:
        """Every entry with its ancestors (outermost first), parents before children."""
        stack: list[tuple[tuple[MappedField, ...], MappedField]] = [((), entry) for entry in reversed(self.fields)]
        while stack:
            ancestors, entry = stack.pop()
            yield ancestors, entry
            stack.extend(((*ancestors, entry), child) for child in reversed(entry.fields))

    def ids(self) -> tuple[int, ...]:
        """All field ids, as often as they occur."""
        return tuple(entry.field_id for _, entry in self.walk() if entry.field_id is not None)

    def find_id(self, field_id: int) -> MappedField | None:
        """The first entry of this field id."""
        return next((entry for _, entry in self.walk() if entry.field_id == field_id), None)


def _named(fields: Sequence[MappedField], name: str) -> MappedField | None:
    return next((entry for entry in fields if name in entry.names), None)


def parse_name_mapping(text: str | bytes, path: str = "$") -> NameMapping:
    """A mapping from the JSON text of the table property. Raises SpecError with the path of the fault."""
    return NameMapping(_parse_fields(decode(text, path), path, 0))


def _parse_fields(json: Json, path: str, depth: int) -> tuple[MappedField, ...]:
    if depth > MAX_MAPPING_DEPTH:
        raise SpecError(f"Name mapping is nested deeper than {MAX_MAPPING_DEPTH} levels", path)
    return tuple(_parse_entry(item, f"{path}[{at}]", depth) for at, item in enumerate(as_list(json, path)))


def _parse_entry(json: Json, path: str, depth: int) -> MappedField:
    obj = as_object(json, path)
    names, fields = obj.get("names"), obj.get("fields")
    return MappedField(
        () if names is None else as_str_list(names, f"{path}.names"),
        optional_int32(obj, "field-id", path),
        () if fields is None else _parse_fields(fields, f"{path}.fields", depth + 1),
        extra_of(obj, _ENTRY_KEYS),
    )


def name_mapping_to_json(mapping: NameMapping) -> list[Json]:
    return [_entry_to_json(entry) for entry in mapping.fields]


def render_name_mapping(mapping: NameMapping) -> str:
    """The JSON text that goes into the table property."""
    return encode(name_mapping_to_json(mapping)).decode()


def _entry_to_json(entry: MappedField) -> dict[str, Json]:
    out: dict[str, Json] = {} if entry.field_id is None else {"field-id": entry.field_id}
    out["names"] = list(entry.names)
    if entry.fields:
        out["fields"] = [_entry_to_json(child) for child in entry.fields]
    out.update(entry.extra)
    return out
