"""The metadata files that a table's pointer has named, as far back as its metadata logs tell."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.context import Context
from app.catalog.metadata_cache import TABLE, CachedMetadata, read_afresh
from app.errors import BadRequest, NotFound
from app.events import Created
from app.iceberg import location as locations
from app.iceberg.metadata_file import parse_version
from app.iceberg.table import TableMetadata
from app.ports import Objects

_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class Chain:
    """`named` are canonical locations. Of versions up to `unknown_to` nothing can be said; -1 means all are known."""

    named: frozenset[str]
    unknown_to: int


def key_of(location: str) -> str:
    """The location in its one spelling; what has none is compared as it is."""
    try:
        return locations.canonical(location)
    except BadRequest:
        return location


async def follow(objects: Objects, metadata_location: str, limit: int) -> Chain:
    """Walk from the present file to the oldest one that its logs lead to."""
    named = {key_of(metadata_location)}
    oldest = metadata_location
    document = await _read(objects, oldest, limit)
    while True:
        log = [entry.metadata_file for entry in document.metadata.metadata_log]
        fresh = [file for file in log if key_of(file) not in named]
        if not fresh:
            version = parse_version(oldest)
            return Chain(frozenset(named), -1 if version == 0 else version)
        named.update(map(key_of, fresh))
        oldest = fresh[0]
        try:
            document = await _read(objects, oldest, limit)
        except (NotFound, BadRequest):
            return Chain(frozenset(named), parse_version(oldest) if parse_version(oldest) != 0 else -1)


async def logged(objects: Objects, metadata_location: str, limit: int) -> set[str]:
    """What the present file's own log names, in canonical spelling; a vanished file names nothing. BadRequest."""
    try:
        document = await _read(objects, metadata_location, limit)
    except NotFound:
        return set()
    return {key_of(entry.metadata_file) for entry in document.metadata.metadata_log}


async def was_registered(ctx: Context, table_uuid: str) -> bool:
    """Whether a pointer to the table came from outside at any time: then there may be versions that no log names."""
    before: int | None = None
    while True:
        entries = await ctx.store.journal(table_uuid=table_uuid, before_id=before, limit=_ENTRIES)
        if any(isinstance(entry.event, Created) and entry.event.registered for entry in entries):
            return True
        if len(entries) < _ENTRIES:
            return False
        before = entries[-1].entry_id


async def _read(objects: Objects, location: str, limit: int) -> CachedMetadata[TableMetadata]:
    return await read_afresh(objects, location, limit, TABLE)
