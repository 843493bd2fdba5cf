"""What a table takes over from its namespace and those above it: properties that hold for everything below."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.context import Context
from app.ports import Levels, Tabular

Heritage = tuple[Mapping[str, str], ...]
"""Properties of namespaces, the nearest first."""


async def namespace_properties(ctx: Context, warehouse: str, levels: Levels, own: Mapping[str, str]) -> Heritage:
    """`own`, the properties of the namespace `levels`, and those of each one above it, for which it takes a read."""
    found = [own]
    for depth in range(len(levels) - 1, 0, -1):
        above = await ctx.store.namespace(warehouse, levels[:depth])
        if above is not None:
            found.append(above.properties)
    return tuple(found)


async def of(ctx: Context, row: Tabular) -> Heritage:
    """The properties of the namespaces that a table or view lies in."""
    return await namespace_properties(ctx, row.warehouse, row.namespace, row.namespace_properties)


def nearest(heritage: Heritage, name: str) -> str | None:
    """The value of a property in the nearest namespace that has it."""
    return next((properties[name] for properties in heritage if name in properties), None)
