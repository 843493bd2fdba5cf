"""`app.edge.errors`: the one table from kind of failure to status and type."""

from __future__ import annotations

import asyncio
import json

import pytest

from app import errors
from app.api.routes import ROUTES
from app.edge.errors import COMMITS, STATUSES, ErrorTable, envelope, status_of
from app.edge.metrics import Metrics
from app.rules import Finding, Severity

SCOPE = {"type": "http", "method": "POST", "path": "/x"}

# Kinds that say how something went wrong inside and must have been turned into another before they leave.
INSIDE = {errors.SwapLost, errors.KeyAlreadyUsed, errors.ObjectExists, errors.BadSettings}


def kinds(root: type[Exception]) -> set[type[Exception]]:
    return {root, *(kind for child in root.__subclasses__() for kind in kinds(child))}


def table() -> tuple[ErrorTable, Metrics]:
    metrics = Metrics()
    return ErrorTable(metrics), metrics


def test_every_kind_of_failure_has_a_line() -> None:
    """A new kind must be placed in the table, or inherit a line on purpose."""
    inherits = {errors.SpecError, errors.ValidationFailed, errors.ObjectsUnavailable, errors.UuidInUse}
    named = {kind for kind in kinds(errors.IcekeelError) if kind.__module__ in ("app.errors", "app.edge.http_errors")}
    assert named - set(STATUSES) - INSIDE == inherits


@pytest.mark.parametrize(("kind", "line"), sorted(STATUSES.items(), key=lambda item: item[0].__name__))
def test_statuses_are_ones_that_java_knows(kind: type[Exception], line: tuple[int, str]) -> None:
    """None is a success, and a commit's doubt is 500, never 503: Java takes both as unknown, others do not."""
    status, name = line
    assert 400 <= status < 600 and name.endswith(("Exception", "Error")), kind


def test_bad_requests_of_every_kind_are_400() -> None:
    """SpecError and ValidationFailed are bad requests on the wire."""
    for error in (errors.BadRequest("x"), errors.SpecError("x", "$.a"), errors.ValidationFailed("x")):
        assert status_of(error) == (400, "BadRequestException")


def test_an_unexpected_error_tells_nothing_but_its_class() -> None:
    """Messages of libraries may hold paths, queries or passwords."""
    render, _ = table()
    answer = render(RuntimeError("password=hunter2"), SCOPE)
    assert answer.status_code == 500 and b"hunter2" not in answer.body and b"RuntimeError" in answer.body


@pytest.mark.parametrize("operation_id", sorted(COMMITS))
def test_a_crash_during_a_commit_is_of_unknown_outcome(operation_id: str) -> None:
    """The client must keep its files: nobody knows whether the swap happened."""
    route = next(route for route in ROUTES if route.operation_id == operation_id)
    render, _ = table()
    answer = render(ValueError("boom"), {**SCOPE, "route": route})
    assert json.loads(answer.body)["error"]["type"] == "CommitStateUnknownException" and answer.status_code == 500


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("GET", (503, "ServiceUnavailableException")),
        ("HEAD", (503, "ServiceUnavailableException")),
        ("POST", (500, "CommitStateUnknownException")),
        ("DELETE", (500, "CommitStateUnknownException")),
    ],
)
def test_what_a_stopping_server_cuts_off(method: str, line: tuple[int, str]) -> None:
    """A read may be asked again at once; of anything else nobody knows whether it took effect."""
    render, _ = table()
    answer = render(asyncio.CancelledError(), {**SCOPE, "method": method})
    told = json.loads(answer.body)["error"]
    assert (answer.status_code, told["type"]) == line and "stop" in told["message"]


def test_retry_after_comes_only_where_nothing_was_done() -> None:
    """On 429 and on a store that is surely unchanged; never where the outcome is unknown."""
    render, _ = table()
    for error, seconds in ((errors.TooManyRequests("x", retry_after_s=7), "7"), (errors.Unavailable("x"), "1")):
        assert (b"Retry-After", seconds.encode()) in render(error, SCOPE).raw_headers
    for unknown in (errors.CommitStateUnknown("x"), errors.OutcomeUnknown("x"), RuntimeError("x")):
        assert not [name for name, _ in render(unknown, SCOPE).raw_headers if name.lower() == b"retry-after"]


def test_refusals_are_counted_by_rule() -> None:
    """Each refusing rule once per commit; warnings do not count."""
    common = {"rule": "r", "message": "m", "fix": "f", "spec": "s"}
    findings = (
        Finding(code="ICE202", severity=Severity.ERROR, **common),
        Finding(code="ICE202", severity=Severity.ERROR, **common),
        Finding(code="ICE701", severity=Severity.WARN, **common),
    )
    render, metrics = table()
    answer = render(errors.EvolutionRefused(findings), SCOPE)
    shown = metrics.render().decode()
    assert 'icekeel_refusals_total{code="ICE202"} 1.0' in shown and "ICE701" not in shown
    assert len(json.loads(answer.body)["error"]["findings"]) == 3


def test_the_envelope_has_nothing_but_error() -> None:
    """`code` equals the status, and messages of any characters survive."""
    assert json.loads(envelope(404, "NoSuchTableException", 'a "b"\n\u65e5')) == {
        "error": {"message": 'a "b"\n\u65e5', "type": "NoSuchTableException", "code": 404}
    }
