"""Namespaces: nested, with properties that hold for everything below, and dropped only when empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.catalog import commit_point, locations, results, warehouses
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key, Outcome, idempotent, nothing
from app.catalog.journal import journal_writer
from app.catalog.results import EVERYTHING, Listed, NamespaceView, PageRequest, PropertiesResult
from app.errors import AlreadyExists, BadRequest, CommitFailed, NoSuchNamespace, Unprocessable
from app.evolution.engine.policy import misspelt
from app.iceberg import names
from app.ports import (
    AppendJournal,
    CreateNamespace,
    DropNamespace,
    Levels,
    Namespace,
    Tabular,
    UpdateNamespace,
    Warehouse,
    WriteOp,
)

MOST_PROPERTIES: Final = 1_000
"""Properties that a namespace may have."""
MOST_PROPERTY_CHARACTERS: Final = 1 << 20
"""Characters that they may have, names and values together."""


async def list_namespaces(
    ctx: Context, warehouse: str, parent: Levels = (), page: PageRequest = EVERYTHING
) -> Listed[Levels]:
    """The direct children of `parent` (() = top level) as full paths. NoSuchNamespace when the parent is missing."""
    home = await warehouses.warehouse(ctx, warehouse)
    if parent:
        await existing(ctx, home, parent)
    return await results.listed(
        ctx.limits,
        page,
        ("namespaces", home.name, parent),
        lambda after, limit: ctx.store.namespaces(home.name, parent, after=after, limit=limit),
    )


async def _created_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, properties: Mapping[str, str]
) -> NamespaceView:
    return await load_namespace(ctx, warehouse.name, levels)


@idempotent(_created_again)
async def create_namespace(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, properties: Mapping[str, str]
) -> NamespaceView:
    """Missing namespaces above it are made with it, without properties, and journalled.

    AlreadyExists; BadRequest on a bad name or a foreign `location`; CommitFailed when those above come and go.
    """
    if not levels:
        raise BadRequest("Invalid namespace: at least one level is needed")
    names.validate_levels(levels)
    _check_amount(properties)
    _check_rules(properties)
    if await ctx.store.namespace(warehouse.name, levels) is None:
        _check_location(ctx, warehouse, properties)
    created = Namespace(namespace_id=0, warehouse=warehouse.name, levels=levels, properties=dict(properties))
    for _ in range(ctx.limits.commit_attempts):
        unit, answer = await _creation(ctx, caller, warehouse, created)
        try:
            await commit_point.land(ctx, unit, key, {})
        except (AlreadyExists, NoSuchNamespace):
            # It was taken, or one above it was made or dropped since it was looked up.
            if await ctx.store.namespace(warehouse.name, levels) is not None:
                raise AlreadyExists.namespace(levels) from None
            continue
        return answer
    raise CommitFailed("The namespaces above this one come and go; nothing was made. Try again.")


async def _creation(
    ctx: Context, caller: Caller, home: Warehouse, wanted: Namespace
) -> tuple[list[WriteOp], NamespaceView]:
    """The namespace and whatever is missing above it, from the top down; and how it will be shown.

    One whose computed folder is part of a table gets another one as its `location`: else nobody could create in it.
    """
    now_ms, depth = ctx.clock.now_ms(), len(wanted.levels) - 1
    while depth and await ctx.store.namespace(home.name, wanted.levels[:depth]) is None:
        depth -= 1
    folder: str | None = None
    unit: list[WriteOp] = []
    for end in range(depth + 1, len(wanted.levels) + 1):
        one = (
            wanted
            if end == len(wanted.levels)
            else Namespace(namespace_id=0, warehouse=home.name, levels=wanted.levels[:end], properties={})
        )
        properties = dict(one.properties)
        if not properties.get(locations.LOCATION):
            computed = (
                await locations.namespace_location(ctx, home, one)
                if folder is None
                else locations.child_folder(folder, one.levels[-1])
            )
            folder = await locations.free_folder(ctx, computed, ctx.ids.uuid4())
            if folder != computed:
                properties[locations.LOCATION] = folder
        unit.append(CreateNamespace(warehouse=home.name, levels=one.levels, properties=properties, now_ms=now_ms))
        if one is not wanted:
            event = journal_writer(ctx, caller, home, one.levels).parent_created(wanted.levels)
            unit.append(AppendJournal(event=event))
    shown = properties if properties.get(locations.LOCATION) else {**properties, locations.LOCATION: str(folder)}
    return unit, NamespaceView(wanted.levels, shown)


async def load_namespace(ctx: Context, warehouse: str, levels: Levels) -> NamespaceView:
    """The namespace and its properties; a computed `location` is shown when none is set. NoSuchNamespace."""
    home = await warehouses.warehouse(ctx, warehouse)
    return await _shown(ctx, home, await existing(ctx, home, levels))


async def namespace_exists(ctx: Context, warehouse: str, levels: Levels) -> None:
    """NoSuchNamespace unless it exists."""
    await existing(ctx, await warehouses.warehouse(ctx, warehouse), levels)


async def _updated_again(
    ctx: Context,
    warehouse: Warehouse,
    outcome: Outcome,
    levels: Levels,
    updates: Mapping[str, str],
    removals: Sequence[str],
) -> PropertiesResult:
    return PropertiesResult(tuple(updates), tuple(outcome["removed"]), tuple(outcome["missing"]))


@idempotent(_updated_again)
async def update_properties(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    key: Key,
    levels: Levels,
    updates: Mapping[str, str],
    removals: Sequence[str],
) -> PropertiesResult:
    """Set and remove properties. Unprocessable when one key is in both; NoSuchNamespace."""
    before = await existing(ctx, warehouse, levels)
    both = sorted(set(updates) & set(removals))
    if both:
        raise Unprocessable(f"Invalid properties update: both set and removed: {', '.join(both)}")
    _check_rules(updates)
    if updates.get(locations.LOCATION) != before.properties.get(locations.LOCATION):
        _check_location(ctx, warehouse, updates)
    gone = tuple(dict.fromkeys(removals))
    if updates:
        out = frozenset(gone)
        _check_amount({**{k: v for k, v in before.properties.items() if k not in out}, **updates})
    result = PropertiesResult(
        updated=tuple(updates),
        removed=tuple(name for name in gone if name in before.properties),
        missing=tuple(name for name in gone if name not in before.properties),
    )
    op = UpdateNamespace(
        warehouse=warehouse.name, levels=levels, updates=dict(updates), removals=gone, now_ms=ctx.clock.now_ms()
    )
    await commit_point.land(ctx, [op], key, {"removed": result.removed, "missing": result.missing})
    return result


@idempotent(nothing)
async def drop_namespace(ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels) -> None:
    """NoSuchNamespace; NamespaceNotEmpty when it holds tables, views or namespaces."""
    await commit_point.land(ctx, [DropNamespace(warehouse=warehouse.name, levels=levels)], key, {})


async def existing(ctx: Context, warehouse: Warehouse, levels: Levels) -> Namespace:
    """The stored namespace; NoSuchNamespace."""
    found = await ctx.store.namespace(warehouse.name, levels) if levels else None
    if found is None:
        raise NoSuchNamespace.named(levels)
    return found


async def _shown(ctx: Context, warehouse: Warehouse, namespace: Namespace) -> NamespaceView:
    properties = {**namespace.properties}
    if not properties.get(locations.LOCATION):
        properties[locations.LOCATION] = await locations.namespace_location(ctx, warehouse, namespace)
    return NamespaceView(namespace.levels, properties)


def _check_amount(properties: Mapping[str, str]) -> None:
    """Every create and commit below the namespace reads its properties."""
    if len(properties) > MOST_PROPERTIES:
        raise BadRequest(
            f"Invalid namespace properties: there would be {len(properties)}, and at most {MOST_PROPERTIES} are kept. "
            "Remove some first"
        )
    size = sum(len(name) + len(value) for name, value in properties.items())
    if size > MOST_PROPERTY_CHARACTERS:
        raise BadRequest(
            f"Invalid namespace properties: together they would have {size} characters, and at most "
            f"{MOST_PROPERTY_CHARACTERS} are kept. Remove some first, or keep long values elsewhere"
        )


def _check_rules(properties: Mapping[str, str]) -> None:
    """A misspelt rule would leave every table of the namespace unprotected, and no commit tells of it."""
    for key, why in misspelt(properties).items():
        raise BadRequest(f"Invalid namespace property {key}: {why}. The command `icekeel rules` lists the codes")


def _check_location(ctx: Context, warehouse: Warehouse, properties: Mapping[str, str]) -> None:
    wanted = properties.get(locations.LOCATION)
    if wanted:
        locations.check(ctx, warehouse, wanted, "namespace location")


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


async def heritage_of(ctx: Context, row: Tabular) -> Heritage:
    """The properties of the namespaces that a table or view lies in."""
    return await namespace_properties(ctx, row.warehouse, row.namespace, row.namespace_properties)


def nearest(heritage: Heritage, name: str) -> str | None:
    """The value of a property in the nearest namespace that has it."""
    return next((properties[name] for properties in heritage if name in properties), None)
