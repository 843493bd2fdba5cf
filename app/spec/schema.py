"""A schema and its index by field id (spec: Schemas, Identifier Field IDs, Appendix C).

A `Schema` that exists can be loaded by the reference implementation: ids and full names are unique, identifier
fields are legal, unknown columns are optional. Whether it may follow another schema is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Literal

import msgspec

from app.errors import SpecError
from app.spec.codec import NO_EXTRA, Json, as_int32_list, as_object, decode, describe, extra_of, optional_int32
from app.spec.types import (
    KNOWN_TYPES,
    NESTED_TYPES,
    DoubleType,
    FloatType,
    Int32,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    field_to_json,
    is_primitive,
    parse_fields,
    parse_type,
)

MOST_NAME_CHARACTERS: Final = 64_000_000
"""Characters of all full dotted names of one schema."""

FieldKind = Literal["field", "element", "key", "value"]

_SCHEMA_KEYS: Final = frozenset({"type", "schema-id", "identifier-field-ids", "fields"})
MAX_NAME_CHARS: Final = 16_777_216
"""Of the full names of all fields of a schema together: each repeats the names of all that encloses it, so that a long
name over many fields is a small document and a huge index."""
_NEEDS_WALK: Final = frozenset({*NESTED_TYPES, UnknownType})


class _Index:
    """Everything a schema knows by field id, in document order (parents before children)."""

    __slots__ = ("by_id", "by_name", "characters", "kinds", "names", "parents", "positions", "short_names")

    def __init__(self) -> None:
        self.characters = 0
        self.by_id: dict[int, NestedField] = {}
        self.by_name: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.parents: dict[int, int | None] = {}
        self.kinds: dict[int, FieldKind] = {}
        self.positions: dict[int, int] = {}
        self.short_names: dict[str, int] = {}
        self.characters = 0

    @classmethod
    def walked(cls, fields: tuple[NestedField, ...]) -> _Index:
        """Of any fields. Raises SpecError for ids or names that clash and for required unknown columns."""
        index = cls()
        index.add_children(StructType(fields), None, "", "")
        return index

    @classmethod
    def flat(cls, fields: tuple[NestedField, ...]) -> _Index:
        """Of fields without nested types that are known to be sound: the same as `walked`, several times faster."""
        index = cls()
        index.by_id = {column.field_id: column for column in fields}
        index.by_name = {column.name: column.field_id for column in fields}
        index.names = {column.field_id: column.name for column in fields}
        index.parents = dict.fromkeys(index.by_id)
        index.kinds = dict.fromkeys(index.by_id, "field")
        index.positions = {field_id: at for at, field_id in enumerate(index.by_id)}
        return index

    def add(
        self, entry: NestedField, kind: FieldKind, position: int, parent: int | None, prefix: str, short: str
    ) -> None:
        self.characters += len(prefix) + len(entry.name)
        if self.characters > MAX_NAME_CHARS:
            raise SpecError(
                f"Invalid schema: the full names of its fields have more than {MAX_NAME_CHARS} characters together. "
                "Shorten the names of structs that enclose many fields"
            )
        field_id, name = entry.field_id, prefix + entry.name
        # Full names repeat those of what is around: one name of a megabyte over 100,000 columns would be 100 GB.
        self.characters += len(name)
        if self.characters > MOST_NAME_CHARACTERS:
            raise SpecError(f"Invalid schema: full names have more than {MOST_NAME_CHARACTERS} characters together")
        if field_id in self.by_id:
            raise SpecError(f"Invalid schema: field id {field_id} is used by {self.names[field_id]} and by {name}")
        if name in self.by_name:
            raise SpecError(f"Invalid schema: multiple fields for name {name}: {self.by_name[name]} and {field_id}")
        field_type = entry.field_type
        if entry.required and isinstance(field_type, UnknownType):
            raise SpecError(f"Invalid schema: field {name} of type unknown must be optional")
        self.by_id[field_id] = entry
        self.by_name[name] = field_id
        self.names[field_id] = name
        self.parents[field_id] = parent
        self.kinds[field_id] = kind
        self.positions[field_id] = position
        if parent is not None:
            self.short_names.setdefault(short + entry.name, field_id)
        if isinstance(field_type, NESTED_TYPES):
            # The reference implementation leaves "element" and "value" out of short names above a struct.
            skipped = kind in ("element", "value") and isinstance(field_type, StructType)
            self.add_children(field_type, field_id, f"{name}.", short if skipped else f"{short}{entry.name}.")

    def add_children(self, nested: Type, parent: int | None, prefix: str, short: str) -> None:
        if isinstance(nested, StructType):
            for at, child in enumerate(nested.fields):
                self.add(child, "field", at, parent, prefix, short)
        elif isinstance(nested, ListType):
            self.add(nested.element_field, "element", 0, parent, prefix, short)
        elif isinstance(nested, MapType):
            self.add(nested.key_field, "key", 0, parent, prefix, short)
            self.add(nested.value_field, "value", 1, parent, prefix, short)


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a table or view at one moment; `schema_id` is unique within it.

    Raises SpecError for what no reader could load. `==` compares everything; `same_content` leaves the id out.
    """

    schema_id: int
    fields: tuple[NestedField, ...]
    identifier_field_ids: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)
    _index: _Index | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not _is_plainly_sound(self.fields):
            object.__setattr__(self, "_index", _Index.walked(self.fields))
        if self.identifier_field_ids:
            object.__setattr__(self, "identifier_field_ids", tuple(dict.fromkeys(self.identifier_field_ids)))
            for field_id in self.identifier_field_ids:
                self._check_identifier(field_id)

    def __hash__(self) -> int:
        return hash((self.schema_id, len(self.fields), self.identifier_field_ids))

    def _indexed(self) -> _Index:
        index = self._index
        if index is None:
            index = _Index.flat(self.fields)  # __post_init__ has walked all others
            object.__setattr__(self, "_index", index)
        return index

    @property
    def struct(self) -> StructType:
        return StructType(self.fields)

    @property
    def by_id(self) -> Mapping[int, NestedField]:
        """Every field at any depth, elements, keys and values included, parents before children."""
        return self._indexed().by_id

    @property
    def parents(self) -> Mapping[int, int | None]:
        """Field id to the id of the field that encloses it; None at the top level."""
        return self._indexed().parents

    @property
    def positions(self) -> Mapping[int, int]:
        """Field id to its position within its struct, from 0 (element and key 0, value 1)."""
        return self._indexed().positions

    @property
    def highest_id(self) -> int:
        """The highest field id at any depth, 0 without fields."""
        return max(self._indexed().by_id, default=0)

    def name_of(self, field_id: int) -> str:
        """The full dotted name, such as `addresses.element.city`. Raises KeyError for an unknown id."""
        return self._indexed().names[field_id]

    def kind_of(self, field_id: int) -> FieldKind:
        """Raises KeyError for an unknown id."""
        return self._indexed().kinds[field_id]

    def find(self, name: str) -> NestedField | None:
        """The field with this full dotted name, letter case as written."""
        index = self._indexed()
        field_id = index.by_name.get(name)
        return None if field_id is None else index.by_id[field_id]

    def find_readable(self, name: str) -> NestedField | None:
        """As `find`, and also by the names engines show: `addresses.city` for `addresses.element.city`."""
        index = self._indexed()
        field_id = index.by_name.get(name)
        if field_id is None:
            field_id = index.short_names.get(name)
        return None if field_id is None else index.by_id[field_id]

    def ancestors(self, field_id: int) -> Iterator[NestedField]:
        """The enclosing fields, innermost first."""
        index = self._indexed()
        parent = index.parents[field_id]
        while parent is not None:
            yield index.by_id[parent]
            parent = index.parents[parent]

    def same_content(self, other: Schema) -> bool:
        """Whether both hold equal fields in equal order and the same identifier fields; ids of the schemas aside."""
        if self is other:
            return True
        return self.fields == other.fields and (
            self.identifier_field_ids == other.identifier_field_ids
            or set(self.identifier_field_ids) == set(other.identifier_field_ids)
        )

    def with_id(self, schema_id: int) -> Schema:
        """The same content under another schema id; the index is shared."""
        if schema_id == self.schema_id:
            return self
        copy = object.__new__(Schema)
        for name, value in (
            ("schema_id", schema_id),
            ("fields", self.fields),
            ("identifier_field_ids", self.identifier_field_ids),
            ("extra", self.extra),
            ("_index", self._index),
        ):
            object.__setattr__(copy, name, value)
        return copy

    def _check_identifier(self, field_id: int) -> None:
        found = self.by_id.get(field_id)
        if found is None:
            raise SpecError(f"Cannot use field id {field_id} as an identifier field: field does not exist")
        refusal = f"Cannot use field {self.name_of(field_id)} as an identifier field: "
        if not is_primitive(found.field_type):
            raise SpecError(f"{refusal}not a primitive type field")
        if not found.required:
            raise SpecError(f"{refusal}not a required field")
        if isinstance(found.field_type, (FloatType, DoubleType)):
            raise SpecError(f"{refusal}must not be float or double")
        for ancestor in self.ancestors(field_id):
            if not isinstance(ancestor.field_type, StructType):
                raise SpecError(f"{refusal}must not be nested in a list or map ({self.name_of(ancestor.field_id)})")
            if not ancestor.required:
                raise SpecError(f"{refusal}must not be nested in the optional {self.name_of(ancestor.field_id)}")


def _is_plainly_sound(fields: tuple[NestedField, ...]) -> bool:
    """Whether flat fields have unique ids and names; False means that only the full index can tell."""
    if not _NEEDS_WALK.isdisjoint({type(column.field_type) for column in fields}):
        return False
    size = len(fields)
    return len({column.field_id for column in fields}) == size == len({column.name for column in fields})


def parse_schema(json: Json, path: str = "$") -> Schema:
    """A schema from decoded JSON. `schema-id` is 0 when absent. Raises SpecError with the path of the fault."""
    obj = as_object(json, path)
    if obj.get("type") != "struct":
        raise SpecError(f"Cannot create schema, not a struct type: {describe(obj.get('type'))}", path)
    identifiers = obj.get("identifier-field-ids")
    return _located(
        optional_int32(obj, "schema-id", path) or 0,
        parse_fields(obj, path, -1),
        () if identifiers is None else as_int32_list(identifiers, f"{path}.identifier-field-ids"),
        extra_of(obj, _SCHEMA_KEYS),
        path,
    )


def _located(
    schema_id: int, fields: tuple[NestedField, ...], identifiers: tuple[int, ...], extra: Mapping[str, Any], path: str
) -> Schema:
    try:
        return Schema(schema_id, fields, identifiers, extra)
    except SpecError as fault:
        raise SpecError(fault.reason, path) from None


class _Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A schema without unknown keys, as the JSON decoder builds it natively."""

    type: Literal["struct"]
    fields: tuple[NestedField, ...]
    schema_id: Int32 | None = msgspec.field(default=None, name="schema-id")
    identifier_field_ids: tuple[Int32, ...] | None = msgspec.field(default=None, name="identifier-field-ids")


def _native(annotation: type, json: Json) -> Type:
    """What the decoder calls for each `type` member: by far the hottest line of wide schemas."""
    if annotation is not Type:
        raise SpecError("defaults and unknown members are parsed the slow way")
    try:
        return KNOWN_TYPES[json]
    except (KeyError, TypeError):
        return parse_type(json)


_wire_decoder: Final = msgspec.json.Decoder(_Wire, dec_hook=_native)


def decode_schema(data: bytes, path: str = "$") -> Schema:
    """A schema from JSON text; same result and same faults as `parse_schema(decode(data))`, several times faster.

    Wide tables keep hundreds of schemas, so a document without defaults and unknown keys is decoded straight into
    fields. Whatever that refuses, faults included, takes the slow way, which keeps it or names it.
    """
    try:
        wire = _wire_decoder.decode(data)
    except (msgspec.MsgspecError, SpecError, RecursionError, UnicodeError):
        return parse_schema(decode(data, path), path)
    return _located(wire.schema_id or 0, wire.fields, wire.identifier_field_ids or (), NO_EXTRA, path)


def schema_to_json(schema: Schema) -> dict[str, Json]:
    """The JSON form, `schema-id` included; `identifier-field-ids` only if there are any."""
    out: dict[str, Json] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        out["identifier-field-ids"] = list(schema.identifier_field_ids)
    out["fields"] = [field_to_json(column) for column in schema.fields]
    out.update(schema.extra)
    return out


def reassign_ids(schema: Schema, start: int = 1) -> tuple[Schema, Mapping[int, int]]:
    """The schema with fresh ids from `start`, schema id 0, and the mapping from old ids to new ones.

    Order of the reference implementation: all fields of one struct first, then into each of them in order; an
    element takes one id, a map takes key and value together before their inner fields.
    """
    fresh = count(start)
    mapping: dict[int, int] = {}

    def take(old: int) -> int:
        mapping[old] = next(fresh)
        return mapping[old]

    def renumbered_fields(fields: Sequence[NestedField]) -> tuple[NestedField, ...]:
        ids = [take(column.field_id) for column in fields]
        return tuple(
            msgspec.structs.replace(column, field_id=new, field_type=renumbered(column.field_type))
            for new, column in zip(ids, fields, strict=True)
        )

    def renumbered(old: Type) -> Type:
        if isinstance(old, StructType):
            return StructType(renumbered_fields(old.fields), old.extra)
        if isinstance(old, ListType):
            element_id = take(old.element_id)
            return ListType(element_id, renumbered(old.element), old.element_required, old.extra)
        if isinstance(old, MapType):
            key_id, value_id = take(old.key_id), take(old.value_id)
            return MapType(key_id, renumbered(old.key), value_id, renumbered(old.value), old.value_required, old.extra)
        return old

    fields = renumbered_fields(schema.fields)
    identifiers = tuple(mapping[old] for old in schema.identifier_field_ids)
    return Schema(0, fields, identifiers, schema.extra), mapping
