"""Routes as the router asks them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from app.edge.answer import Answer
from app.edge.raw_path import DEPTH
from app.edge.route import LeanRoute


async def _echo(request: Request) -> Response:
    return Answer(200, repr(sorted(request.path_params.items())).encode())


ROUTE = LeanRoute("GET", "/v1/{prefix}/tables/{table}", "loadTable", _echo)


def scope(method: str, path: str) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "headers": [], DEPTH: path.count("/")}


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/v1/p/tables/t", Match.FULL),
        ("GET", "/v1/p/tables/a%2Fb", Match.FULL),
        ("HEAD", "/v1/p/tables/t", Match.PARTIAL),
        ("POST", "/v1/p/tables/t", Match.PARTIAL),
        ("GET", "/v1/p/tables/", Match.NONE),
        ("GET", "/v1/p/tables/t/", Match.NONE),
        ("GET", "/v1/p/tables", Match.NONE),
        ("GET", "/v1/p/views/t", Match.NONE),
    ],
)
def test_a_route_is_one_method_on_one_path(method: str, path: str, match: Match) -> None:
    """Another method matches in part, HEAD too, which Starlette would add to every GET; segments are never empty."""
    assert ROUTE.matches(scope(method, path))[0] is match


def test_the_endpoint_finds_the_segments_and_others_the_route() -> None:
    """Parameters are the undecoded segments; the route tells metrics its path and the error table its operation."""
    asked = scope("GET", "/v1/p/tables/a%2Fb")
    asked.update(ROUTE.matches(asked)[1])
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(ROUTE.handle(asked, None, send))  # type: ignore[arg-type]
    assert sent[-1]["body"] == b"[('prefix', 'p'), ('table', 'a%2Fb')]"
    route = asked["route"]
    assert (route.method, route.path, route.operation_id) == ("GET", "/v1/{prefix}/tables/{table}", "loadTable")


def test_another_method_is_not_handled() -> None:
    """405, and the endpoint is not asked."""
    with pytest.raises(HTTPException) as refused:
        asyncio.run(ROUTE.handle(scope("PUT", "/v1/p/tables/t"), None, None))  # type: ignore[arg-type]
    assert refused.value.status_code == 405
