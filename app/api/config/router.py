"""The path operation of `/v1/config`; lean, because every client begins with it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from app import errors
from app.api.config.schemas import CatalogConfig
from app.api.rendering import json_answer
from app.api.responses import fails, success
from app.api.route import LeanRoute
from app.catalog import warehouses
from app.catalog.context import Context
from app.edge.answer import Answer
from app.edge.raw_path import decode_query

lean = APIRouter(route_class=LeanRoute, tags=["Configuration"])


async def _of_config(
    warehouse: Annotated[
        str | None, Query(description="Name or location of the warehouse; the default one when absent.")
    ] = None,
) -> None:
    """What `get_config` reads from its request."""


@lean.get(
    "/v1/config",
    operation_id="getConfig",
    dependencies=[Depends(_of_config)],
    response_model=CatalogConfig,
    responses={
        **success(200, "Properties for the client, and what this server offers."),
        **fails(errors.NoSuchWarehouse),
    },
)
async def get_config(request: Request) -> Answer:
    """Tell a client its prefix and what this server offers.

    `overrides.prefix` goes into the path of every later call. `endpoints` lists every Iceberg operation there is, and
    an Idempotency-Key is honoured for at least `idempotency-key-lifetime`.
    """
    catalog: Context = request.app.state.catalog
    found = await warehouses.get_config(catalog, decode_query(request.scope["query_string"]).get("warehouse"))
    return json_answer(
        {
            "defaults": dict(found.defaults),
            "overrides": dict(found.overrides),
            "endpoints": request.app.state.endpoints,
            "idempotency-key-lifetime": iso_duration(catalog.limits.idempotency_lifetime_ms),
        }
    )


def iso_duration(milliseconds: int) -> str:
    """Milliseconds as an ISO 8601 duration, rounded down to whole seconds."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if amount)
    return f"PT{parts or '0S'}"
