"""The history of schemas: what the journal keeps since a table came here, and what its metadata tells of before.

A chapter is one change of one table's current schema: who, when, by which client, field by field.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.catalog import namespaces, tabulars, warehouses
from app.catalog.context import Context
from app.errors import BadRequest
from app.events import Created, SchemaChanged, WaiverUsed
from app.evolution.editing.field_biography import Biography, biography, biography_json
from app.evolution.engine.diff import Change, diff
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import TableMetadata
from app.ports import JournalEntry, Levels, Tabular

PAGE = 100
PAGE_MAX = 1_000

# `j12.3`: the journal before entry 12, schema 3 being current there (none: the table was created here).
# `m.3`: the metadata from schema 3 downwards.
_TOKEN = re.compile(r"(?:j([0-9]{1,18})\.(-1|[0-9]{1,10})?|m\.([0-9]{1,10}))", re.ASCII)
_NO_CHANGE_YET = -1

# One request reads at most this many journal entries, however few of them match.
_SCAN = 10_000
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Chapter:
    """One schema change. `changes` and `findings` are JSON-ready, as the journal keeps them.

    From `metadata` alone nobody knows who it was, and `at_ms` (epoch ms) is the first retained snapshot written under
    the schema, or None.
    """

    source: Literal["journal", "metadata"]
    levels: Levels
    name: str
    from_schema_id: int | None
    to_schema_id: int
    changes: tuple[Mapping[str, Any], ...]
    at_ms: int | None = None
    by: str | None = None
    client: str | None = None
    entry_id: int | None = None
    metadata_location: str | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    waivers: tuple[WaiverUsed, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What to leave out. Times are epoch milliseconds, `since_ms` inclusive and `until_ms` exclusive."""

    since_ms: int | None = None
    until_ms: int | None = None
    by: str | None = None
    change: Change | None = None
    field_id: int | None = None

    def takes(self, chapter: Chapter) -> bool:
        if self.since_ms is not None and (chapter.at_ms is None or chapter.at_ms < self.since_ms):
            return False
        if self.until_ms is not None and (chapter.at_ms is None or chapter.at_ms >= self.until_ms):
            return False
        if self.by is not None and chapter.by != self.by:
            return False
        if self.change is None and self.field_id is None:
            return True
        return any(
            (self.change is None or change.get("change") == self.change)
            and (self.field_id is None or change.get("field-id") == self.field_id)
            for change in chapter.changes
        )


EVERYTHING = Query()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page starts: before this journal entry, or (None) at the schema that the table arrived with."""

    entry_id: int | None = None
    arrived: int | None = _NO_CHANGE_YET


@dataclass(frozen=True, slots=True)
class Chronicle:
    """A page of chapters, newest first; `next_token` None means there is nothing more. A page may be short."""

    chapters: tuple[Chapter, ...]
    next_token: str | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """A field ID's biography, and the chapters that are about it, newest first."""

    biography: Biography
    chapters: tuple[Chapter, ...] = field(default=())


async def table_chronicle(
    ctx: Context, warehouse: str, levels: Levels, name: str, query: Query = EVERYTHING, *,
    token: str | None = None, limit: int = PAGE,
) -> Chronicle:  # fmt: skip
    """The schema changes of a table. NoSuchTable, BadRequest (token, limit)."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    return await _of_table(ctx, row, query, token, _limit(limit))


async def namespace_chronicle(
    ctx: Context, warehouse: str, levels: Levels, query: Query = EVERYTHING, *,
    token: str | None = None, limit: int = PAGE,
) -> Chronicle:  # fmt: skip
    """The schema changes of every table in a namespace and below it since they came here, dropped tables included."""
    home = await warehouses.warehouse(ctx, warehouse)
    await namespaces.existing(ctx, home, levels)
    place = _position(token)
    if place.entry_id is None and token:
        raise _bad_token(token)
    chapters, following, _ = await _from_journal(
        ctx, {"warehouse": home.name, "namespace": levels}, query, place, _limit(limit)
    )
    return Chronicle(tuple(chapters), following)


async def column_life(ctx: Context, warehouse: str, levels: Levels, name: str, field_id: int) -> Life:
    """Everything that is known of one field ID of a table. NoSuchTable."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    told = biography(await _metadata(ctx, row), field_id)
    chronicle = await _of_table(ctx, row, Query(field_id=field_id), None, PAGE_MAX)
    return Life(told, chronicle.chapters)


async def since(ctx: Context, row: Tabular, schema_id: int) -> tuple[Chapter, ...]:
    """The schema changes of a table after `schema_id` was current, newest first, as far as the journal knows."""
    found: list[Chapter] = []
    async for entry in _entries(ctx, {"table_uuid": row.uuid}, None):
        event = entry.event
        if not isinstance(event, SchemaChanged):
            continue
        if event.to_schema_id == schema_id:
            break
        found.append(_chapter(entry, event, ()))
        if event.from_schema_id == schema_id:
            break
    return tuple(found)


async def _of_table(ctx: Context, row: Tabular, query: Query, token: str | None, limit: int) -> Chronicle:
    place = _position(token)
    chapters: list[Chapter] = []
    arrived = place.arrived
    if place.entry_id is not None or not token:
        chapters, following, arrived = await _from_journal(ctx, {"table_uuid": row.uuid}, query, place, limit)
        if following is not None:
            return Chronicle(tuple(chapters), following)
        if arrived is None:
            return Chronicle(tuple(chapters))
    metadata = await _metadata(ctx, row)
    upto = metadata.current_schema_id if arrived is None or arrived < 0 else arrived
    for chapter in before_arrival(metadata, row.namespace, row.name, upto):
        if len(chapters) == limit:
            return Chronicle(tuple(chapters), f"m.{chapter.to_schema_id}")
        if query.takes(chapter):
            chapters.append(chapter)
    return Chronicle(tuple(chapters))


async def _from_journal(
    ctx: Context, scope: Mapping[str, Any], query: Query, place: _Place, limit: int
) -> tuple[list[Chapter], str | None, int | None]:
    """Chapters, the token of the next page, and the schema that was current when the table arrived.

    The last is None when the journal knows the table from its creation on, and -1 when its schema never changed here.
    """
    chapters: list[Chapter] = []
    waivers: dict[str, list[WaiverUsed]] = {}
    arrived = place.arrived
    birth: Chapter | None = None
    scanned = 0
    async for entry in _entries(ctx, scope, place.entry_id):
        scanned += 1
        event = entry.event
        if query.since_ms is not None and event.at_ms < query.since_ms:
            return chapters, None, None
        if isinstance(event, WaiverUsed):
            waivers.setdefault(event.metadata_location, []).append(event)
        chapter: Chapter | None = None
        if isinstance(event, Created):
            # What a registered table was before it came is told better by its own schemas.
            registered = event.registered and "table_uuid" in scope and birth is not None
            arrived = birth.to_schema_id if registered and birth is not None else None
            chapter, birth = (None if registered else birth), None
        elif isinstance(event, SchemaChanged):
            arrived = event.from_schema_id
            chapter = _chapter(entry, event, tuple(waivers.pop(event.metadata_location, ())))
            if event.from_schema_id is None and birth is None and "table_uuid" in scope:
                chapter, birth = None, chapter
        if chapter is not None and query.takes(chapter):
            chapters.append(chapter)
        if (len(chapters) == limit or scanned >= _SCAN) and birth is None:
            return chapters, f"j{entry.entry_id}.{'' if arrived is None else arrived}", arrived
    if birth is not None and query.takes(birth):
        chapters.append(birth)
    return chapters, None, arrived


async def _entries(ctx: Context, scope: Mapping[str, Any], before: int | None) -> AsyncIterator[JournalEntry]:
    """Journal entries, newest first, read in chunks."""
    while True:
        chunk = await ctx.store.journal(**scope, before_id=before, limit=_CHUNK)
        for entry in chunk:
            yield entry
        if len(chunk) < _CHUNK:
            return
        before = chunk[-1].entry_id


def _chapter(entry: JournalEntry, event: SchemaChanged, waivers: tuple[WaiverUsed, ...]) -> Chapter:
    return Chapter(
        source="journal",
        levels=event.namespace,
        name=event.name,
        from_schema_id=event.from_schema_id,
        to_schema_id=event.to_schema_id,
        changes=event.changes,
        at_ms=event.at_ms,
        by=event.by,
        client=event.client,
        entry_id=entry.entry_id,
        metadata_location=event.metadata_location,
        findings=event.findings,
        waivers=waivers,
    )


def before_arrival(table: TableMetadata, levels: Levels, name: str, upto: int) -> Iterator[Chapter]:
    """What the retained schemas up to `upto` tell, youngest first: each beside the one that was numbered before it."""
    first: dict[int, Snapshot] = {}
    for snapshot in table.snapshots:
        known = None if snapshot.schema_id is None else first.get(snapshot.schema_id)
        if snapshot.schema_id is not None and (known is None or snapshot.timestamp_ms < known.timestamp_ms):
            first[snapshot.schema_id] = snapshot
    ids = [schema_id for schema_id in sorted(table.schemas) if schema_id <= upto]
    for at in range(len(ids) - 1, -1, -1):
        after, before = table.schemas.get(ids[at]), None if at == 0 else table.schemas.get(ids[at - 1])
        if after is None:
            continue
        written = first.get(ids[at])
        yield Chapter(
            source="metadata",
            levels=levels,
            name=name,
            from_schema_id=None if at == 0 else ids[at - 1],
            to_schema_id=ids[at],
            changes=tuple(diff(before, after).to_json()),
            at_ms=None if written is None else written.timestamp_ms,
        )


async def _metadata(ctx: Context, row: Tabular) -> TableMetadata:
    home = await warehouses.warehouse(ctx, row.warehouse)
    return (await tabulars.table_document(ctx, home, row)).metadata


def _position(token: str | None) -> _Place:
    if not token:
        return _Place()
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise _bad_token(token)
    entry_id, arrived, oldest = found.groups()
    if entry_id is None:
        return _Place(None, int(oldest))
    return _Place(int(entry_id), int(arrived) if arrived else None)


def _bad_token(token: str | None) -> BadRequest:
    return BadRequest(f"Invalid page token: {token!r} was not handed out by this listing")


def _limit(limit: int) -> int:
    if not 1 <= limit <= PAGE_MAX:
        raise BadRequest(f"Invalid limit: {limit} (1 to {PAGE_MAX})")
    return limit


def chapter_json(of: Chapter) -> dict[str, Any]:
    """One entry of a history."""
    out: dict[str, Any] = {"source": of.source, "namespace": list(of.levels), "table": of.name}
    known = {
        "entry-id": of.entry_id,
        "at-ms": of.at_ms,
        "by": of.by,
        "client": of.client,
        "metadata-location": of.metadata_location,
        "from-schema-id": of.from_schema_id,
    }
    out.update({key: value for key, value in known.items() if value is not None})
    out["to-schema-id"] = of.to_schema_id
    out["changes"] = [dict(change) for change in of.changes]
    if of.findings:
        out["findings"] = [dict(finding) for finding in of.findings]
    if of.waivers:
        out["waivers"] = [
            {"waiver-id": used.waiver_id, "code": used.code, "reason": used.reason, "granted-by": used.granted_by}
            for used in of.waivers
        ]
    return out


def life_json(of: Life) -> dict[str, Any]:
    """The biography of one field ID, with the history entries that are about it."""
    return {**biography_json(of.biography), "history": [chapter_json(chapter) for chapter in of.chapters]}
