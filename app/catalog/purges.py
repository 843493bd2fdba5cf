"""Purge jobs: the files of a dropped table, deleted in bounded batches by a worker that may crash at any point.

A job is stored in the unit that drops its table. Deleting is idempotent and what is gone is no longer listed, so a job
that starts over goes on where it stopped. Before every batch the worker asks whether a live table or view of any
warehouse has files at, above or below the location, links of a disk followed; then it deletes nothing more and records
why. It asks in the transaction that marks the job as begun, from which on the store refuses to register files there.
A file younger than the job is not the dropped table's, whoever wrote it there.

What is deleted: everything below the location; before that, files that the metadata names (metadata log, manifest
lists, statistics) below one of the table's own path properties, where they are no live table's. Metadata may name
anything, so a file elsewhere stays, whoever's it is. Data files that a `write.data.path` outside the location received
are named by manifests only and stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from app import events
from app.catalog import locations, warehouses
from app.catalog.context import ANONYMOUS, Context
from app.catalog.documents import TABLE, read_afresh
from app.commit.properties import GC_ENABLED, may_delete
from app.errors import BadRequest, IcekeelError, NotFound, SwapLost, ValidationFailed
from app.ports import AppendJournal, FinishPurgeJob, Objects, ObjectStat, PurgeJob, UpdatePurgeJob, Warehouse
from app.spec import location as spec_location
from app.spec import names

log = logging.getLogger(__name__)

WORKER = "purge worker"
_JOBS_A_ROUND = 32
_AT_ONCE = 16
# Clocks of an object store and of this server differ; a local disk has one clock.
_REMOTE_SKEW_MS = 60_000


@dataclass(slots=True)
class _Progress:
    """What survives a crash: how much is done, and whether files outside the location are."""

    deleted: int = 0
    outside_done: bool = False

    @classmethod
    def read(cls, job: PurgeJob) -> _Progress:
        stored: dict[str, Any] = msgspec.json.decode(job.progress) if job.progress else {}
        return cls(stored.get("deleted", 0), stored.get("outside-done", False))

    def encoded(self) -> bytes:
        return msgspec.json.encode({"deleted": self.deleted, "outside-done": self.outside_done})


class Refused(Exception):
    """Nothing more may be deleted for this job; its text says why."""


async def work(ctx: Context) -> int:
    """Take up every job that waits; returns how many ended. A job that fails is left for the next round."""
    ended = 0
    for job in await ctx.store.purge_jobs(_JOBS_A_ROUND):
        ended += await purge(ctx, job)
    return ended


async def purge(ctx: Context, job: PurgeJob) -> bool:
    """Work on one job; whether it has ended, be it because everything is gone or because nothing may go."""
    progress = _Progress.read(job)
    try:
        await _delete_all(ctx, job, progress)
    except SwapLost:
        return True  # Another worker has ended it.
    except Refused as refused:
        log.warning("purge of %s stopped: %s", job.location, refused)
        await _finish(ctx, job, progress, str(refused))
        return True
    except IcekeelError as failure:
        log.warning("purge of %s failed and will be tried again: %s", job.location, failure.message)
        await _save(ctx, job, progress, job.attempts + 1, failure.message)
        return False
    await _finish(ctx, job, progress, None)
    return True


async def _delete_all(ctx: Context, job: PurgeJob, progress: _Progress) -> None:
    warehouse = await _checked(ctx, job)
    objects = ctx.objects.of(warehouse)
    if not progress.outside_done:
        named = await _named_outside(ctx, objects, job)
        for batch in _batches(named, ctx.limits.purge_batch):
            await _guard(ctx, objects, job, progress)
            gone = [file for file in batch if await _ownerless(ctx, objects, warehouse, file)]
            await _delete(objects, gone, progress)
        progress.outside_done = True
    async for batch in _listed(objects, job, ctx.limits.purge_batch):
        await _guard(ctx, objects, job, progress)
        await _delete(objects, batch, progress)
    await _guard(ctx, objects, job, progress)
    await objects.remove_empty_folders(job.location)


async def _checked(ctx: Context, job: PurgeJob) -> Warehouse:
    """The job's warehouse, if its location is one that may be emptied at all."""
    warehouse = await warehouses.stored(ctx, job.warehouse)
    if warehouse is None:
        raise Refused(f"warehouse {job.warehouse} is gone")
    if not locations.may_touch(ctx, warehouse, job.location):
        raise Refused(f"{job.location} lies outside warehouse {warehouse.name} and {locations.SETTING}")
    for each in await ctx.store.warehouses():
        if spec_location.contains(job.location, each.location):
            whose = "" if each.name == warehouse.name else f" {each.name}"
            raise Refused(f"{job.location} holds the whole warehouse{whose}")
    return warehouse


async def _guard(ctx: Context, objects: Objects, job: PurgeJob, progress: _Progress) -> None:
    """Save the progress and mark the job as begun, in one transaction with the question whose files are there."""
    places = (job.location, await locations.resolved(objects, job.location))
    begun = UpdatePurgeJob(
        job_id=job.job_id,
        progress=progress.encoded(),
        attempts=job.attempts,
        last_error=job.last_error,
        places=tuple(dict.fromkeys(places)),
    )
    try:
        await ctx.store.write([begun])
    except ValidationFailed as in_use:
        raise Refused(f"{job.location} is shared with {in_use.message}, which is in use") from None


async def _named_outside(ctx: Context, objects: Objects, job: PurgeJob) -> list[str]:
    """Files that the metadata names below the table's own path properties and not below its location; none when the
    metadata cannot be read any more."""
    try:
        document = await read_afresh(objects, job.metadata_location, ctx.limits.document_bytes, TABLE)
    except (NotFound, BadRequest) as unreadable:
        log.warning("purge of %s sees only the location: %s", job.location, unreadable.message)
        return []
    if not may_delete(document.metadata.properties):
        raise Refused(f"{GC_ENABLED} is false, so other tables may need the files below {job.location}")
    own = locations.paths(document.metadata.properties)
    named = dict.fromkeys((job.metadata_location, *locations.named_files(document.metadata)))
    return [file for file in named if not _inside(job.location, file) and any(_inside(place, file) for place in own)]


def _inside(parent: str, child: str) -> bool:
    try:
        return spec_location.contains(parent, child)
    except BadRequest:
        return False


async def _ownerless(ctx: Context, objects: Objects, warehouse: Warehouse, file: str) -> bool:
    """Whether a named file may be deleted: allowed to touch, and in no place of a live table or view."""
    if not locations.may_touch(ctx, warehouse, file):
        return False
    return not await locations.owners(ctx, objects, file)


async def _listed(objects: Objects, job: PurgeJob, size: int) -> AsyncIterator[list[str]]:
    """Everything below the location that is old enough, in batches; the current metadata file comes last."""
    newest = job.created_at_ms + (0 if objects.local else _REMOTE_SKEW_MS)
    batch: list[str] = []
    last: list[str] = []
    async for found in objects.list(job.location):
        if found.modified_ms > newest:
            continue
        (last if _is_pointer(job, found) else batch).append(found.location)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch or last:
        yield [*batch, *last]


def _is_pointer(job: PurgeJob, found: ObjectStat) -> bool:
    return found.location.rsplit("/", 1)[-1] == job.metadata_location.rsplit("/", 1)[-1]


def _batches(files: list[str], size: int) -> Iterable[list[str]]:
    return (files[start : start + size] for start in range(0, len(files), size))


async def _delete(objects: Objects, files: list[str], progress: _Progress) -> None:
    """Delete a batch, some at once. The first failure ends the batch; what was deleted stays deleted."""
    for some in _batches(files, _AT_ONCE):
        results = await asyncio.gather(*(objects.delete(file) for file in some), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        progress.deleted += len(some) - len(failures)
        if failures:
            raise failures[0]


async def _save(ctx: Context, job: PurgeJob, progress: _Progress, attempts: int, error: str | None) -> None:
    await ctx.store.write(
        [UpdatePurgeJob(job_id=job.job_id, progress=progress.encoded(), attempts=attempts, last_error=error)]
    )


async def _finish(ctx: Context, job: PurgeJob, progress: _Progress, refused: str | None) -> None:
    *levels, name = job.name.split(names.SEPARATOR)
    event = events.Purged(
        at_ms=ctx.clock.now_ms(),
        by=ANONYMOUS,
        client=WORKER,
        warehouse=job.warehouse,
        namespace=tuple(levels),
        name=name,
        uuid=job.table_uuid,
        location=job.location,
        deleted=progress.deleted,
        refused=refused,
    )
    await ctx.store.write([AppendJournal(event=event), FinishPurgeJob(job_id=job.job_id)])
