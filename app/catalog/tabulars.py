"""What tables and views share: who has a name, the document behind it, dropping and renaming. What only one of them
does stands in its own file."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog import commit_point, namespaces
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key, Outcome
from app.catalog.journal import journal_writer
from app.catalog.metadata_cache import CachedMetadata
from app.errors import (
    AlreadyExists,
    CorruptMetadata,
    NoSuchTable,
    NoSuchView,
    NotFound,
    UuidInUse,
    ValidationFailed,
    dotted,
)
from app.iceberg import names
from app.iceberg.table import TableMetadata
from app.iceberg.view import ViewMetadata
from app.metadata.properties import GC_ENABLED, may_delete
from app.ports import (
    AddPurgeJob,
    AppendJournal,
    DropTabular,
    Kind,
    Levels,
    Namespace,
    Pointer,
    RenameTabular,
    Tabular,
    Warehouse,
    WriteOp,
)


async def table(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Tabular:
    """The table of that name. NoSuchTable even when the namespace is missing: engines probe `ns.table.files` so."""
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is None or row.kind != "table":
        raise NoSuchTable.named(levels, name)
    return row


async def table_pointer(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Pointer:
    """Where the table of that name points; NoSuchTable as in `table`."""
    found = await ctx.store.pointer(warehouse.name, levels, name)
    if found is None or found.kind != "table":
        raise NoSuchTable.named(levels, name)
    return found


async def view(ctx: Context, warehouse: Warehouse, levels: Levels, name: str) -> Tabular:
    """The view of that name; NoSuchView."""
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is None or row.kind != "view":
        raise NoSuchView.named(levels, name)
    return row


async def table_document(ctx: Context, warehouse: Warehouse, row: Tabular | Pointer) -> CachedMetadata[TableMetadata]:
    """The document that a table's row names. NotFound when the file has vanished, CorruptMetadata."""
    return await ctx.caches.documents.table(
        ctx.objects.of(warehouse),
        row.metadata_location,
        ctx.limits.document_bytes,
        uuid=row.uuid,
        checksum=row.checksum,
    )


async def view_document(ctx: Context, warehouse: Warehouse, row: Tabular) -> CachedMetadata[ViewMetadata]:
    """The document that a view's row names; failures as in `table_document`."""
    return await ctx.caches.documents.view(
        ctx.objects.of(warehouse),
        row.metadata_location,
        ctx.limits.document_bytes,
        uuid=row.uuid,
        checksum=row.checksum,
    )


async def vacancy(ctx: Context, warehouse: Warehouse, levels: Levels, name: str, kind: Kind) -> Namespace:
    """The namespace in which `name` is free for a new table or view. BadRequest, NoSuchNamespace, AlreadyExists."""
    names.validate_name(name)
    namespace = await namespaces.existing(ctx, warehouse, levels)
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is not None:
        raise taken(row, kind)
    return namespace


def taken(row: Tabular, kind: Kind) -> AlreadyExists:
    """The refusal of a new table or view (`kind`) whose name `row` has."""
    if row.kind != kind:
        return AlreadyExists.same_name(row.kind, row.namespace, row.name)
    known = AlreadyExists.table if kind == "table" else AlreadyExists.view
    return known(row.namespace, row.name)


async def now_taken(
    ctx: Context, warehouse: Warehouse, levels: Levels, name: str, kind: Kind, refusal: AlreadyExists
) -> AlreadyExists:
    """The refusal of a newcomer that lost the race for `name` inside the store; one over a uuid stays as it is."""
    if isinstance(refusal, UuidInUse):
        return refusal
    row = await ctx.store.tabular(warehouse.name, levels, name)
    known = AlreadyExists.table if kind == "table" else AlreadyExists.view
    return known(levels, name) if row is None else taken(row, kind)


async def find(ctx: Context, warehouse: Warehouse, kind: Kind, levels: Levels, name: str) -> Tabular:
    """The table or view of that name; NoSuchTable or NoSuchView."""
    return await (table if kind == "table" else view)(ctx, warehouse, levels, name)


async def drop(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    kind: Kind,
    levels: Levels,
    name: str,
    key: Key,
    *,
    purge: bool = False,
) -> None:
    """Remove the name; with `purge` the job that deletes the files is stored in the same unit.

    NoSuchTable, NoSuchView; ValidationFailed for a purge that `gc.enabled=false` forbids.
    """

    async def attempt() -> None:
        row = await find(ctx, warehouse, kind, levels, name)
        unit: list[WriteOp] = []
        if purge:
            await _check_purge(ctx, warehouse, row)
            unit.append(_purge_job(row, ctx.clock.now_ms()))
        await remove(ctx, caller, warehouse, row, key, {}, unit, purge=purge)

    await commit_point.swap(ctx, warehouse, [(levels, name)], attempt)
    if purge:
        ctx.caches.purge_wanted.set()


async def remove(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    row: Tabular,
    key: Key,
    outcome: Outcome,
    besides: Sequence[WriteOp] = (),
    *,
    purge: bool = False,
) -> None:
    """Land the removal of `row` as it was read, together with `besides`; SwapLost when it has moved on."""
    writer = journal_writer(ctx, caller, warehouse, row.namespace, row.name, row.uuid)
    gone = writer.dropped(row.kind, row.metadata_location, purge=purge)
    unit: list[WriteOp] = [
        DropTabular(tabular_id=row.tabular_id, expected=row.metadata_location),
        *besides,
        AppendJournal(event=gone),
    ]
    await commit_point.land(ctx, unit, key, outcome)


async def rename(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    kind: Kind,
    source: tuple[Levels, str],
    target: tuple[Levels, str],
    key: Key,
) -> None:
    """Give the name `target`, in any namespace of the warehouse. uuid, location and files stay as they are.

    NoSuchTable or NoSuchView (source), NoSuchNamespace (target), AlreadyExists (a table or view has the name).
    """
    row = await find(ctx, warehouse, kind, *source)
    names.validate_name(target[1])
    writer = journal_writer(ctx, caller, warehouse, row.namespace, row.name, row.uuid)
    unit: list[WriteOp] = [
        RenameTabular(warehouse=warehouse.name, kind=kind, source=source, target=target, now_ms=ctx.clock.now_ms()),
        AppendJournal(event=writer.renamed(kind, target)),
    ]
    await commit_point.land(ctx, unit, key, {})


async def _check_purge(ctx: Context, warehouse: Warehouse, row: Tabular) -> None:
    """A file that cannot be read forbids nothing: else a damaged table could never be purged."""
    try:
        document = await table_document(ctx, warehouse, row)
    except (NotFound, CorruptMetadata):
        return
    if not may_delete(document.metadata.properties):
        raise ValidationFailed(
            f"Cannot purge {dotted(row.namespace, row.name)}: {GC_ENABLED} is false, so other tables may need its "
            f"files. Drop it without purge, which leaves them, or set {GC_ENABLED} to true first."
        )


def _purge_job(row: Tabular, now_ms: int) -> AddPurgeJob:
    return AddPurgeJob(
        warehouse=row.warehouse,
        table_uuid=row.uuid,
        name=names.SEPARATOR.join((*row.namespace, row.name)),
        location=row.location,
        metadata_location=row.metadata_location,
        now_ms=now_ms,
    )
