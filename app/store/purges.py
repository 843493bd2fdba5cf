"""Purge jobs in SQL: files of dropped tables that a worker still has to delete."""

from __future__ import annotations

from typing import Final

from app.ports import AddPurgeJob, FinishPurgeJob, PurgeJob, UpdatePurgeJob
from app.store.program import Call, Program, Row, Statement

NEXT: Final = Statement("purges.NEXT")
_INSERT: Final = Statement("purges.INSERT")
_UPDATE: Final = Statement("purges.UPDATE")
_DELETE: Final = Statement("purges.DELETE")


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
            "progress": b"{}",
            "now_ms": op.now_ms,
        },
    )


def update_progress(op: UpdatePurgeJob) -> Program[None]:
    """A job that another worker finished meanwhile is left alone."""
    yield Call(
        _UPDATE,
        {
            "id": op.job_id,
            "progress": op.progress,
            "attempts": op.attempts,
            "last_error": op.last_error,
        },
    )


def finish(op: FinishPurgeJob) -> Program[None]:
    yield Call(_DELETE, {"id": op.job_id})
