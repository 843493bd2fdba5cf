"""What operations declare of their answers."""

from __future__ import annotations

from typing import Any

from app.api.routes import ROUTES
from app.main import openapi_document

ENVELOPE = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}


def test_every_failure_with_a_body_is_the_error_envelope() -> None:
    """Each documented failure of each operation has the envelope as its one body; an answer to HEAD has none."""
    paths: dict[str, dict[str, dict[str, Any]]] = openapi_document()["paths"]
    bodies = {
        (path, method, status): answer.get("content")
        for path, operations in paths.items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status.startswith(("4", "5"))
    }
    assert all(body == (None if method == "head" else ENVELOPE) for (_, method, _), body in bodies.items())


def test_a_start_makes_one_validator_of_failures_for_an_operation() -> None:
    """However many statuses an operation documents, the framework builds one field for all of its failures."""
    assert [route.path for route in ROUTES if len(route.response_fields) > 1] == []
