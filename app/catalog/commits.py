"""The commit pipeline, for one table and for many alike.

Requirements are checked against a base that the store confirmed in this request, updates are folded over it, the
result is judged, the new file is written, and one unit moves every pointer. Where a transaction names one table again,
the entry meets what those before it made of the table, and the last state alone is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.catalog import (
    commit_point,
    idempotency,
    judgement,
    locations,
    namespaces,
    tabulars,
    versions,
    weights,
)
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key, Outcome, idempotent, nothing
from app.catalog.journal import journal_writer
from app.catalog.judgement import Scope
from app.catalog.metadata_cache import CachedMetadata, aside, table_text
from app.catalog.namespaces import Heritage
from app.catalog.results import Committed
from app.catalog.versions import Draft
from app.errors import AlreadyExists, BadRequest, CommitFailed, NoSuchTable, NotFound, SwapLost, UuidInUse
from app.iceberg import names
from app.iceberg.metadata_file import METADATA_PATH
from app.iceberg.requirement import TableRequirement
from app.iceberg.table import TableMetadata
from app.iceberg.update import TableUpdate
from app.metadata import requirements as commit_requirements
from app.metadata import tables as commit_tables
from app.ports import Levels, Namespace, Tabular, Warehouse
from app.rules import Finding, Verdict, Waiver

# What a snapshot adds to a document, roughly: enough to tell heavy work from light before a text is put together.
_SNAPSHOT_BYTES = 500


@dataclass(frozen=True, slots=True)
class PlannedUpdates:
    """What a planner makes of one state: the updates, and what tells of them (decoded JSON) in the draft."""

    updates: tuple[TableUpdate, ...]
    record: Mapping[str, Any] = field(default_factory=dict)


Planner = Callable[[TableMetadata, Heritage], PlannedUpdates]
"""Plans from a state of the table and the properties of its namespaces, the nearest first."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """One entry of a commit: what the caller believes about a table, and what shall become of it.

    With a `plan` the updates are made anew from every state that the change is tried on; it raises what refuses it.
    """

    levels: Levels
    name: str
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    plan: Planner | None = None
    plan_weight: int = 0

    def weight(self, base: TableMetadata | None) -> int:
        """How heavy it is to check and fold, as `aside` counts."""
        if self.plan is not None and base is not None:
            return self.plan_weight + weights.of_schema(base.schema)
        return weights.of_requirements(self.requirements) + weights.of_updates(self.updates)

    def on(self, base: TableMetadata | None, heritage: Heritage) -> PlannedUpdates:
        """The updates to apply to `base`."""
        if self.plan is None:
            return PlannedUpdates(self.updates)
        if base is None:
            raise NoSuchTable.named(self.levels, self.name)
        return self.plan(base, heritage)


async def _committed_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, name: str, *_: object
) -> Committed:
    version = await versions.recorded(ctx, warehouse, levels, name, outcome)
    return versions.committed(warehouse, version, idempotency.findings_of(outcome))


@idempotent(_committed_again)
async def commit_table(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    key: Key,
    levels: Levels,
    name: str,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> Committed:
    """Commit to one table, or complete a staged create.

    NoSuchTable, CommitFailed (a requirement, or too many lost swaps), EvolutionRefused, BadRequest;
    CommitStateUnknown only when the change may have happened.
    """
    change = TableChange(levels, name, tuple(requirements), tuple(updates))
    (draft,) = await land(ctx, caller, warehouse, (change,), key, lambda made: versions.outcome(made[0]))
    return versions.committed(warehouse, versions.of(draft), draft.findings)


@idempotent(nothing)
async def commit_transaction(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, changes: Sequence[TableChange]
) -> None:
    """Commit to any number of tables, all or none; staged creates may be among them.

    Several entries for one table are checked, applied and judged in order, each on what those before it made, as if
    they had been sent one after the other; the table still gets one new version. Failures as in `commit_table`, for any
    one of the entries; then nothing has changed and no file stays behind.
    """
    if not changes:
        raise BadRequest("Invalid transaction: no table changes")
    await land(ctx, caller, warehouse, changes, key, lambda _: {})


async def land(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    changes: Sequence[TableChange],
    key: Key,
    outcome: Callable[[Sequence[Draft]], Outcome],
) -> list[Draft]:
    """Bring the changes about, all or none, starting over from the present state when another commit was quicker."""
    grouped = _by_table(changes)

    async def attempt() -> list[Draft]:
        made = [await _draft(ctx, caller, warehouse, entries) for entries in grouped.values()]
        await _publish(ctx, warehouse, made, key, outcome(made))
        return made

    made = await commit_point.swap(ctx, warehouse, grouped, attempt)
    _afterwards(ctx, caller, warehouse, made)
    return made


async def _publish(ctx: Context, warehouse: Warehouse, made: Sequence[Draft], key: Key, outcome: Outcome) -> None:
    """Publish the drafts. A name that was taken meanwhile is a lost swap: the next draft sees by what, and says so."""
    try:
        await versions.publish(ctx, warehouse, made, key, outcome)
    except UuidInUse:
        raise
    except AlreadyExists:
        raise SwapLost("The name was taken since it was looked up") from None


def _by_table(changes: Sequence[TableChange]) -> dict[tuple[Levels, str], list[TableChange]]:
    grouped: dict[tuple[Levels, str], list[TableChange]] = {}
    for change in changes:
        grouped.setdefault((change.levels, change.name), []).append(change)
    return grouped


async def _draft(ctx: Context, caller: Caller, warehouse: Warehouse, entries: Sequence[TableChange]) -> Draft:
    """The next version of one table, judged and complete, or the refusal."""
    levels, name = entries[0].levels, entries[0].name
    row = await ctx.store.tabular(warehouse.name, levels, name)
    creating = [commit_requirements.is_create(entry.requirements) for entry in entries]
    if creating[0]:
        return await _first_version(ctx, caller, warehouse, entries, row)
    if row is None or row.kind != "table":
        raise NoSuchTable.named(levels, name)
    document = await _base(ctx, warehouse, row)
    base = document.metadata
    planned = any(entry.plan is not None for entry in entries)
    heritage = await namespaces.heritage_of(ctx, row) if planned else ()
    folded = await _folded(ctx, warehouse, Scope.of(row), entries, base, row.metadata_location, heritage)
    if folded.metadata is base:
        return _unchanged(row, document, folded.record)
    return await _next_version(ctx, caller, warehouse, row, base, folded)


async def _base(ctx: Context, warehouse: Warehouse, row: Tabular) -> CachedMetadata[TableMetadata]:
    """The document that the row names. SwapLost when it was trimmed because the pointer has moved on since."""
    try:
        return await tabulars.table_document(ctx, warehouse, row)
    except NotFound:
        now = await ctx.store.tabular_by_id(row.tabular_id)
        if now is None or now.metadata_location == row.metadata_location:
            raise
        raise SwapLost("The base was trimmed while it was read") from None


@dataclass(frozen=True, slots=True)
class _Folded:
    """What the entries for one table made of it together; `metadata` is the base itself when nothing changed."""

    metadata: TableMetadata
    findings: tuple[Finding, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    expired: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)


async def _folded(
    ctx: Context,
    warehouse: Warehouse,
    scope: Scope,
    entries: Sequence[TableChange],
    base: TableMetadata | None,
    base_location: str | None,
    heritage: Heritage = (),
) -> _Folded:
    """Check, apply and judge the entries in order, each on what those before it made of `base` (None: no table)."""
    now_ms, fresh_uuid = ctx.clock.now_ms(), ctx.ids.uuid4()
    state, logged = base, base_location
    findings: tuple[Finding, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    expired: tuple[str, ...] = ()
    record: dict[str, Any] = {}
    for at, entry in enumerate(entries):
        if at:
            # A long transaction leaves room for other requests between its entries.
            await asyncio.sleep(0)
        weight = entry.weight(state)
        applied, told = await aside(weight, _applied, entry, state, logged, heritage, now_ms, fresh_uuid)
        record.update(told)
        if not applied.changed:
            continue
        verdict = await _admitted(ctx, warehouse, scope, state, applied.metadata, waivers)
        # Only the base is a file: states between two entries are never written, and no log may name them.
        state, logged = applied.metadata, None
        findings += verdict.findings
        waivers += verdict.waivers_used
        expired += applied.expired_metadata_files
    assert state is not None  # A commit that creates the table always makes a first state.
    return _Folded(state, findings, waivers, expired, record)


async def _admitted(
    ctx: Context,
    warehouse: Warehouse,
    scope: Scope,
    before: TableMetadata | None,
    after: TableMetadata,
    spent: Collection[Waiver] = (),
) -> Verdict:
    """Locations that the step brings in are checked, and the step is judged; `spent` waivers count no more."""
    if before is None or after.location != before.location:
        await locations.check_requested(ctx, warehouse, scope.levels, after.location, "table location")
    known = {} if before is None else before.properties
    await locations.check_introduced(ctx, warehouse, scope.levels, known, after.properties)
    return await judgement.accepted(ctx, scope, before, after, spent)


def _applied(
    entry: TableChange,
    base: TableMetadata | None,
    base_location: str | None,
    heritage: Heritage,
    now_ms: int,
    fresh_uuid: str,
) -> tuple[commit_tables.Applied, Mapping[str, Any]]:
    commit_requirements.check_table(entry.requirements, base)
    planned = entry.on(base, heritage)
    return commit_tables.apply(base, base_location, planned.updates, now_ms, fresh_uuid), planned.record


async def _first_version(
    ctx: Context, caller: Caller, warehouse: Warehouse, entries: Sequence[TableChange], row: Tabular | None
) -> Draft:
    """Complete a staged create: the client's own uuid, ids and location, built from nothing."""
    levels, name = entries[0].levels, entries[0].name
    if row is not None:
        raise _already_there(row)
    names.validate_name(name)
    namespace = await namespaces.existing(ctx, warehouse, levels)
    folded = await _folded(ctx, warehouse, Scope.inside(namespace), entries, None, None)
    return await _new_table(ctx, caller, warehouse, namespace, name, folded)


def _already_there(row: Tabular) -> CommitFailed | AlreadyExists:
    return CommitFailed.requirement("table already exists") if row.kind == "table" else tabulars.taken(row, "table")


async def first_draft(
    ctx: Context, caller: Caller, warehouse: Warehouse, namespace: Namespace, name: str, metadata: TableMetadata
) -> Draft:
    """The first version of a new table, judged, with its locations checked."""
    verdict = await _admitted(ctx, warehouse, Scope.inside(namespace), None, metadata)
    return await _new_table(ctx, caller, warehouse, namespace, name, _Folded(metadata, verdict.findings))


async def _new_table(
    ctx: Context, caller: Caller, warehouse: Warehouse, namespace: Namespace, name: str, folded: _Folded
) -> Draft:
    metadata = folded.metadata
    uuid = metadata.table_uuid or ctx.ids.uuid4()
    file = versions.next_file(ctx, warehouse, metadata, None)
    writer = journal_writer(ctx, caller, warehouse, namespace.levels, name, uuid)
    return Draft(
        kind="table",
        levels=namespace.levels,
        name=name,
        row=None,
        uuid=uuid,
        location=metadata.location,
        file=file,
        document=await rendered(metadata),
        columns=versions.columns_of(metadata, writer.at_ms),
        exclusive=True,
        roots=await locations.roots(ctx, warehouse, metadata.location, metadata.properties),
        events=(
            writer.created("table", file),
            *await aside(weights.of_step(None, metadata), writer.evolved, None, metadata, file, folded.findings),
        ),
        findings=folded.findings,
    )


async def _next_version(
    ctx: Context, caller: Caller, warehouse: Warehouse, row: Tabular, base: TableMetadata, folded: _Folded
) -> Draft:
    metadata = folded.metadata
    file = versions.next_file(ctx, warehouse, metadata, row.metadata_location)
    writer = journal_writer(ctx, caller, warehouse, row.namespace, row.name, row.uuid)
    changed = metadata.schema != base.schema
    return Draft(
        kind="table",
        levels=row.namespace,
        name=row.name,
        row=row,
        uuid=metadata.table_uuid or row.uuid,
        location=metadata.location,
        file=file,
        document=await rendered(metadata),
        columns=versions.columns_of(metadata, writer.at_ms if changed else row.columns.schema_changed_at_ms),
        exclusive=True,
        roots=await _new_roots(ctx, warehouse, base, metadata),
        keeps_roots=_left_files(base, metadata),
        events=(
            *await aside(weights.of_step(base, metadata), writer.evolved, base, metadata, file, folded.findings),
            *writer.waivers_used(folded.waivers, file),
        ),
        findings=folded.findings,
        waivers=folded.waivers,
        expired=folded.expired,
        record=folded.record,
    )


async def _new_roots(
    ctx: Context, warehouse: Warehouse, base: TableMetadata, metadata: TableMetadata
) -> tuple[str, ...] | None:
    """None while location and path properties are what they were."""
    if metadata.location == base.location and locations.paths(metadata.properties) == locations.paths(base.properties):
        return None
    return await locations.roots(ctx, warehouse, metadata.location, metadata.properties)


def _left_files(base: TableMetadata, metadata: TableMetadata) -> bool:
    """Whether the places of `base` may hold files that are still named: then they stay the table's own until it is
    dropped. Without a snapshot that is its metadata log alone."""
    moved = metadata.location != base.location
    return bool(base.snapshots) or moved or metadata.properties.get(METADATA_PATH) != base.properties.get(METADATA_PATH)


def _unchanged(row: Tabular, document: CachedMetadata[TableMetadata], record: Mapping[str, Any]) -> Draft:
    return Draft(
        kind="table",
        levels=row.namespace,
        name=row.name,
        row=row,
        uuid=row.uuid,
        location=row.location,
        file=row.metadata_location,
        document=document,
        columns=row.columns,
        record=record,
    )


async def rendered(metadata: TableMetadata) -> CachedMetadata[TableMetadata]:
    lists = len(metadata.partition_specs) + len(metadata.sort_orders) + len(metadata.refs)
    weight = (metadata.snapshots.loose + lists) * _SNAPSHOT_BYTES
    return CachedMetadata(await aside(weight, table_text, metadata), metadata)


def _afterwards(ctx: Context, caller: Caller, warehouse: Warehouse, made: Sequence[Draft]) -> None:
    """What follows a commit that has happened: nothing here can change its answer."""
    for draft in made:
        ctx.caches.usage.saw(draft.uuid, caller.client, caller.client_version, "commit", ctx.clock.now_ms())
        if draft.expired:
            ctx.caches.tasks.spawn(versions.trim(ctx, warehouse, draft), "removal of expired metadata files")
