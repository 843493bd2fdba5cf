"""For operators: is the process alive, can it serve, and its numbers."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import reading
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.web.answer import Answer
from app.web.metrics import Metrics

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

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
    """Tell whether requests can be served: the database answers and has the schema that this server speaks.

    A server that was told to stop is not ready either, while it still serves what reaches it.
    """
    if request.app.state.draining:
        raise errors.Unavailable("This server was told to stop")
    await reading.context(request).store.ping()
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
    return Answer(200, found.render(), content_type=PROMETHEUS)
