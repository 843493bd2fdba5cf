"""Group J of the public cases: configuration, errors, metrics (O-46, O-47; O-45 comes with OAuth)."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, Table, error_of, ok
from tests.server import Server

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


# --- O-46 ---------------------------------------------------------------------------------------------------------


@LOCAL_ONLY
def test_o46_an_unknown_warehouse(catalog: Catalog) -> None:
    """404 NoSuchWarehouseException; the default one answers by name, by location and without a name."""
    error_of(catalog.http.get("/v1/config", params={"warehouse": "nope"}), 404, "NoSuchWarehouseException")
    plain = ok(catalog.http.get("/v1/config"))
    for name in ("default", f"file://{catalog.warehouse}", str(catalog.warehouse)):
        assert ok(catalog.http.get("/v1/config", params={"warehouse": name})) == plain
    assert {**plain["defaults"], **plain["overrides"]}["prefix"] == "default"


def endpoints(catalog: Catalog) -> list[tuple[str, str]]:
    listed: list[str] = ok(catalog.http.get("/v1/config"))["endpoints"]
    assert len(listed) == len(set(listed))
    out = []
    for entry in listed:
        assert re.fullmatch(r"(GET|HEAD|POST|PUT|DELETE) /v1/[a-z{}/.-]+", entry), entry
        verb, path = entry.split(" ")
        out.append((verb, path))
    return out


def test_o46_every_advertised_route_exists(catalog: Catalog) -> None:
    """Each answers something other than "no such route" or "wrong method" when called."""
    for verb, path in endpoints(catalog):
        levels = catalog.namespace()
        catalog.create(levels, SIMPLE, name="t")
        names = {"prefix": "default", "namespace": levels[0], "table": "t", "view": "v"}
        answer = catalog.http.request(verb, path.format(**names), json={} if verb == "POST" else None)
        assert answer.status_code not in {405, 406, 500, 501}, (verb, path, answer.text)
        if answer.status_code == 404 and verb != "HEAD":
            assert error_of(answer, 404, "NoSuchViewException")


def test_o46_head_and_view_routes_are_advertised(catalog: Catalog) -> None:
    """Clients fall back or refuse when these are missing from the list."""
    listed = {f"{verb} {path}" for verb, path in endpoints(catalog)}
    space = "/v1/{prefix}/namespaces/{namespace}"
    assert listed >= {
        f"HEAD {space}",
        f"HEAD {space}/tables/{{table}}",
        f"HEAD {space}/views/{{view}}",
        f"GET {space}/views",
        f"POST {space}/views",
        f"POST {space}/register",
        "POST /v1/{prefix}/transactions/commit",
        "POST /v1/{prefix}/tables/rename",
        "POST /v1/{prefix}/views/rename",
        f"POST {space}/tables/{{table}}/metrics",
    }


def test_o46_what_is_not_there_is_a_clean_404(catalog: Catalog, ns: Namespace) -> None:
    """OAuth, credentials, signing, planning and functions are not advertised and answer 404 with the envelope."""
    table = catalog.create(ns, SIMPLE)
    paths = [
        ("POST", "/v1/oauth/tokens"),
        ("GET", f"{table.path}/credentials"),
        ("POST", f"{table.path}/sign"),
        ("POST", f"{table.path}/plan"),
        ("POST", f"{table.path}/tasks"),
        ("GET", f"{catalog.namespace_path(ns)}/functions"),
        ("GET", "/v1/nothing/at/all"),
        ("GET", "/nothing"),
    ]
    advertised = {path.replace("{", "").replace("}", "") for _, path in endpoints(catalog)}
    for verb, path in paths:
        error_of(catalog.http.request(verb, path, json={} if verb == "POST" else None), 404)
        assert not any(a.endswith(path.rsplit("/", 1)[1]) for a in advertised if "functions" in path or "plan" in path)


def test_o46_a_wrong_method(catalog: Catalog, ns: Namespace) -> None:
    """405 with the envelope and an Allow header."""
    table = catalog.create(ns, SIMPLE)
    for verb, path in (
        ("PATCH", table.path),
        ("PUT", table.path),
        ("DELETE", "/v1/config"),
        ("PUT", f"{catalog.base}/namespaces"),
    ):
        answer = catalog.http.request(verb, path, json={})
        error_of(answer, 405)
        assert answer.headers["Allow"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "[]",
        "null",
        "5",
        '"x"',
        '{"name": 5}',
        '{"a": NaN}',
        '{"requirements": {}, "updates": 1}',
        '{"updates": [{"action": 5}]}',
    ],
)
def test_o46_bad_bodies_are_400(catalog: Catalog, ns: Namespace, body: str) -> None:
    """Never 422, on every route that takes a body."""
    table = catalog.create(ns, SIMPLE)
    before = table.load()
    space = catalog.namespace_path(ns)
    for path in (
        table.path,
        f"{space}/tables",
        f"{space}/register",
        f"{space}/views",
        f"{catalog.base}/namespaces",
        f"{catalog.base}/tables/rename",
        f"{catalog.base}/transactions/commit",
    ):
        answer = catalog.http.post(path, content=body, headers={"Content-Type": "application/json"})
        error_of(answer, 400)
    assert table.load() == before


def test_o46_head_never_has_a_body(catalog: Catalog, server: Server, ns: Namespace) -> None:
    """Read off the wire: a HEAD on something missing ends after its headers."""
    for path in (f"{catalog.namespace_path(ns)}/tables/missing", catalog.namespace_path(["missing"]), "/v1/nowhere"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
            raw.sendall(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := raw.recv(65536):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split()[1] == b"404"
        assert body == b""


def test_o46_metadata_tables_are_missing_tables(catalog: Catalog, ns: Namespace) -> None:
    """Loading `ns.t.files` asks a namespace that does not exist: the type must be NoSuchTableException."""
    catalog.create(ns, SIMPLE, name="t")
    error_of(catalog.table((*ns, "t"), "files").get(), 404, "NoSuchTableException")
    error_of(catalog.post_create(("nope",), "t", SIMPLE), 404, "NoSuchNamespaceException")


# --- O-47 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(catalog: Catalog, ns: Namespace) -> Table:
    return catalog.create(ns, SIMPLE)


def report(table: Table, body: Json | str) -> httpx.Response:
    text = body if isinstance(body, str) else json.dumps(body)
    return table.catalog.http.post(f"{table.path}/metrics", content=text, headers={"Content-Type": "application/json"})


SCAN: Json = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {
        "result-data-files": {"unit": "count", "value": 1},
        "total-planning-duration": {"time-unit": "nanoseconds", "count": 1, "total-duration": 12},
    },
}
COMMIT: Json = {
    "report-type": "commit-report",
    "table-name": "t",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {"attempts": {"unit": "count", "value": 1}},
    "metadata": {"a": "b"},
}


def deep(levels: int) -> Json:
    out: Json = {"type": "eq", "term": "id", "value": 1}
    for _ in range(levels):
        out = {"type": "not", "child": out}
    return out


@pytest.mark.parametrize(
    "body",
    [
        SCAN,
        COMMIT,
        {"report-type": "future-report", "x": [1]},
        {**SCAN, "extra": {"a": [1, {"b": None}]}},
        {**SCAN, "filter": deep(60)},
    ],
    ids=["scan", "commit", "future", "extra", "deep"],
)
def test_o47_reports_are_taken(table: Table, body: Json) -> None:
    """204 without a body, for known and unknown kinds."""
    answer = report(table, body)
    assert (answer.status_code, answer.content) == (204, b"")


def test_o47_reports_that_are_no_json(table: Table, catalog: Catalog, ns: Namespace) -> None:
    """Bare NaN and an empty body are 400 or tolerated; a missing table is 404; large ones do not fail."""
    for text in (json.dumps(SCAN).replace("12", "NaN"), "", "{"):
        answer = report(table, text)
        assert answer.status_code in {204, 400}
        if answer.status_code == 400:
            error_of(answer, 400)
    error_of(report(catalog.table(ns, "missing"), SCAN), 404, "NoSuchTableException")
    assert report(table, {**SCAN, "metadata": {"x": "y" * 2_000_000}}).status_code in {204, 413}
