"""The only table from kind of failure to HTTP status and wire type, and the rendering of the error envelope.

Iceberg clients act on status and type: a 400, 404 or 409 makes a writer delete the files it has just written, 500 on a
commit makes it keep them. So a kind stands here once, and nothing else in the program knows a status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import Scope

from app import errors
from app.edge.answer import Answer
from app.edge.http_errors import ClientGone, RequestTimeout, UnsupportedMediaType
from app.edge.metrics import Metrics
from app.iceberg.json.codec import describe
from app.rules import Finding

INTERNAL = (500, "InternalServerError")
UNKNOWN = (500, "CommitStateUnknownException")

STATUSES: Mapping[type[Exception], tuple[int, str]] = {
    errors.BadRequest: (400, "BadRequestException"),
    errors.IllegalArgument: (400, "IllegalArgumentException"),
    errors.EvolutionRefused: (400, "SchemaEvolutionException"),
    errors.NotAuthenticated: (401, "NotAuthorizedException"),
    errors.Forbidden: (403, "NotAuthorizedException"),
    errors.NoSuchWarehouse: (404, "NoSuchWarehouseException"),
    errors.NoSuchNamespace: (404, "NoSuchNamespaceException"),
    errors.NoSuchTable: (404, "NoSuchTableException"),
    errors.NoSuchView: (404, "NoSuchViewException"),
    errors.NotFound: (404, "NotFoundException"),
    errors.ObjectMissing: (404, "NotFoundException"),
    errors.Unsupported: (406, "UnsupportedOperationException"),
    RequestTimeout: (408, "RequestTimeoutException"),
    errors.AlreadyExists: (409, "AlreadyExistsException"),
    errors.NamespaceNotEmpty: (409, "NamespaceNotEmptyException"),
    errors.CommitFailed: (409, "CommitFailedException"),
    errors.PayloadTooLarge: (413, "PayloadTooLargeException"),
    UnsupportedMediaType: (415, "UnsupportedMediaTypeException"),
    errors.Unprocessable: (422, "UnprocessableEntityException"),
    errors.TooManyRequests: (429, "TooManyRequestsException"),
    ClientGone: (400, "BadRequestException"),
    errors.CommitStateUnknown: UNKNOWN,
    errors.OutcomeUnknown: UNKNOWN,
    errors.Unavailable: (503, "ServiceUnavailableException"),
    errors.SchemaOutOfDate: (503, "ServiceUnavailableException"),
    errors.CorruptMetadata: (500, "CorruptMetadataException"),
    errors.IcekeelError: INTERNAL,
}

# Operations after whose crash nobody knows whether the change happened.
COMMITS = frozenset({"updateTable", "commitTransaction", "replaceView", "applySchemaChange"})

# Seconds after which a client may try again what surely was not done.
_RETRY_AFTER_S = 1
_EMPTY_NAMESPACE = "/namespaces//"


def status_of(error: BaseException) -> tuple[int, str]:
    """Status and wire type of a failure, by its nearest kind; anything that is not ours is an internal error."""
    for kind in type(error).__mro__:
        found = STATUSES.get(kind)
        if found is not None:
            return found
    return INTERNAL


def envelope(status: int, kind: str, message: str, findings: Sequence[Finding] = ()) -> bytes:
    """The body of every answer that is not a success."""
    model: dict[str, object] = {"message": message, "type": kind, "code": status}
    if findings:
        model["findings"] = [finding.to_json() for finding in findings]
    return msgspec.json.encode({"error": model})


class ErrorTable:
    """Renders failures, and counts refusals: by rule code for refused schema changes."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, error: BaseException, scope: Scope) -> Answer:
        if isinstance(error, HTTPException):
            return _of_framework(error, scope)
        if isinstance(error, RequestValidationError):
            error = _invalid(error)
        if isinstance(error, asyncio.CancelledError):
            error = _cut_off(scope)
        status, kind = status_of(error)
        if status == 500 and _is_commit(scope):
            # What could not even be read was surely not changed, and clients keep their files on 503 too.
            damaged = isinstance(error, errors.CorruptMetadata)
            status, kind = STATUSES[errors.Unavailable] if damaged else UNKNOWN
        findings: Sequence[Finding] = ()
        headers: list[tuple[str, str]] = []
        if isinstance(error, errors.EvolutionRefused):
            findings = error.findings
            for code in {f.code for f in findings if f.refuses}:
                self._metrics.refusals.labels(code).inc()
        elif isinstance(error, errors.TooManyRequests):
            headers.append(("Retry-After", str(max(1, error.retry_after_s))))
        elif isinstance(error, errors.Unavailable):
            headers.append(("Retry-After", str(_RETRY_AFTER_S)))
        elif isinstance(error, errors.NotAuthenticated):
            headers.append(("WWW-Authenticate", "Bearer"))
        if status == 409 and kind == "CommitFailedException":
            self._metrics.commit_conflicts.inc()
        message = error.message if isinstance(error, errors.IcekeelError) else _unexpected(error)
        return Answer(status, envelope(status, kind, message, findings), headers)


def _unexpected(error: BaseException) -> str:
    """Nothing of an unexpected failure is told but its class: messages of libraries may hold paths or secrets."""
    return f"Internal error: {type(error).__name__}. The server's log has the details under this answer's X-Request-Id"


def _cut_off(scope: Scope) -> Exception:
    """What a request is told that ran longer than a server that stops could wait."""
    if scope["method"] in ("GET", "HEAD"):
        return errors.Unavailable("The server is stopping. Ask again")
    return errors.OutcomeUnknown("The server stopped while this was under way; whether it took effect is not known")


def _is_commit(scope: Scope) -> bool:
    route = scope.get("route")
    return isinstance(route, APIRoute) and route.operation_id in COMMITS


def _of_framework(error: HTTPException, scope: Scope) -> Answer:
    """What the router raises: an unknown route, or a known one with another method."""
    where = f"{scope['method']} {scope['path']}"
    if error.status_code == 404:
        if _EMPTY_NAMESPACE in scope["path"]:
            # Spark asks so for `p.snapshots`, and takes nothing else for "there is none".
            message = "Namespace does not exist: its name is empty"
            return Answer(404, envelope(404, "NoSuchNamespaceException", message))
        hint = ". The API is described at /docs" if scope["path"] == "/" else ""
        return Answer(404, envelope(404, "NotFoundException", f"No such route: {where}{hint}"))
    if error.status_code == 405:
        allowed = ", ".join(sorted(_methods(scope)))
        message = f"Method not allowed: {where}. Allowed: {allowed}"
        return Answer(405, envelope(405, "MethodNotAllowedException", message), [("Allow", allowed)])
    return Answer(error.status_code, envelope(error.status_code, "RESTException", str(error.detail)))


def _methods(scope: Scope) -> set[str]:
    """Every method that some route offers for this path."""
    routes = [route for route in scope["app"].routes if isinstance(route, Route)]
    return {m for route in routes if route.matches(scope)[0] is not Match.NONE for m in route.methods or ()}


# What a value should have been, by the kind of fault that pydantic names.
_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "bool_type": "a boolean",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _invalid(error: RequestValidationError) -> errors.BadRequest:
    """The first fault of parameters or body, in the words of the document parsers."""
    fault = error.errors()[0]
    where, *steps = fault["loc"]
    kind, given = fault["type"], fault.get("input")
    if where != "body":
        name = steps[-1]
        if kind == "missing":
            return errors.BadRequest(f"Missing {where} parameter: {name}")
        return errors.BadRequest(f"Invalid {name}: {given!r} {_must(kind, fault.get('ctx', {}), fault['msg'])}")
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    if kind == "missing" or (given is None and isinstance(steps[-1], str)):
        parent, _, name = path.rpartition(".")
        return errors.SpecError(f"Cannot parse missing field: {name}", f"${parent}")
    if kind in _EXPECTED:
        return errors.SpecError(f"Cannot parse to {_EXPECTED[kind]}: {describe(given)}", f"${path}")
    return errors.SpecError(f"Invalid value {describe(given)}: {fault['msg']}", f"${path}")


def _must(kind: str, bounds: Mapping[str, object], message: str) -> str:
    if kind.startswith("int_") or kind == "value_error":
        return "is not an integer"
    if kind == "literal_error":
        return f"is not one of {bounds.get('expected')}"
    if kind == "greater_than_equal":
        return "is not a positive integer" if bounds["ge"] == 1 else f"is below {bounds['ge']}"
    if kind in ("less_than", "less_than_equal"):
        return f"is above {bounds.get('le', bounds.get('lt'))}"
    return f"is not valid: {message}"
