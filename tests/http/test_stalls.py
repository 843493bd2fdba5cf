"""What one client sends holds nobody else up."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.http.samples import namespace, schema, table
from tests.server import Server

# Half a second is what others may notice; a machine that runs other tests as well needs room above that.
LONGEST_S = 2.0

WIDE = 10_000


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("victim") / "home") as running:
        yield running


@contextmanager
def watched(server: Server) -> Iterator[None]:
    """Asks for `/health/live` all the while; the longest wait for an answer is bounded."""
    waits: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with server.client(timeout=60) as http:
            while True:
                last = done.is_set()
                began = time.perf_counter()
                assert http.get("/health/live").status_code == 200
                waits.append(time.perf_counter() - began)
                if last:
                    return
                done.wait(0.01)

    watch = threading.Thread(target=ask)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
    assert max(waits) < LONGEST_S


def numbers(digits: int, size: int) -> bytes:
    return b'{"namespace":["n"],"properties":[' + b",".join([b"9" * digits] * (size // digits)) + b"]}"


BODIES: dict[str, Callable[[], bytes]] = {
    "63 MB of empty objects": lambda: b'{"namespace":[' + b"{}," * 21_000_000 + b"{}]}",
    "half a million values": lambda: b'{"namespace":[' + b"[]," * 240_000 + b"[]]}",
    "15 MB of long integers": lambda: numbers(4_000, 15_000_000),
    "15 MB of integers": lambda: numbers(19, 15_000_000),
    "15 MB of integers beyond 64 bits": lambda: numbers(390, 15_000_000),
    "one integer of 15 MB": lambda: b'{"namespace":' + b"9" * 15_000_000 + b"}",
    "brackets alone": lambda: b"[" * 60_000_000,
    "quotes alone": lambda: b'"' * 60_000_000,
    "many members": lambda: b"{" + b",".join(b'"k%d":1' % at for at in range(450_000)) + b"}",
    "many properties": lambda: json.dumps(
        {"namespace": ["n"], "properties": {f"k{at}": "" for at in range(450_000)}}
    ).encode(),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_a_hostile_body_is_refused_beside_others(victim: Server, body: Callable[[], bytes]) -> None:
    """400, and the server answers others meanwhile."""
    content = body()
    with victim.client(timeout=60) as http, watched(victim):
        answer = http.post("/v1/namespaces", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text


@LOCAL_ONLY
def test_a_file_that_unpacks_to_very_much_is_refused_beside_others(victim: Server) -> None:
    """400 KB of gzip that would become 400 MB: 413 on registration."""
    with victim.client(timeout=60) as http:
        ns = namespace(http)
        place = Path(table(http, ns)["metadata-location"].removeprefix("file://")).parent
        file = place / "00001-bomb.gz.metadata.json"
        file.write_bytes(gzip.compress(b" " * 400_000_000, 6))
        with watched(victim):
            answer = http.post(f"/v1/namespaces/{ns}/register", json={"name": "bomb", "metadata-location": str(file)})
    assert answer.status_code == 413, answer.text
    assert "unpacks to more than" in answer.text


def columns(number: int) -> dict[str, Any]:
    return schema(*[f"c{at}" for at in range(number)])


def specs(http: httpx.Client, ns: str, name: str) -> httpx.Response:
    updates = [
        {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "name": f"p{at}", "transform": f"bucket[{at}]"}]}}
        for at in range(1, 4_001)
    ]
    return http.post(f"/v1/namespaces/{ns}/tables/{name}", json={"requirements": [], "updates": updates})


def schemas(http: httpx.Client, ns: str, name: str) -> httpx.Response:
    updates = [
        {"action": "add-schema", "schema": {**schema("note"), "fields": [*schema("note")["fields"], new]}}
        for new in ({"id": at, "name": f"x{at}", "type": "int", "required": False} for at in range(3, 4_003))
    ]
    return http.post(f"/v1/namespaces/{ns}/tables/{name}", json={"requirements": [], "updates": updates})


def planned(operations: list[dict[str, Any]]) -> Callable[[httpx.Client, str, str], httpx.Response]:
    def ask(http: httpx.Client, ns: str, name: str) -> httpx.Response:
        wide = table(http, ns, schema=columns(WIDE))["name"]
        return http.post(
            f"/icekeel/v1/default/namespaces/{ns}/tables/{wide}/evolution/check", json={"operations": operations}
        )

    return ask


REQUESTS: dict[str, Callable[[httpx.Client, str, str], httpx.Response]] = {
    "specs": specs,
    "schemas": schemas,
    "renames": planned([{"op": "rename", "path": f"c{at}", "to": f"d{at}"} for at in range(WIDE)]),
    "moves": planned([{"op": "move", "path": f"c{at}", "first": True} for at in range(WIDE)]),
    "a wide table": lambda http, ns, name: http.post(
        f"/v1/namespaces/{ns}/tables", json={"name": "w", "schema": columns(45_000)}
    ),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=list(REQUESTS))
def test_a_large_request_is_answered_beside_others(
    victim: Server, request_: Callable[[httpx.Client, str, str], httpx.Response]
) -> None:
    """It is legal and takes its time, and the server answers others meanwhile."""
    with victim.client(timeout=60) as http:
        ns = namespace(http)
        name = table(http, ns)["name"]
        with watched(victim):
            answer = request_(http, ns, name)
    assert answer.status_code == 200, answer.text[:500]


def test_what_is_beyond_a_limit_is_told(victim: Server) -> None:
    """The limit is named, so that the client knows how to cut its request up."""
    with victim.client(timeout=60) as http:
        ns = namespace(http)
        name = table(http, ns)["name"]
        answer = planned([{"op": "set-doc", "path": "id", "doc": "x"}] * 20_001)(http, ns, name)
        assert answer.status_code == 400 and "at most 20000" in answer.text
        answer = http.post(f"/v1/namespaces/{ns}/tables", json={"name": "w", "schema": columns(50_000)})
        assert answer.status_code == 400 and "at most 50000" in answer.text
