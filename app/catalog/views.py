"""Views: list, create, load, replace, drop, rename, register. They share their names with tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.catalog import (
    commit_point,
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
from app.catalog.journal import journal_writer
from app.catalog.metadata_cache import VIEW, CachedMetadata, aside, read_afresh
from app.catalog.results import EVERYTHING, Listed, LoadedView, PageRequest
from app.catalog.versions import Draft, Version
from app.errors import AlreadyExists, NotFound, ObjectMissing
from app.iceberg import location as spec_location
from app.iceberg.requirement import ViewRequirement
from app.iceberg.schema import Schema
from app.iceberg.update import ViewUpdate
from app.iceberg.view import ViewMetadata, ViewVersion, render_view_metadata
from app.metadata import requirements as commit_requirements
from app.metadata import views as commit_views
from app.ports import Columns, Levels, Namespace, Tabular, Warehouse


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What a client asks of createView. `location` None leaves the place to the catalog."""

    name: str
    schema: Schema
    view_version: ViewVersion
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


async def list_views(ctx: Context, warehouse: str, levels: Levels, page: PageRequest = EVERYTHING) -> Listed[str]:
    """Names of the views in a namespace. NoSuchNamespace."""
    home = await warehouses.warehouse(ctx, warehouse)
    await namespaces.existing(ctx, home, levels)
    return await results.listed(
        ctx.limits,
        page,
        ("views", home.name, levels),
        lambda after, limit: ctx.store.tabulars(home.name, levels, "view", after=after, limit=limit),
    )


def _loaded(warehouse: Warehouse, version: Version) -> LoadedView:
    return LoadedView(version.file, version.text, storage.told(warehouse))


async def _again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, name: str, *_: object
) -> LoadedView:
    return _loaded(warehouse, await versions.recorded(ctx, warehouse, levels, name, outcome, "view"))


async def _created_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, request: ViewRequest
) -> LoadedView:
    return await _again(ctx, warehouse, outcome, levels, request.name)


@idempotent(_created_again)
async def create_view(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, request: ViewRequest
) -> LoadedView:
    """NoSuchNamespace, AlreadyExists (a view or table), BadRequest for a definition or location that is not legal."""
    namespace = await tabulars.vacancy(ctx, warehouse, levels, request.name, "view")
    metadata = await _new_metadata(ctx, warehouse, namespace, request)
    file = versions.next_file(ctx, warehouse, metadata, None)
    roots = await locations.roots(ctx, warehouse, metadata.location, metadata.properties)
    draft = _draft(ctx, caller, warehouse, (levels, request.name), None, file, _rendered(metadata), roots)
    return await _publish_new(ctx, warehouse, draft, key)


async def load_view(ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str) -> LoadedView:
    """NoSuchView, also for a missing namespace; NotFound when the metadata file has vanished."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.view(ctx, home, levels, name)
    file = row.metadata_location
    if ctx.objects.of(home).vanished(file):
        ctx.caches.documents.forget(file)
        raise NotFound(ObjectMissing(file).message, location=file)
    document = await tabulars.view_document(ctx, home, row)
    ctx.caches.usage.saw(row.uuid, caller.client, caller.client_version, "load", ctx.clock.now_ms())
    return LoadedView(file, document.text, storage.told(home))


async def view_exists(ctx: Context, warehouse: str, levels: Levels, name: str) -> None:
    """NoSuchView unless it exists; the document is not read."""
    await tabulars.view(ctx, await warehouses.warehouse(ctx, warehouse), levels, name)


@idempotent(_again)
async def replace_view(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    key: Key,
    levels: Levels,
    name: str,
    requirements: Sequence[ViewRequirement],
    updates: Sequence[ViewUpdate],
) -> LoadedView:
    """Commit to a view through the same pipeline as a table; nothing is judged, views have no stored data.

    NoSuchView, CommitFailed (another uuid, or too many lost swaps), BadRequest, CommitStateUnknown.
    """

    async def attempt() -> LoadedView:
        draft = await _next_version(ctx, caller, warehouse, levels, name, requirements, updates)
        await versions.publish(ctx, warehouse, [draft], key, versions.outcome(draft))
        ctx.caches.usage.saw(draft.uuid, caller.client, caller.client_version, "commit", ctx.clock.now_ms())
        return _loaded(warehouse, versions.of(draft))

    return await commit_point.swap(ctx, warehouse, [(levels, name)], attempt)


@idempotent(nothing)
async def drop_view(ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, name: str) -> None:
    """Forget the view; its metadata files stay. NoSuchView."""
    await tabulars.drop(ctx, caller, warehouse, "view", levels, name, key)


@idempotent(nothing)
async def rename_view(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, source: tuple[Levels, str], target: tuple[Levels, str]
) -> None:
    """NoSuchView (source), NoSuchNamespace (target), AlreadyExists (a table or view has the name)."""
    await tabulars.rename(ctx, caller, warehouse, "view", source, target, key)


@idempotent(_again)
async def register_view(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, name: str, metadata_location: str
) -> LoadedView:
    """Make an existing view metadata file the current version of a new name; the answer names it exactly as given.

    NoSuchNamespace, AlreadyExists (a view or table); BadRequest for a file that is no view; NotFound for no file.
    """
    await tabulars.vacancy(ctx, warehouse, levels, name, "view")
    locations.check(ctx, warehouse, metadata_location, "metadata location")
    document = await read_afresh(
        ctx.objects.of(warehouse), metadata_location, ctx.limits.document_bytes, VIEW, foreign=True
    )
    locations.check(ctx, warehouse, document.metadata.location, "view location in the metadata file")
    place = (levels, name)
    made = document.metadata
    for each in (made.location, *locations.paths(made.properties), metadata_location):
        if locations.may_touch(ctx, warehouse, each):
            await locations.refuse_shared(ctx, warehouse, levels, each, "place in the metadata file")
    roots = await locations.roots(ctx, warehouse, made.location, made.properties, metadata_location)
    draft = _draft(ctx, caller, warehouse, place, None, metadata_location, document, roots, registered=True)
    return await _publish_new(ctx, warehouse, draft, key)


async def _publish_new(ctx: Context, warehouse: Warehouse, draft: Draft, key: Key) -> LoadedView:
    try:
        await versions.publish(ctx, warehouse, [draft], key, versions.outcome(draft))
    except AlreadyExists as refusal:
        raise await tabulars.now_taken(ctx, warehouse, draft.levels, draft.name, "view", refusal) from None
    return _loaded(warehouse, versions.of(draft))


async def _new_metadata(ctx: Context, warehouse: Warehouse, namespace: Namespace, request: ViewRequest) -> ViewMetadata:
    uuid = ctx.ids.uuid4()
    if request.location:
        location = spec_location.strip_trailing_slash(request.location)
        await locations.check_requested(ctx, warehouse, namespace.levels, location, "view location")
    else:
        location = await locations.new_location(ctx, warehouse, namespace, request.name, uuid)
    await locations.check_introduced(ctx, warehouse, namespace.levels, {}, request.properties)
    return commit_views.new_view(
        request.schema, request.view_version, location, request.properties, now_ms=ctx.clock.now_ms(), uuid=uuid
    )


async def _next_version(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    levels: Levels,
    name: str,
    requirements: Sequence[ViewRequirement],
    updates: Sequence[ViewUpdate],
) -> Draft:
    row = await tabulars.view(ctx, warehouse, levels, name)
    document = await tabulars.view_document(ctx, warehouse, row)
    base = document.metadata
    commit_requirements.check_view(tuple(requirements), base)
    applied = await aside(weights.of_updates(updates), commit_views.apply, base, tuple(updates), ctx.clock.now_ms())
    place = (levels, name)
    if not applied.changed:
        return _draft(ctx, caller, warehouse, place, row, row.metadata_location, document)
    metadata = applied.metadata
    if metadata.location != base.location:
        await locations.check_requested(ctx, warehouse, levels, metadata.location, "view location")
    await locations.check_introduced(ctx, warehouse, levels, base.properties, metadata.properties)
    file = versions.next_file(ctx, warehouse, metadata, row.metadata_location)
    places_kept = (base.location, locations.paths(base.properties))
    moved = (metadata.location, locations.paths(metadata.properties)) != places_kept
    roots = await locations.roots(ctx, warehouse, metadata.location, metadata.properties) if moved else None
    return _draft(ctx, caller, warehouse, place, row, file, _rendered(metadata), roots)


def _draft(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    place: tuple[Levels, str],
    row: Tabular | None,
    file: str,
    document: CachedMetadata[ViewMetadata],
    roots: tuple[str, ...] | None = None,
    *,
    registered: bool = False,
) -> Draft:
    metadata = document.metadata
    writer = journal_writer(ctx, caller, warehouse, *place, metadata.view_uuid)
    return Draft(
        kind="view",
        levels=place[0],
        name=place[1],
        row=row,
        uuid=metadata.view_uuid,
        location=metadata.location,
        file=file,
        document=document,
        columns=_columns(metadata),
        registered=registered,
        exclusive=not registered,
        roots=roots,
        events=(writer.created("view", file, registered=registered),) if row is None else (),
    )


def _columns(metadata: ViewMetadata) -> Columns:
    """A view assigns no column ids, so `last_column_id` is the highest one its schema uses."""
    schema = metadata.schema
    return Columns(
        format_version=metadata.format_version,
        last_column_id=schema.highest_id,
        current_schema_id=metadata.current_version.schema_id,
        field_count=len(schema.by_id),
    )


def _rendered(metadata: ViewMetadata) -> CachedMetadata[ViewMetadata]:
    return CachedMetadata(render_view_metadata(metadata), metadata)
