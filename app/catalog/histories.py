"""What is known of a table's past: journal entries, the clients that use it, the reports they sent."""

from __future__ import annotations

from app.catalog import namespaces, places, warehouses
from app.catalog.context import Context
from app.errors import BadRequest
from app.ports import JournalEntry, Levels, Report, Sighting

PAGE = 100
PAGE_MAX = 1_000


async def table_history(
    ctx: Context, warehouse: str, levels: Levels, name: str, *, before_id: int | None = None, limit: int = PAGE
) -> tuple[JournalEntry, ...]:
    """Journal entries of a table, newest first, older than `before_id`. NoSuchTable, BadRequest (limit)."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    return await ctx.store.journal(table_uuid=row.uuid, before_id=before_id, limit=_limit(limit))


async def namespace_history(
    ctx: Context, warehouse: str, levels: Levels, *, before_id: int | None = None, limit: int = PAGE
) -> tuple[JournalEntry, ...]:
    """Journal entries of a namespace and all below it, dropped tables included; () is the whole warehouse."""
    home = await warehouses.warehouse(ctx, warehouse)
    if levels:
        await namespaces.existing(ctx, home, levels)
    return await ctx.store.journal(
        warehouse=home.name, namespace=levels or None, before_id=before_id, limit=_limit(limit)
    )


async def table_clients(ctx: Context, warehouse: str, levels: Levels, name: str) -> tuple[Sighting, ...]:
    """Which clients loaded or committed the table, latest sighting each; those of the last seconds may be missing."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    return await ctx.store.sightings(row.uuid)


async def table_reports(ctx: Context, warehouse: str, levels: Levels, name: str) -> tuple[Report, ...]:
    """The newest metrics reports about the table. NoSuchTable."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    return await ctx.store.reports(row.uuid)


def _limit(limit: int) -> int:
    if not 1 <= limit <= PAGE_MAX:
        raise BadRequest(f"Invalid limit: {limit} (1 to {PAGE_MAX})")
    return limit
