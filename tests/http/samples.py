"""Small bodies and shortcuts of the black-box tests."""

from __future__ import annotations

import itertools
from typing import Any

import httpx

_counter = itertools.count(1)


def fresh(stem: str) -> str:
    """A name that no other test uses."""
    return f"{stem}_{next(_counter)}"


def schema(*names: str) -> dict[str, Any]:
    """A schema of optional strings after a required long `id`."""
    fields: list[dict[str, Any]] = [{"id": 1, "name": "id", "type": "long", "required": True}]
    for number, name in enumerate(names, 2):
        fields.append({"id": number, "name": name, "type": "string", "required": False})
    return {"type": "struct", "schema-id": 0, "fields": fields}


def namespace(http: httpx.Client, stem: str = "ns") -> str:
    """Create a namespace of its own and answer its name."""
    name = fresh(stem)
    made = http.post("/v1/namespaces", json={"namespace": [name]})
    assert made.status_code == 200, made.text
    return name


def table(http: httpx.Client, ns: str, name: str | None = None, **body: Any) -> dict[str, Any]:
    """Create a table and answer the result, its name under `name`."""
    name = name or fresh("t")
    made = http.post(f"/v1/namespaces/{ns}/tables", json={"name": name, "schema": schema("note"), **body})
    assert made.status_code == 200, made.text
    return {**made.json(), "name": name, "etag": made.headers["etag"]}


def set_property(http: httpx.Client, ns: str, name: str, key: str, value: str, **headers: str) -> httpx.Response:
    return http.post(
        f"/v1/namespaces/{ns}/tables/{name}",
        json={"requirements": [], "updates": [{"action": "set-properties", "updates": {key: value}}]},
        headers=headers,
    )


def error(response: httpx.Response) -> dict[str, Any]:
    """The error of an envelope, after checking that it is one."""
    assert response.headers["content-type"] == "application/json", response.text
    body = response.json()
    assert set(body) == {"error"}, body
    assert body["error"]["code"] == response.status_code
    assert isinstance(body["error"]["message"], str) and body["error"]["message"]
    assert isinstance(body["error"]["type"], str) and body["error"]["type"]
    found: dict[str, Any] = body["error"]
    return found


VIEW_VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["x"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}
