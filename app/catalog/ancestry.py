"""How a metadata file that comes from outside is related to the version that it would replace."""

from __future__ import annotations

from enum import StrEnum

from app.catalog import locations
from app.catalog.context import Context
from app.catalog.metadata_cache import TABLE, read_afresh
from app.catalog.metadata_history import key_of
from app.errors import BadRequest, NotFound, PayloadTooLarge
from app.iceberg.table import TableMetadata
from app.ports import Tabular, Warehouse

# A log names a hundred older files as a rule, and each step reads one of them.
_STEPS = 50
_ENTRIES = 1_000


class Relation(StrEnum):
    """Why a file may take the place of the present version although a commit of it would be refused."""

    RESTORES = "restores"
    """It was a version of this table before."""
    DESCENDS = "descends"
    """Its metadata log leads to the present version: commits made elsewhere."""
    REPAIRS = "repairs"
    """The present version is missing or damaged."""


async def relation(
    ctx: Context, home: Warehouse, row: Tabular, present: TableMetadata | None, file: str, wanted: TableMetadata
) -> Relation | None:
    """How `wanted` (at `file`) is related to `present` (None: nobody can read it); None when it is not."""
    if present is None:
        return Relation.REPAIRS
    if key_of(file) == key_of(row.metadata_location) or await _was_version(ctx, row, file):
        return Relation.RESTORES
    if await _leads_to(ctx, home, wanted, row.metadata_location):
        return Relation.DESCENDS
    if await _leads_to(ctx, home, present, file):
        return Relation.RESTORES
    return None


async def _was_version(ctx: Context, row: Tabular, file: str) -> bool:
    """Whether the journal tells of the file, which it does of every version that changed more than the data."""
    entries = await ctx.store.journal(table_uuid=row.uuid, warehouse=row.warehouse, limit=_ENTRIES)
    named = (getattr(entry.event, "metadata_location", None) for entry in entries)
    return any(key_of(location) == key_of(file) for location in named if location is not None)


async def _leads_to(ctx: Context, home: Warehouse, metadata: TableMetadata, file: str) -> bool:
    """Whether the metadata log, or that of the oldest file which it names, and so on, names `file`."""
    wanted, uuid = key_of(file), metadata.table_uuid
    objects, seen = ctx.objects.of(home), set[str]()
    for _ in range(_STEPS):
        log = [entry.metadata_file for entry in metadata.metadata_log]
        if any(key_of(each) == wanted for each in log):
            return True
        if not log or key_of(log[0]) in seen or not locations.may_touch(ctx, home, log[0]):
            return False
        seen.add(key_of(log[0]))
        try:
            older = await read_afresh(objects, log[0], ctx.limits.document_bytes, TABLE, foreign=True)
        except (NotFound, BadRequest, PayloadTooLarge):
            return False
        metadata = older.metadata
        if metadata.table_uuid != uuid:
            return False
    return False
