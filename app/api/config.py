"""`/v1/config`: what a client learns first."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS
from app.api.models import wire
from app.api.operations import Operation, Operations, Returns
from app.api.rendering import json_answer
from app.catalog import config
from app.catalog.contention import Peer
from app.catalog.results import CatalogConfig
from app.edge.answer import Answer
from app.edge.recall import repeated

routes = Operations("Configuration", ALWAYS)


@routes.declare(
    "GET",
    "/v1/config",
    "getConfig",
    parameters=[parameters.WAREHOUSE_QUERY],
    returns=[Returns(200, "Properties for the client, and what this server offers.", wire.CatalogConfig)],
    fails=[errors.NoSuchWarehouse],
)
async def get_config(request: Request) -> Answer:
    """Tell a client its prefix and what this server offers.

    `overrides.prefix` goes into the path of every later call. `endpoints` lists every Iceberg operation there is, and
    an Idempotency-Key is honoured for at least `idempotency-key-lifetime`.
    """
    ctx, wanted = reading.context(request), reading.query(request).get("warehouse")
    endpoints = request.app.state.endpoints
    told: CatalogConfig | None = None
    rendered = Answer()

    async def answer(_: Peer | None) -> Answer:
        nonlocal told, rendered
        found = await config.get_config(ctx, wanted)
        if found != told:
            told, rendered = found, _config_answer(found, endpoints, ctx.limits.idempotency_lifetime_ms)
        return rendered

    return await repeated(request, answer)


def _config_answer(found: CatalogConfig, endpoints: list[str], lifetime_ms: int) -> Answer:
    return json_answer(
        {
            "defaults": dict(found.defaults),
            "overrides": dict(found.overrides),
            "endpoints": endpoints,
            "idempotency-key-lifetime": iso_duration(lifetime_ms),
        }
    )


def advertised(operations: Iterable[Operation]) -> list[str]:
    """The `endpoints` list: every Iceberg operation as verb and path template."""
    return [f"{operation.method} {operation.path}" for operation in operations if operation.is_iceberg]


def iso_duration(milliseconds: int) -> str:
    """Milliseconds as an ISO 8601 duration, rounded down to whole seconds."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if amount)
    return f"PT{parts or '0S'}"
