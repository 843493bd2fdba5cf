"""schemathesis over the OpenAPI document: no 500, and no answer that is not documented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from app.api.routes import ROUTES
from app.main import openapi_document
from tests.http.samples import VIEW_VERSION, schema
from tests.server import Server

# Tolerance is a promise here (nulls, unknown members), so what violates the document need not be refused.
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
PRESENT = {
    "prefix": "default",
    "warehouse": "default",
    "namespace": "fuzz",
    "table": "t",
    "view": "v",
    "code": "ICE101",
    "field_id": 1,
}
EXAMPLES = 10

# Operations after which a name may be gone.
REMOVALS = {"dropNamespace", "dropTable", "dropView", "unregisterTable", "renameTable", "renameView"}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own: what is sent here may do anything."""
    with Server(tmp_path_factory.mktemp("fuzz") / "home", settings={"LOG_SAMPLE": "0"}) as running:
        yield running


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """Every documented operation by its id."""
    document = schemathesis.openapi.from_dict(openapi_document())
    found = (result.ok() for result in document.get_all_operations())
    return {operation.definition.raw["operationId"]: operation for operation in found}


def make_names(http: httpx.Client) -> None:
    """Whatever of the names in PRESENT is missing."""
    http.post("/v1/namespaces", json={"namespace": ["fuzz"]})
    http.post("/v1/namespaces/fuzz/tables", json={"name": "t", "schema": schema("note")})
    http.post("/v1/namespaces/fuzz/views", json={"name": "v", "schema": schema(), "view-version": VIEW_VERSION})


@pytest.mark.parametrize("operation_id", [route.operation_id for route in ROUTES if route.include_in_schema])
def test_every_answer_is_documented(operation_id: str, described: dict[str, Any], fuzzed: Server) -> None:
    """Generated requests, legal and illegal, are answered as the document says."""
    with fuzzed.client() as http:
        make_names(http)

        @settings(
            max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=described[operation_id].as_strategy())
        def answered(case: Any) -> None:
            if operation_id in REMOVALS:
                make_names(http)
            for name, value in (case.path_parameters or {}).items():
                # Half of the names are ones that exist, else nothing but 404 would ever be seen.
                if name in ("prefix", "warehouse") or len(str(value)) % 2:
                    case.path_parameters[name] = PRESENT[name]
            case.call_and_validate(base_url=fuzzed.url, checks=CHECKS)

        answered()
