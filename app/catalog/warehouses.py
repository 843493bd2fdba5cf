"""Warehouses: a name, a location, and what the server may touch there."""

from __future__ import annotations

import re

import msgspec

from app.catalog.context import Context
from app.errors import AlreadyExists, BadRequest, NoSuchWarehouse
from app.ports import DropWarehouse, PutWarehouse, Warehouse
from app.spec import location as locations

_NAME = re.compile(r"[a-z0-9_-]{1,64}")

# A warehouse name is the first path segment after /v1, where these already mean something.
RESERVED_NAMES = frozenset({"namespaces", "tables", "views", "transactions", "config", "oauth"})


async def warehouse(ctx: Context, name: str) -> Warehouse:
    """The warehouse for a read, at most `Limits.warehouse_ttl_ms` old; NoSuchWarehouse is never from memory."""
    held = ctx.caches.warehouses.get(name)
    if held is not None and ctx.clock.monotonic() < held[0]:
        return held[1]
    return await fresh_warehouse(ctx, name)


async def fresh_warehouse(ctx: Context, name: str) -> Warehouse:
    """The warehouse as the store has it now, for whatever changes or may be refused."""
    found = await ctx.store.warehouse(name)
    if found is None:
        ctx.caches.warehouses.pop(name, None)
        raise NoSuchWarehouse.named(name)
    ctx.caches.warehouses[name] = (ctx.clock.monotonic() + ctx.limits.warehouse_ttl_ms / 1000, found)
    return found


async def list_warehouses(ctx: Context) -> tuple[Warehouse, ...]:
    return await ctx.store.warehouses()


async def find_warehouse(ctx: Context, wanted: str | None) -> Warehouse:
    """The warehouse called `wanted`, or the one whose location that is; None means the default one."""
    if wanted is None or wanted == "":
        return await fresh_warehouse(ctx, ctx.limits.default_warehouse)
    found = await ctx.store.warehouse(wanted)
    if found is not None:
        return found
    for candidate in await ctx.store.warehouses():
        if same_location(candidate.location, wanted):
            return candidate
    raise NoSuchWarehouse.named(wanted)


async def create_warehouse(ctx: Context, new: Warehouse) -> Warehouse:
    """Add a warehouse. BadRequest on an unusable name or location, AlreadyExists when the name is taken."""
    _check(new)
    record = msgspec.structs.replace(new, location=locations.strip_trailing_slash(new.location), version=1)
    await ctx.store.write([PutWarehouse(warehouse=record, expected_version=None, now_ms=ctx.clock.now_ms())])
    return record


async def drop_warehouse(ctx: Context, name: str) -> None:
    """Remove an empty warehouse. NoSuchWarehouse, NamespaceNotEmpty."""
    await ctx.store.write([DropWarehouse(name=name)])
    ctx.caches.warehouses.pop(name, None)


async def ensure_warehouse(ctx: Context, wanted: Warehouse) -> Warehouse:
    """Make the configured warehouse exist as configured; safe when several servers start at once.

    A changed location is for new tables. The old one stays allowed, because the tables there are still served.
    """
    found = await ctx.store.warehouse(wanted.name)
    if found is None:
        try:
            return await create_warehouse(ctx, wanted)
        except AlreadyExists:
            return await fresh_warehouse(ctx, wanted.name)
    if same_location(found.location, wanted.location):
        return found
    _check(wanted)
    moved = msgspec.structs.replace(
        found,
        location=locations.strip_trailing_slash(wanted.location),
        allowed_locations=(*found.allowed_locations, found.location),
        version=found.version + 1,
    )
    put = PutWarehouse(warehouse=moved, expected_version=found.version, now_ms=ctx.clock.now_ms())
    await ctx.store.write([put])
    return moved


def same_location(a: str, b: str) -> bool:
    """Whether two spellings name one place; what is no location at all equals nothing."""
    try:
        return locations.canonical(a) == locations.canonical(b)
    except BadRequest:
        return False


def _check(new: Warehouse) -> None:
    if not _NAME.fullmatch(new.name) or new.name in RESERVED_NAMES:
        raise BadRequest(f"Invalid warehouse name: {new.name!r} (use a-z, 0-9, _ and -, and no word of the protocol)")
    if not locations.is_absolute(new.location):
        raise BadRequest(f"Invalid warehouse location: {new.location} is not absolute")
