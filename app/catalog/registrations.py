"""Registering and unregistering: a name for a metadata file that is already there, and the way back."""

from __future__ import annotations

import logging
from dataclasses import replace

from app.catalog import (
    commits,
    drafts,
    judgement,
    locations,
    namespaces,
    places,
    replays,
    tabulars,
    versions,
    warehouses,
)
from app.catalog.answers import Committed, LoadedTable
from app.catalog.context import Caller, Context
from app.catalog.documents import Document, Form, read_afresh, table_text
from app.catalog.drafts import Draft
from app.catalog.journal import scribe
from app.catalog.judgement import Scope
from app.catalog.replays import Key, Outcome
from app.errors import AlreadyExists, CommitFailed, IcekeelError, SpecError, SwapLost
from app.ports import Levels, Tabular, Warehouse
from app.rules import Finding
from app.spec import names
from app.spec.table import TableMetadata, parse_table_metadata, verify_table_metadata

log = logging.getLogger(__name__)


async def register_table(
    ctx: Context,
    caller: Caller,
    warehouse: str,
    levels: Levels,
    name: str,
    metadata_location: str,
    *,
    overwrite: bool = False,
) -> LoadedTable:
    """Make an existing metadata file the current version of `name`; the answer names it exactly as given.

    With `overwrite` an existing table's pointer is moved in one step, if the file is a version of the same table
    (equal uuid); another uuid, a taken name without `overwrite`, and a view of that name are AlreadyExists. Restoring a
    backup must work, so the judge refuses nothing here: what a commit from the replaced version to this file would be
    refused for is in the answer's findings and in the journal, and no waiver is used up.
    NoSuchNamespace; BadRequest for a location we may not read or a file that is no table; NotFound for no file.
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)

    async def act(key: Key) -> LoadedTable:
        async with ctx.caches.lines.stand([(home.name, levels, name)], ctx.limits.queue_length):
            for _ in range(ctx.limits.commit_attempts):
                draft = await _registration(ctx, caller, home, levels, name, metadata_location, overwrite)
                try:
                    await drafts.publish(ctx, home, [draft], key, versions.outcome(draft))
                except SwapLost:
                    continue
                except AlreadyExists as refusal:
                    raise await places.now_taken(ctx, home, levels, name, "table", refusal) from None
                return versions.loaded(home, versions.of(draft), draft.findings)
        raise CommitFailed(tabulars.CROWDED)

    async def again(outcome: Outcome) -> LoadedTable:
        version = await versions.recorded(ctx, home, levels, name, outcome)
        return versions.loaded(home, version, replays.findings_of(outcome))

    return await replays.once(ctx, caller, home, act, again)


async def unregister_table(ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str) -> Committed:
    """Forget the table and leave every file; answers its last version. Later commits here find no table.

    NoSuchTable; NotFound when its metadata file has vanished (then only a drop can remove the name).
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)

    async def act(key: Key) -> Committed:
        async with ctx.caches.lines.stand([(home.name, levels, name)], ctx.limits.queue_length):
            for _ in range(ctx.limits.commit_attempts):
                row = await places.table(ctx, home, levels, name)
                document = await ctx.caches.documents.table(
                    ctx.objects.of(home), row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid
                )
                try:
                    await tabulars.remove(ctx, caller, home, row, key, {"file": row.metadata_location})
                except SwapLost:
                    continue
                return versions.committed(home, versions.Version(row.metadata_location, document.text))
        raise CommitFailed(tabulars.CROWDED)

    async def again(outcome: Outcome) -> Committed:
        return versions.committed(home, await versions.recorded(ctx, home, levels, name, outcome))

    return await replays.once(ctx, caller, home, act, again)


async def _registration(
    ctx: Context, caller: Caller, home: Warehouse, levels: Levels, name: str, file: str, overwrite: bool
) -> Draft:
    names.validate_name(name)
    await namespaces.existing(ctx, home, levels)
    row = await ctx.store.tabular(home.name, levels, name)
    if row is not None and not (overwrite and row.kind == "table"):
        raise places.taken(row, "table")
    locations.check(ctx, home, file, "metadata location")
    document = await read_afresh(ctx.objects.of(home), file, ctx.limits.document_bytes, _WHOLE, foreign=True)
    metadata = document.metadata
    locations.check(ctx, home, metadata.location, "table location in the metadata file")
    uuid = metadata.table_uuid or (ctx.ids.uuid4() if row is None else row.uuid)
    if row is not None and row.uuid.lower() != uuid.lower():
        raise AlreadyExists(
            f"{places.taken(row, 'table').message} and is another table: uuid {row.uuid}, not {uuid}. Drop it first."
        )
    await _warn_of_overlap(ctx, home, name, metadata.location, row)
    before = None if row is None else await _before(ctx, home, row)
    findings = () if row is None or before is None else await _findings(ctx, row, before, metadata)
    places_named = locations.named_places(ctx, home, metadata)
    roots = await locations.roots(ctx, home, metadata.location, metadata.properties, file, *places_named)
    draft = _draft(ctx, caller, home, (levels, name), row, uuid, file, document, before, findings)
    return replace(draft, roots=roots)


def _parse_whole(data: bytes) -> TableMetadata:
    """Every schema and snapshot included: what comes from outside is looked at once, and as strictly as Java would."""
    metadata = parse_table_metadata(data)
    verify_table_metadata(metadata)
    return metadata


_WHOLE = Form(_parse_whole, table_text)


def _draft(
    ctx: Context,
    caller: Caller,
    home: Warehouse,
    place: tuple[Levels, str],
    row: Tabular | None,
    uuid: str,
    file: str,
    document: Document[TableMetadata],
    before: TableMetadata | None,
    findings: tuple[Finding, ...],
) -> Draft:
    pen = scribe(ctx, caller, home, *place, uuid)
    return Draft(
        kind="table",
        levels=place[0],
        name=place[1],
        row=row,
        uuid=uuid,
        location=document.metadata.location,
        file=file,
        document=document,
        columns=commits.columns_of(document.metadata, pen.at_ms),
        registered=True,
        events=(
            pen.created("table", file, registered=True, findings=findings),
            *pen.evolved(before, document.metadata, file, findings),
        ),
        findings=findings,
    )


async def _findings(ctx: Context, row: Tabular, before: TableMetadata, after: TableMetadata) -> tuple[Finding, ...]:
    """What the judge says to the file as a successor; nothing when the replaced version is too damaged to tell."""
    try:
        return (await judgement.judged(ctx, Scope.of(row), before, after)).findings
    except SpecError:
        log.warning("cannot compare the file registered over %s with what it replaces", row.metadata_location)
        return ()


async def _before(ctx: Context, home: Warehouse, row: Tabular) -> TableMetadata | None:
    """The version that an overwrite replaces, for the journal; None when it cannot be read, which overwriting cures."""
    try:
        document = await ctx.caches.documents.table(
            ctx.objects.of(home), row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid
        )
    except IcekeelError:
        return None
    return document.metadata


async def _warn_of_overlap(ctx: Context, home: Warehouse, name: str, location: str, row: Tabular | None) -> None:
    others = await locations.owners(
        ctx, ctx.objects.of(home), location, besides=None if row is None else row.tabular_id
    )
    if others:
        log.warning("registering %s at %s, where also lies: %s; purging either is refused", name, location, others[:5])
