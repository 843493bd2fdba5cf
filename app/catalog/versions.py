"""Versions of a table or view: the draft of the next one until its pointer has moved, what a replay answers with, and
which files may go. What a version holds is decided elsewhere.

A draft is complete before anything is written. Publishing writes every new metadata file under a name that was never
used, then lands one unit for all of them; a file whose pointer surely did not move is removed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.catalog import commit_point, idempotency, locations, storage, tabulars
from app.catalog.commit_point import Landed
from app.catalog.context import Context
from app.catalog.idempotency import Key, Outcome
from app.catalog.metadata_cache import CachedMetadata, aside, checksum_of
from app.catalog.results import Committed, LoadedTable, version_tag
from app.errors import BadRequest, CommitStateUnknown, CorruptMetadata, Forbidden, IcekeelError, NotFound, ObjectExists
from app.events import AnyEvent
from app.iceberg import location as spec_location
from app.iceberg import metadata_file
from app.iceberg.json.chunked_text import Text
from app.iceberg.metadata_file import METADATA_PATH
from app.iceberg.table import TableMetadata
from app.iceberg.view import ViewMetadata
from app.metadata.properties import may_delete
from app.ports import (
    AppendJournal,
    Columns,
    CreateTabular,
    Kind,
    Levels,
    Objects,
    SwapTabular,
    Tabular,
    UseWaiver,
    Warehouse,
    WriteOp,
)
from app.rules import Finding, Waiver

log = logging.getLogger(__name__)

_FILES_AT_ONCE = 32
_NOT_WRITTEN = (ObjectExists, BadRequest, Forbidden)


@dataclass(frozen=True, slots=True)
class Draft:
    """What one request makes of one table or view.

    `row` is the pointer it was judged against, None for something new. `file` is where the new document goes;
    it equals the row's own metadata location when nothing changed, and then nothing is written. A `registered` file
    was there before and is never written or removed here. `roots` are the places outside the location that its files
    may lie in, None where they are those of the row; with `keeps_roots` those stay beside them. `expired` are
    older metadata files that the new document no longer names. `record` tells of planned updates.
    """

    kind: Kind
    levels: Levels
    name: str
    row: Tabular | None
    uuid: str
    location: str
    file: str
    document: CachedMetadata[TableMetadata] | CachedMetadata[ViewMetadata]
    columns: Columns
    registered: bool = False
    exclusive: bool = False
    roots: tuple[str, ...] | None = None
    keeps_roots: bool = False
    events: tuple[AnyEvent, ...] = ()
    findings: tuple[Finding, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    expired: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return self.row is None or self.row.metadata_location != self.file


def columns_of(metadata: TableMetadata, schema_changed_at_ms: int | None) -> Columns:
    """The plain columns that are kept beside a table's pointer; the field count is that of every depth."""
    return Columns(
        format_version=metadata.format_version,
        last_column_id=metadata.last_column_id,
        current_schema_id=metadata.current_schema_id,
        field_count=len(metadata.schema.by_id),
        schema_count=len(metadata.schemas),
        schema_changed_at_ms=schema_changed_at_ms,
    )


def next_file(ctx: Context, warehouse: Warehouse, metadata: TableMetadata | ViewMetadata, previous: str | None) -> str:
    """A metadata file name that was never used, one version after `previous`; BadRequest where we may not write."""
    version = 0 if previous is None else metadata_file.parse_version(previous) + 1
    file = metadata_file.new_metadata_location(metadata.location, metadata.properties, version, ctx.ids.uuid4())
    locations.check(ctx, warehouse, file, "metadata location")
    return file


async def publish(ctx: Context, warehouse: Warehouse, drafts: Sequence[Draft], key: Key, outcome: Outcome) -> None:
    """Make every draft the current version, all or none.

    SwapLost, KeyAlreadyUsed, AlreadyExists and the like: nothing happened and the new files are gone again.
    CommitStateUnknown: it may have happened, and nothing is deleted.
    """
    changed = [draft for draft in drafts if draft.changed]
    objects = ctx.objects.of(warehouse)
    if not changed:
        await commit_point.land(ctx, (), key, outcome)
        return
    written = [draft for draft in changed if not draft.registered]
    await _write_files(ctx, objects, written)

    try:
        unit = _unit(warehouse, changed, ctx.clock.now_ms())
        await commit_point.land(ctx, unit, key, outcome, _trace(ctx, warehouse, changed))
    except CommitStateUnknown:
        raise
    except IcekeelError:
        await _remove_files(objects, [draft.file for draft in written])
        raise
    except Exception as fault:
        raise CommitStateUnknown("The commit was interrupted; the change may have happened") from fault
    for draft in changed:
        ctx.caches.documents.keep(draft.file, draft.document)


def _unit(warehouse: Warehouse, drafts: Sequence[Draft], now_ms: int) -> list[WriteOp]:
    """Pointers first and in one order everywhere, so that two units never wait for each other's rows."""
    unit: list[WriteOp] = [_pointer(warehouse, draft, now_ms) for draft in sorted(drafts, key=_order)]
    for draft in drafts:
        unit += [UseWaiver(waiver_id=waiver.waiver_id, now_ms=now_ms) for waiver in draft.waivers]
        unit += [AppendJournal(event=event) for event in draft.events]
    return unit


def _order(draft: Draft) -> tuple[int, Levels, str]:
    return (-1 if draft.row is None else draft.row.tabular_id, draft.levels, draft.name)


def _pointer(warehouse: Warehouse, draft: Draft, now_ms: int) -> WriteOp:
    checksum = None if draft.registered else draft.document.checksum
    if draft.row is not None:
        return SwapTabular(
            tabular_id=draft.row.tabular_id,
            expected=draft.row.metadata_location,
            metadata_location=draft.file,
            uuid=draft.uuid,
            location=draft.location,
            columns=draft.columns,
            exclusive_location=draft.exclusive,
            now_ms=now_ms,
            roots=draft.roots,
            keeps_roots=draft.keeps_roots,
            registered=draft.registered,
            checksum=checksum,
        )
    return CreateTabular(
        warehouse=warehouse.name,
        namespace=draft.levels,
        name=draft.name,
        kind=draft.kind,
        uuid=draft.uuid,
        location=draft.location,
        metadata_location=draft.file,
        columns=draft.columns,
        exclusive_location=draft.exclusive,
        now_ms=now_ms,
        roots=draft.roots or (),
        registered=draft.registered,
        checksum=checksum,
    )


async def _write_files(ctx: Context, objects: Objects, drafts: Sequence[Draft]) -> None:
    """Write all new documents; when one fails, none stays."""
    at_once = asyncio.Semaphore(_FILES_AT_ONCE)
    writing = [_write_file(ctx, objects, draft, at_once) for draft in drafts]
    results = await asyncio.gather(*writing, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return
    # A file that already exists is another writer's, whatever the odds, and a location that is refused was never
    # written to; every other failure may have left ours.
    ours = [draft.file for draft, result in zip(drafts, results, strict=True) if not isinstance(result, _NOT_WRITTEN)]
    await _remove_files(objects, ours)
    raise failures[0]


async def _write_file(ctx: Context, objects: Objects, draft: Draft, at_once: asyncio.Semaphore) -> None:
    text = draft.document.text
    async with at_once:
        weight = len(text)
        if isinstance(text, Text) and metadata_file.is_gzip_name(draft.file):
            weight = sum(map(len, (await ctx.caches.documents.deflated(text)).segments))
        stored = await aside(weight, metadata_file.encode, text, draft.file)
        draft.document.checksum = await aside(len(stored), checksum_of, stored)
        await objects.create(draft.file, stored)


async def _remove_files(objects: Objects, files: Sequence[str]) -> None:
    for file in files:
        try:
            await objects.delete(file)
        except IcekeelError:
            log.warning("could not remove the unused metadata file %s", file, exc_info=True)


def _trace(ctx: Context, warehouse: Warehouse, changed: Sequence[Draft]) -> Landed | None:
    """What tells of swaps alone whether they landed: any one of them, for one unit moves all pointers or none.

    None where something is new: its name may be free because the unit is lost, or because others took it away since.
    """
    rows = [draft.row for draft in changed if draft.row is not None]
    if len(rows) < len(changed):
        return None
    return partial(_landed, ctx, warehouse, rows[0], changed[0].file)


async def _landed(ctx: Context, warehouse: Warehouse, before: Tabular, file: str) -> bool | None:
    """Whether the lost unit moved the pointer from where `before` saw it to `file`."""
    row = await ctx.store.tabular_by_id(before.tabular_id)
    if row is None:
        return None
    if row.metadata_location == file:
        return True
    # Every swap counts the version up: a pointer that went away and came back is not one that never moved.
    if row.version == before.version:
        return False
    return await _in_history(ctx, warehouse, row, before, file)


async def _in_history(ctx: Context, warehouse: Warehouse, row: Tabular, before: Tabular, file: str) -> bool | None:
    """Someone committed since: our file among its predecessors means yes, our base without our file means no."""
    if row.kind != "table":
        return None
    try:
        document = await tabulars.table_document(ctx, warehouse, row)
    except (NotFound, CorruptMetadata):
        return None
    earlier = {entry.metadata_file for entry in document.metadata.metadata_log}
    if file in earlier:
        return True
    return False if before.metadata_location in earlier else None


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its metadata file and the document in it, as JSON."""

    file: str
    text: bytes | Text


def committed(warehouse: Warehouse, version: Version, findings: tuple[Finding, ...] = ()) -> Committed:
    """The answer of a commit; its tag is good for the next default load."""
    tag = version_tag(version.file, "all", storage.handed(warehouse))
    return Committed(version.file, version.text, tag, findings)


def loaded(warehouse: Warehouse, version: Version, findings: tuple[Finding, ...] = ()) -> LoadedTable:
    """The answer of a create or register: the table as the next default load would show it."""
    config = storage.handed(warehouse)
    tag = version_tag(version.file, "all", config)
    return LoadedTable(version.file, version.text, config, tag, findings)


def of(draft: Draft) -> Version:
    return Version(draft.file, draft.document.text)


def outcome(draft: Draft) -> dict[str, Any]:
    """What an idempotency record keeps of an accepted draft: enough to answer again, however large the document."""
    return {"file": draft.file, "findings": idempotency.recorded_findings(draft.findings)}


async def recorded(
    ctx: Context, warehouse: Warehouse, levels: Levels, name: str, outcome: Outcome, kind: Kind = "table"
) -> Version:
    """The version that a recorded outcome names, or the present one when that file was trimmed since.

    A replay may show a newer state; it may not run the request again. NoSuchTable when nothing is left to show.
    """
    try:
        return await _version(ctx, warehouse, outcome["file"], kind)
    except NotFound:
        find = tabulars.table if kind == "table" else tabulars.view
        row = await find(ctx, warehouse, levels, name)
        return await _version(ctx, warehouse, row.metadata_location, kind)


async def trim(ctx: Context, warehouse: Warehouse, draft: Draft) -> None:
    """Delete metadata files that fell off the log of a table that asks for it, as far as they are its own: where any
    other table of any warehouse may have files nothing goes, for its log may name them too."""
    properties = draft.document.metadata.properties
    if not may_delete(properties):
        return
    objects, itself = ctx.objects.of(warehouse), None if draft.row is None else draft.row.tabular_id
    for home in _homes(draft, properties):
        if others := await locations.owners(ctx, objects, home, besides=itself):
            log.warning("metadata files of %s are kept: %s shares %s", draft.location, others[0], home)
            return
    for file in draft.expired:
        if file != draft.file and _own(draft, properties, file) and locations.may_touch(ctx, warehouse, file):
            await objects.delete(file)


async def _version(ctx: Context, warehouse: Warehouse, file: str, kind: Kind) -> Version:
    objects, documents, limit = ctx.objects.of(warehouse), ctx.caches.documents, ctx.limits.document_bytes
    if kind == "table":
        return Version(file, (await documents.table(objects, file, limit)).text)
    return Version(file, (await documents.view(objects, file, limit)).text)


def _homes(draft: Draft, properties: Mapping[str, str]) -> list[str]:
    return [draft.location, *([properties[METADATA_PATH]] if properties.get(METADATA_PATH) else [])]


def _own(draft: Draft, properties: Mapping[str, str], file: str) -> bool:
    """Whether `file` lies where this table keeps its metadata; a log may name anything."""
    try:
        return any(spec_location.contains(home, file) for home in _homes(draft, properties))
    except BadRequest:
        return False
