"""The path operations of health checks and metrics."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from app import errors
from app.api import deps
from app.api.responses import fails, success
from app.api.route import StrictRoute
from app.catalog import table_ranking, warehouses
from app.edge.metrics import CONTENT_TYPE, Metrics
from app.errors import dotted
from app.ports import Standing, Tabular

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

_ALWAYS = (errors.Forbidden, errors.IcekeelError)

router = APIRouter(route_class=StrictRoute, tags=["Operations"])


class TextResponse(Response):
    """The Prometheus text format."""

    media_type = CONTENT_TYPE


@router.get(
    "/health/live",
    operation_id="live",
    responses={**success(200, "The process answers."), **fails(always=_ALWAYS)},
)
async def live() -> dict[str, str]:
    """Tell whether the process answers at all. Restart it when it does not."""
    return {"status": "live"}


@router.get(
    "/health/ready",
    operation_id="ready",
    responses={**success(200, "Requests can be served."), **fails(errors.Unavailable, always=_ALWAYS)},
)
async def ready(request: Request, catalog: deps.Catalog) -> dict[str, str]:
    """Tell whether requests can be served.

    They can when the database answers and has the schema that this server speaks, and the folder of a local default
    warehouse is there. A server that was told to stop is not ready either, while it still serves what reaches it.
    """
    if request.app.state.draining:
        raise errors.Unavailable("This server was told to stop")
    await catalog.store.ping()
    await warehouses.check_reachable(catalog)
    return {"status": "ready"}


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=TextResponse,
    responses={
        **success(200, "Counters, gauges and latencies as Prometheus text."),
        **fails(errors.NotAuthenticated, text=True, always=_ALWAYS),
    },
)
async def metrics(request: Request, catalog: deps.Catalog) -> Response:
    """Show the numbers of this server."""
    found: Metrics = request.app.state.metrics
    rows = await table_ranking.leaders(catalog)
    for name, (text, order, unit) in _TABLE_GAUGES.items():
        found.series(name, text, [(_names(row), table_ranking.value(row, order) / unit) for row in rows])
    return TextResponse(found.render())


def _names(row: Tabular) -> dict[str, str]:
    return {"warehouse": row.warehouse, "table": dotted(row.namespace, row.name)}
