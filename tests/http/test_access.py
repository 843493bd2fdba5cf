"""The token, and a server without one facing web pages, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.http import wire
from tests.http.samples import error, fresh
from tests.server import Server


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("locked") / "home", token="sésame ouvre-toi") as running:
        yield running


@pytest.fixture(scope="module")
def token(locked: Server) -> str:
    return "Bearer " + "sésame ouvre-toi".encode().decode("latin-1")


def test_with_the_token_everything_works(locked: Server, token: str) -> None:
    """A token of any characters is compared as the bytes that were sent."""
    answer = wire.request(locked, "GET", "/v1/config", f"Authorization: {token}")
    assert answer.status == 200


@pytest.mark.parametrize(
    "header", [(), ("Authorization: Bearer nope",), ("Authorization: Bearer None",), ("Authorization: Basic eA==",)]
)
def test_without_it_everything_is_401(locked: Server, header: tuple[str, ...]) -> None:
    """Known and unknown routes alike, with the envelope and a challenge."""
    for path in ("/v1/config", "/v1/namespaces", "/nope", "/metrics", "/icekeel/v1/rules"):
        answer = wire.request(locked, "GET", path, *header)
        assert answer.status == 401 and b'"code":401' in answer.body and b'"NotAuthorizedException"' in answer.body
        assert answer.header("WWW-Authenticate") == "Bearer"


def test_health_and_documentation_need_no_token(locked: Server) -> None:
    """Probes and readers carry no secret."""
    for path in ("/health/live", "/health/ready", "/docs", "/openapi.json"):
        assert wire.request(locked, "GET", path).status == 200


def test_a_server_with_a_token_has_no_opinion_on_hosts(locked: Server, token: str) -> None:
    """Behind a proxy it is known by other names."""
    lines = [
        "GET /v1/config HTTP/1.1",
        "Host: catalog.example",
        f"Authorization: {token}",
        "Origin: https://x.example",
        "",
        "",
    ]
    assert wire.send(locked, "\r\n".join(lines).encode("latin-1")).status == 200


def test_pyiceberg_without_a_token_is_anonymous(http: httpx.Client) -> None:
    """`Bearer None` is what PyIceberg writes when it has no token."""
    assert http.get("/v1/config", headers={"Authorization": "Bearer None"}).status_code == 200


def test_a_foreign_host_is_403(server: Server) -> None:
    """DNS rebinding: a page's own name that points at this machine."""
    answer = wire.send(server, b"GET /v1/config HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert answer.status == 403 and b'"code":403' in answer.body


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"Host: 127.0.0.\xb2\r\n", 403),
        (b"Host: 127.0.0.1\r\nOrigin: http://[::1\r\n", 403),
        (b"Host: evil.example\r\nHost: 127.0.0.1\r\n", 400),
        (b"Host: 127.0.0.1\r\nOrigin: https://evil.example\r\nOrigin: http://127.0.0.1\r\n", 400),
    ],
)
def test_a_malformed_or_doubled_host_or_origin_is_refused(server: Server, lines: bytes, status: int) -> None:
    """With the envelope, and never as a failure of the server."""
    answer = wire.send(server, b"GET /v1/config HTTP/1.1\r\n" + lines + b"\r\n")
    assert answer.status == status and b'"code":%d' % status in answer.body


def test_without_a_token_the_api_opens_nothing(server: Server, http: httpx.Client) -> None:
    """Neither the server's disk, nor buckets and hosts of the caller's choice; and the warehouse is as it was."""
    path = "/icekeel/v1/warehouses/default"
    before = http.get(path).json()
    for body, status in (
        ({"allowed-locations": ["/etc"]}, 400),
        ({"allowed-locations": ["s3://anyone/x"]}, 403),
        ({"storage": {"s3.endpoint": "http://169.254.169.254"}}, 403),
    ):
        # Options that the settings give are beyond any request.
        assert error(http.patch(path, json=body))["code"] in (status, 400)
        new = {"name": "opened", "location": f"{server.home}/warehouses/opened", **body}
        assert error(http.post("/icekeel/v1/warehouses", json=new))["code"] == status
    assert http.get(path).json() == before
    assert http.get("/icekeel/v1/warehouses/opened").status_code == 404


def test_a_foreign_origin_is_403_and_changes_nothing(http: httpx.Client) -> None:
    """A cross-site request that a page could send is refused before it does anything."""
    name = fresh("evil")
    answer = http.post("/v1/namespaces", json={"namespace": [name]}, headers={"origin": "https://evil.example"})
    assert error(answer)["code"] == 403
    assert http.head(f"/v1/namespaces/{name}").status_code == 404


def test_no_answer_allows_other_origins(http: httpx.Client) -> None:
    """There is no CORS header that a preflight could pass on."""
    answer = http.request(
        "OPTIONS", "/v1/namespaces", headers={"origin": "http://127.0.0.1", "access-control-request-method": "POST"}
    )
    assert answer.status_code in (403, 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]
