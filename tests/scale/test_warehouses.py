"""Warehouses over HTTP and the command line, and what engines get with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.backends import Scaled, options
from tests.cases.wire import error_of, ok, unique
from tests.server import Server

ALL = "/icekeel/v1/warehouses"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}


@pytest.fixture(scope="module")
def server(operator: Server) -> Server:
    return operator


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with server.client(timeout=60.0) as client:
        yield client


@pytest.fixture
def lake(http: httpx.Client, backend: Scaled) -> Iterator[dict[str, Any]]:
    """A warehouse of its own on the S3, with keys that it keeps to itself."""
    name = unique("lake-")
    body = {"name": name, "location": f"s3://lake/{name}/", "storage": options(backend.s3)}
    yield ok(http.post(ALL, json=body))


def test_a_warehouse_lives_from_create_to_drop(http: httpx.Client, lake: dict[str, Any], backend: Scaled) -> None:
    """Tables of it are served under its prefix; it goes when it is empty, and not before."""
    name = lake["name"]
    assert lake["location"] == f"s3://lake/{name}" and lake["version"] == 1
    assert lake["secret-options"] == ["s3.access-key-id", "s3.secret-access-key"]
    assert name in [each["name"] for each in ok(http.get(ALL))["warehouses"]]
    assert ok(http.get("/v1/config", params={"warehouse": f"s3a://lake/{name}"}))["overrides"]["prefix"] == name
    ok(http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]}))
    made = ok(http.post(f"/v1/{name}/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}))
    assert made["metadata-location"].startswith(f"s3://lake/{name}/a/t-")
    error_of(http.delete(f"{ALL}/{name}"), 409, "NamespaceNotEmptyException")
    assert http.delete(f"/v1/{name}/namespaces/a/tables/t").status_code == 204
    assert http.delete(f"/v1/{name}/namespaces/a").status_code == 204
    assert http.delete(f"{ALL}/{name}").status_code == 204
    error_of(http.get(f"{ALL}/{name}"), 404, "NoSuchWarehouseException")
    error_of(http.delete(f"{ALL}/{name}"), 404, "NoSuchWarehouseException")


def test_secrets_go_in_and_never_come_out(
    http: httpx.Client, lake: dict[str, Any], backend: Scaled, server: Server
) -> None:
    """Not in any answer, not in the log, not in the database."""
    name, secret = lake["name"], backend.s3.secret_key
    ok(http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]}))
    made = http.post(f"/v1/{name}/namespaces/a/tables", json={"name": "t", "schema": SCHEMA})
    shown = [made.text, http.get(ALL).text, http.get(f"/v1/config?warehouse={name}").text, http.get("/metrics").text]
    patched = http.patch(f"{ALL}/{name}", json={"storage": {"s3.secret-access-key": secret}})
    refused = http.patch(f"{ALL}/{name}", json={"storage": {"s3.access-key-id": None}})
    assert error_of(refused, 400)["message"].endswith("go together")
    assert all(secret not in text for text in [*shown, patched.text, refused.text, server.output()])


def test_a_patch_merges_and_can_ask_for_a_version(http: httpx.Client, lake: dict[str, Any]) -> None:
    """Null removes a key, an unknown option is refused, a stale version is a conflict."""
    path = f"{ALL}/{lake['name']}"
    changed = ok(http.patch(path, json={"properties": {"owner": "me"}, "storage": {"s3.region": None}, "version": 1}))
    assert (
        changed["version"] == 2 and changed["properties"] == {"owner": "me"} and "s3.region" not in changed["storage"]
    )
    error_of(http.patch(path, json={"properties": {"owner": "x"}, "version": 1}), 409, "CommitFailedException")
    error_of(http.patch(path, json={"storage": {"sss": "x"}}), 400, "BadRequestException")
    error_of(http.patch(path, json={"storage": {"s3.region": 7}}), 400, "BadRequestException")
    assert ok(http.get(path)) == changed


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "tables", "location": "s3://b/x"},
        {"name": "UPPER", "location": "s3://b/x"},
        {"name": "x", "location": "relative/x"},
        {"name": "x", "location": "/etc"},
        {"name": "x", "location": "ftp://b/x"},
        {"name": "x", "location": "s3://b/x", "storage": []},
        {"name": "x", "location": "s3://b/x", "allowed-locations": "s3://c"},
    ],
)
def test_a_warehouse_that_cannot_be_is_a_bad_request(http: httpx.Client, body: dict[str, Any]) -> None:
    """And is not there afterwards."""
    error_of(http.post(ALL, json=body), 400)
    assert "x" not in [each["name"] for each in ok(http.get(ALL))["warehouses"]]


def test_the_same_name_twice(http: httpx.Client, lake: dict[str, Any]) -> None:
    """Even for another place."""
    error_of(http.post(ALL, json={"name": lake["name"], "location": "s3://other/x"}), 409, "AlreadyExistsException")


def test_keys_come_with_tables_only_after_the_opt_in(
    http: httpx.Client, lake: dict[str, Any], backend: Scaled, server: Server
) -> None:
    """Load, create and stage carry them then; the configuration never does; the log says it loudly."""
    name = lake["name"]
    ok(http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]}))
    ok(http.post(f"/v1/{name}/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}))
    before = http.get(f"/v1/{name}/namespaces/a/tables/t")
    assert ok(before)["config"] == {}
    keys = {"s3.access-key-id": backend.s3.access_key, "s3.secret-access-key": backend.s3.secret_key}
    ok(http.patch(f"{ALL}/{name}", json={"storage": {**keys, "icekeel.client.keys": "true"}}))
    after = http.get(f"/v1/{name}/namespaces/a/tables/t", headers={"If-None-Match": before.headers["etag"]})
    assert ok(after)["config"]["s3.secret-access-key"] == backend.s3.secret_key
    staged = http.post(f"/v1/{name}/namespaces/a/tables", json={"name": "u", "schema": SCHEMA, "stage-create": True})
    assert ok(staged)["config"]["s3.access-key-id"] == backend.s3.access_key
    assert "s3.access-key-id" not in http.get(f"/v1/config?warehouse={name}").text
    assert server.line(f"WAREHOUSE {name} HANDS OUT ITS STATIC KEYS")


def run_cli(server: Server, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, "--uri", server.url, "--token", str(server.token)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_command_line_does_it_all(
    server: Server, backend: Scaled, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """create, show, list, change, drop; keys come from a file and are shown as asterisks."""
    name = unique("cli-")
    file = tmp_path / "options.json"
    file.write_text(json.dumps(options(backend.s3)))
    arguments = ("--options-file", str(file), "--property", "owner=me", "--allow", "s3://other/x")
    code, out, _ = run_cli(server, capsys, "warehouse", "create", name, f"s3://lake/{name}", *arguments)
    assert code == 0 and "s3.secret-access-key=***" in out and backend.s3.secret_key not in out
    code, out, _ = run_cli(server, capsys, "warehouse", "show", name, "--format", "json")
    assert json.loads(out)["properties"] == {"owner": "me"} and json.loads(out)["allowed-locations"] == ["s3://other/x"]
    code, out, _ = run_cli(
        server, capsys, "warehouse", "change", name, "--property", "owner=", "--option", "icekeel.client.endpoint=false"
    )
    assert code == 0 and "version 2" in out and "owner" not in out and "icekeel.client.endpoint=false" in out
    assert name in run_cli(server, capsys, "warehouse", "list")[1]
    assert run_cli(server, capsys, "warehouse", "drop", name)[0] == 0
    code, _, err = run_cli(server, capsys, "warehouse", "show", name)
    assert code == 1 and "does not exist" in err
    assert run_cli(server, capsys, "warehouse", "change", name)[0] == 2
    assert run_cli(server, capsys, "warehouse", "create", name, "s3://lake/x", "--option", "x")[0] == 2


def test_a_server_without_the_key_refuses_to_start(
    backend: Scaled, server: Server, lake: dict[str, Any], home: Path
) -> None:
    """Half a server, whose warehouses fail one by one, would be worse. The line says what to set."""
    settings = {name: value for name, value in server.settings.items() if name != "SECRET_KEY"}
    with pytest.raises(RuntimeError, match="ended with 2") as refused:
        Server(home, settings=settings).start()
    assert "ICEKEEL_SECRET_KEY" in str(refused.value) and "Traceback" not in str(refused.value)


def test_without_a_key_no_secret_is_taken(backend: Scaled, home: Path) -> None:
    """The refusal tells how to make one; a warehouse with ambient credentials needs none."""
    with Server(home, settings=backend.settings(home), token="x") as bare, bare.client() as http:
        body = {"name": "sealed", "location": "s3://lake/sealed-x", "storage": options(backend.s3)}
        assert "openssl rand -base64 32" in error_of(http.post(ALL, json=body), 400)["message"]
        ok(http.post(ALL, json={"name": "ambient", "location": "s3://lake/ambient-x"}))
        assert ok(http.get("/icekeel/v1/warehouses/default"))["secret-options"] == [
            "s3.access-key-id", "s3.secret-access-key",
        ]  # fmt: skip
