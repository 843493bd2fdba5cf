"""Purge jobs in SQL: files of dropped tables that a worker still has to delete."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, insert, literal_column, select, update

from app.ports import AddPurgeJob, FinishPurgeJob, PurgeJob, UpdatePurgeJob
from app.store.program import Call, Program, Row, Statement, param
from app.store.schema import purge_job

# Jobs that failed often come last, so that one stuck table does not hold up the others.
NEXT: Final = Statement(
    select(
        purge_job.c.job_id,
        purge_job.c.warehouse,
        purge_job.c.table_uuid,
        purge_job.c.name,
        purge_job.c.location,
        purge_job.c.metadata_location,
        purge_job.c.progress,
        purge_job.c.created_at_ms,
        purge_job.c.attempts,
        purge_job.c.last_error,
    )
    .order_by(purge_job.c.attempts, purge_job.c.job_id)
    .limit(param("limit")),
    rows=True,
)
_INSERT: Final = Statement(
    insert(purge_job).inline().values(
        warehouse=param("warehouse"),
        table_uuid=param("table_uuid"),
        name=param("name"),
        location=param("location"),
        metadata_location=param("metadata_location"),
        progress=param("progress"),
        created_at_ms=param("now_ms"),
        attempts=literal_column("0"),
    )
)
_UPDATE: Final = Statement(
    update(purge_job)
    .where(purge_job.c.job_id == param("id"))
    .values(progress=param("progress"), attempts=param("attempts"), last_error=param("last_error"))
)
_DELETE: Final = Statement(delete(purge_job).where(purge_job.c.job_id == param("id")))


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
    yield Call(_INSERT, {
        "warehouse": op.warehouse,
        "table_uuid": op.table_uuid,
        "name": op.name,
        "location": op.location,
        "metadata_location": op.metadata_location,
        "progress": b"{}",
        "now_ms": op.now_ms,
    })


def update_progress(op: UpdatePurgeJob) -> Program[None]:
    """A job that another worker finished meanwhile is left alone."""
    yield Call(_UPDATE, {
        "id": op.job_id, "progress": op.progress, "attempts": op.attempts, "last_error": op.last_error,
    })


def finish(op: FinishPurgeJob) -> Program[None]:
    yield Call(_DELETE, {"id": op.job_id})
