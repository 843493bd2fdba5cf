"""Metadata documents by their immutable location: read once, parsed once, bounded in bytes.

A location is written once and never again, so an entry needs no invalidation; `register` alone reads afresh, because
it names a file that somebody else wrote. Every document is parsed when it is read: bytes that no reader could load
are never served. What is served are the file's own bytes, unless they hold explicit nulls, which clients refuse in
most places: then it is the same document without them.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from app.errors import CorruptMetadata, NotFound, ObjectMissing, SpecError
from app.ports import Objects
from app.spec import metadata_file
from app.spec.codec import decode, encode
from app.spec.table import TableMetadata, parse_table_metadata, render_refs_only, render_table_metadata
from app.spec.typed import drop_nulls
from app.spec.view import ViewMetadata, parse_view_metadata, render_view_metadata

M = TypeVar("M", TableMetadata, ViewMetadata)

# Below this size decoding and parsing are quicker than handing them to a thread; beyond it they would stall others.
HEAVY_BYTES = 512 << 10


# A member that is null, save the one that every client takes so.
_NULL = re.compile(rb'(?<!"current-snapshot-id"):\s*null\b')


class Document(Generic[M]):
    """One version of a table or view: its parsed form and its JSON bytes as served."""

    __slots__ = ("data", "metadata", "refs_only")

    def __init__(self, data: bytes, metadata: M) -> None:
        self.data = data
        self.metadata: M = metadata
        self.refs_only: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes this entry is charged with: the document, its parsed form (about as much again), the short form."""
        return 2 * len(self.data) + len(self.refs_only or b"")


@dataclass(frozen=True, slots=True)
class Form(Generic[M]):
    """How one kind of document is read and written."""

    parse: Callable[[bytes], M]
    render: Callable[[M], bytes]

    def document(self, data: bytes) -> Document[M]:
        """The document in `data` (JSON text), free of nulls. SpecError."""
        if _NULL.search(data) is None:
            return Document(data, self.parse(data))
        metadata = self.parse(encode(drop_nulls(decode(data))))
        return Document(self.render(metadata), metadata)


TABLE = Form(parse_table_metadata, render_table_metadata)
VIEW = Form(parse_view_metadata, render_view_metadata)


class Documents:
    """An LRU of documents, bounded in bytes; a document larger than the bound is served but not kept."""

    __slots__ = ("_bytes", "_entries", "_reading", "limit")

    def __init__(self, limit: int = 256 << 20) -> None:
        self.limit = limit
        self._bytes = 0
        self._entries: OrderedDict[str, Document[TableMetadata] | Document[ViewMetadata]] = OrderedDict()
        self._reading: dict[tuple[str, Form[Any]], asyncio.Future[Any]] = {}

    @property
    def held_bytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, location: str) -> bool:
        return location in self._entries

    async def table(
        self, objects: Objects, location: str, limit: int, *, uuid: str | None = None
    ) -> Document[TableMetadata]:
        """The table metadata that a pointer names; `uuid` is that of the pointer's table.

        NotFound: the file has vanished. CorruptMetadata: no reader could load it, or it is another table's.
        """
        held = self._get(location)
        if held is None or not isinstance(held.metadata, TableMetadata):
            held = await self._read(objects, location, limit, TABLE)
        _check_owner(location, uuid, held.metadata.table_uuid, "table-uuid")
        return held

    async def view(
        self, objects: Objects, location: str, limit: int, *, uuid: str | None = None
    ) -> Document[ViewMetadata]:
        """The view metadata that a pointer names; failures as in `table`."""
        held = self._get(location)
        if held is None or not isinstance(held.metadata, ViewMetadata):
            held = await self._read(objects, location, limit, VIEW)
        _check_owner(location, uuid, held.metadata.view_uuid, "view-uuid")
        return held

    async def refs_only(self, objects: Objects, location: str, limit: int, *, uuid: str | None = None) -> bytes:
        """The document with only those snapshots that a branch or tag points to directly."""
        document = await self.table(objects, location, limit, uuid=uuid)
        if document.refs_only is None:
            rendered = await aside(len(document.data), render_refs_only, document.metadata)
            if document.refs_only is None:
                document.refs_only = rendered
                self._charge(location, document, len(rendered))
        return document.refs_only

    def forget(self, location: str) -> None:
        entry = self._entries.pop(location, None)
        if entry is not None:
            self._bytes -= entry.size

    def keep(self, location: str, document: Document[TableMetadata] | Document[ViewMetadata]) -> None:
        """Remember the newest version of something; older entries make room."""
        self.forget(location)
        if document.size > self.limit:
            return
        self._entries[location] = document
        self._bytes += document.size
        self._evict()

    def _get(self, location: str) -> Document[TableMetadata] | Document[ViewMetadata] | None:
        entry = self._entries.get(location)
        if entry is not None:
            self._entries.move_to_end(location)
        return entry

    def _charge(self, location: str, document: Document[TableMetadata], more: int) -> None:
        if self._entries.get(location) is document:
            self._bytes += more
            self._evict()

    def _evict(self) -> None:
        while self._bytes > self.limit and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._bytes -= entry.size

    async def _read(self, objects: Objects, location: str, limit: int, form: Form[M]) -> Document[M]:
        """Read a document that is not held; whoever asks meanwhile waits for the same reading."""
        key = (location, form)
        reading = self._reading.get(key)
        if reading is None:
            reading = asyncio.ensure_future(self._read_and_keep(objects, location, limit, form))
            self._reading[key] = reading
            reading.add_done_callback(lambda done: self._done(key, done))
        document: Document[M] = await asyncio.shield(reading)
        return document

    async def _read_and_keep(self, objects: Objects, location: str, limit: int, form: Form[M]) -> Document[M]:
        try:
            document = await _parsed(objects, location, limit, form)
        except SpecError as fault:
            raise CorruptMetadata(location, fault.reason, fault.path) from fault
        self.keep(location, document)
        return document

    def _done(self, key: tuple[str, Form[Any]], reading: asyncio.Future[Any]) -> None:
        self._reading.pop(key, None)
        # Asking for the exception keeps asyncio from reporting one whose readers have all left.
        if not reading.cancelled():
            reading.exception()


async def read_afresh(objects: Objects, location: str, limit: int, form: Form[M]) -> Document[M]:
    """Read and parse one file past every cache. NotFound, SpecError (with the file named), PayloadTooLarge."""
    try:
        return await _parsed(objects, location, limit, form)
    except SpecError as fault:
        raise SpecError(f"Cannot read metadata file {location}: {fault.reason}", fault.path) from fault


async def _parsed(objects: Objects, location: str, limit: int, form: Form[M]) -> Document[M]:
    try:
        stored = await objects.read(location, limit=limit)
    except ObjectMissing as missing:
        raise NotFound(missing.message, location=location) from missing
    data = await aside(len(stored), partial(metadata_file.decode, limit=limit), stored, location)
    return await aside(len(data), form.document, data)


def _check_owner(location: str, wanted: str | None, found: str | None, member: str) -> None:
    """A document without a uuid (format version 1) may be anybody's."""
    if wanted is not None and found is not None and wanted.lower() != found.lower():
        raise CorruptMetadata(location, f"it belongs to {found}, not to {wanted}", f"$.{member}")


R = TypeVar("R")


async def aside(size: int, work: Callable[..., R], *arguments: object) -> R:
    """Run `work` on the loop when it is light, in a thread when it would hold everybody up."""
    if size < HEAVY_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
