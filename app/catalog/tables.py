"""Tables: list, create, load, drop, rename, and the metrics reports of engines. Commits have their own file, and so has
registering."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from app.catalog import (
    commit_point,
    commits,
    idempotency,
    locations,
    namespaces,
    results,
    storage,
    tabulars,
    versions,
    warehouses,
    weights,
)
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key, Outcome, idempotent, nothing
from app.catalog.metadata_cache import aside
from app.catalog.registrations import register_table, unregister_table
from app.catalog.results import EVERYTHING, Listed, LoadedTable, NotModified, PageRequest, Snapshots, version_tag
from app.catalog.versions import Draft
from app.errors import AlreadyExists, NotFound, ObjectMissing
from app.iceberg import location as spec_location
from app.iceberg.json import codec
from app.iceberg.json.codec import Json
from app.iceberg.partition import UnboundPartitionSpec
from app.iceberg.schema import Schema
from app.iceberg.sort import SortOrder
from app.iceberg.table import TableMetadata
from app.metadata import tables as commit_tables
from app.ports import Levels, Namespace, Pointer, Report, Warehouse

__all__ = [
    "TableRequest",
    "create_table",
    "drop_table",
    "list_tables",
    "load_table",
    "register_table",
    "rename_table",
    "table_exists",
    "unregister_table",
]


@dataclass(frozen=True, slots=True)
class TableRequest:
    """What a client asks of createTable. `location` None leaves the place to the catalog."""

    name: str
    schema: Schema
    spec: UnboundPartitionSpec | None = None
    order: SortOrder | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    stage: bool = False


async def list_tables(ctx: Context, warehouse: str, levels: Levels, page: PageRequest = EVERYTHING) -> Listed[str]:
    """Names of the tables in a namespace. NoSuchNamespace."""
    home = await warehouses.warehouse(ctx, warehouse)
    await namespaces.existing(ctx, home, levels)
    return await results.listed(
        ctx.limits,
        page,
        ("tables", home.name, levels),
        lambda after, limit: ctx.store.tabulars(home.name, levels, "table", after=after, limit=limit),
    )


async def _created_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, request: TableRequest
) -> LoadedTable:
    if "staged" in outcome:
        return LoadedTable(None, outcome["staged"].encode(), storage.handed(warehouse))
    version = await versions.recorded(ctx, warehouse, levels, request.name, outcome)
    return versions.loaded(warehouse, version, idempotency.findings_of(outcome))


@idempotent(_created_again)
async def create_table(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, request: TableRequest
) -> LoadedTable:
    """Create a table, or stage one: the same document, but nobody sees it and nothing is reserved.

    Column ids are assigned anew; properties that the request leaves open are the warehouse's. NoSuchNamespace,
    AlreadyExists (a table or view), BadRequest, EvolutionRefused.
    """
    namespace = await tabulars.vacancy(ctx, warehouse, levels, request.name, "table")
    metadata = await _new_metadata(ctx, warehouse, namespace, request)
    draft = await commits.first_draft(ctx, caller, warehouse, namespace, request.name, metadata)
    if request.stage:
        return await _stage(ctx, warehouse, draft, key)
    try:
        await versions.publish(ctx, warehouse, [draft], key, versions.outcome(draft))
    except AlreadyExists as refusal:
        raise await tabulars.now_taken(ctx, warehouse, levels, request.name, "table", refusal) from None
    return versions.loaded(warehouse, versions.of(draft), draft.findings)


async def table_exists(ctx: Context, warehouse: str, levels: Levels, name: str) -> None:
    """NoSuchTable unless it exists; the document is not read."""
    await tabulars.table_pointer(ctx, await warehouses.warehouse(ctx, warehouse), levels, name)


@idempotent(nothing)
async def drop_table(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, name: str, *, purge: bool = False
) -> None:
    """Forget the table; its files are deleted (by a durable job) only when `purge` asks for it.

    NoSuchTable; ValidationFailed for a purge that `gc.enabled=false` forbids.
    """
    await tabulars.drop(ctx, caller, warehouse, "table", levels, name, key, purge=purge)


@idempotent(nothing)
async def rename_table(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, source: tuple[Levels, str], target: tuple[Levels, str]
) -> None:
    """NoSuchTable (source), NoSuchNamespace (target), AlreadyExists (a table or view has the name)."""
    await tabulars.rename(ctx, caller, warehouse, "table", source, target, key)


async def _new_metadata(
    ctx: Context, warehouse: Warehouse, namespace: Namespace, request: TableRequest
) -> TableMetadata:
    uuid = ctx.ids.uuid4()
    if request.location:
        location = spec_location.strip_trailing_slash(request.location)
    else:
        location = await locations.new_location(ctx, warehouse, namespace, request.name, uuid)
    return await aside(
        weights.of_schema(request.schema),
        commit_tables.new_table,
        request.schema,
        request.spec,
        request.order,
        location,
        {**_defaults(warehouse), **request.properties},
        ctx.clock.now_ms(),
        uuid,
    )


def _defaults(warehouse: Warehouse) -> dict[str, str]:
    """What the warehouse's properties say about its new tables."""
    return {name: value for name, value in warehouse.properties.items() if name != locations.UNIQUE_LOCATION}


async def _stage(ctx: Context, warehouse: Warehouse, draft: Draft, key: Key) -> LoadedTable:
    """Hand the document out without storing it; on local disks its metadata folder is there from now on."""
    await ctx.objects.of(warehouse).prepare(draft.file.rsplit("/", 1)[0])
    await commit_point.land(ctx, (), key, {"staged": draft.document.data.decode()})
    return LoadedTable(None, draft.document.data, storage.handed(warehouse), None, draft.findings)


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
    pointer = await tabulars.table_pointer(ctx, home, levels, name)
    for _ in range(_ATTEMPTS):
        try:
            loaded = await _load(ctx, home, pointer, snapshots, held)
        except NotFound:
            newer = await tabulars.table_pointer(ctx, home, levels, name)
            if newer.metadata_location == pointer.metadata_location:
                raise
            pointer = newer
            continue
        ctx.caches.usage.saw(pointer.uuid, caller.client, caller.client_version, "load", ctx.clock.now_ms())
        return loaded
    raise NotFound(ObjectMissing(pointer.metadata_location).message)


async def _load(
    ctx: Context, warehouse: Warehouse, pointer: Pointer, snapshots: Snapshots, held: Container[str]
) -> LoadedTable | NotModified:
    file, objects, documents = pointer.metadata_location, ctx.objects.of(warehouse), ctx.caches.documents
    if objects.vanished(file):
        documents.forget(file)
        raise NotFound(ObjectMissing(file).message, location=file)
    config = storage.handed(warehouse)
    tag = version_tag(file, snapshots, config)
    if tag in held:
        return NotModified(tag)
    if snapshots == "refs":
        text = await documents.refs_only(
            objects, file, ctx.limits.document_bytes, uuid=pointer.uuid, checksum=pointer.checksum
        )
    else:
        text = (await tabulars.table_document(ctx, warehouse, pointer)).text
    return LoadedTable(file, text, config, tag)


_KIND_CHARS = 64


async def report_metrics(
    ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str, report: Mapping[str, Json]
) -> None:
    """Take in one report (a decoded JSON object) of any `report-type`. NoSuchTable.

    A report beyond `Limits.report_bytes` is acknowledged but not kept.
    """
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    body = codec.encode(report)
    kind = report.get("report-type")
    if len(body) > ctx.limits.report_bytes:
        return
    ctx.caches.usage.received(
        Report(
            table_uuid=row.uuid,
            kind=kind[:_KIND_CHARS] if isinstance(kind, str) else "unknown",
            received_at_ms=ctx.clock.now_ms(),
            body=body,
        )
    )
