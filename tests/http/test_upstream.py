"""What a real server answers, beside the Iceberg project's own REST document."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

import pytest

from app.api.routes import ROUTES
from tests.http.story import BODY_LIMIT, Met, tell
from tests.server import Server
from tests.upstream import faults, media, settle, upstream

IMPLEMENTED = sorted(str(route.operation_id) for route in ROUTES if route.path.startswith("/v1/"))
_ANY_TIME = "Answered wherever the fault is met; clients treat statuses they do not know as failures."
_BARE = "Upstream's example of the same answer is wrapped in `error`, and clients read only the wrapped form."

ANSWERED: dict[str, str] = {
    "*: 413 is not documented": _ANY_TIME,
    "*: 415 is not documented": _ANY_TIME,
    "*: 422 is not documented": "An idempotency key came back with another request.",
    "ErrorModel: member findings only here": "The findings of a refused schema change; clients ignore it.",
    "createTable: 200 lacks the header etag of a staged table": "It is no version that could be loaded again.",
    '* metadata.current-snapshot-id: null is not of type "integer"': "Java writes null, and reads it, for no snapshot.",
    "*-default: * is valid under more than one of the schemas listed in the 'oneOf' keyword": "Upstream lists several "
    "kinds of text and of number as alternatives of which one alone may fit.",
    "ErrorModel: member error only here": _BARE,
    '*View* 4?? : "message" is a required property': _BARE,
    '*View* 4?? : "type" is a required property': _BARE,
    '*View* 4?? : "code" is a required property': _BARE,
}
"""Deliberate differences of real answers, each with its reason. One that is no more fails the test."""


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> list[Met]:
    """The answers of a real server to a life of namespaces, tables and views, with the mistakes clients make."""
    upstream()
    home = tmp_path_factory.mktemp("upstream") / "home"
    settings = {"BODY_LIMIT": str(BODY_LIMIT)}
    with Server(home, token="secret", settings=settings) as server, server.client() as http:
        return tell(http, IMPLEMENTED)


def test_every_implemented_operation_is_met_with_success_and_its_typical_failures(met: list[Met]) -> None:
    """A success, a 401, and the 400 of a body, the 404 and the 409 that upstream documents."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for one in met:
        seen[one.operation].add(one.status)
    for name in IMPLEMENTED:
        known = upstream().operations[name]
        expected = {"401", *(known.answers.keys() & {"404", "409"}), *(("400",) if known.body else ())}
        assert any(status < "300" for status in seen[name]), name
        assert expected <= seen[name], (name, expected - seen[name])


def test_real_answers_are_what_upstream_documents(met: list[Met]) -> None:
    """Every body fits the schema of its operation and status, and has no member unknown there, but for ANSWERED."""
    settle(itertools.chain.from_iterable(map(differences, met)), ANSWERED)


def differences(one: Met) -> Iterator[str]:
    known, response = upstream().operations[one.operation], one.response
    if one.status not in known.answers:
        yield f"{one.operation}: {one.status} is not documented"
    answer = known.answers.get(one.status, known.answers["5XX"])
    for header in answer.get("headers", {}):
        if header not in response.headers:
            staged = "" if "metadata-location" in response.text else " of a staged table"
            yield f"{one.operation}: {one.status} lacks the header {header}{staged}"
    if known.method == "HEAD" or media(answer) is None:
        if response.content:
            yield f"{one.operation}: {one.status} has a body"
        return
    if response.headers["content-type"] != "application/json":
        yield f"{one.operation}: {one.status} is {response.headers['content-type']}"
    status = one.status if one.status in known.answers else "5XX"
    yield from faults(one.operation, status, response.json())
