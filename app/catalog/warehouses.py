"""Warehouses: a name, a location, and what the server may touch there."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from app.catalog import storage
from app.catalog.context import Context
from app.catalog.locations import UNIQUE_LOCATION, resolved
from app.catalog.results import CatalogConfig
from app.catalog.storage import CLIENT_KEYS
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    Forbidden,
    NamespaceNotEmpty,
    NoSuchWarehouse,
    SwapLost,
)
from app.iceberg import location as locations
from app.ports import DropWarehouse, PutWarehouse, Warehouse

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z0-9_-]{1,64}")

# A warehouse name is the first path segment after /v1 and /icekeel/v1, where these already mean something.
RESERVED_NAMES = frozenset(
    {"namespaces", "tables", "views", "transactions", "config", "oauth", "rules", "warehouses", "principals", "doctor"}
)
_CHANGE_ATTEMPTS = 5
_JOBS_LOOKED_AT = 10_000
_NAMED = 20


@dataclass(frozen=True, slots=True)
class WarehouseChange:
    """What shall become of a warehouse; None leaves a part as it is. In maps a value of None removes the key.

    With `version` the change applies to that version only.
    """

    location: str | None = None
    allowed_locations: tuple[str, ...] | None = None
    properties: Mapping[str, str | None] = field(default_factory=dict)
    options: Mapping[str, str | None] = field(default_factory=dict)
    version: int | None = None


async def warehouse(ctx: Context, name: str) -> Warehouse:
    """The warehouse for a read, at most `Limits.warehouse_ttl_ms` old; NoSuchWarehouse is never from memory."""
    return held_warehouse(ctx, name) or await fresh_warehouse(ctx, name)


def held_warehouse(ctx: Context, name: str) -> Warehouse | None:
    """The warehouse for a read, if it is known and fresh enough."""
    held = ctx.caches.warehouses.get(name)
    return held[1] if held is not None and ctx.clock.monotonic() < held[0] else None


async def fresh_warehouse(ctx: Context, name: str) -> Warehouse:
    """The warehouse as the store has it now, for whatever changes or may be refused."""
    found = await stored(ctx, name)
    if found is None:
        ctx.caches.warehouses.pop(name, None)
        raise NoSuchWarehouse.named(name)
    ctx.caches.warehouses[name] = (ctx.clock.monotonic() + ctx.limits.warehouse_ttl_ms / 1000, found)
    return found


async def stored(ctx: Context, name: str) -> Warehouse | None:
    """The warehouse as the store has it now; None if there is none of that name."""
    found = await ctx.store.warehouse(name)
    return None if found is None else _configured(ctx, found)


async def list_warehouses(ctx: Context) -> tuple[Warehouse, ...]:
    return tuple([_configured(ctx, found) for found in await ctx.store.warehouses()])


async def find_warehouse(ctx: Context, wanted: str | None) -> Warehouse:
    """The warehouse called `wanted`, or the one whose location that is; None means the default one. NoSuchWarehouse
    names those that there are."""
    held = held_warehouse(ctx, wanted or ctx.limits.default_warehouse)
    if held is not None:
        return held
    if wanted is None or wanted == "":
        return await fresh_warehouse(ctx, ctx.limits.default_warehouse)
    found = await stored(ctx, wanted)
    if found is not None:
        return found
    known = await list_warehouses(ctx)
    for candidate in known:
        if same_location(candidate.location, locations.strip_trailing_slash(wanted)):
            return candidate
    raise NoSuchWarehouse(f"{NoSuchWarehouse.named(wanted).message}. There are: {_listed(known)}")


def _listed(known: tuple[Warehouse, ...]) -> str:
    """Names and locations, as far as a message should go."""
    some = ", ".join(f"{each.name} at {each.location}" for each in known[:_NAMED])
    return f"{some} and {len(known) - _NAMED} more" if len(known) > _NAMED else some


async def get_config(ctx: Context, wanted: str | None) -> CatalogConfig:
    """Match `wanted` by name or by location (None: the default one); NoSuchWarehouse."""
    found = await find_warehouse(ctx, wanted)
    return CatalogConfig(warehouse=found, defaults=storage.told(found), overrides={"prefix": found.name})


async def create_warehouse(ctx: Context, new: Warehouse) -> Warehouse:
    """Add a warehouse.

    BadRequest on an unusable name, location or option, or a place that another warehouse uses; Forbidden where the
    server would go to places or with options that nobody who showed a token asked for; AlreadyExists when the name is
    taken.
    """
    record = msgspec.structs.replace(new, location=locations.strip_trailing_slash(new.location), version=1)
    _check(record)
    _check_asked(ctx, _places(record), options=bool(record.storage or record.secrets))
    await _refuse_shared(ctx, record, _places(record))
    await ctx.objects.of(record).establish(record.location)
    await ctx.store.write([PutWarehouse(warehouse=record, expected_version=None, now_ms=ctx.clock.now_ms())])
    log.info("warehouse %s created at %s", record.name, record.location)
    _tell(record)
    return record


async def change_warehouse(ctx: Context, name: str, change: WarehouseChange) -> Warehouse:
    """Change a warehouse; other servers see it within `Limits.warehouse_ttl_ms`. A location it leaves stays allowed.

    NoSuchWarehouse, BadRequest and Forbidden as in `create_warehouse` for what the change adds; BadRequest when it
    decides about secrets that it does not give again; CommitFailed when `change.version` is not the present one.
    """
    for _ in range(_CHANGE_ATTEMPTS):
        kept = await ctx.store.warehouse(name)
        if kept is None:
            raise NoSuchWarehouse.named(name)
        found = storage.sorted_out(kept)
        if change.version is not None and change.version != found.version:
            raise CommitFailed(f"Warehouse {name} is at version {found.version}, not {change.version}")
        if change.location is not None and _is_configured(ctx, name):
            raise BadRequest(f"The location of warehouse {name} is set by ICEKEEL_WAREHOUSE")
        if change.options and _sets_options(ctx, name):
            raise BadRequest(f"The storage options of warehouse {name} are set by ICEKEEL_WAREHOUSE_OPTIONS")
        record = _changed(found, change)
        _check(_configured(ctx, record))
        _check_custody(_configured(ctx, found), _configured(ctx, record), change)
        before = _places(found)
        added = tuple(place for place in _places(record) if not _within(before, place))
        _check_asked(ctx, added, options=bool(change.options))
        await _refuse_shared(ctx, record, added)
        objects = ctx.objects.of(_configured(ctx, record))
        if change.location is not None:
            await objects.establish(record.location)
        put = PutWarehouse(warehouse=record, expected_version=found.version, now_ms=ctx.clock.now_ms())
        try:
            await ctx.store.write([put])
        except SwapLost:
            continue
        log.info("warehouse %s changed, now at version %d", name, record.version)
        _tell(_configured(ctx, record))
        return await fresh_warehouse(ctx, name)
    raise CommitFailed(f"Too many concurrent changes of warehouse {name}; nothing was changed. Try again.")


async def drop_warehouse(ctx: Context, name: str) -> None:
    """Remove an empty warehouse; its files stay. NoSuchWarehouse, NamespaceNotEmpty, BadRequest for the default one."""
    if _is_configured(ctx, name):
        raise BadRequest(f"Warehouse {name} is the configured one and would be made again at the next start")
    if any(job.warehouse == name for job in await ctx.store.purge_jobs(_JOBS_LOOKED_AT)):
        raise NamespaceNotEmpty(f"Warehouse {name} still deletes files of purged tables; drop it when that is done")
    await ctx.store.write([DropWarehouse(name=name)])
    ctx.caches.warehouses.pop(name, None)
    log.info("warehouse %s dropped", name)


async def check_reachable(ctx: Context) -> None:
    """ObjectsUnavailable when the folder of the default warehouse is not there (a disk that is not mounted)."""
    found = await stored(ctx, ctx.limits.default_warehouse)
    if found is not None:
        await ctx.objects.of(found).check_root(found.location)


async def ensure_warehouse(ctx: Context, wanted: Warehouse, *, establish: bool = False) -> Warehouse:
    """Make the configured warehouse exist as configured; safe when several servers start at once.

    A changed location is for new tables. The old one stays allowed, because the tables there are still served. Storage
    options from the settings are never stored: they hold for the servers that have them.

    The folder of a local warehouse is made with its record, and with `establish` (a start by a person) in any case.
    """
    bare = msgspec.structs.replace(wanted, storage={}, secrets={})
    _check(wanted)
    objects = ctx.objects.of(wanted)
    found = await ctx.store.warehouse(wanted.name)
    if establish or found is None or not same_location(found.location, wanted.location):
        await objects.establish(wanted.location)
    if found is None:
        record = msgspec.structs.replace(bare, location=locations.strip_trailing_slash(wanted.location), version=1)
        await _refuse_shared(ctx, record, (record.location,))
        try:
            await ctx.store.write([PutWarehouse(warehouse=record, expected_version=None, now_ms=ctx.clock.now_ms())])
        except AlreadyExists:
            return await fresh_warehouse(ctx, wanted.name)
        return record
    if same_location(found.location, wanted.location):
        return found
    moved = _changed(found, WarehouseChange(location=wanted.location))
    if not _within(_places(found), moved.location):
        await _refuse_shared(ctx, moved, (moved.location,))
    put = PutWarehouse(warehouse=moved, expected_version=found.version, now_ms=ctx.clock.now_ms())
    try:
        await ctx.store.write([put])
    except SwapLost:
        return await fresh_warehouse(ctx, wanted.name)
    return moved


async def tell_of_keys(ctx: Context) -> None:
    """Say in the log, for every warehouse that hands out static keys, that it does."""
    for found in await list_warehouses(ctx):
        _tell(found)


def same_location(a: str, b: str) -> bool:
    """Whether two spellings name one place; what is no location at all equals nothing."""
    try:
        return locations.canonical(a) == locations.canonical(b)
    except BadRequest:
        return False


def _is_configured(ctx: Context, name: str) -> bool:
    return ctx.configured is not None and ctx.configured.name == name


def _sets_options(ctx: Context, name: str) -> bool:
    own = ctx.configured
    return own is not None and own.name == name and bool(own.storage or own.secrets)


def _configured(ctx: Context, found: Warehouse) -> Warehouse:
    """With its secrets apart; with the storage options of the settings instead of its own, if they have any for it.

    Mixed they would let a stored endpoint, which a request chose, have the operator's keys.
    """
    own = ctx.configured
    if own is None or not _sets_options(ctx, found.name):
        return storage.sorted_out(found)
    return msgspec.structs.replace(found, storage=own.storage, secrets=own.secrets)


def _changed(found: Warehouse, change: WarehouseChange) -> Warehouse:
    location, allowed = found.location, found.allowed_locations
    if change.allowed_locations is not None:
        allowed = change.allowed_locations
    if change.location is not None and not same_location(change.location, found.location):
        location = locations.strip_trailing_slash(change.location)
        allowed = (*(place for place in allowed if place != found.location), found.location)
    shown, secret = storage.split(_merged({**found.storage, **found.secrets}, change.options))
    return msgspec.structs.replace(
        found,
        location=location,
        allowed_locations=allowed,
        properties=_merged(found.properties, change.properties),
        storage=shown,
        secrets=secret,
        version=found.version + 1,
    )


def _merged(before: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    both = {**before, **change}
    return {name: value for name, value in both.items() if value is not None}


def _check(new: Warehouse) -> None:
    """BadRequest for a warehouse that cannot be, whoever asks for it."""
    if not _NAME.fullmatch(new.name) or new.name in RESERVED_NAMES:
        raise BadRequest(f"Invalid warehouse name: {new.name!r} (use a-z, 0-9, _ and -, and no word of the protocol)")
    if new.properties.get(UNIQUE_LOCATION, "true") not in ("true", "false"):
        raise BadRequest(f"Warehouse property {UNIQUE_LOCATION} is true or false")
    storage.check(new)


def _check_custody(before: Warehouse, after: Warehouse, change: WarehouseChange) -> None:
    reasons, secrets = storage.at_stake(before, after)
    if missing := [name for name in secrets if name not in change.options]:
        raise BadRequest(
            f"{', '.join(reasons)} of warehouse {before.name} decides where its secrets go or who gets them. Give "
            f"{', '.join(missing)} again in the same request, or null to remove what is not needed"
        )


def _check_asked(ctx: Context, added: tuple[str, ...], *, options: bool) -> None:
    """Whether a request may add these places, and options of whatever kind; settings are asked nothing.

    Whoever may make warehouses may not thereby reach every file of the server's machine. And without a token nobody may
    send the server to hosts and buckets of their choice: it stands inside the operator's network and has credentials.
    """
    for place in added:
        if locations.is_local(place):
            _check_disk(ctx, place)
        elif not (ctx.limits.callers_known or _within(ctx.limits.allowed_locations, place)):
            raise Forbidden(
                f"This server has no token, so that anyone could send it anywhere: {place} is refused. Set "
                "ICEKEEL_TOKEN, or have the operator add the place to ICEKEEL_ALLOWED_LOCATIONS"
            )
    if options and not ctx.limits.callers_known:
        raise Forbidden(
            "This server has no token, so that anyone could send it anywhere: storage options are refused. Set "
            "ICEKEEL_TOKEN, or give those of the default warehouse in ICEKEEL_WAREHOUSE_OPTIONS"
        )


def _check_disk(ctx: Context, place: str) -> None:
    roots = ctx.limits.local_roots
    if roots is not None and not _within(roots, place):
        raise BadRequest(
            f"Invalid warehouse location: {place} is on the server's disk. Choose one below {' or '.join(roots)}, "
            "or have the operator add this one to ICEKEEL_ALLOWED_LOCATIONS"
        )


async def _refuse_shared(ctx: Context, new: Warehouse, added: tuple[str, ...]) -> None:
    """Two warehouses in one place could hold two tables in one folder, and purging one would empty the other."""
    for other in await list_warehouses(ctx):
        if other.name == new.name:
            continue
        theirs = [(held, spelled) for held in _places(other) for spelled in await _spellings(ctx, other, held)]
        for place in added:
            ours = await _spellings(ctx, new, place)
            taken = next((h for h, spelled in theirs if any(locations.overlaps(spelled, one) for one in ours)), None)
            if taken is not None:
                what = "warehouse location" if place == new.location else "allowed location"
                how = "at" if taken == other.location else "which may use"
                raise BadRequest(f"Invalid {what}: {place} overlaps warehouse {other.name} {how} {taken}")


async def _spellings(ctx: Context, warehouse: Warehouse, place: str) -> set[str]:
    """`place` as it is written and, on a disk, where its links lead."""
    if not locations.is_local(place):
        return {place}
    return {place, await resolved(ctx.objects.of(_configured(ctx, warehouse)), place)}


def _places(warehouse: Warehouse) -> tuple[str, ...]:
    return (warehouse.location, *warehouse.allowed_locations)


def _within(parents: tuple[str, ...], place: str) -> bool:
    return any(locations.contains(parent, place) for parent in parents)


def _tell(found: Warehouse) -> None:
    if storage.hands_out_keys(found):
        log.warning(
            "WAREHOUSE %s HANDS OUT ITS STATIC KEYS: whoever may load a table of it gets them, and with them "
            "everything that they open (storage option %s)",
            found.name,
            CLIENT_KEYS,
        )
