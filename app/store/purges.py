"""Purge jobs in SQL: files of dropped tables that a worker still has to delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.errors import CommitFailed, SwapLost, ValidationFailed
from app.ports import AddPurgeJob, FinishPurgeJob, PurgeJob, UpdatePurgeJob
from app.spec.location import overlaps
from app.store.overlaps import overlap_queries, overlapping_names
from app.store.paths import levels_of, location_key
from app.store.program import Call, Program, Row, Statement

NEXT: Final = Statement("purges.NEXT")
_INSERT: Final = Statement("purges.INSERT")
_UPDATE: Final = Statement("purges.UPDATE")
_DELETE: Final = Statement("purges.DELETE")
_BEGUN: Final = Statement("purges.BEGUN")

_NOT_BEGUN: Final = b"{}"
_NAMED: Final = 5


def job_of(row: Row) -> PurgeJob:
    job_id, warehouse, table_uuid, name, location, metadata_location, progress, created_at_ms, attempts, error = row
    return PurgeJob(
        job_id=job_id,
        warehouse=warehouse,
        table_uuid=table_uuid,
        name=name,
        location=location,
        metadata_location=metadata_location,
        progress=progress,
        created_at_ms=created_at_ms,
        attempts=attempts,
        last_error=error,
    )


def add(op: AddPurgeJob) -> Program[None]:
    """A new job has made no progress: an empty JSON object."""
    yield Call(
        _INSERT,
        {
            "warehouse": op.warehouse,
            "table_uuid": op.table_uuid,
            "name": op.name,
            "location": op.location,
            "metadata_location": op.metadata_location,
            "progress": _NOT_BEGUN,
            "now_ms": op.now_ms,
        },
    )


def refuse_begun(places: Iterable[str]) -> Program[None]:
    """CommitFailed when a job that has begun deletes at, above or below one of the places. A worker that finds them
    claimed before it begins deletes nothing; in the middle it may have listed them already."""
    found = yield Call(_BEGUN, {})
    for name, location, progress in found.rows:
        if progress != _NOT_BEGUN and any(overlaps(location, place) for place in places):
            raise CommitFailed(
                f"{location} is being emptied: {'.'.join(levels_of(name))} was dropped with purge. Try again when that "
                "is done, with files that are still there."
            )


def update_progress(op: UpdatePurgeJob) -> Program[None]:
    """The unit holds the location lock where there are places."""
    owners: list[Row] = []
    for place in op.places:
        for call in overlap_queries(location_key(place), None):
            owners.extend((yield call).rows)
    if owners:
        raise ValidationFailed(", ".join(overlapping_names(owners)[:_NAMED]))
    updated = yield Call(
        _UPDATE,
        {
            "id": op.job_id,
            "progress": op.progress,
            "attempts": op.attempts,
            "last_error": op.last_error,
        },
    )
    if op.places and not updated.touched:
        raise SwapLost("The purge job is done", job_id=op.job_id)


def finish(op: FinishPurgeJob) -> Program[None]:
    yield Call(_DELETE, {"id": op.job_id})
