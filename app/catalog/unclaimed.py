"""First versions in folders that no live table or view claims: what a create leaves that died before it was visible."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.catalog import locations, warehouses
from app.catalog.context import Context
from app.catalog.documents import aside, unpacked
from app.catalog.history_chain import key_of
from app.catalog.sweep import every_row
from app.errors import ObjectMissing, PayloadTooLarge, SpecError
from app.ports import Objects, ObjectStat, Warehouse
from app.spec import codec, metadata_file

_LOOKED_AT = 10_000
"""Files of one unclaimed folder that are looked at; one that holds more is no leftover of a create."""

_UUIDS = ("table-uuid", "view-uuid")
_METADATA = "metadata"


@dataclass(slots=True)
class Found:
    garbage: list[ObjectStat] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = True


async def first_versions(ctx: Context, home: Warehouse, cutoff_ms: int, limit: int) -> Found:
    """Walk the warehouse's folders down to the live tables and views; look into what is nobody's."""
    objects, found = ctx.objects.of(home), Found()
    live, above = await _claims(ctx)
    pending = [home.location]
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
