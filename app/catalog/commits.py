"""The commit pipeline, for one table and for many alike.

Requirements are checked against a base that the store confirmed in this request, updates are folded over it, the
result is judged, the new file is written, and one unit moves every pointer. A lost swap starts over from the present
state. Commits of one process to one table stand in line instead of fighting for the swap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.catalog import drafts, judgement, locations, namespaces, places, replays, versions, warehouses, weights
from app.catalog.answers import Committed
from app.catalog.context import Caller, Context
from app.catalog.documents import Document, aside, table_text
from app.catalog.drafts import Draft
from app.catalog.journal import scribe
from app.catalog.judgement import Scope
from app.catalog.replays import Key, Outcome
from app.commit import requirements as commit_requirements
from app.commit import tables as commit_tables
from app.errors import AlreadyExists, BadRequest, CommitFailed, NoSuchTable, NotFound, SwapLost
from app.ports import Columns, Levels, Namespace, Tabular, Warehouse
from app.spec import names
from app.spec.requirement import TableRequirement
from app.spec.table import TableMetadata
from app.spec.update import TableUpdate

# What a snapshot adds to a document, roughly: enough to tell heavy work from light before a text is put together.
_SNAPSHOT_BYTES = 500


Planner = Callable[[TableMetadata], tuple[TableUpdate, ...]]


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

    def on(self, base: TableMetadata | None) -> tuple[TableUpdate, ...]:
        """The updates to apply to `base`."""
        if self.plan is None:
            return self.updates
        if base is None:
            raise NoSuchTable.named(self.levels, self.name)
        return self.plan(base)


async def commit_table(
    ctx: Context,
    caller: Caller,
    warehouse: str,
    levels: Levels,
    name: str,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> Committed:
    """Commit to one table, or complete a staged create.

    NoSuchTable, CommitFailed (a requirement, or too many lost swaps), EvolutionRefused, BadRequest;
    CommitStateUnknown only when the change may have happened.
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)
    change = TableChange(levels, name, tuple(requirements), tuple(updates))

    async def act(key: Key) -> Committed:
        (draft,) = await land(ctx, caller, home, (change,), key, lambda made: versions.outcome(made[0]))
        return versions.committed(home, versions.of(draft), draft.findings)

    async def again(outcome: Outcome) -> Committed:
        version = await versions.recorded(ctx, home, levels, name, outcome)
        return versions.committed(home, version, replays.findings_of(outcome))

    return await replays.once(ctx, caller, home, act, again)


async def commit_transaction(ctx: Context, caller: Caller, warehouse: str, changes: Sequence[TableChange]) -> None:
    """Commit to any number of tables, all or none; staged creates may be among them.

    Entries for one table are checked against the same base and folded in order into one new version. Failures as in
    `commit_table`, for any one of the tables; then nothing has changed and no file stays behind.
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)

    async def act(key: Key) -> None:
        if not changes:
            raise BadRequest("Invalid transaction: no table changes")
        await land(ctx, caller, home, changes, key, lambda _: {})

    await replays.once(ctx, caller, home, act, replays.nothing)


def columns_of(metadata: TableMetadata, schema_changed_at_ms: int | None) -> Columns:
    """The plain columns that are kept beside a table's pointer; the field count is that of every depth."""
    return Columns(
        format_version=metadata.format_version,
        last_column_id=metadata.last_column_id,
        current_schema_id=metadata.current_schema_id,
        field_count=len(metadata.schema.by_id),
        schema_count=len(metadata.schemas),
        schema_changed_at_ms=schema_changed_at_ms,
    )


async def land(
    ctx: Context,
    caller: Caller,
    home: Warehouse,
    changes: Sequence[TableChange],
    key: Key,
    outcome: Callable[[Sequence[Draft]], Outcome],
) -> list[Draft]:
    """Bring the changes about, all or none, starting over from the present state when another commit was quicker."""
    grouped = _by_table(changes)
    lines = [(home.name, levels, name) for levels, name in grouped]
    with ctx.caches.turns.commit(lines, caller.peer):
        async with ctx.caches.lines.stand(lines, ctx.limits.queue_length):
            return await _land(ctx, caller, home, grouped, key, outcome)


async def _land(
    ctx: Context,
    caller: Caller,
    home: Warehouse,
    grouped: Mapping[tuple[Levels, str], Sequence[TableChange]],
    key: Key,
    outcome: Callable[[Sequence[Draft]], Outcome],
) -> list[Draft]:
    for attempt in range(ctx.limits.commit_attempts):
        await _wait(ctx, attempt)
        try:
            made = [await _draft(ctx, caller, home, entries) for entries in grouped.values()]
            await _publish(ctx, home, made, key, outcome(made))
        except SwapLost:
            continue
        _afterwards(ctx, caller, home, made)
        return made
    raise CommitFailed("Too many concurrent commits to this table; nothing was changed. Refresh and try again.")


async def _publish(ctx: Context, home: Warehouse, made: Sequence[Draft], key: Key, outcome: Outcome) -> None:
    """Publish the drafts. A name that was taken meanwhile is a lost swap: the next draft sees by what, and says so."""
    try:
        await drafts.publish(ctx, home, made, key, outcome)
    except AlreadyExists:
        raise SwapLost("The name was taken since it was looked up") from None


async def _wait(ctx: Context, attempt: int) -> None:
    if attempt:
        longest = ctx.limits.retry_wait_ms * min(2**attempt, 32)
        await asyncio.sleep(ctx.ids.uniform(0, longest) / 1000)


def _by_table(changes: Sequence[TableChange]) -> dict[tuple[Levels, str], list[TableChange]]:
    grouped: dict[tuple[Levels, str], list[TableChange]] = {}
    for change in changes:
        grouped.setdefault((change.levels, change.name), []).append(change)
    return grouped


async def _draft(ctx: Context, caller: Caller, home: Warehouse, entries: Sequence[TableChange]) -> Draft:
    """The next version of one table, judged and complete, or the refusal."""
    levels, name = entries[0].levels, entries[0].name
    row = await ctx.store.tabular(home.name, levels, name)
    if any(commit_requirements.is_create(entry.requirements) for entry in entries):
        return await _first_version(ctx, caller, home, entries, row)
    if row is None or row.kind != "table":
        raise NoSuchTable.named(levels, name)
    document = await _base(ctx, home, row)
    applied = await _applied(ctx, entries, document.metadata, row.metadata_location)
    if not applied.changed:
        return _unchanged(row, document)
    return await _next_version(ctx, caller, home, row, document.metadata, applied)


async def _base(ctx: Context, home: Warehouse, row: Tabular) -> Document[TableMetadata]:
    """The document that the row names. SwapLost when it was trimmed because the pointer has moved on since."""
    objects = ctx.objects.of(home)
    try:
        return await ctx.caches.documents.table(
            objects, row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid
        )
    except NotFound:
        now = await ctx.store.tabular_by_id(row.tabular_id)
        if now is None or now.metadata_location == row.metadata_location:
            raise
        raise SwapLost("The base was trimmed while it was read") from None


async def _applied(
    ctx: Context, entries: Sequence[TableChange], base: TableMetadata | None, base_location: str | None
) -> commit_tables.Applied:
    now_ms, fresh_uuid = ctx.clock.now_ms(), ctx.ids.uuid4()

    def work() -> commit_tables.Applied:
        for entry in entries:
            commit_requirements.check_table(entry.requirements, base)
        updates = tuple(update for entry in entries for update in entry.on(base))
        return commit_tables.apply(base, base_location, updates, now_ms, fresh_uuid)

    return await aside(sum(entry.weight(base) for entry in entries), work)


async def _first_version(
    ctx: Context, caller: Caller, home: Warehouse, entries: Sequence[TableChange], row: Tabular | None
) -> Draft:
    """Complete a staged create: the client's own uuid, ids and location, built from nothing."""
    levels, name = entries[0].levels, entries[0].name
    if row is not None:
        raise _already_there(row)
    names.validate_name(name)
    namespace = await namespaces.existing(ctx, home, levels)
    metadata = (await _applied(ctx, entries, None, None)).metadata
    return await first_draft(ctx, caller, home, namespace, name, metadata)


def _already_there(row: Tabular) -> CommitFailed | AlreadyExists:
    return CommitFailed.requirement("table already exists") if row.kind == "table" else places.taken(row, "table")


async def first_draft(
    ctx: Context, caller: Caller, home: Warehouse, namespace: Namespace, name: str, metadata: TableMetadata
) -> Draft:
    """The first version of a new table, judged, with its locations checked."""
    uuid = metadata.table_uuid or ctx.ids.uuid4()
    await locations.check_requested(ctx, home, namespace.levels, metadata.location, "table location")
    await locations.check_introduced(ctx, home, namespace.levels, {}, metadata.properties)
    verdict = await judgement.accepted(ctx, Scope.inside(namespace), None, metadata)
    file = drafts.next_file(ctx, home, metadata, None)
    pen = scribe(ctx, caller, home, namespace.levels, name, uuid)
    return Draft(
        kind="table",
        levels=namespace.levels,
        name=name,
        row=None,
        uuid=uuid,
        location=metadata.location,
        file=file,
        document=await rendered(metadata),
        columns=columns_of(metadata, pen.at_ms),
        exclusive=True,
        roots=await locations.roots(ctx, home, metadata.location, metadata.properties),
        events=(
            pen.created("table", file),
            *await aside(weights.of_step(None, metadata), pen.evolved, None, metadata, file, verdict.findings),
        ),
        findings=verdict.findings,
    )


async def _next_version(
    ctx: Context, caller: Caller, home: Warehouse, row: Tabular, base: TableMetadata, applied: commit_tables.Applied
) -> Draft:
    metadata = applied.metadata
    moved = metadata.location != base.location
    if moved:
        await locations.check_requested(ctx, home, row.namespace, metadata.location, "table location")
    await locations.check_introduced(ctx, home, row.namespace, base.properties, metadata.properties)
    verdict = await judgement.accepted(ctx, Scope.of(row), base, metadata)
    file = drafts.next_file(ctx, home, metadata, row.metadata_location)
    pen = scribe(ctx, caller, home, row.namespace, row.name, row.uuid)
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
        columns=columns_of(metadata, pen.at_ms if changed else row.columns.schema_changed_at_ms),
        exclusive=True,
        roots=await _new_roots(ctx, home, base, metadata),
        events=(
            *await aside(weights.of_step(base, metadata), pen.evolved, base, metadata, file, verdict.findings),
            *pen.waivers_used(verdict.waivers_used, file),
        ),
        findings=verdict.findings,
        waivers=verdict.waivers_used,
        expired=applied.expired_metadata_files,
    )


async def _new_roots(
    ctx: Context, home: Warehouse, base: TableMetadata, metadata: TableMetadata
) -> tuple[str, ...] | None:
    """None while location and path properties are what they were."""
    if metadata.location == base.location and locations.paths(metadata.properties) == locations.paths(base.properties):
        return None
    return await locations.roots(ctx, home, metadata.location, metadata.properties)


def _unchanged(row: Tabular, document: Document[TableMetadata]) -> Draft:
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
    )


async def rendered(metadata: TableMetadata) -> Document[TableMetadata]:
    lists = len(metadata.partition_specs) + len(metadata.sort_orders) + len(metadata.refs)
    weight = (metadata.snapshots.loose + lists) * _SNAPSHOT_BYTES
    return Document(await aside(weight, table_text, metadata), metadata)


def _afterwards(ctx: Context, caller: Caller, home: Warehouse, made: Sequence[Draft]) -> None:
    """What follows a commit that has happened: nothing here can change its answer."""
    for draft in made:
        ctx.caches.observations.saw(draft.uuid, caller.client, caller.client_version, "commit", ctx.clock.now_ms())
        if draft.expired:
            ctx.caches.tasks.spawn(versions.trim(ctx, home, draft), "removal of expired metadata files")
