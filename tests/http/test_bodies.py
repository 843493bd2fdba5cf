"""Large, slow, chunked and broken-off bodies."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.http import wire
from tests.http.samples import error, fresh
from tests.server import Server

LIMIT = 100_000
HEAD = b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"BODY_LIMIT": str(LIMIT), "BODY_TIMEOUT": "0.5"}
    with Server(tmp_path_factory.mktemp("small") / "home", settings=settings) as running:
        yield running


def test_an_announced_body_beyond_the_limit_is_413(small: Server) -> None:
    """Refused by its Content-Length, before a byte of it is read."""
    answer = wire.send(small, HEAD + f"Content-Length: {LIMIT + 1}\r\n\r\n".encode())
    assert answer.status == 413 and b'"code":413' in answer.body and b"ICEKEEL_BODY_LIMIT" in answer.body


def test_a_chunked_body_beyond_the_limit_is_413(small: Server) -> None:
    """A body that announces nothing is counted as it comes."""

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * (LIMIT // 10)

    with small.client() as http:
        answer = http.post("/v1/namespaces", content=pieces(), headers={"content-type": "application/json"})
    assert error(answer)["code"] == 413


def test_a_chunked_body_within_the_limit_is_fine(small: Server) -> None:
    """Chunks are one body."""
    name = fresh("chunked")

    def pieces() -> Iterator[bytes]:
        yield b'{"namespace":'
        yield f'["{name}"]}}'.encode()

    with small.client() as http:
        answer = http.post("/v1/namespaces", content=pieces(), headers={"content-type": "application/json"})
        assert answer.json()["namespace"] == [name]


def test_the_connection_is_usable_after_a_413(small: Server) -> None:
    """What is left of the refused body is not taken for the next request."""
    with small.client() as http:
        big = http.post("/v1/namespaces", content=b" " * (LIMIT + 1), headers={"content-type": "application/json"})
        assert big.status_code == 413
        assert http.get("/v1/config").status_code == 200


def test_a_slow_body_is_408(small: Server) -> None:
    """A sender that stops half-way does not hold the server for ever."""
    began = time.monotonic()
    answer = wire.send(small, HEAD + b"Content-Length: 50\r\n\r\n{")
    assert answer.status == 408 and b'"code":408' in answer.body
    assert 0.3 < time.monotonic() - began < 10


def test_a_broken_off_body_does_nothing(small: Server) -> None:
    """Half a request is no request, and the server goes on."""
    name = fresh("half")
    body = f'{{"namespace":["{name}"]}}'.encode()
    with socket.create_connection(("127.0.0.1", small.port)) as connection:
        connection.sendall(HEAD + f"Content-Length: {len(body) + 1}\r\n\r\n".encode() + body)
    with small.client() as http:
        assert http.head(f"/v1/namespaces/{name}").status_code == 404


def test_java_may_send_latin1(small: Server) -> None:
    """Iceberg's Java client serialises bodies as ISO-8859-1; from it alone they are read as that."""
    body = '{"namespace":["caf\xe9"]}'.encode("latin-1")
    json, java = "Content-Type: application/json", "X-Client-Version: Apache Iceberg 1.10.0 (commit abc)"
    assert wire.request(small, "POST", "/v1/namespaces", json, body=body).status == 400
    assert wire.request(small, "POST", "/v1/namespaces", json, "X-Client-Version: 0.14.1", body=body).status == 400
    made = wire.request(small, "POST", "/v1/namespaces", json, java, body=body)
    assert made.status == 200, made.body
    assert wire.request(small, "HEAD", "/v1/namespaces/caf%C3%A9").status == 204


def test_java_may_send_utf8(small: Server) -> None:
    """What is valid UTF-8 is read as UTF-8, whoever sends it."""
    body = '{"namespace":["日本"]}'.encode()
    java = "X-Client-Version: Apache Iceberg 1.10.0 (commit abc)"
    made = wire.request(small, "POST", "/v1/namespaces", "Content-Type: application/json", java, body=body)
    assert "日本".encode() in made.body


def test_expect_continue_is_answered(small: Server) -> None:
    """curl waits for 100 Continue before it sends a large body."""
    body = f'{{"namespace":["{fresh("expect")}"]}}'.encode()
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\n" + f"Content-Length: {len(body)}\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
