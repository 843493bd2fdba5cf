"""Tables: list, create, load, drop, rename. Commits have their own file, and so has registering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.catalog import (
    commit_point,
    commits,
    drafts,
    idempotency,
    locations,
    namespaces,
    pages,
    places,
    tabulars,
    versions,
    warehouses,
    weights,
)
from app.catalog.config import client_config
from app.catalog.context import Caller, Context
from app.catalog.drafts import Draft
from app.catalog.idempotency import Key, Outcome, idempotent, nothing
from app.catalog.loads import load_table
from app.catalog.metadata_cache import aside
from app.catalog.pages import EVERYTHING, PageRequest
from app.catalog.registrations import register_table, unregister_table
from app.catalog.results import Listed, LoadedTable
from app.errors import AlreadyExists
from app.iceberg import location as spec_location
from app.iceberg.partition import UnboundPartitionSpec
from app.iceberg.schema import Schema
from app.iceberg.sort import SortOrder
from app.iceberg.table import TableMetadata
from app.metadata import tables as commit_tables
from app.ports import Levels, Namespace, Warehouse

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
    return await pages.listed(
        ctx.limits,
        page,
        ("tables", home.name, levels),
        lambda after, limit: ctx.store.tabulars(home.name, levels, "table", after=after, limit=limit),
    )


async def _created_again(
    ctx: Context, home: Warehouse, outcome: Outcome, levels: Levels, request: TableRequest
) -> LoadedTable:
    if "staged" in outcome:
        return LoadedTable(None, outcome["staged"].encode(), client_config(home))
    version = await versions.recorded(ctx, home, levels, request.name, outcome)
    return versions.loaded(home, version, idempotency.findings_of(outcome))


@idempotent(_created_again)
async def create_table(
    ctx: Context, caller: Caller, home: Warehouse, key: Key, levels: Levels, request: TableRequest
) -> LoadedTable:
    """Create a table, or stage one: the same document, but nobody sees it and nothing is reserved.

    Column ids are assigned anew; properties that the request leaves open are the warehouse's. NoSuchNamespace,
    AlreadyExists (a table or view), BadRequest, EvolutionRefused.
    """
    namespace = await places.vacancy(ctx, home, levels, request.name, "table")
    metadata = await _new_metadata(ctx, home, namespace, request)
    draft = await commits.first_draft(ctx, caller, home, namespace, request.name, metadata)
    if request.stage:
        return await _stage(ctx, home, draft, key)
    try:
        await drafts.publish(ctx, home, [draft], key, versions.outcome(draft))
    except AlreadyExists as refusal:
        raise await places.now_taken(ctx, home, levels, request.name, "table", refusal) from None
    return versions.loaded(home, versions.of(draft), draft.findings)


async def table_exists(ctx: Context, warehouse: str, levels: Levels, name: str) -> None:
    """NoSuchTable unless it exists; the document is not read."""
    await places.table_pointer(ctx, await warehouses.warehouse(ctx, warehouse), levels, name)


@idempotent(nothing)
async def drop_table(
    ctx: Context, caller: Caller, home: Warehouse, key: Key, levels: Levels, name: str, *, purge: bool = False
) -> None:
    """Forget the table; its files are deleted (by a durable job) only when `purge` asks for it.

    NoSuchTable; ValidationFailed for a purge that `gc.enabled=false` forbids.
    """
    await tabulars.drop(ctx, caller, home, "table", levels, name, key, purge=purge)


@idempotent(nothing)
async def rename_table(
    ctx: Context, caller: Caller, home: Warehouse, key: Key, source: tuple[Levels, str], target: tuple[Levels, str]
) -> None:
    """NoSuchTable (source), NoSuchNamespace (target), AlreadyExists (a table or view has the name)."""
    await tabulars.rename(ctx, caller, home, "table", source, target, key)


async def _new_metadata(ctx: Context, home: Warehouse, namespace: Namespace, request: TableRequest) -> TableMetadata:
    uuid = ctx.ids.uuid4()
    if request.location:
        location = spec_location.strip_trailing_slash(request.location)
    else:
        location = await locations.new_location(ctx, home, namespace, request.name, uuid)
    return await aside(
        weights.of_schema(request.schema),
        commit_tables.new_table,
        request.schema,
        request.spec,
        request.order,
        location,
        {**home.properties, **request.properties},
        ctx.clock.now_ms(),
        uuid,
    )


async def _stage(ctx: Context, home: Warehouse, draft: Draft, key: Key) -> LoadedTable:
    """Hand the document out without storing it; on local disks its metadata folder is there from now on."""
    await ctx.objects.of(home).prepare(draft.file.rsplit("/", 1)[0])
    await commit_point.land(ctx, (), key, {"staged": draft.document.data.decode()})
    return LoadedTable(None, draft.document.data, client_config(home), None, draft.findings)
