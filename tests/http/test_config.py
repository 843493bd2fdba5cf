"""`/v1/config` tells exactly what there is."""

from __future__ import annotations

import re

import httpx
import pytest

from app.api.config.router import iso_duration
from tests.backends import LOCAL_ONLY
from tests.http.samples import error, fresh, namespace, table
from tests.server import Server

SPEC_TEMPLATES = {
    "GET /v1/config", "GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}", "DELETE /v1/{prefix}/namespaces/{namespace}",
    "POST /v1/{prefix}/namespaces/{namespace}/properties", "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables", "POST /v1/{prefix}/namespaces/{namespace}/register",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}", "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit", "GET /v1/{prefix}/namespaces/{namespace}/views",
    "POST /v1/{prefix}/namespaces/{namespace}/views", "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}", "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}", "POST /v1/{prefix}/views/rename",
    "POST /v1/{prefix}/namespaces/{namespace}/register-view",
}  # fmt: skip


def test_the_endpoints_are_the_protocols_own_templates(http: httpx.Client) -> None:
    """One letter off in a template stops the Java client at its start."""
    endpoints = http.get("/v1/config").json()["endpoints"]
    assert len(endpoints) == len(set(endpoints))
    assert set(endpoints) == SPEC_TEMPLATES


def test_every_advertised_endpoint_is_there(http: httpx.Client) -> None:
    """None answers 404 for its route or 405 for its method."""
    ns = namespace(http)
    made = table(http, ns)
    for endpoint in http.get("/v1/config").json()["endpoints"]:
        method, template = endpoint.split(" ")
        path = template.format(prefix="default", namespace=ns, table=made["name"], view="v")
        if method == "DELETE":
            path = template.format(prefix="default", namespace="nope", table="nope", view="nope")
        answer = http.request(method, path, json={} if method == "POST" else None)
        assert answer.status_code not in (405, 500), endpoint
        assert "No such route" not in answer.text, endpoint


def test_the_prefix_is_an_override(http: httpx.Client) -> None:
    """Clients put it into every later path."""
    assert http.get("/v1/config").json()["overrides"]["prefix"] == "default"


@LOCAL_ONLY
def test_a_warehouse_is_known_by_name_and_by_location(server: Server, http: httpx.Client) -> None:
    """Spark configures a location, PyIceberg a name; trailing slashes and schemes do not matter."""
    for asked in ("default", str(server.warehouse), f"file://{server.warehouse}", f"file:{server.warehouse}/"):
        answer = http.get("/v1/config", params={"warehouse": asked})
        assert answer.status_code == 200, asked
        assert answer.json()["overrides"]["prefix"] == "default"


def test_idempotency_is_advertised_as_a_duration(http: httpx.Client) -> None:
    """Java starts to send keys when it sees an ISO 8601 duration."""
    assert re.fullmatch(r"PT(\d+H)?(\d+M)?(\d+S)?", http.get("/v1/config").json()["idempotency-key-lifetime"])


@pytest.mark.parametrize(
    ("ms", "text"), [(1_800_000, "PT30M"), (3_661_000, "PT1H1M1S"), (999, "PT0S"), (86_400_000, "PT24H")]
)
def test_durations(ms: int, text: str) -> None:
    """Whole seconds, rounded down: never longer than what is kept."""
    assert iso_duration(ms) == text


def test_warehouses_are_listed_without_secrets(http: httpx.Client) -> None:
    """Our own API shows where tables live."""
    (only,) = http.get("/icekeel/v1/warehouses").json()["warehouses"]
    assert only["name"] == "default" and "secrets" not in only
    assert http.get("/icekeel/v1/warehouses/default").json() == only
    assert error(http.get(f"/icekeel/v1/warehouses/{fresh('no')}"))["type"] == "NoSuchWarehouseException"
