"""Purge jobs."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, insert, literal_column, select, update

from app.store.expressions.params import param
from app.store.schema import purge_job

# Jobs that failed often come last, so that one stuck table does not hold up the others.
NEXT: Final = (
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
    .limit(param("limit"))
)
INSERT: Final = (
    insert(purge_job)
    .inline()
    .values(
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
UPDATE: Final = (
    update(purge_job)
    .where(purge_job.c.job_id == param("id"))
    .values(progress=param("progress"), attempts=param("attempts"), last_error=param("last_error"))
)
BEGUN: Final = select(purge_job.c.name, purge_job.c.location, purge_job.c.progress)
DELETE: Final = delete(purge_job).where(purge_job.c.job_id == param("id"))
