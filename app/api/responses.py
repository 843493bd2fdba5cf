"""What operations answer, for their declarations: successes with headers, and failures by kind."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from app import errors
from app.api.shapes import ErrorResponse
from app.edge.errors import STATUSES
from app.edge.http_errors import RequestTimeout, UnsupportedMediaType

Responses = dict[int | str, dict[str, Any]]

ALWAYS: tuple[type[Exception], ...] = (
    errors.BadRequest,
    errors.NotAuthenticated,
    errors.Forbidden,
    errors.Unavailable,
    errors.IcekeelError,
)
"""What every operation of the protocol and of our own API may answer."""

BODY: tuple[type[Exception], ...] = (errors.PayloadTooLarge, UnsupportedMediaType, RequestTimeout)
"""What an operation with a body adds."""

CHANGE: tuple[type[Exception], ...] = (errors.Unprocessable, errors.TooManyRequests)
"""What an operation that changes something adds: a reused idempotency key, a full queue."""

COMMIT: tuple[type[Exception], ...] = (errors.CommitFailed, errors.CommitStateUnknown, errors.EvolutionRefused)

ETAG = {"ETag": {"description": "Tag of this representation of this version.", "schema": {"type": "string"}}}
FINDINGS = {
    "Icekeel-Findings": {
        "description": "Codes and messages of the warnings that the accepted change raised, as a JSON array.",
        "schema": {"type": "string"},
    }
}
_ENVELOPE = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
_RETRY = {"Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "string"}}}


def fails(
    *kinds: type[Exception], head: bool = False, text: bool = False, always: tuple[type[Exception], ...] = ALWAYS
) -> Responses:
    """The failures of an operation by status. An answer to HEAD has no body (`head`).

    Of an operation that succeeds in another media type (`text`) the framework would document failures in that too.
    """
    named: dict[int, list[str]] = {}
    for kind in (*always, *kinds):
        status, name = STATUSES[kind]
        if name not in named.setdefault(status, []):
            named[status].append(name)
    # "default" keeps the framework from documenting a 422 of its own.
    found: Responses = {"default": {"description": "Any other failure, in the same envelope."}}
    for status, names in sorted(named.items()):
        found[status] = {"description": f"{HTTPStatus(status).phrase}: {', '.join(names)}"}
        if status in (429, 503):
            found[status]["headers"] = _RETRY
    if not head:
        for entry in found.values():
            entry["content"] = _ENVELOPE
        if not text:
            # Brings the schema into the document. One for each status would cost 0.1 s of every start.
            found["default"] = {"description": found["default"]["description"], "model": ErrorResponse}
    return found


def success(status: int, text: str, *headers: dict[str, Any]) -> Responses:
    """The description of a success that the declaration of the route itself cannot hold."""
    entry: dict[str, Any] = {"description": text}
    if headers:
        entry["headers"] = {name: header for group in headers for name, header in group.items()}
    return {status: entry}
