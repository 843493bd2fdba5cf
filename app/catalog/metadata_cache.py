"""Metadata documents by their immutable location: read once, parsed once, bounded in bytes.

A location is written once and never again, so an entry needs no invalidation; `register` alone reads afresh, because
it names a file that somebody else wrote. Should that have been written anew with another table, then an entry that is
not the pointer's table is read afresh too. Every document is parsed when it is read: bytes that no reader could load
are never served. What is served are the file's own bytes, unless they hold explicit nulls, which clients refuse in
most places: then it is the same document without them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from app.errors import CorruptMetadata, NotFound, ObjectMissing, SpecError
from app.iceberg import metadata_file
from app.iceberg.amounts import MOST_FILE_VALUES, check_amounts
from app.iceberg.json.chunked_text import Chunk, Deflated, Text
from app.iceberg.json.codec import decode, encode
from app.iceberg.json.typed import drop_nulls
from app.iceberg.table import (
    TableMetadata,
    compose_table_metadata,
    parse_table_metadata,
    render_refs_only,
    stored_text,
)
from app.iceberg.view import ViewMetadata, parse_view_metadata, render_view_metadata
from app.ports import Objects


class _Held:
    __slots__ = ("cost", "holders")

    def __init__(self) -> None:
        self.holders = 0
        self.cost = 0


class Holdings:
    """`bytes` is the sum of what every held chunk was charged with when it was weighed last."""

    __slots__ = ("_chunks", "bytes")

    def __init__(self) -> None:
        self._chunks: dict[Chunk, _Held] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._chunks)

    def hold(self, text: Text) -> None:
        for chunk in text.chunks:
            self._chunks.setdefault(chunk, _Held()).holders += 1
        self.weigh(text)

    def release(self, text: Text) -> None:
        """The counterpart of one `hold`."""
        for chunk in text.chunks:
            held = self._chunks[chunk]
            held.holders -= 1
            if not held.holders:
                self.bytes -= held.cost
                del self._chunks[chunk]

    def weigh(self, text: Text) -> None:
        """Charge what a text has become; chunks that nobody holds are free."""
        for chunk in text.chunks:
            held = self._chunks.get(chunk)
            if held is not None:
                self.bytes += chunk.cost - held.cost
                held.cost = chunk.cost


M = TypeVar("M", TableMetadata, ViewMetadata)

# Below this size decoding and parsing are quicker than handing them to a thread; beyond it they would stall others.
HEAVY_BYTES = 512 << 10

# From this size on a table's text is kept in chunks that its versions share, and sent as gzip where that is accepted:
# from about 60 KB on a load costs less so than plain, and a commit about the same.
LARGE_BYTES = 64 << 10

# What a byte of gzip counts for: it unpacks to ten as a rule and to a thousand at most.
_UNPACKED = 32

_NULL = b"null"
_BLANK = b" \t\r\n"
# How far before a null its key is looked for; white space beyond that is taken for a member that is null.
_KEY_BYTES = 256


class CachedMetadata(Generic[M]):
    """One version of a table or view: its parsed form and its JSON text as served, in chunks when it is large."""

    __slots__ = ("checksum", "metadata", "refs_only", "text")

    def __init__(self, text: bytes | Text, metadata: M) -> None:
        self.checksum: str | None = None
        """Of the stored file, as `checksum_of`; None until it was read or written."""
        self.text = text
        self.metadata: M = metadata
        self.refs_only: bytes | Text | None = None

    @property
    def data(self) -> bytes:
        """The text in one piece, which a large one is copied for."""
        return self.text if isinstance(self.text, bytes) else self.text.joined()

    @property
    def shared(self) -> tuple[Text, ...]:
        """What is charged by the chunk."""
        return tuple([text for text in (self.text, self.refs_only) if isinstance(text, Text)])

    @property
    def own(self) -> int:
        """Bytes charged to this entry alone: text and parsed form (about as much again)."""
        own = 0
        if isinstance(self.text, bytes):
            own += 2 * len(self.text)
        if isinstance(self.refs_only, bytes):
            own += len(self.refs_only)
        return own

    @property
    def size(self) -> int:
        """Bytes that this document would be charged with if it shared nothing."""
        return self.own + sum(chunk.cost for text in self.shared for chunk in text.chunks)


@dataclass(frozen=True, slots=True)
class Form(Generic[M]):
    """How one kind of document is read and written."""

    parse: Callable[[bytes], M]
    render: Callable[[M], bytes | Text]
    cure: str = ""
    """What mends a stored file of this kind that is damaged."""

    def document(self, data: bytes) -> CachedMetadata[M]:
        """The document in `data` (JSON text), free of nulls. SpecError."""
        if not _has_nulls(data):
            metadata = self.parse(data)
            if len(data) >= LARGE_BYTES and isinstance(metadata, TableMetadata):
                return CachedMetadata(stored_text(metadata, data), metadata)
            return CachedMetadata(data, metadata)
        metadata = self.parse(encode(drop_nulls(decode(data))))
        return CachedMetadata(self.render(metadata), metadata)


def _has_nulls(data: bytes) -> bool:
    """Whether a member may be null, save the one that every client takes so. A false alarm costs time alone.

    A regular expression for it takes 66 ms for 6 MB, and lets nothing else run meanwhile; this takes 3.
    """
    at = data.find(_NULL)
    while at >= 0:
        before = data[max(0, at - _KEY_BYTES) : at].rstrip(_BLANK)
        if not before or (before.endswith(b":") and not before.endswith(b'"current-snapshot-id":')):
            return True
        at = data.find(_NULL, at + len(_NULL))
    return False


def table_text(metadata: TableMetadata) -> bytes | Text:
    """The JSON text of a table, in chunks when it is large."""
    return compose_table_metadata(metadata, LARGE_BYTES)


def _refs_only(metadata: TableMetadata) -> bytes | Text:
    data = render_refs_only(metadata)
    return Text.of(data) if len(data) >= LARGE_BYTES else data


TABLE = Form(
    parse_table_metadata,
    table_text,
    "Put the file back as it was, or another version of the table in its place: POST .../register with its "
    '`metadata-location` and `"overwrite": true`',
)
VIEW = Form(
    parse_view_metadata,
    render_view_metadata,
    "Put the file back as it was, or drop the view and register another version of it",
)


_Reading = tuple[str, Form[Any], str | None]


class MetadataCache:
    """An LRU of documents, bounded in bytes; a document larger than the bound is served but not kept."""

    __slots__ = ("_bytes", "_deflating", "_entries", "_holdings", "_reading", "limit")

    def __init__(self, limit: int = 256 << 20) -> None:
        self.limit = limit
        self._bytes = 0
        self._holdings = Holdings()
        self._entries: OrderedDict[str, CachedMetadata[TableMetadata] | CachedMetadata[ViewMetadata]] = OrderedDict()
        self._reading: dict[_Reading, asyncio.Future[Any]] = {}
        self._deflating: dict[Text, asyncio.Future[Deflated]] = {}

    @property
    def held_bytes(self) -> int:
        """What all entries are charged with; chunks that several of them have count once."""
        return self._bytes + self._holdings.bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, location: str) -> bool:
        return location in self._entries

    def held_table(self, location: str, uuid: str, checksum: str | None = None) -> CachedMetadata[TableMetadata] | None:
        """The table metadata at `location` if it is held, and is that of the pointer's table (`uuid`)."""
        held = self._get(location)
        if held is None or not isinstance(held.metadata, TableMetadata) or _is_altered(held, checksum):
            return None
        if _is_others(uuid, held.metadata.table_uuid):
            # A file that its owner wrote anew and another server registered. If it is damage, reading it tells.
            return None
        return held

    async def table(
        self, objects: Objects, location: str, limit: int, *, uuid: str | None = None, checksum: str | None = None
    ) -> CachedMetadata[TableMetadata]:
        """The table metadata that a pointer names; `uuid` and `checksum` are those of the pointer, None if unknown.

        NotFound: the file has vanished. CorruptMetadata: no reader could load it, it is another table's, or it is not
        what was written.
        """
        held = self._get(location) if uuid is None else self.held_table(location, uuid, checksum)
        if held is None or not isinstance(held.metadata, TableMetadata):
            held = await self._read(objects, location, limit, TABLE, checksum)
        _check_owner(location, uuid, held.metadata.table_uuid, TABLE, "table-uuid")
        return held

    async def view(
        self, objects: Objects, location: str, limit: int, *, uuid: str | None = None, checksum: str | None = None
    ) -> CachedMetadata[ViewMetadata]:
        """The view metadata that a pointer names; failures as in `table`."""
        held = self._get(location)
        if held is not None and _is_altered(held, checksum):
            held = None
        if held is None or not isinstance(held.metadata, ViewMetadata) or _is_others(uuid, held.metadata.view_uuid):
            held = await self._read(objects, location, limit, VIEW, checksum)
        _check_owner(location, uuid, held.metadata.view_uuid, VIEW, "view-uuid")
        return held

    async def refs_only(
        self, objects: Objects, location: str, limit: int, *, uuid: str | None = None, checksum: str | None = None
    ) -> bytes | Text:
        """The document with only those snapshots that a branch or tag points to directly."""
        document = await self.table(objects, location, limit, uuid=uuid, checksum=checksum)
        if document.refs_only is None:
            rendered = await aside(len(document.text), _refs_only, document.metadata)
            if document.refs_only is None:
                document.refs_only = rendered
                self._charge(location, document, rendered)
        return document.refs_only

    async def deflated(self, text: Text) -> Deflated:
        """A text compressed: only what no version of it had compressed before; whoever asks meanwhile waits for it."""
        pending = text.pending
        if pending < HEAVY_BYTES:
            return self._deflate(text, text.deflated()) if pending else text.deflated()
        running = self._deflating.get(text)
        if running is None:
            running = asyncio.ensure_future(asyncio.to_thread(text.deflated))
            self._deflating[text] = running
            running.add_done_callback(lambda done: self._deflating.pop(text, None))
        try:
            return self._deflate(text, await asyncio.shield(running))
        finally:
            del running

    def forget(self, location: str) -> None:
        entry = self._entries.pop(location, None)
        if entry is not None:
            self._release(entry)

    def keep(self, location: str, document: CachedMetadata[TableMetadata] | CachedMetadata[ViewMetadata]) -> None:
        """Remember the newest version of something; older entries make room."""
        self.forget(location)
        if document.size > self.limit:
            return
        self._entries[location] = document
        self._bytes += document.own
        for text in document.shared:
            self._holdings.hold(text)
        self._evict()

    def _get(self, location: str) -> CachedMetadata[TableMetadata] | CachedMetadata[ViewMetadata] | None:
        entry = self._entries.get(location)
        if entry is not None:
            self._entries.move_to_end(location)
        return entry

    def _charge(self, location: str, document: CachedMetadata[TableMetadata], more: int | bytes | Text) -> None:
        if self._entries.get(location) is document:
            if isinstance(more, Text):
                self._holdings.hold(more)
            else:
                self._bytes += more if isinstance(more, int) else len(more)
            self._evict()

    def _deflate(self, text: Text, deflated: Deflated) -> Deflated:
        self._holdings.weigh(text)
        self._evict()
        return deflated

    def _release(self, entry: CachedMetadata[TableMetadata] | CachedMetadata[ViewMetadata]) -> None:
        self._bytes -= entry.own
        for text in entry.shared:
            self._holdings.release(text)

    def _evict(self) -> None:
        while self.held_bytes > self.limit and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._release(entry)

    async def _read(
        self, objects: Objects, location: str, limit: int, form: Form[M], checksum: str | None
    ) -> CachedMetadata[M]:
        """Read a document that is not held; whoever asks meanwhile waits for the same reading."""
        key = (location, form, checksum)
        reading = self._reading.get(key)
        if reading is None:
            reading = asyncio.ensure_future(self._read_and_keep(objects, location, limit, form, checksum))
            self._reading[key] = reading
            reading.add_done_callback(lambda done: self._done(key, done))
        try:
            document: CachedMetadata[M] = await asyncio.shield(reading)
        finally:
            del reading  # it knows a failure, which knows this frame
        return document

    async def _read_and_keep(
        self, objects: Objects, location: str, limit: int, form: Form[M], checksum: str | None
    ) -> CachedMetadata[M]:
        try:
            document = await _parsed(objects, location, limit, form, checksum=checksum)
        except SpecError as fault:
            raise CorruptMetadata(location, fault.reason, fault.path, form.cure) from fault
        self.keep(location, document)
        return document

    def _done(self, key: _Reading, reading: asyncio.Future[Any]) -> None:
        self._reading.pop(key, None)
        # Asking for the exception keeps asyncio from reporting one whose readers have all left.
        if not reading.cancelled():
            reading.exception()


async def read_afresh(
    objects: Objects,
    location: str,
    limit: int,
    form: Form[M],
    *,
    foreign: bool = False,
    checksum: str | None = None,
) -> CachedMetadata[M]:
    """Read and parse one file past every cache. NotFound, SpecError (with the file named), PayloadTooLarge.

    A `foreign` file is one that anybody may have written: how far it unpacks and how much it holds is bounded. With a
    `checksum` a file of another one is a SpecError.
    """
    try:
        return await _parsed(objects, location, limit, form, foreign=foreign, checksum=checksum)
    except SpecError as fault:
        raise SpecError(f"Cannot read metadata file {location}: {fault.reason}", fault.path) from fault


async def _parsed(
    objects: Objects,
    location: str,
    limit: int,
    form: Form[M],
    *,
    foreign: bool = False,
    checksum: str | None = None,
) -> CachedMetadata[M]:
    try:
        stored = await objects.read(location, limit=limit)
    except ObjectMissing as missing:
        raise NotFound(missing.message, location=location) from missing
    found = await aside(len(stored), checksum_of, stored)
    if checksum is not None and found != checksum:
        raise SpecError(f"its SHA-256 is {found}, and the file that was written has {checksum}", "$")
    if foreign:
        limit = min(limit, metadata_file.most_unpacked(len(stored)))
    data = await unpacked(stored, location, limit)
    if foreign:
        await aside(len(data), partial(check_amounts, most=MOST_FILE_VALUES), data)
    document = await aside(len(data), form.document, data)
    document.checksum = found
    return document


def checksum_of(stored: bytes) -> str:
    """The SHA-256 of a stored file, as `sha256sum` prints it."""
    return hashlib.sha256(stored).hexdigest()


async def unpacked(stored: bytes, location: str, limit: int) -> bytes:
    """The JSON text of a stored file, as `metadata_file.decode`; what is packed small can unpack to much."""
    weight = len(stored) * _UNPACKED if metadata_file.is_packed(stored) else 0
    return await aside(weight, partial(metadata_file.decode, limit=limit), stored, location)


def _is_others(wanted: str | None, found: str | None) -> bool:
    """A document without a uuid (format version 1) may be anybody's."""
    return wanted != found and wanted is not None and found is not None and wanted.lower() != found.lower()


def _is_altered(document: CachedMetadata[Any], checksum: str | None) -> bool:
    """Whether it was read from a file that is not the one that was written."""
    return checksum is not None and document.checksum is not None and document.checksum != checksum


def _check_owner(location: str, wanted: str | None, found: str | None, form: Form[Any], member: str) -> None:
    if _is_others(wanted, found):
        raise CorruptMetadata(location, f"it belongs to {found}, not to {wanted}", f"$.{member}", form.cure)


R = TypeVar("R")


async def aside(size: int, work: Callable[..., R], *arguments: object) -> R:
    """Run `work` on the loop when it is light, in a thread when it would hold everybody up."""
    if size < HEAVY_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
