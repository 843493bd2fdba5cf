"""Registering and unregistering: a name for a metadata file that is already there, and the way back."""

from __future__ import annotations

import logging
from dataclasses import replace

import msgspec

from app.catalog import (
    ancestry,
    commit_point,
    idempotency,
    judgement,
    locations,
    namespaces,
    tabulars,
    versions,
)
from app.catalog.ancestry import Relation
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key, Outcome, idempotent
from app.catalog.journal import journal_writer
from app.catalog.judgement import Scope
from app.catalog.metadata_cache import TABLE, CachedMetadata, Form, read_afresh, table_text
from app.catalog.results import Committed, LoadedTable
from app.catalog.versions import Draft
from app.errors import AlreadyExists, NotFound, SpecError
from app.iceberg import names
from app.iceberg.table import TableMetadata, parse_table_metadata, verify_table_metadata
from app.ports import Levels, Tabular, Warehouse
from app.rules import Finding, Severity, Verdict

log = logging.getLogger(__name__)


async def _registered_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, name: str, *_: object, **__: object
) -> LoadedTable:
    version = await versions.recorded(ctx, warehouse, levels, name, outcome)
    return versions.loaded(warehouse, version, idempotency.findings_of(outcome))


@idempotent(_registered_again)
async def register_table(
    ctx: Context,
    caller: Caller,
    warehouse: Warehouse,
    key: Key,
    levels: Levels,
    name: str,
    metadata_location: str,
    *,
    overwrite: bool = False,
) -> LoadedTable:
    """Make an existing metadata file the current version of `name`; the answer names it exactly as given.

    With `overwrite` an existing table's pointer is moved in one step, if the file is a version of the same table
    (equal uuid); another uuid, a taken name without `overwrite`, and a view of that name are AlreadyExists. Restoring a
    backup must work: a file that was a version before, that descends from the present one, or that replaces one which
    nobody can read, is taken whatever the judge says. Its findings are warnings then, in the answer and in the journal,
    and no waiver is used up. Any other file is judged as a commit is (EvolutionRefused, CommitFailed).
    NoSuchNamespace; BadRequest for a location we may not read or a file that is no table; NotFound for no file.
    """

    async def attempt() -> LoadedTable:
        draft = await _registration(ctx, caller, warehouse, levels, name, metadata_location, overwrite)
        try:
            await versions.publish(ctx, warehouse, [draft], key, versions.outcome(draft))
        except AlreadyExists as refusal:
            raise await tabulars.now_taken(ctx, warehouse, levels, name, "table", refusal) from None
        return versions.loaded(warehouse, versions.of(draft), draft.findings)

    return await commit_point.swap(ctx, warehouse, [(levels, name)], attempt)


async def _unregistered_again(
    ctx: Context, warehouse: Warehouse, outcome: Outcome, levels: Levels, name: str
) -> Committed:
    return versions.committed(warehouse, await versions.recorded(ctx, warehouse, levels, name, outcome))


@idempotent(_unregistered_again)
async def unregister_table(
    ctx: Context, caller: Caller, warehouse: Warehouse, key: Key, levels: Levels, name: str
) -> Committed:
    """Forget the table and leave every file; answers its last version. Later commits here find no table.

    NoSuchTable; NotFound when its metadata file has vanished (then only a drop can remove the name).
    """

    async def attempt() -> Committed:
        row = await tabulars.table(ctx, warehouse, levels, name)
        document = await tabulars.table_document(ctx, warehouse, row)
        await tabulars.remove(ctx, caller, warehouse, row, key, {"file": row.metadata_location})
        return versions.committed(warehouse, versions.Version(row.metadata_location, document.text))

    return await commit_point.swap(ctx, warehouse, [(levels, name)], attempt)


async def _registration(
    ctx: Context, caller: Caller, warehouse: Warehouse, levels: Levels, name: str, file: str, overwrite: bool
) -> Draft:
    names.validate_name(name)
    await namespaces.existing(ctx, warehouse, levels)
    row = await ctx.store.tabular(warehouse.name, levels, name)
    if row is not None and not (overwrite and row.kind == "table"):
        raise tabulars.taken(row, "table")
    locations.check(ctx, warehouse, file, "metadata location")
    document = await read_afresh(ctx.objects.of(warehouse), file, ctx.limits.document_bytes, _WHOLE, foreign=True)
    metadata = document.metadata
    locations.check(ctx, warehouse, metadata.location, "table location in the metadata file")
    uuid = metadata.table_uuid or (ctx.ids.uuid4() if row is None else row.uuid)
    if row is not None and row.uuid.lower() != uuid.lower():
        raise AlreadyExists(
            f"{tabulars.taken(row, 'table').message} and is another table: uuid {row.uuid}, not {uuid}. Drop it first."
        )
    await _warn_of_overlap(ctx, warehouse, name, metadata.location, row)
    before = None if row is None else await _before(ctx, warehouse, row)
    kept = () if row is None else (row.location, *locations.paths({} if before is None else before.properties))
    related, verdict = (None, Verdict()) if row is None else await _judged(ctx, warehouse, row, before, file, metadata)
    places_named = locations.named_places(ctx, warehouse, metadata)
    for place in (metadata.location, *locations.paths(metadata.properties), file, *places_named):
        if place not in kept and locations.may_touch(ctx, warehouse, place):
            await locations.refuse_shared(ctx, warehouse, levels, place, "place in the metadata file")
    roots = await locations.roots(ctx, warehouse, metadata.location, metadata.properties, file, *places_named)
    draft = _draft(ctx, caller, warehouse, (levels, name), row, uuid, file, document, before, related, verdict)
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
    warehouse: Warehouse,
    place: tuple[Levels, str],
    row: Tabular | None,
    uuid: str,
    file: str,
    document: CachedMetadata[TableMetadata],
    before: TableMetadata | None,
    related: Relation | None,
    verdict: Verdict,
) -> Draft:
    findings = verdict.findings
    writer = journal_writer(ctx, caller, warehouse, *place, uuid)
    return Draft(
        kind="table",
        levels=place[0],
        name=place[1],
        row=row,
        uuid=uuid,
        location=document.metadata.location,
        file=file,
        document=document,
        columns=versions.columns_of(document.metadata, writer.at_ms),
        registered=True,
        events=(
            writer.created("table", file, registered=True, relation=related, findings=findings),
            *writer.evolved(before, document.metadata, file, findings),
            *writer.waivers_used(verdict.waivers_used, file),
        ),
        findings=findings,
        waivers=verdict.waivers_used,
    )


async def _judged(
    ctx: Context, warehouse: Warehouse, row: Tabular, before: TableMetadata | None, file: str, after: TableMetadata
) -> tuple[Relation | None, Verdict]:
    """The judge's word on the file as a successor, and why it refuses nothing (None: it may)."""
    related = await ancestry.relation(ctx, warehouse, row, before, file, after)
    if before is None:
        return related, Verdict()
    try:
        if related is None:
            return None, await judgement.accepted(ctx, Scope.of(row), before, after)
        verdict = await judgement.judged(ctx, Scope.of(row), before, after)
    except SpecError:
        log.warning("cannot compare the file registered over %s with what it replaces", row.metadata_location)
        return Relation.REPAIRS, Verdict()
    return related, Verdict(findings=tuple(map(_as_warning, verdict.findings)))


def _as_warning(finding: Finding) -> Finding:
    if finding.severity is not Severity.ERROR:
        return finding
    return msgspec.structs.replace(finding, severity=Severity.WARN, waived_by=None)


async def _before(ctx: Context, warehouse: Warehouse, row: Tabular) -> TableMetadata | None:
    """The version that an overwrite replaces, as it is stored now; None when it is missing or damaged, which
    overwriting cures."""
    objects = ctx.objects.of(warehouse)
    try:
        document = await read_afresh(
            objects, row.metadata_location, ctx.limits.document_bytes, TABLE, checksum=row.checksum
        )
    except (NotFound, SpecError):
        return None
    found = document.metadata.table_uuid
    return None if found is not None and found.lower() != row.uuid.lower() else document.metadata


async def _warn_of_overlap(ctx: Context, warehouse: Warehouse, name: str, location: str, row: Tabular | None) -> None:
    others = await locations.owners(
        ctx, ctx.objects.of(warehouse), location, besides=None if row is None else row.tabular_id
    )
    if others:
        log.warning("registering %s at %s, where also lies: %s; purging either is refused", name, location, others[:5])
