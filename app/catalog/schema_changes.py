"""Asking for a change of a schema, planning one, and making it: check, plan, apply.

All three work on what the judge of every commit says; `apply` goes through the same pipeline as any engine's commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.catalog import (
    commits,
    idempotency,
    judgement,
    locations,
    namespaces,
    tabulars,
    versions,
    warehouses,
    weights,
)
from app.catalog.context import Caller, Context
from app.catalog.dry_run import DryRun, dry_run
from app.catalog.idempotency import Key, Outcome, idempotent
from app.catalog.judgement import Scope
from app.catalog.metadata_cache import CachedMetadata, aside
from app.catalog.rebasing import OperationsDrifted, Rebase, SchemaChange, what_happened
from app.catalog.results import Committed
from app.catalog.versions import Draft
from app.errors import BadRequest, CommitFailed
from app.evolution.editing.operations import Operation
from app.evolution.editing.plan import Plan, plan
from app.evolution.engine.readers import Honours, honours_initial_default
from app.iceberg.requirement import TableRequirement
from app.iceberg.table import TableMetadata
from app.iceberg.update import TableUpdate
from app.metadata import requirements as commit_requirements
from app.metadata import tables as commit_tables
from app.ports import Levels, Tabular, Warehouse


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
    dry_run: DryRun
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
) -> DryRun:
    """What the commit would meet if it came now; nothing is changed. NoSuchTable.

    A requirement that does not hold leaves the rest unchecked: a client would refresh and send another commit.
    """
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    try:
        await aside(weights.of_requirements(tuple(requirements)), commit_requirements.check_table, requirements, base)
    except CommitFailed as stale:
        return DryRun("not-checked", base, row.metadata_location, stale.message)
    return await _dry_run(ctx, home, row, base, tuple(updates))


async def plan_change(ctx: Context, warehouse: str, levels: Levels, name: str, wish: SchemaChange) -> Planned:
    """The commit that the operations amount to now, and what it would meet. NoSuchTable, ValidationFailed, SpecError;
    CommitFailed when the operations mean something else than on their base schema."""
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    made = await _planned(ctx, row, wish, base)
    run = await _dry_run(ctx, home, row, base, made.updates)
    return Planned(made, run, await _laggards(ctx, row) if made.required else ())


async def check_operations(
    ctx: Context, warehouse: str, levels: Levels, name: str, operations: tuple[Operation, ...]
) -> DryRun:
    """As `check_commit`, for what the operations (a declared schema, say) would commit."""
    home, row, document = await _present(ctx, warehouse, levels, name)
    base = document.metadata
    try:
        made = await aside(weights.of_plan(operations, base.schema), plan, base, operations)
    except BadRequest as fault:
        return DryRun("incompatible", base, row.metadata_location, fault.message)
    return await _dry_run(ctx, home, row, base, made.updates)


async def _applied_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, name: str, wish: SchemaChange
) -> Applied:
    version = await versions.recorded(ctx, warehouse, levels, name, outcome)
    return Applied(versions.committed(warehouse, version, idempotency.findings_of(outcome)), dict(outcome["record"]))


@idempotent(_applied_again)
async def apply_change(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, name: str, wish: SchemaChange
) -> Applied:
    """Plan and commit. NoSuchTable, ValidationFailed, EvolutionRefused, and CommitFailed when the operations no longer
    mean what they meant, or the plan is not the one that `plan_hash` stands for."""
    weight = weights.of_operations(wish.operations)
    change = commits.TableChange(levels, name, (), (), Rebase(wish).updates_on, weight)
    try:
        (draft,) = await commits.land(ctx, caller, warehouse, (change,), key, _outcome)
    except OperationsDrifted as drifted:
        raise await what_happened(ctx, await tabulars.table(ctx, warehouse, levels, name), drifted) from None
    return Applied(versions.committed(warehouse, versions.of(draft), draft.findings), _record(draft))


def _outcome(made: Sequence[Draft]) -> Outcome:
    return {**versions.outcome(made[0]), "record": _record(made[0])}


def _record(draft: Draft) -> dict[str, Any]:
    columns = draft.columns
    return {"schema-id": columns.current_schema_id, "last-column-id": columns.last_column_id, **draft.record}


async def _present(
    ctx: Context, warehouse: str, levels: Levels, name: str
) -> tuple[Warehouse, Tabular, CachedMetadata[TableMetadata]]:
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    return home, row, await tabulars.table_document(ctx, home, row)


async def _dry_run(
    ctx: Context, warehouse: Warehouse, row: Tabular, base: TableMetadata, updates: tuple[TableUpdate, ...]
) -> DryRun:
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
            await locations.check_requested(ctx, warehouse, row.namespace, after.location, "table location")
        await locations.check_introduced(ctx, warehouse, row.namespace, base.properties, after.properties)
    except CommitFailed as stale:
        return DryRun("not-checked", base, row.metadata_location, stale.message)
    except BadRequest as fault:
        return DryRun("incompatible", base, row.metadata_location, fault.message)
    verdict = await judgement.judged(ctx, Scope.of(row), base, after)
    weight = len(base.schemas) * weights.of_schema(after.schema)
    return await aside(weight, dry_run, base, row.metadata_location, after, verdict.findings)


async def _laggards(ctx: Context, row: Tabular) -> tuple[Laggard, ...]:
    """Clients that load the table and are not known to answer old rows from initial-default, latest first."""
    await ctx.caches.usage.flush(ctx.store)
    seen = [
        Laggard(s.client, s.client_version, honours_initial_default(s.client, s.client_version), s.last_seen_ms)
        for s in await ctx.store.sightings(row.uuid)
        if s.action == "load"
    ]
    return tuple(sorted((one for one in seen if one.honours != "yes"), key=lambda one: -one.last_seen_ms))


async def _planned(ctx: Context, row: Tabular, wish: SchemaChange, base: TableMetadata) -> Plan:
    heritage = await namespaces.heritage_of(ctx, row)
    try:
        return await aside(weights.of_plan(wish.operations, base.schema), Rebase(wish).plan_on, base, heritage)
    except OperationsDrifted as drifted:
        raise await what_happened(ctx, row, drifted) from None
