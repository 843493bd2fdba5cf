"""Tables by how their schemas have grown: for people who look after many of them, and for monitoring."""

from __future__ import annotations

import re

from app.catalog import namespaces, warehouses
from app.catalog.context import Context
from app.catalog.results import Listed, PageRequest, listed
from app.errors import BadRequest, Unavailable
from app.ports import Levels, Page, Standing, Tabular

ORDERS: tuple[Standing, ...] = ("last-column-id", "field-count", "retired-ids", "schema-count", "schema-changed")

# Gauges of single tables are bounded: the leaders of these orders, some of each.
_WATCHED: tuple[Standing, ...] = ("last-column-id", "retired-ids", "schema-count")
_OF_EACH = 10
_FRESH_S = 30.0
_PLACE = re.compile(r"(-?[0-9]{1,18}):([0-9]{1,18})")


async def table_standings(
    ctx: Context, warehouse: str, by: str, *, levels: Levels | None, token: str | None, size: int | None
) -> Listed[Tabular]:
    """A page of the tables of a warehouse, or of a namespace and those below it, largest first.

    NoSuchWarehouse, NoSuchNamespace, BadRequest (order, token, size).
    """
    order = next((known for known in ORDERS if known == by), None)
    if order is None:
        raise BadRequest(f"Invalid sort: {by!r} (use {', '.join(ORDERS)})")
    home = await warehouses.warehouse(ctx, warehouse)
    if levels:
        await namespaces.existing(ctx, home, levels)

    async def read(after: str | None, limit: int | None) -> Page[Tabular]:
        most = limit or ctx.limits.page_size_max
        rows = await ctx.store.standings(home.name, levels, order, after=_place(after), limit=most + 1)
        page = rows[:most]
        more = len(rows) > most
        return Page(items=page, after=f"{value(page[-1], order)}:{page[-1].tabular_id}" if more else None)

    return await listed(ctx.limits, PageRequest(token or "", size), ("standings", home.name, levels, order), read)


async def leaders(ctx: Context) -> tuple[Tabular, ...]:
    """The tables that lead any of the watched orders, over all warehouses; half a minute old at most, and what was
    known last while the store is away."""
    until, held = ctx.caches.leaders
    if ctx.clock.monotonic() < until:
        return held
    try:
        found = {
            row.tabular_id: row
            for order in _WATCHED
            for row in await ctx.store.standings(None, None, order, after=None, limit=_OF_EACH)
        }
    except Unavailable:
        return held
    held = tuple(found[tabular_id] for tabular_id in sorted(found))
    ctx.caches.leaders = (ctx.clock.monotonic() + _FRESH_S, held)
    return held


def value(row: Tabular, order: Standing) -> int:
    """What the order compares; 0 where it is not known."""
    columns = row.columns
    match order:
        case "last-column-id":
            return columns.last_column_id
        case "field-count":
            return columns.field_count
        case "retired-ids":
            return columns.retired_ids
        case "schema-count":
            return columns.schema_count or 0
    return columns.schema_changed_at_ms or 0


def _place(after: str | None) -> tuple[int, int] | None:
    if after is None:
        return None
    found = _PLACE.fullmatch(after)
    if found is None:
        raise BadRequest("Invalid page token: it was not handed out by this listing")
    return int(found[1]), int(found[2])
