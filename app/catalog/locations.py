"""Where tables, views and their files may lie: the one place that decides what the server may touch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from app.catalog.context import Context
from app.errors import BadRequest, Forbidden, ValidationFailed
from app.iceberg import location as spec_location
from app.iceberg.table import TableMetadata
from app.ports import Levels, Namespace, Objects, Warehouse

SETTING = "ICEKEEL_ALLOWED_LOCATIONS"
LOCATION = "location"
UNIQUE_LOCATION = "unique-table-location"
"""The property of a warehouse that says whether a new table's folder is one that no table ever had. Not a default of
tables, as the others are."""

# Table properties that send files somewhere else than below the table's location.
PATH_PROPERTIES = (
    "write.metadata.path",
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)

# Most file systems end a name at 255 bytes; this leaves room for what is put behind it.
_SEGMENT_CHARS = 128
# An entry of a PostgreSQL index ends at 2,704 bytes; S3 takes keys of 1,024.
_MAX_BYTES = 2_000
_MAX_PLACES = 1_000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def may_touch(ctx: Context, warehouse: Warehouse, location: str) -> bool:
    """Whether `location` is absolute and lies in the warehouse or in a place that was allowed beside it."""
    try:
        return spec_location.is_absolute(location) and any(
            spec_location.contains(parent, location) for parent in _allowed(ctx, warehouse)
        )
    except BadRequest:
        return False


def check(ctx: Context, warehouse: Warehouse, location: str, what: str) -> None:
    """BadRequest unless the server may touch `location`; `what` names its use in the message."""
    if not spec_location.is_absolute(location):
        raise BadRequest(f"Invalid {what}: {location!r} is not an absolute location")
    try:
        size = len(spec_location.canonical(location).encode())
    except BadRequest as error:
        raise BadRequest(f"Invalid {what}: {error.message.removeprefix('Invalid location: ')}") from None
    if size > _MAX_BYTES:
        raise BadRequest(f"Invalid {what}: it has {size} bytes, and {_MAX_BYTES} are allowed")
    if not may_touch(ctx, warehouse, location):
        raise BadRequest(
            f"Invalid {what}: {location} lies outside warehouse {warehouse.name} ({warehouse.location}). "
            f"Choose a location inside it, or have the operator add this one to {SETTING}."
        )


async def check_introduced(
    ctx: Context, warehouse: Warehouse, levels: Levels, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Check every path property that `after` introduces; what was there before is not this commit's doing."""
    for key in PATH_PROPERTIES:
        value = after.get(key)
        if value is not None and value != before.get(key):
            await check_requested(ctx, warehouse, levels, value, f"value of {key}")


def paths(properties: Mapping[str, str]) -> list[str]:
    """The values of the path properties."""
    return [properties[key] for key in PATH_PROPERTIES if properties.get(key)]


async def roots(
    ctx: Context, warehouse: Warehouse, location: str, properties: Mapping[str, str], *more: str
) -> tuple[str, ...]:
    """The places outside `location` where a table's files may lie: its path properties, `more`, and where symbolic
    links of a disk lead from any of these. Places that the server may not touch are nothing to it."""
    objects, found = ctx.objects.of(warehouse), [location]
    for place in (location, *paths(properties), *more):
        if not may_touch(ctx, warehouse, place):
            continue
        for spelled in (place, await resolved(objects, place)):
            if not any(spec_location.contains(known, spelled) for known in found):
                found.append(spelled)
    return tuple(found[1:])


def named_files(metadata: TableMetadata) -> Iterator[str]:
    """The files that the metadata itself names: older versions, manifest lists, statistics."""
    for entry in metadata.metadata_log:
        yield entry.metadata_file
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
    for statistics in metadata.statistics:
        yield statistics.path
    for partition_statistics in metadata.partition_statistics:
        yield partition_statistics.path


def named_places(ctx: Context, warehouse: Warehouse, metadata: TableMetadata) -> tuple[str, ...]:
    """Where files lie that the metadata names outside its location, as after a move; what the server may not touch is
    nothing to it.

    A folder called `metadata` is a table's own, any other may be shared by many, so that there a file stands for itself
    alone, unless there are too many. BadRequest when there are too many folders.
    """
    folders: dict[str, set[str]] = {}
    for file in named_files(metadata):
        folders.setdefault(file.rpartition("/")[0], set()).add(file)
    apart = {
        folder: files
        for folder, files in folders.items()
        if may_touch(ctx, warehouse, folder) and not spec_location.contains(metadata.location, folder)
    }
    found = {each for folder, files in apart.items() for each in ({folder} if folder.endswith("/metadata") else files)}
    if len(found) > _MAX_PLACES:
        found = set(apart)
    if len(found) > _MAX_PLACES:
        raise BadRequest(
            f"Invalid metadata file: it names files in {len(found)} folders outside the table's location "
            f"{metadata.location}, and {_MAX_PLACES} are allowed"
        )
    return tuple(sorted(found))


async def resolved(objects: Objects, location: str) -> str:
    """`location` with links followed; as it is where they lead to a place that the server may not touch."""
    try:
        return await objects.resolved(location)
    except Forbidden:
        return location


async def check_requested(ctx: Context, warehouse: Warehouse, levels: Levels, location: str, what: str) -> None:
    """Check a place that a client chose for a table's or view's files: allowed, and not a folder of other tables."""
    check(ctx, warehouse, location, what)
    await refuse_shared(ctx, warehouse, levels, location, what)


async def refuse_shared(ctx: Context, warehouse: Warehouse, levels: Levels, location: str, what: str) -> None:
    """ValidationFailed for a warehouse's location, a namespace's, and every place above: nobody else could create."""
    if await _holds_others(ctx, warehouse, levels, location):
        raise ValidationFailed(f"Invalid {what}: {location} holds other tables; choose a folder of its own")


async def _holds_others(ctx: Context, warehouse: Warehouse, levels: Levels, location: str) -> bool:
    folders = await _shared_folders(ctx, warehouse, levels, location)
    return any(spec_location.contains(location, folder) for folder in folders)


async def owners(ctx: Context, objects: Objects, location: str, *, besides: int | None = None) -> tuple[str, ...]:
    """The live tables and views of any warehouse, as `warehouse.namespace.name`, with files at, above or below
    `location`, as it is spelled and where its links lead. `besides` is the id of one that does not count."""
    found = await ctx.store.locations_overlapping(location, besides=besides)
    real = await resolved(objects, location)
    return found if found or real == location else await ctx.store.locations_overlapping(real, besides=besides)


def child_folder(parent: str, level: str) -> str:
    """The computed folder of a namespace directly below one at `parent`."""
    return _below(parent, (level,))


async def namespace_location(ctx: Context, warehouse: Warehouse, namespace: Namespace) -> str:
    """The namespace's own `location`, or the nearest one above it extended by the levels below that."""
    own = namespace.properties.get(LOCATION)
    if own:
        return spec_location.strip_trailing_slash(own)
    for depth in range(len(namespace.levels) - 1, 0, -1):
        above = await ctx.store.namespace(warehouse.name, namespace.levels[:depth])
        if above is not None and above.properties.get(LOCATION):
            return _below(above.properties[LOCATION], namespace.levels[depth:])
    return _below(warehouse.location, namespace.levels)


async def new_location(ctx: Context, warehouse: Warehouse, namespace: Namespace, name: str, uuid: str) -> str:
    """A location that no other table ever had: `<namespace location>/<name>-<8 hex digits of the uuid>`.

    Where the warehouse says `unique-table-location=false` it is without the digits, unless others use that place now.
    """
    parent, segment = await namespace_location(ctx, warehouse, namespace), safe_segment(name)
    if warehouse.properties.get(UNIQUE_LOCATION) == "false":
        plain = spec_location.join(parent, segment)
        taken = await owners(ctx, ctx.objects.of(warehouse), plain)
        if not taken and not await _holds_others(ctx, warehouse, namespace.levels, plain):
            return plain
    return spec_location.join(parent, f"{segment}-{_digits(uuid)}")


async def free_folder(ctx: Context, folder: str, uuid: str) -> str:
    """`folder`, or one beside it when a table or view at or above it would forbid every new one inside it."""
    taken = await ctx.store.locations_overlapping(spec_location.join(folder, uuid))
    return f"{folder}-{_digits(uuid)}" if taken else folder


def _digits(uuid: str) -> str:
    return uuid.replace("-", "")[:8]


def safe_segment(name: str) -> str:
    """`name` as one path segment that every file system, URI library and engine reads alike."""
    return _UNSAFE.sub("_", name)[:_SEGMENT_CHARS]


def _below(parent: str, levels: Iterable[str]) -> str:
    return spec_location.join(spec_location.strip_trailing_slash(parent), *(safe_segment(level) for level in levels))


def _allowed(ctx: Context, warehouse: Warehouse) -> tuple[str, ...]:
    return (warehouse.location, *warehouse.allowed_locations, *ctx.limits.allowed_locations)


async def _shared_folders(ctx: Context, warehouse: Warehouse, levels: Levels, location: str) -> list[str]:
    """Every warehouse, this namespace and those above it, and a namespace whose computed folder `location` is."""
    shared = [each.location for each in await ctx.store.warehouses()]
    segments = _segments_below(warehouse.location, location)
    for path in (*(levels[:depth] for depth in range(1, len(levels) + 1)), segments):
        namespace = await ctx.store.namespace(warehouse.name, path) if path else None
        if namespace is not None:
            shared.append(await namespace_location(ctx, warehouse, namespace))
    return shared


def _segments_below(parent: str, child: str) -> Levels:
    inside, outside = spec_location.canonical(child), spec_location.canonical(parent)
    if not spec_location.contains(outside, inside):
        return ()
    return tuple(part for part in inside[len(outside) :].split("/") if part)
