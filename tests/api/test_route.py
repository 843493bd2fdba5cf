"""Path operations as the router runs them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Path, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.api.route import LeanRoute, StrictRoute
from app.api.shapes import OwnShape
from app.edge.answer import Answer
from app.edge.bodies import LIMITS
from app.errors import BadRequest, SpecError


async def _documented(table: Annotated[str, Path(description="A name.")]) -> None:
    raise AssertionError("never run")


async def _echo(request: Request) -> Response:
    return Answer(200, repr(sorted(request.path_params.items())).encode())


class Note(OwnShape):
    """A body."""

    text: str


async def _noted(note: Note) -> dict[str, str]:
    return {"noted": note.text}


lean = APIRouter(route_class=LeanRoute)
lean.add_api_route("/v1/tables/{table}", _echo, operation_id="loadTable", dependencies=[Depends(_documented)])
strict = APIRouter(route_class=StrictRoute)
strict.add_api_route("/notes", _noted, methods=["POST"])


async def _raise(_: Any, error: Exception) -> Response:
    raise error


APP = FastAPI(routes=[*lean.routes, *strict.routes], redirect_slashes=False, exception_handlers={HTTPException: _raise})


def send(method: str, path: str, body: bytes = b"") -> list[Any]:
    """The messages of the answer."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        LIMITS: (1_000, 1.0),
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def answer(message: Any) -> None:
        sent.append(message)

    asyncio.run(APP(scope, receive, answer))
    return sent


def test_a_lean_endpoint_reads_the_undecoded_segments_itself() -> None:
    """What documents its parameters is never run."""
    assert send("GET", "/v1/tables/a%2Fb")[-1]["body"] == b"[('table', 'a%2Fb')]"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 405), ("POST", 405)])
def test_a_route_is_one_method_on_one_path(method: str, status: int) -> None:
    """HEAD too, which Starlette would add to every GET."""
    with pytest.raises(HTTPException) as refused:
        send(method, "/v1/tables/t")
    assert refused.value.status_code == status


@pytest.mark.parametrize("path", ["/v1/tables/", "/v1/tables/t/", "/v1/tables", "/v1/views/t"])
def test_segments_are_never_empty(path: str) -> None:
    """Neither is a path with a slash too many another spelling."""
    with pytest.raises(HTTPException) as refused:
        send("GET", path)
    assert refused.value.status_code == 404


def test_a_lean_route_is_documented() -> None:
    """By the dependency that is never run."""
    operation = APP.openapi()["paths"]["/v1/tables/{table}"]["get"]
    assert operation["operationId"] == "loadTable"
    assert [p["name"] for p in operation["parameters"]] == ["table"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"text":"a","text":"b"}', b'{"text":NaN}', b"\xff"])
def test_a_body_that_is_no_json_says_where(body: bytes) -> None:
    """The framework would say that there was an error parsing the body."""
    with pytest.raises(SpecError, match=r"^Malformed JSON: "):
        send("POST", "/notes", body)


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"x"'])
def test_a_body_is_an_object(body: bytes) -> None:
    """Whatever else JSON may be."""
    with pytest.raises(BadRequest, match=r"^The body must be a JSON object, not "):
        send("POST", "/notes", body)


def test_a_body_is_read_by_its_shape() -> None:
    """As FastAPI reads any other."""
    assert send("POST", "/notes", b'{"text":"a"}')[-1]["body"] == b'{"noted":"a"}'
