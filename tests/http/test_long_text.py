"""Text of any length from one client holds up nobody: not its own answer, and not the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.http.samples import error, fresh, namespace, schema, table
from tests.server import Server

BLANKS = " " * 200_000
TEXTS = [
    f"geography({BLANKS}",
    f"geometry({BLANKS}x",
    f"decimal({BLANKS}9",
    f"fixed[{BLANKS}",
    f"geography{BLANKS}(",
    f"geography(a{BLANKS},{BLANKS}b",
    "geography(" * 20_000,
]

# Seconds. The machine may be busy; what these texts can cost is minutes or for ever.
_ANSWER, _ALIVE = 10.0, 5.0

Send = Callable[[httpx.Client, str], httpx.Response]


def _columns(text: str) -> dict[str, Any]:
    made = schema("note")
    made["fields"].append({"id": 3, "name": "g", "required": False, "type": text})
    return made


def _create(http: httpx.Client, text: str) -> httpx.Response:
    return http.post(f"/v1/namespaces/{namespace(http)}/tables", json={"name": "t", "schema": _columns(text)})


def _add_schema(http: httpx.Client, text: str) -> httpx.Response:
    ns = namespace(http)
    update = {"action": "add-schema", "schema": _columns(text), "last-column-id": 3}
    return http.post(
        f"/v1/namespaces/{ns}/tables/{table(http, ns)['name']}", json={"requirements": [], "updates": [update]}
    )


def _check(http: httpx.Client, text: str) -> httpx.Response:
    ns = namespace(http)
    path = f"/icekeel/v1/default/namespaces/{ns}/tables/{table(http, ns)['name']}/evolution/check"
    return http.post(path, json={"operations": [{"op": "add", "path": "g", "type": text}]})


def _create_view(http: httpx.Client, text: str) -> httpx.Response:
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["x"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    }
    body = {"name": fresh("v"), "schema": _columns(text), "view-version": version, "properties": {}}
    return http.post(f"/v1/namespaces/{namespace(http)}/views", json=body)


@contextmanager
def watched(server: Server) -> Iterator[list[float]]:
    """Seconds that `/health/live` takes, asked over and over from a connection of its own."""
    took: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with server.client(timeout=60) as client:
            while not done.is_set() or not took:
                began = time.monotonic()
                assert client.get("/health/live").status_code == 200
                took.append(time.monotonic() - began)
                asked.set()

    asked = threading.Event()
    asking = threading.Thread(target=ask)
    asking.start()
    asked.wait(_ALIVE)
    try:
        yield took
    finally:
        done.set()
        asking.join()


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:10])
@pytest.mark.parametrize("send", [_create, _add_schema, _check, _create_view])
def test_a_long_type_is_refused_at_once(server: Server, http: httpx.Client, send: Send, text: str) -> None:
    """With 400, in a short envelope, while the server answers others."""
    with watched(server) as took:
        began = time.monotonic()
        answer = send(http, text)
        assert time.monotonic() - began < _ANSWER
    assert answer.status_code == 400
    assert "Cannot parse type" in error(answer)["message"] and len(answer.content) < 1_000
    assert max(took) < _ALIVE


@LOCAL_ONLY
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:10])
def test_a_registered_file_with_a_long_type_is_refused_at_once(server: Server, http: httpx.Client, text: str) -> None:
    """A metadata file is client text too."""
    ns = namespace(http)
    found = table(http, ns)
    location = found["metadata-location"].removeprefix("file://")
    with open(location, encoding="utf-8") as file:
        document = file.read()
    copy = location.replace("00000-", "00001-")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(document.replace('"type":"string"', f'"type":"{text}"'))
    with watched(server) as took:
        began = time.monotonic()
        answer = http.post(f"/v1/namespaces/{ns}/register", json={"name": fresh("t"), "metadata-location": copy})
        assert time.monotonic() - began < _ANSWER
    assert answer.status_code == 400
    assert "Cannot parse type" in error(answer)["message"]
    assert max(took) < _ALIVE


@pytest.mark.parametrize(
    "body",
    [
        {"operations": [{"op": BLANKS}]},
        {"operations": [{"op": "drop", "path": "a." * 100_000}]},
        {"operations": [{"op": "rename", "path": BLANKS, "to": BLANKS}]},
        {"operations": [{"op": "add", "path": "g", "type": "decimal(9,2)", "default": "1" * 200_000}]},
        {"operations": [{"op": "add", "path": "g", "type": "timestamp", "default": "2026-11-01T" + "1" * 200_000}]},
        {"arrow-ipc-schema": "A" * 200_000},
        {"fields": [{"name": "g", "type": "int", "renamed-from": BLANKS}]},
        {"updates": [{"action": BLANKS}], "requirements": []},
        {"updates": [{"action": "set-location", "location": "s3://b" + "/.." * 60_000}], "requirements": []},
        {"updates": [{"action": "assign-uuid", "uuid": "0" * 200_000}], "requirements": []},
    ],
    ids=lambda body: str(body)[:60].split("  ")[0],
)
def test_other_long_text_is_answered_at_once(server: Server, http: httpx.Client, body: dict[str, Any]) -> None:
    """Refused, or told to be incompatible, and not repeated in full."""
    ns = namespace(http)
    path = f"/icekeel/v1/default/namespaces/{ns}/tables/{table(http, ns)['name']}/evolution/check"
    with watched(server) as took:
        began = time.monotonic()
        answer = http.post(path, json=body)
        assert time.monotonic() - began < _ANSWER
    assert answer.status_code == 400 or answer.json()["verdict"] == "incompatible"
    assert max(took) < _ALIVE
