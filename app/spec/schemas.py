"""The schemas of one table or view: JSON text and id of each, parsed on demand.

A table may keep hundreds of wide schemas while a commit looks at one or two of them. The text of a schema that a
document brought is written back as it came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

import msgspec

from app.errors import SpecError
from app.spec.codec import decode, encode
from app.spec.schema import Schema, decode_schema, schema_to_json
from app.spec.text import Chunk, Piece
from app.spec.typed import Int32, decode_typed
from app.spec.types import field_to_json


class _Head(msgspec.Struct, frozen=True, gc=False):
    schema_id: Int32 | None = msgspec.field(name="schema-id", default=None)


# A schema whose text is at least this long is a chunk of its own: hundreds of wide ones are compressed once.
_WIDE_BYTES = 16 << 10

_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])
_HEAD = msgspec.json.Decoder(_Head)
_HEADS = msgspec.json.Decoder(list[_Head])


class StoredSchema:
    """One schema: its text, and its parsed form once somebody asked."""

    __slots__ = ("_content", "_parsed", "_path", "body", "part", "schema_id")

    def __init__(self, schema_id: int, body: bytes, path: str, parsed: Schema | None = None) -> None:
        self.schema_id = schema_id
        self.body = body
        self.part: Piece | Chunk = body if len(body) < _WIDE_BYTES else Chunk(body)
        self._path = path
        self._parsed = parsed
        self._content: bytes | None = None

    @property
    def schema(self) -> Schema:
        """SpecError when no reader could load it."""
        if self._parsed is None:
            # Two threads may both parse, to equal results.
            self._parsed = decode_schema(self.body, self._path)
        return self._parsed

    @property
    def content(self) -> bytes:
        """What its content comes to, as `content_digest`."""
        if self._content is None:
            self._content = content_digest(self.schema)
        return self._content


def content_digest(schema: Schema) -> bytes:
    """Equal for schemas with the same content, whatever their ids. SpecError for what no document can hold."""
    fields = [field_to_json(field) for field in schema.fields]
    return hashlib.blake2b(encode([fields, sorted(schema.identifier_field_ids)]), digest_size=16).digest()


class Schemas:
    """Immutable, in document order. Iterating yields ids; `get` and `all` parse what they return."""

    __slots__ = ("_by_id", "_stored")

    def __init__(self, stored: tuple[StoredSchema, ...] = ()) -> None:
        self._stored = stored
        self._by_id = {item.schema_id: item for item in stored}

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(item.schema_id for item in self._stored)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, schema_id: object) -> bool:
        return schema_id in self._by_id

    def get(self, schema_id: int) -> Schema | None:
        found = self._by_id.get(schema_id)
        return None if found is None else found.schema

    def text(self, schema_id: int) -> bytes | None:
        """The JSON text of one schema as stored."""
        found = self._by_id.get(schema_id)
        return None if found is None else found.body

    def all(self) -> Iterator[Schema]:
        """Every schema, parsed, in document order."""
        return (item.schema for item in self._stored)

    def same_as(self, schema: Schema) -> int | None:
        """The id of the first schema with the same content."""
        for item in self._stored:
            if item.schema.same_content(schema):
                return item.schema_id
        return None

    def append(self, schema: Schema) -> Schemas:
        """With one more schema, whose id must not be taken."""
        if schema.schema_id in self._by_id:
            raise SpecError(f"Two schemas have the same schema-id: {schema.schema_id}")
        body = encode(schema_to_json(schema))
        return Schemas((*self._stored, StoredSchema(schema.schema_id, body, "$", schema)))

    def remove(self, schema_ids: Collection[int]) -> Schemas:
        """Without these ids; unknown ids are ignored."""
        gone = frozenset(schema_ids)
        return Schemas(tuple(item for item in self._stored if item.schema_id not in gone))

    def parts(self) -> list[Piece | Chunk]:
        """The JSON array; wide schemas are chunks that versions share."""
        parts: list[Piece | Chunk] = [b"["]
        for item in self._stored:
            parts += (item.part, b",")
        if self._stored:
            parts.pop()
        parts.append(b"]")
        return parts


class GrowingSchemas:
    """The list under change: it grows in place, and finds equal content without looking at every schema."""

    __slots__ = ("_by_content", "_by_id", "_highest", "_settled")

    def __init__(self, base: Schemas) -> None:
        self._settled: Schemas | None = base
        self._by_id = dict(base._by_id)
        self._by_content: dict[bytes, dict[int, None]] | None = None
        self._highest = max(self._by_id, default=-1)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._by_id)

    @property
    def highest_id(self) -> int:
        """The highest id that was ever in this list; -1 for none."""
        return self._highest

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, schema_id: object) -> bool:
        return schema_id in self._by_id

    def get(self, schema_id: int) -> Schema | None:
        found = self._by_id.get(schema_id)
        return None if found is None else found.schema

    def same_as(self, schema: Schema) -> int | None:
        """The id of the first schema with the same content."""
        if self._by_content is None:
            self._by_content = {}
            for item in self._by_id.values():
                self._by_content.setdefault(item.content, {})[item.schema_id] = None
        return next(iter(self._by_content.get(content_digest(schema), ())), None)

    def append(self, schema: Schema) -> None:
        """One more schema, whose id must not be taken."""
        if schema.schema_id in self._by_id:
            raise SpecError(f"Two schemas have the same schema-id: {schema.schema_id}")
        item = StoredSchema(schema.schema_id, encode(schema_to_json(schema)), "$", schema)
        self._by_id[schema.schema_id] = item
        self._highest = max(self._highest, schema.schema_id)
        self._settled = None
        if self._by_content is not None:
            self._by_content.setdefault(item.content, {})[schema.schema_id] = None

    def remove(self, schema_ids: Collection[int]) -> None:
        """Without these ids; unknown ids are ignored."""
        for schema_id in schema_ids:
            item = self._by_id.pop(schema_id, None)
            if item is None:
                continue
            self._settled = None
            if self._by_content is not None:
                self._by_content[item.content].pop(schema_id)

    def settled(self) -> Schemas:
        """The list as it is; the very one that it began with while nothing has changed."""
        if self._settled is None:
            self._settled = Schemas(tuple(self._by_id.values()))
        return self._settled


def _stored(head: _Head, text: msgspec.Raw, path: str) -> StoredSchema:
    if head.schema_id is not None:
        return StoredSchema(head.schema_id, bytes(text), path)
    # Version 1 may leave the id out, which means 0; every list written from here on needs it.
    return StoredSchema(0, encode({**decode(bytes(text), path), "schema-id": 0}), path)


def parse_schemas(raw: msgspec.Raw, path: str) -> Schemas:
    """The `schemas` array of a document. Ids are read, the rest stays text; SpecError for two with one id."""
    heads = decode_typed(_HEADS, raw, path)
    stored = tuple(
        _stored(head, text, f"{path}[{at}]")
        for at, (head, text) in enumerate(zip(heads, _TEXTS.decode(raw), strict=True))
    )
    schemas = Schemas(stored)
    if len(schemas._by_id) != len(stored):
        raise SpecError("Two schemas have the same schema-id", path)
    return schemas


def single_schema(raw: msgspec.Raw, path: str) -> Schemas:
    """The list that a format version 1 document with only `schema` means; its id is 0 when it has none."""
    head = decode_typed(_HEAD, raw, path)
    return Schemas((_stored(head, raw, path),))
