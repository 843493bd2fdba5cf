"""For operators: is the process alive, can it serve, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from app import errors
from app.api import reading
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.catalog import table_ranking, warehouses
from app.edge.answer import Answer
from app.edge.metrics import Metrics
from app.errors import dotted
from app.ports import Standing, Tabular

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_TABLE_GAUGES: Mapping[str, tuple[str, Standing, int]] = {
    "table_last_column_id": ("Highest field id given out, of the leading tables.", "last-column-id", 1),
    "table_fields": ("Fields of the current schema at every depth, of the leading tables.", "field-count", 1),
    "table_retired_ids": ("Field ids given out and no longer in use, of the leading tables.", "retired-ids", 1),
    "table_schemas": ("Schemas kept, of the leading tables.", "schema-count", 1),
    "table_schema_changed_timestamp_seconds": (
        "When the current schema last changed, of the leading tables.",
        "schema-changed",
        1000,
    ),
}

routes = Operations("Operations", (errors.Forbidden, errors.IcekeelError))


@routes.declare("GET", "/health/live", "live", returns=[Returns(200, "The process answers.", dict[str, str])])
async def live(request: Request) -> Answer:
    """Tell whether the process answers at all. Restart it when it does not."""
    return json_answer({"status": "live"})


@routes.declare(
    "GET",
    "/health/ready",
    "ready",
    returns=[Returns(200, "Requests can be served.", dict[str, str])],
    fails=[errors.Unavailable],
)
async def ready(request: Request) -> Answer:
    """Tell whether requests can be served.

    They can when the database answers and has the schema that this server speaks, and the folder of a local default
    warehouse is there. A server that was told to stop is not ready either, while it still serves what reaches it.
    """
    if request.app.state.draining:
        raise errors.Unavailable("This server was told to stop")
    await reading.context(request).store.ping()
    await warehouses.check_reachable(reading.context(request))
    return json_answer({"status": "ready"})


@routes.declare(
    "GET",
    "/metrics",
    "metrics",
    returns=[Returns(200, "Counters, gauges and latencies as Prometheus text.", str, content_type=PROMETHEUS)],
    fails=[errors.NotAuthenticated],
)
async def metrics(request: Request) -> Answer:
    """Show the numbers of this process."""
    found: Metrics = request.app.state.metrics
    rows = await table_ranking.leaders(reading.context(request))
    for name, (text, order, unit) in _TABLE_GAUGES.items():
        found.series(name, text, [(_names(row), table_ranking.value(row, order) / unit) for row in rows])
    return Answer(200, found.render(), content_type=PROMETHEUS)


def _names(row: Tabular) -> dict[str, str]:
    return {"warehouse": row.warehouse, "table": dotted(row.namespace, row.name)}
