"""Whatever goes wrong, and in whatever layer, the answer is the Iceberg error envelope with `code` = status."""

from __future__ import annotations

import socket

import httpx
import pytest

from tests.http import wire
from tests.http.samples import error, fresh, namespace
from tests.server import Server

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "path", ["/", "/nope", "/v1", "/v1/", "/v1/config/", "/v2/config", "/v1/oauth/tokens", "/icekeel/v1"]
)
def test_an_unknown_route_is_404(http: httpx.Client, path: str) -> None:
    """The router's own 404 has the envelope too."""
    assert error(http.get(path))["code"] == 404


@pytest.mark.parametrize("tail", ["plan", "credentials", "sign", "tasks"])
def test_what_is_not_offered_yet_is_a_clean_404(http: httpx.Client, tail: str) -> None:
    """Planning, credentials and signing are neither advertised nor there."""
    assert error(http.post(f"/v1/namespaces/a/tables/b/{tail}", json={}))["code"] == 404
    assert not any(tail in endpoint for endpoint in http.get("/v1/config").json()["endpoints"])


def test_a_wrong_method_is_405_and_names_the_right_ones(http: httpx.Client) -> None:
    """Allow lists every method of the path, from all its routes."""
    answer = http.patch("/v1/namespaces/a/tables/b")
    assert error(answer)["code"] == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD, POST"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b'{"namespace":["a"]', b"[]", b"null", b'"x"', b"1", b"NaN", b'{"namespace":["a"],"x":NaN}',
        b"\xff\xfe", b'{"namespace":["\xe9"]}', b'{"namespace":"a"}', b'{"namespace":[1]}', b'{"namespace":[]}',
        b'{"namespace":[""]}',
        b'{"namespace":null}', b"{}", b'{"namespace":["a"]} trailing', b'{"namespace":["a"],"properties":[]}',
        b'{"namespace":["a"],"properties":{"k":1}}', b'{"namespace":["a"],"properties":{"k":null}}', b"[" * 100_000,
        b'{"namespace":["a\\u0000b"]}', b'{"namespace":["."]}', b'{"namespace":[".."]}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000, b'\xef\xbb\xbf{"namespace":["a"]}', b'{"namespace":["\\ud800"]}',
    ],
)  # fmt: skip
def test_a_bad_body_is_400(http: httpx.Client, body: bytes) -> None:
    """Truncated, deeply nested, wrongly typed, not UTF-8, not JSON: never 422, never 500."""
    assert error(http.post("/v1/namespaces", content=body, headers=JSON))["code"] == 400


def test_a_member_that_is_named_twice_is_refused(http: httpx.Client) -> None:
    """A proxy in between may have read the other value; the answer names the member, and nothing is made."""
    name = fresh("dup")
    body = f'{{"namespace":["other"],"namespace":["{name}"]}}'
    refused = error(http.post("/v1/namespaces", content=body.encode(), headers=JSON))
    assert refused["code"] == 400 and "namespace" in refused["message"]
    assert http.get(f"/v1/namespaces/{name}").status_code == 404


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_is_not_json_by_type_is_415(http: httpx.Client, kind: str) -> None:
    """A web page can send these types across sites without asking; JSON it cannot."""
    headers = {"content-type": kind} if kind else {}
    assert error(http.post("/v1/namespaces", content=b'{"namespace":["x"]}', headers=headers))["code"] == 415


def test_a_charset_may_follow_the_media_type(http: httpx.Client) -> None:
    """Java sends `application/json; charset=UTF-8`."""
    headers = {"content-type": "application/json; charset=UTF-8"}
    body = f'{{"namespace":["{fresh("cs")}"]}}'
    assert http.post("/v1/namespaces", content=body.encode(), headers=headers).status_code == 200


def test_a_compressed_body_is_415(http: httpx.Client) -> None:
    """Nothing is unpacked that could be a bomb."""
    headers = {**JSON, "content-encoding": "gzip"}
    assert error(http.post("/v1/namespaces", content=b"\x1f\x8b", headers=headers))["code"] == 415


@pytest.mark.parametrize(
    "path", ["/v1/namespaces/%", "/v1/namespaces/%zz", "/v1/namespaces/%ff", "/v1/namespaces/a/tables/%c3%28"]
)
def test_a_malformed_path_is_400(server: Server, path: str) -> None:
    """Broken escapes and invalid UTF-8 are refused before anything is looked up."""
    answer = wire.request(server, "GET", path)
    assert answer.status == 400 and b'"code":400' in answer.body


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nabcde",
        b"GET /v1/config HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET /v1/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ],
)
def test_malformed_http_is_400(server: Server, raw: bytes) -> None:
    """What never becomes a request is answered in the same form by the protocol itself."""
    answer = wire.send(server, raw)
    assert answer.status == 400
    assert answer.header("Content-Type") == "application/json"
    assert b'"code":400' in answer.body and b'"BadRequestException"' in answer.body


@pytest.mark.parametrize(
    "raw",
    [
        b"HEAD /v1/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"HEAD /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_malformed_http_leaves_no_traceback(server: Server, raw: bytes) -> None:
    """An answer to HEAD takes no body, and a request that turns bad midway may have its answer under way."""
    before = len(server.output())
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(raw)
        while connection.recv(65536):
            pass
    assert "Traceback" not in server.output()[before:]


def test_head_answers_have_no_body(server: Server, http: httpx.Client) -> None:
    """Not on success, not on 404, not on an unknown route."""
    name = namespace(http)
    for path, status in (
        (f"/v1/namespaces/{name}", 204),
        ("/v1/namespaces/nope", 404),
        ("/nope", 404),
        ("/v1/config", 405),
    ):
        answer = wire.request(server, "HEAD", path)
        assert (answer.status, answer.body) == (status, b""), path


def test_no_content_has_no_length(server: Server, http: httpx.Client) -> None:
    """204 carries neither a body nor Content-Length."""
    answer = wire.request(server, "DELETE", f"/v1/namespaces/{namespace(http)}")
    assert (answer.status, answer.body, answer.header("Content-Length")) == (204, b"", None)


def test_every_answer_has_a_request_id(http: httpx.Client) -> None:
    """A sane id of the client is kept, any other is replaced."""
    assert http.get("/v1/config").headers["x-request-id"] != http.get("/v1/config").headers["x-request-id"]
    assert http.get("/nope", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert http.get("/nope", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"


@pytest.mark.parametrize(
    "query",
    [
        "pageToken=&pageSize=0",
        "pageSize=-1",
        "pageSize=abc",
        "pageToken=garbage",
        "pageSize=",
        "pageSize=9999999999999999999999",
        "a=%ff",
    ],
)
def test_a_bad_query_is_400(http: httpx.Client, query: str) -> None:
    """Numbers that are none, tokens that nobody handed out, bytes that are not UTF-8."""
    assert error(http.get(f"/v1/namespaces?{query}"))["code"] == 400


def test_an_unknown_warehouse_is_404(http: httpx.Client) -> None:
    """By type, so that Java raises NoSuchWarehouseException."""
    assert error(http.get("/v1/config", params={"warehouse": "nope"}))["type"] == "NoSuchWarehouseException"
    assert error(http.get("/v1/nope/namespaces"))["type"] == "NoSuchWarehouseException"
