"""Asking for a change of a schema, planning one, and making it: check, plan, apply.

All three work on what the judge of every commit says; `apply` goes through the same pipeline as any engine's commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.catalog import commits, inheritance, judgement, locations, places, replays, versions, warehouses, weights
from app.catalog.answers import Committed
from app.catalog.assessments import Assessment, assess
from app.catalog.context import Caller, Context
from app.catalog.documents import Document, aside
from app.catalog.drafts import Draft
from app.catalog.judgement import Scope
from app.catalog.rebasing import Otherwise, Turn, Wish, what_happened
from app.catalog.replays import Key, Outcome
from app.commit import requirements as commit_requirements
from app.commit import tables as commit_tables
from app.errors import BadRequest, CommitFailed
from app.evolution.operations import Operation
from app.evolution.planning import Plan, plan
from app.evolution.readers import Honours, honours_initial_default
from app.ports import Levels, Tabular, Warehouse
from app.spec.requirement import TableRequirement
from app.spec.table import TableMetadata
from app.spec.update import TableUpdate


@dataclass(frozen=True, slots=True)
class Laggard:
    """A client seen on the table that may not answer old rows from initial-default. `last_seen_ms` is epoch ms."""

    client: str
    version: str
    honours: Honours
    last_seen_ms: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan beside what it would do. `laggards` only when the plan adds a required column with a default."""

    plan: Plan
    assessment: Assessment
    laggards: tuple[Laggard, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """An applied plan as it was carried out (decoded JSON): requirements, updates, hash, notes, and the rebase."""

    committed: Committed
    record: dict[str, Any]


async def check_commit(
    ctx: Context,
    warehouse: str,
    levels: Levels,
    name: str,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> Assessment:
    """What the commit would meet if it came now; nothing is changed. NoSuchTable.

    A requirement that does not hold leaves the rest unchecked: a client would refresh and send another commit.
    """
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    try:
        await aside(weights.of_requirements(tuple(requirements)), commit_requirements.check_table, requirements, base)
    except CommitFailed as stale:
        return Assessment("not-checked", base, row.metadata_location, stale.message)
    return await _assessed(ctx, home, row, base, tuple(updates))


async def plan_change(ctx: Context, warehouse: str, levels: Levels, name: str, wish: Wish) -> Planned:
    """The commit that the operations amount to now, and what it would meet. NoSuchTable, ValidationFailed, SpecError;
    CommitFailed when the operations mean something else than on their base schema."""
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    turn = Turn(wish, await inheritance.of(ctx, row))
    made = await _explained(ctx, row, turn, base)
    assessment = await _assessed(ctx, home, row, base, made.updates)
    return Planned(made, assessment, await _laggards(ctx, row) if made.required else ())


async def check_operations(
    ctx: Context, warehouse: str, levels: Levels, name: str, operations: tuple[Operation, ...]
) -> Assessment:
    """As `check_commit`, for what the operations (a declared schema, say) would commit."""
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    try:
        made = await aside(weights.of_plan(operations, base.schema), plan, base, operations)
    except BadRequest as fault:
        return Assessment("incompatible", base, row.metadata_location, fault.message)
    return await _assessed(ctx, home, row, base, made.updates)


async def apply_change(ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str, wish: Wish) -> Applied:
    """Plan and commit. NoSuchTable, ValidationFailed, EvolutionRefused, and CommitFailed when the operations no longer
    mean what they meant, or the plan is not the one that `plan_hash` stands for."""
    home = await warehouses.fresh_warehouse(ctx, warehouse)

    async def act(key: Key) -> Applied:
        row = await places.table(ctx, home, levels, name)
        turn = Turn(wish, await inheritance.of(ctx, row))
        record: dict[str, Any] = {}

        def outcome(made: Sequence[Draft]) -> Outcome:
            columns = made[0].columns
            record.update({"schema-id": columns.current_schema_id, "last-column-id": columns.last_column_id})
            record.update(turn.record())
            return {**versions.outcome(made[0]), "record": record}

        weight = weights.of_operations(wish.operations)
        change = commits.TableChange(levels, name, (), (), turn.updates_on, weight)
        try:
            (draft,) = await commits.land(ctx, caller, home, (change,), key, outcome)
        except Otherwise as otherwise:
            raise await what_happened(ctx, row, otherwise) from None
        return Applied(versions.committed(home, versions.of(draft), draft.findings), record)

    async def again(outcome: Outcome) -> Applied:
        version = await versions.recorded(ctx, home, levels, name, outcome)
        return Applied(versions.committed(home, version, replays.findings_of(outcome)), dict(outcome["record"]))

    return await replays.once(ctx, caller, home, act, again)


async def _present(
    ctx: Context, warehouse: str, levels: Levels, name: str
) -> tuple[Warehouse, Tabular, Document[TableMetadata]]:
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    objects = ctx.objects.of(home)
    return (
        home,
        row,
        await ctx.caches.documents.table(objects, row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid),
    )


async def _assessed(
    ctx: Context, home: Warehouse, row: Tabular, base: TableMetadata, updates: tuple[TableUpdate, ...]
) -> Assessment:
    """Fold, check and judge as the pipeline does, and write nothing."""
    try:
        applied = await aside(
            weights.of_updates(updates),
            commit_tables.apply,
            base,
            row.metadata_location,
            updates,
            ctx.clock.now_ms(),
            ctx.ids.uuid4(),
        )
        after = applied.metadata
        if after.location != base.location:
            await locations.check_requested(ctx, home, row.namespace, after.location, "table location")
        await locations.check_introduced(ctx, home, row.namespace, base.properties, after.properties)
    except CommitFailed as stale:
        return Assessment("not-checked", base, row.metadata_location, stale.message)
    except BadRequest as fault:
        return Assessment("incompatible", base, row.metadata_location, fault.message)
    verdict = await judgement.judged(ctx, Scope.of(row), base, after)
    weight = len(base.schemas) * weights.of_schema(after.schema)
    return await aside(weight, assess, base, row.metadata_location, after, verdict.findings)


async def _laggards(ctx: Context, row: Tabular) -> tuple[Laggard, ...]:
    """Clients that load the table and are not known to answer old rows from initial-default, latest first."""
    await ctx.caches.observations.flush(ctx.store)
    seen = [
        Laggard(s.client, s.client_version, honours_initial_default(s.client, s.client_version), s.last_seen_ms)
        for s in await ctx.store.sightings(row.uuid)
        if s.action == "load"
    ]
    return tuple(sorted((one for one in seen if one.honours != "yes"), key=lambda one: -one.last_seen_ms))


async def _explained(ctx: Context, row: Tabular, turn: Turn, base: TableMetadata) -> Plan:
    try:
        return await aside(weights.of_plan(turn.operations, base.schema), turn.plan_on, base)
    except Otherwise as otherwise:
        raise await what_happened(ctx, row, otherwise) from None
