"""Every table and view of a warehouse, one after the other, for work that has to see them all."""

from __future__ import annotations

from collections.abc import AsyncIterator

from app.catalog.context import Context
from app.ports import Kind, Levels, Tabular

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
