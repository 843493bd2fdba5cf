"""Rehearsals: what the evolution engine would say to a change, with nothing written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.catalog import judgement, places, warehouses, weights
from app.catalog.context import Context
from app.catalog.documents import aside
from app.catalog.judgement import Scope
from app.commit import tables as commit_tables
from app.evolution.diff import diff
from app.ports import Levels
from app.rules import Verdict
from app.spec.table import TableMetadata
from app.spec.update import TableUpdate


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The verdict on a change, the schema difference by field ID, and the two versions it lies between.

    `after` equals `before` when the updates change nothing.
    """

    verdict: Verdict
    changes: tuple[dict[str, Any], ...]
    before: TableMetadata
    after: TableMetadata


async def check_updates(
    ctx: Context, warehouse: str, levels: Levels, name: str, updates: Sequence[TableUpdate]
) -> Rehearsal:
    """Judge `updates` against the table as it is now, under its real policy. No waiver is used up.

    NoSuchTable; BadRequest and CommitFailed for updates that could not be applied whatever the rules say.
    """
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    objects = ctx.objects.of(home)
    before = (
        await ctx.caches.documents.table(objects, row.metadata_location, ctx.limits.document_bytes, uuid=row.uuid)
    ).metadata
    applied = await aside(
        weights.of_updates(updates),
        commit_tables.apply,
        before,
        row.metadata_location,
        tuple(updates),
        ctx.clock.now_ms(),
        ctx.ids.uuid4(),
    )
    verdict = await judgement.judged(ctx, Scope.of(row), before, applied.metadata)
    weight = weights.of_step(before, applied.metadata)
    changes = await aside(weight, lambda: diff(before.schema, applied.metadata.schema).to_json())
    return Rehearsal(verdict, tuple(changes), before, applied.metadata)
