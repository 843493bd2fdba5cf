"""Garbage: metadata files that no pointer ever named, found and, when told to, deleted.

They come from a process that died between writing the file and moving the pointer. A file is garbage only if all of
this holds, otherwise it is kept and the report may say why:

- its name is that of a metadata file (or of a half-written one), and it is older than a commit could still take;
- no other table or view, of any warehouse, has a place at, above or below its folder, and the table does not say
  `gc.enabled=false`;
- in the folder of a live table: its version lies in the part of the table's history that can be followed, and no
  metadata log of that history names it; a table that was registered has had pointers that nobody can follow, so
  nothing is judged there, and the same goes for views, which keep no log;
- in a folder that no live table or view claims: it is the first version of a table or view whose uuid the journal has
  never seen, and there is nothing else in the folder; files of dropped tables and whatever engines wrote stay;
- after all that, no pointer and no metadata log of any live table or view in any warehouse names it.

A run is bounded (`limit` files), may be cut off at any point, and finds nothing the second time. Trimmed versions and
data files are not garbage in this sense: they were named once.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from app.catalog import locations, metadata_history, warehouses
from app.catalog.context import Context
from app.catalog.metadata_cache import TABLE, aside, read_afresh, unpacked
from app.catalog.metadata_history import key_of
from app.errors import IcekeelError, ObjectMissing, PayloadTooLarge, SpecError
from app.iceberg import metadata_file
from app.iceberg.json import codec
from app.iceberg.metadata_file import parse_version
from app.metadata.properties import GC_ENABLED, may_delete
from app.ports import Kind, Levels, Objects, ObjectStat, Tabular, Warehouse

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
OLDER_THAN_MS = 24 * HOUR_MS
OLDER_THAN_MIN_MS = HOUR_MS
"""A commit ends within minutes; an object store's clock may differ from ours by some more."""

LIMIT = 10_000


@dataclass(slots=True)
class Report:
    """What a run found. `kept` are locations that could not be judged, each with the reason; `inside` are the ids of
    the tables and views in whose folders files of the garbage lie."""

    tables: int = 0
    garbage: list[ObjectStat] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    deleted: int = 0
    complete: bool = True
    inside: dict[str, int] = field(default_factory=dict)

    def add(self, garbage: Sequence[ObjectStat], row: Tabular) -> None:
        self.garbage += garbage
        self.inside.update((found.location, row.tabular_id) for found in garbage)

    @property
    def bytes(self) -> int:
        return sum(found.size for found in self.garbage)


async def collect(
    ctx: Context,
    warehouse: str | None = None,
    *,
    older_than_ms: int = OLDER_THAN_MS,
    limit: int = LIMIT,
    delete: bool = False,
) -> Report:
    """Look through one warehouse or all of them; without `delete` nothing is changed. NoSuchWarehouse, Unavailable."""
    report = Report()
    cutoff_ms = ctx.clock.now_ms() - max(older_than_ms, OLDER_THAN_MIN_MS)
    chosen = await warehouses.list_warehouses(ctx)
    if warehouse is not None:
        chosen = (await warehouses.fresh_warehouse(ctx, warehouse),)
    for home in chosen:
        await _look_through(ctx, home, cutoff_ms, limit, report)
    await _acquit(ctx, report)
    if delete:
        await _delete(ctx, chosen, report)
    return report


async def _look_through(ctx: Context, warehouse: Warehouse, cutoff_ms: int, limit: int, report: Report) -> None:
    objects = ctx.objects.of(warehouse)
    async for row in every_row(ctx, warehouse.name):
        report.tables += 1
        if len(report.garbage) >= limit:
            report.complete = False
            return
        try:
            await _of_table(ctx, objects, row, cutoff_ms, report)
        except IcekeelError as failure:
            report.kept.append((row.location, failure.message))
    found = await first_versions(ctx, warehouse, cutoff_ms, limit - len(report.garbage))
    report.garbage += found.garbage
    report.kept += found.kept
    report.complete = report.complete and found.complete


async def _of_table(ctx: Context, objects: Objects, row: Tabular, cutoff_ms: int, report: Report) -> None:
    place = row.metadata_location.rsplit("/", 1)[0]
    folder = await objects.look(place)
    old = [one for one in folder.objects if one.modified_ms < cutoff_ms]
    leftovers = [one for one in old if one.leftover]
    pointer = key_of(row.metadata_location)
    versions = [one for one in old if parse_version(one.location) >= 0 and key_of(one.location) != pointer]
    if not (versions or leftovers):
        return
    if others := await locations.owners(ctx, objects, place, besides=row.tabular_id):
        report.kept.append((row.location, f"{', '.join(others[:5])} may have files there too"))
        return
    if row.kind == "table" and not await _may_delete(ctx, objects, row):
        report.kept.append((row.location, f"{GC_ENABLED} is false"))
        return
    report.add(leftovers, row)
    if not versions or row.kind != "table":
        return
    if await metadata_history.was_registered(ctx, row.uuid):
        report.kept.append((row.location, "it was registered, and what it was before cannot be followed"))
        return
    chain = await metadata_history.follow(objects, row.metadata_location, ctx.limits.document_bytes)
    unnamed = [
        one
        for one in versions
        if parse_version(one.location) > chain.unknown_to and key_of(one.location) not in chain.named
    ]
    report.add(unnamed, row)


async def _may_delete(ctx: Context, objects: Objects, row: Tabular) -> bool:
    document = await read_afresh(
        objects, row.metadata_location, ctx.limits.document_bytes, TABLE, checksum=row.checksum
    )
    return may_delete(document.metadata.properties)


async def _acquit(ctx: Context, report: Report) -> None:
    """Take out of the garbage whatever any live table or view, of any warehouse, names as pointer or in its log."""
    if not report.garbage:
        return
    suspects = {key_of(found.location) for found in report.garbage}
    named: set[str] = set()
    for home in await warehouses.list_warehouses(ctx):
        objects = ctx.objects.of(home)
        async for row in every_row(ctx, home.name):
            if key_of(row.metadata_location) in suspects:
                named.add(key_of(row.metadata_location))
            if row.kind == "table":
                named |= suspects & await metadata_history.logged(
                    objects, row.metadata_location, ctx.limits.document_bytes
                )
    report.garbage = [found for found in report.garbage if key_of(found.location) not in named]


async def _delete(ctx: Context, homes: tuple[Warehouse, ...], report: Report) -> None:
    stores = [ctx.objects.of(home) for home in homes]
    for found in tuple(report.garbage):
        objects = stores[0] if len(stores) == 1 else await _store_of(ctx, homes, found.location)
        besides = report.inside.get(found.location)
        if others := await locations.owners(ctx, objects, found.location, besides=besides):
            report.garbage.remove(found)
            report.kept.append((found.location, f"{', '.join(others[:5])} may name it since it was found"))
            continue
        await objects.delete(found.location)
        report.deleted += 1
        log.info("deleted %s, which no table names", found.location)


async def _store_of(ctx: Context, homes: tuple[Warehouse, ...], location: str) -> Objects:
    return ctx.objects.of(max(homes, key=lambda home: _depth(home.location, location)))


def _depth(parent: str, child: str) -> int:
    return len(parent) if key_of(child).startswith(key_of(parent) + "/") else -1


_LOOKED_AT = 10_000
"""Files of one unclaimed folder that are looked at; one that holds more is no leftover of a create."""

_UUIDS = ("table-uuid", "view-uuid")
_METADATA = "metadata"


@dataclass(slots=True)
class Found:
    garbage: list[ObjectStat] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = True


async def first_versions(ctx: Context, warehouse: Warehouse, cutoff_ms: int, limit: int) -> Found:
    """Walk the warehouse's folders down to the live tables and views; look into what is nobody's."""
    objects, found = ctx.objects.of(warehouse), Found()
    live, above = await _claims(ctx)
    pending = [warehouse.location]
    while pending:
        for folder in (await objects.look(pending.pop())).folders:
            place = key_of(folder)
            if place in live:
                continue
            if place in above:
                pending.append(folder)
            elif len(found.garbage) >= limit:
                found.complete = False
                return found
            else:
                await _look_into(ctx, objects, folder, cutoff_ms, found)
    return found


async def _claims(ctx: Context) -> tuple[set[str], set[str]]:
    """Canonical locations of everything live or still to be purged, in any warehouse, and all folders above them."""
    live: set[str] = set()
    for home in await warehouses.list_warehouses(ctx):
        async for row in every_row(ctx, home.name):
            live |= {key_of(row.location), key_of(_table_folder(row.metadata_location))}
    live |= {key_of(job.location) for job in await ctx.store.purge_jobs(_LOOKED_AT)}
    above: set[str] = set()
    for location in live:
        folder = location.rpartition("/")[0]
        while folder and folder not in above:
            above.add(folder)
            folder = folder.rpartition("/")[0]
    return live, above


async def _look_into(ctx: Context, objects: Objects, folder: str, cutoff_ms: int, found: Found) -> None:
    files: list[ObjectStat] = []
    async for one in objects.list(folder):
        files.append(one)
        if len(files) > _LOOKED_AT:
            found.kept.append((folder, "no table claims it, and it holds too much to be the rest of a create"))
            return
    for table, inside in _by_table(files).items():
        reason = await _why_kept(ctx, objects, inside, cutoff_ms)
        if reason is None and (owners := await locations.owners(ctx, objects, table)):
            reason = f"it lies where {', '.join(owners[:5])} may have files"
        if reason is None:
            found.garbage += inside
        elif reason:
            found.kept.append((table, reason))


def _by_table(files: list[ObjectStat]) -> dict[str, list[ObjectStat]]:
    """Everything below each folder that holds a metadata file or a half-written one."""
    tables: dict[str, list[ObjectStat]] = {
        _table_folder(one.location): []
        for one in files
        if one.leftover or metadata_file.parse_version(one.location) >= 0
    }
    for one in files:
        folder = one.location
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in tables:
                tables[folder].append(one)
    return tables


async def _why_kept(ctx: Context, objects: Objects, files: list[ObjectStat], cutoff_ms: int) -> str | None:
    """None when the files are the leftovers of a create; empty when they are too young to tell."""
    if any(one.modified_ms >= cutoff_ms for one in files):
        return ""
    for one in files:
        if one.leftover:
            continue
        if metadata_file.parse_version(one.location) != 0:
            return "no table claims it, and it holds more than a first version"
        uuid = await _uuid(objects, one.location, ctx.limits.document_bytes)
        if uuid is None:
            return f"no table claims it, and {one.location} cannot be read"
        if await ctx.store.journal(table_uuid=uuid, limit=1):
            return "it was a table once"
    return None


async def _uuid(objects: Objects, location: str, limit: int) -> str | None:
    try:
        data = await unpacked(await objects.read(location, limit=limit), location, limit)
        document = codec.as_object(await aside(len(data), codec.decode, data), "$")
    except (SpecError, ObjectMissing, PayloadTooLarge):
        return None
    values = [document[name] for name in _UUIDS if name in document]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def _table_folder(location: str) -> str:
    """`.../t/metadata/x` belongs to `.../t`; anything else to its own folder."""
    folder = location.rsplit("/", 1)[0]
    head, _, last = folder.rpartition("/")
    return head if last == _METADATA else folder


_PAGE = 1000
_KINDS: tuple[Kind, ...] = ("table", "view")


async def every_row(ctx: Context, warehouse: str) -> AsyncIterator[Tabular]:
    """Rows as they are when they are reached; what is created or renamed meanwhile may be missed or met twice."""
    pending: list[Levels] = [()]
    while pending:
        levels = pending.pop()
        pending += [child async for child in _children(ctx, warehouse, levels)]
        if levels:
            for kind in _KINDS:
                async for row in _rows(ctx, warehouse, levels, kind):
                    yield row


async def _children(ctx: Context, warehouse: str, levels: Levels) -> AsyncIterator[Levels]:
    after: str | None = None
    while True:
        page = await ctx.store.namespaces(warehouse, levels, after=after, limit=_PAGE)
        for child in page.items:
            yield child
        after = page.after
        if after is None:
            return


async def _rows(ctx: Context, warehouse: str, levels: Levels, kind: Kind) -> AsyncIterator[Tabular]:
    after: str | None = None
    while True:
        page = await ctx.store.tabulars(warehouse, levels, kind, after=after, limit=_PAGE)
        for name in page.items:
            row = await ctx.store.tabular(warehouse, levels, name)
            if row is not None:
                yield row
        after = page.after
        if after is None:
            return
