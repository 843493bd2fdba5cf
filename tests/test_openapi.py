"""The checked-in OpenAPI document, and what it must tell of every operation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from fastapi.routing import APIRoute

from app.api.routes import ROUTES
from app.cli.output import as_json
from app.main import openapi_document
from tests.server import ROOT

FILE = ROOT / "openapi" / "icekeel.json"


@cache
def document() -> dict[str, Any]:
    return openapi_document()


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_checked_in_document_is_the_generated_one() -> None:
    """`make openapi` writes it again."""
    assert FILE.read_text() == as_json(document()) + "\n"


def test_every_declared_operation_is_documented_and_no_other() -> None:
    """The router and the document come from one declaration."""
    assert {(m, p) for m, p, _ in operations()} == {
        (m, route.path) for route in ROUTES if route.include_in_schema for m in route.methods or ()
    }


def test_operation_ids_are_unique() -> None:
    """Generated clients name functions by them."""
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("route", [r for r in ROUTES if r.include_in_schema], ids=lambda route: route.operation_id)
def test_an_operation_is_described_completely(route: APIRoute) -> None:
    """Every path variable, a summary, a body where one is read, a success, and the failures that any call may meet."""
    (method,) = route.methods or ()
    found = document()["paths"][route.path][method.lower()]
    parameters = found.get("parameters", [])
    declared = {p["name"] for p in parameters if p["in"] == "path"}
    assert declared == set(re.findall(r"\{([^}]+)\}", route.path))
    assert all(
        p["description"] and p["required"] is (p["in"] == "path" or p["name"] == "waiver-id") for p in parameters
    )
    assert found["summary"] and not found["summary"].endswith(".")
    assert ("requestBody" in found) == (route.body_field is not None)
    assert any(status.startswith("2") for status in found["responses"])
    assert "500" in found["responses"]
    if route.body_field is not None:
        assert {"400", "408", "413", "415"} <= set(found["responses"])
    if route.path.startswith(("/v1/", "/icekeel/")):
        assert {"400", "401", "403", "503"} <= set(found["responses"])
    for status, answer in found["responses"].items():
        if not status.startswith("2") and status != "304" and method != "HEAD":
            assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorResponse")
        if method == "HEAD" or status in ("204", "304"):
            assert "content" not in answer


@pytest.mark.parametrize(
    ("operation_id", "header"),
    [
        ("createNamespace", "Idempotency-Key"), ("updateTable", "Idempotency-Key"),
        ("commitTransaction", "Idempotency-Key"), ("createView", "Idempotency-Key"),
        ("dropTable", "Idempotency-Key"), ("unregisterTable", "Idempotency-Key"),
        ("loadTable", "If-None-Match"), ("loadTable", "X-Iceberg-Access-Delegation"),
    ],
)  # fmt: skip
def test_headers_are_documented(operation_id: str, header: str) -> None:
    """Those that clients send."""
    (found,) = (operation for _, _, operation in operations() if operation["operationId"] == operation_id)
    assert header in {p["name"] for p in found["parameters"] if p["in"] == "header"}


def test_every_reference_resolves() -> None:
    """And every shape is referred to."""
    shapes = set(document()["components"]["schemas"])
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document())))
    assert references == shapes


def test_a_mutation_takes_an_idempotency_key() -> None:
    """Every Iceberg operation that changes something, metrics aside."""
    for method, path, operation in operations():
        if path.startswith("/v1/") and method in ("POST", "DELETE") and operation["operationId"] != "reportMetrics":
            assert "Idempotency-Key" in {p["name"] for p in operation["parameters"]}, path
