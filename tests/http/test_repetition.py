"""Loads that come again in the same words, over real HTTP: each is answered as things are now."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.http.conftest import MakeServer
from tests.http.samples import error, fresh, namespace, schema, set_property, table


@pytest.fixture
def place(http: httpx.Client) -> tuple[str, str, str]:
    """Namespace, name and path of a table that was loaded, and asked for, several times in the same words."""
    ns = namespace(http)
    name = table(http, ns)["name"]
    path = f"/v1/namespaces/{ns}/tables/{name}"
    for _ in range(3):
        assert http.get(path).status_code == 200
        assert http.head(path).status_code == 204
    return ns, name, path


def test_a_commit_shows_in_the_next_load(http: httpx.Client, place: tuple[str, str, str]) -> None:
    """Pointer, document and tag are those of the new version, with every commit."""
    ns, name, path = place
    tags = set()
    for turn in range(5):
        committed = set_property(http, ns, name, "turn", str(turn))
        loaded = http.get(path)
        assert loaded.json()["metadata"]["properties"]["turn"] == str(turn)
        assert loaded.json()["metadata-location"] == committed.json()["metadata-location"]
        assert loaded.headers["etag"] == committed.headers["etag"]
        tags.add(loaded.headers["etag"])
    assert len(tags) == 5


def test_a_dropped_table_is_gone_at_once_and_back_when_it_is_made_again(
    http: httpx.Client, place: tuple[str, str, str]
) -> None:
    """404 after the drop, for GET and HEAD; the new table of the same name is the new one."""
    ns, name, path = place
    before = http.get(path).json()["metadata"]["table-uuid"]
    assert http.delete(path).status_code == 204
    assert error(http.get(path))["type"] == "NoSuchTableException"
    assert http.head(path).status_code == 404
    table(http, ns, name)
    after = http.get(path).json()["metadata"]["table-uuid"]
    assert after != before
    assert http.head(path).status_code == 204


def test_a_renamed_table_leaves_its_name(http: httpx.Client, place: tuple[str, str, str]) -> None:
    """The old name is free at once, and whatever takes it is what is loaded."""
    ns, name, path = place
    body = {"source": {"namespace": [ns], "name": name}, "destination": {"namespace": [ns], "name": fresh("moved")}}
    assert http.post("/v1/tables/rename", json=body).status_code == 204
    assert error(http.get(path))["type"] == "NoSuchTableException"
    view = {
        "name": name,
        "schema": schema("note"),
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": [ns],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        },
        "properties": {},
    }
    assert http.post(f"/v1/namespaces/{ns}/views", json=view).status_code == 200
    assert error(http.get(path))["type"] == "NoSuchTableException"
    assert http.head(path).status_code == 404


@LOCAL_ONLY
def test_a_vanished_metadata_file_is_told_each_time(http: httpx.Client, place: tuple[str, str, str]) -> None:
    """However often the table was loaded before: 404 until the file is back."""
    _, _, path = place
    location = http.get(path).json()["metadata-location"]
    file = Path(unquote(urlsplit(location).path)) if "://" in location else Path(location)
    kept = file.read_bytes()
    os.unlink(file)
    for _ in range(2):
        assert error(http.get(path))["type"] == "NotFoundException"
    file.write_bytes(kept)
    assert http.get(path).status_code == 200


def test_a_condition_that_held_does_not_hold_after_a_commit(http: httpx.Client, place: tuple[str, str, str]) -> None:
    """The same If-None-Match is 304 before and 200 after."""
    ns, name, path = place
    headers = {"If-None-Match": http.get(path).headers["etag"]}
    assert [http.get(path, headers=headers).status_code for _ in range(3)] == [304, 304, 304]
    set_property(http, ns, name, "a", "b")
    assert [http.get(path, headers=headers).status_code for _ in range(2)] == [200, 200]


@LOCAL_ONLY
def test_a_warehouse_that_changed_is_told_to_clients(make_server: MakeServer) -> None:
    """`config` of loads and of `/v1/config` follow the warehouse's options."""
    with make_server(token="t").client() as http:
        for _ in range(2):
            assert "s3.region" not in http.get("/v1/config").json()["defaults"]
        changed = http.patch("/icekeel/v1/warehouses/default", json={"storage": {"s3.region": "eu-west-1"}})
        assert changed.status_code == 200, changed.text
        assert http.get("/v1/config").json()["defaults"]["s3.region"] == "eu-west-1"


def test_a_known_request_without_its_token_is_refused(make_server: MakeServer) -> None:
    """What was answered to one token is not answered to another, nor to none."""
    server = make_server(token="right")
    with server.client() as http:
        ns = namespace(http)
        path = f"/v1/namespaces/{ns}/tables/{table(http, ns)['name']}"
        for _ in range(3):
            assert http.get(path).status_code == 200
    bare = {"base_url": server.url, "trust_env": False}
    with httpx.Client(**bare, headers={"Authorization": "Bearer wrong"}) as http:  # type: ignore[arg-type]
        assert http.get(path).status_code == 401
    with httpx.Client(**bare) as http:  # type: ignore[arg-type]
        assert http.get(path).status_code == 401
