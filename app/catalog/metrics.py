"""Metrics reports of engines: accepted whatever they hold, kept in bounded number, never in the way of a scan."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog import places, warehouses
from app.catalog.context import Caller, Context
from app.iceberg.json import codec
from app.iceberg.json.codec import Json
from app.ports import Levels, Report

_KIND_CHARS = 64


async def report_metrics(
    ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str, report: Mapping[str, Json]
) -> None:
    """Take in one report (a decoded JSON object) of any `report-type`. NoSuchTable.

    A report beyond `Limits.report_bytes` is acknowledged but not kept.
    """
    home = await warehouses.warehouse(ctx, warehouse)
    row = await places.table(ctx, home, levels, name)
    body = codec.encode(report)
    kind = report.get("report-type")
    if len(body) > ctx.limits.report_bytes:
        return
    ctx.caches.usage.received(
        Report(
            table_uuid=row.uuid,
            kind=kind[:_KIND_CHARS] if isinstance(kind, str) else "unknown",
            received_at_ms=ctx.clock.now_ms(),
            body=body,
        )
    )
