"""Names of any kind over the wire: encoded slashes, dots, blanks, separators; paths with and without the prefix."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import httpx
import pytest

from tests.http import wire
from tests.http.samples import error, fresh, namespace, schema
from tests.server import Server


@pytest.mark.parametrize(
    "name", ["p/q", "c.d", "e f", "g+h", "100%", "a%2Fb", "日本", "ü", "?#&=;", "a\\b", "'\"", "%1F", "~-_"]
)
def test_a_table_of_any_name_lives_its_whole_life(http: httpx.Client, name: str) -> None:
    """Created, loaded, asked for, listed, renamed and dropped under the same name."""
    ns = namespace(http)
    made = http.post(f"/v1/namespaces/{ns}/tables", json={"name": name, "schema": schema()})
    assert made.status_code == 200, made.text
    path = f"/v1/namespaces/{ns}/tables/{quote(name, safe='')}"
    assert http.get(path).json()["metadata"]["table-uuid"] == made.json()["metadata"]["table-uuid"]
    assert http.head(path).status_code == 204
    assert http.get(f"/v1/namespaces/{ns}/tables").json()["identifiers"] == [{"namespace": [ns], "name": name}]
    ends = {"source": {"namespace": [ns], "name": name}, "destination": {"namespace": [ns], "name": name + "2"}}
    assert http.post("/v1/tables/rename", json=ends).status_code == 204
    assert http.delete(f"/v1/namespaces/{ns}/tables/{quote(name + '2', safe='')}").status_code == 204


def test_java_writes_a_blank_as_plus(server: Server, http: httpx.Client) -> None:
    """Form encoding in a path reaches the same table as %20."""
    ns = fresh("x y")
    assert http.post("/v1/namespaces", json={"namespace": [ns]}).status_code == 200
    for spelling in (quote_plus(ns), quote(ns, safe="")):
        assert wire.request(server, "HEAD", f"/v1/namespaces/{spelling}").status == 204


def test_a_dotted_level_is_not_two_levels(http: httpx.Client) -> None:
    """["a.b"] and ["a","b"] are different namespaces, by path and in bodies."""
    a = namespace(http)
    assert http.post("/v1/namespaces", json={"namespace": [a, "b"]}).status_code == 200
    assert http.post("/v1/namespaces", json={"namespace": [f"{a}.b"], "properties": {"k": "dotted"}}).status_code == 200
    assert http.get(f"/v1/namespaces/{a}.b").json()["properties"]["k"] == "dotted"
    assert http.get(f"/v1/namespaces/{a}%2Eb").json()["namespace"] == [f"{a}.b"]
    assert http.get(f"/v1/namespaces/{a}%1Fb").json()["namespace"] == [a, "b"]
    assert http.get(f"/v1/namespaces/{a}%1fb").json()["namespace"] == [a, "b"]


def test_parent_in_both_encodings(server: Server, http: httpx.Client) -> None:
    """Java encodes the joined levels once; PyIceberg encodes each level before that."""
    top = fresh("top é")
    assert http.post("/v1/namespaces", json={"namespace": [top]}).status_code == 200
    assert http.post("/v1/namespaces", json={"namespace": [top, "in"]}).status_code == 200
    for parent in (quote(top, safe=""), quote(quote(top, safe=""), safe="")):
        answer = wire.request(server, "GET", f"/v1/namespaces?parent={parent}")
        assert answer.status == 200, answer.body
        assert b'"in"' in answer.body
    for missing in ("nope%20", "100%", "nope"):
        assert error(http.get("/v1/namespaces", params={"parent": missing}))["type"] == "NoSuchNamespaceException"


def test_an_empty_parent_is_the_top_level(http: httpx.Client) -> None:
    """`parent=` equals no parent at all."""
    name = namespace(http)
    assert [name] in http.get("/v1/namespaces", params={"parent": ""}).json()["namespaces"]


def test_paths_with_and_without_prefix_are_one(http: httpx.Client) -> None:
    """The default warehouse needs no prefix."""
    name = namespace(http)
    prefix = http.get("/v1/config").json()["overrides"]["prefix"]
    assert http.get(f"/v1/{prefix}/namespaces/{name}").json() == http.get(f"/v1/namespaces/{name}").json()


@pytest.mark.parametrize("name", ["", "a\x00b", "a\x1fb", ".", "..", "a\nb"])
def test_unusable_names_are_refused_at_creation(http: httpx.Client, name: str) -> None:
    """Empty, dots alone and control characters: 400 when created, never 500 later."""
    ns = namespace(http)
    assert error(http.post(f"/v1/namespaces/{ns}/tables", json={"name": name, "schema": schema()}))["code"] == 400


@pytest.mark.parametrize(
    "target",
    [
        "/v1/namespaces/..",
        "/v1/namespaces/%2E%2E",
        "/v1/namespaces/a%00b",
        "/v1/namespaces/%1F",
        "/v1/namespaces/a%1F",
        "/v1//namespaces",
        "/v1/namespaces/../../etc/passwd",
        "/v1/namespaces/a/tables/..%2F..%2Fetc",
    ],
)
def test_path_tricks_find_nothing(server: Server, target: str) -> None:
    """No path is normalised, so none leads anywhere else."""
    answer = wire.request(server, "GET", target)
    assert answer.status in (400, 404) and b'"error"' in answer.body


def test_an_absolute_target_is_understood(server: Server) -> None:
    """RFC 9112: a server must accept the absolute form."""
    assert wire.request(server, "GET", f"http://127.0.0.1:{server.port}/v1/config").status == 200
