"""Names in a namespace: who is there, and whether a newcomer may move in. Tables and views share one name space."""

from __future__ import annotations

from app.catalog import namespaces
from app.catalog.context import Context
from app.catalog.metadata_cache import CachedMetadata
from app.errors import AlreadyExists, NoSuchTable, NoSuchView, UuidInUse
from app.iceberg import names
from app.iceberg.table import TableMetadata
from app.iceberg.view import ViewMetadata
from app.ports import Kind, Levels, Namespace, Pointer, Tabular, Warehouse


async def table(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Tabular:
    """The table of that name. NoSuchTable even when the namespace is missing: engines probe `ns.table.files` so."""
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is None or row.kind != "table":
        raise NoSuchTable.named(levels, name)
    return row


async def table_pointer(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Pointer:
    """Where the table of that name points; NoSuchTable as in `table`."""
    found = await ctx.store.pointer(warehouse.name, levels, name)
    if found is None or found.kind != "table":
        raise NoSuchTable.named(levels, name)
    return found


async def view(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Tabular:
    """The view of that name; NoSuchView."""
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is None or row.kind != "view":
        raise NoSuchView.named(levels, name)
    return row


async def document(ctx: Context, warehouse: Warehouse, row: Tabular | Pointer) -> CachedMetadata[TableMetadata]:
    """The document that a table's row names. NotFound when the file has vanished, CorruptMetadata."""
    return await ctx.caches.documents.table(
        ctx.objects.of(warehouse), row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid
    )


async def view_document(ctx: Context, warehouse: Warehouse, row: Tabular) -> CachedMetadata[ViewMetadata]:
    """The document that a view's row names; failures as in `document`."""
    return await ctx.caches.documents.view(
        ctx.objects.of(warehouse), row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid
    )


async def vacancy(ctx: Context, warehouse: Warehouse, levels: Levels, name: str, kind: Kind) -> Namespace:
    """The namespace in which `name` is free for a new table or view. BadRequest, NoSuchNamespace, AlreadyExists."""
    names.validate_name(name)
    namespace = await namespaces.existing(ctx, warehouse, levels)
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is not None:
        raise taken(row, kind)
    return namespace


def taken(row: Tabular, kind: Kind) -> AlreadyExists:
    """The refusal of a new table or view (`kind`) whose name `row` has."""
    if row.kind != kind:
        return AlreadyExists.same_name(row.kind, row.namespace, row.name)
    known = AlreadyExists.table if kind == "table" else AlreadyExists.view
    return known(row.namespace, row.name)


async def now_taken(
    ctx: Context, warehouse: Warehouse, levels: Levels, name: str, kind: Kind, refusal: AlreadyExists
) -> AlreadyExists:
    """The refusal of a newcomer that lost the race for `name` inside the store; one over a uuid stays as it is."""
    if isinstance(refusal, UuidInUse):
        return refusal
    row = await ctx.store.tabular(warehouse.name, levels, name)
    known = AlreadyExists.table if kind == "table" else AlreadyExists.view
    return known(levels, name) if row is None else taken(row, kind)
