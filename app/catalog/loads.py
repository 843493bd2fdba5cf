"""Loading tables: the request that every query of every engine waits for."""

from __future__ import annotations

from collections.abc import Container

from app.catalog import places, warehouses
from app.catalog.config import client_config
from app.catalog.context import Caller, Context
from app.catalog.results import LoadedTable, NotModified, Snapshots, version_tag
from app.errors import NotFound, ObjectMissing
from app.ports import Levels, Pointer, Warehouse

# A pointer that moves and a trimmed file between the two reads of a load: more than twice in a row means it is gone.
_ATTEMPTS = 3


async def load_table(
    ctx: Context,
    caller: Caller,
    warehouse: str,
    levels: Levels,
    name: str,
    *,
    snapshots: Snapshots = "all",
    held: Container[str] = (),
) -> LoadedTable | NotModified:
    """The table as its pointer names it now, in full or ("refs") with referenced snapshots only.

    NotModified, without reading the document, when the tag of that version is among those that the caller holds.
    NoSuchTable, also for a missing namespace; NotFound when the metadata file has vanished.
    """
    home = warehouses.held_warehouse(ctx, warehouse) or await warehouses.fresh_warehouse(ctx, warehouse)
    pointer = await places.table_pointer(ctx, home, levels, name)
    for _ in range(_ATTEMPTS):
        try:
            loaded = await _load(ctx, home, pointer, snapshots, held)
        except NotFound:
            newer = await places.table_pointer(ctx, home, levels, name)
            if newer.metadata_location == pointer.metadata_location:
                raise
            pointer = newer
            continue
        ctx.caches.usage.saw(pointer.uuid, caller.client, caller.client_version, "load", ctx.clock.now_ms())
        return loaded
    raise NotFound(ObjectMissing(pointer.metadata_location).message)


async def _load(
    ctx: Context, home: Warehouse, pointer: Pointer, snapshots: Snapshots, held: Container[str]
) -> LoadedTable | NotModified:
    file, objects, documents = pointer.metadata_location, ctx.objects.of(home), ctx.caches.documents
    if objects.vanished(file):
        documents.forget(file)
        raise NotFound(ObjectMissing(file).message, location=file)
    config = client_config(home)
    tag = version_tag(file, snapshots, config)
    if tag in held:
        return NotModified(tag)
    if snapshots == "refs":
        text = await documents.refs_only(objects, file, ctx.limits.document_bytes, uuid=pointer.uuid)
    else:
        text = (await places.document(ctx, home, pointer)).text
    return LoadedTable(file, text, config, tag)
