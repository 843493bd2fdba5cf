"""`app.edge.guard`: tokens, and web pages that would use a server without one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.edge.guard import (
    ANONYMOUS,
    PRINCIPAL,
    TOKEN_HOLDER,
    Guard,
    bearer,
    host_name,
    is_loopback_name,
)
from app.errors import BadRequest, Forbidden, NotAuthenticated


def ask(guard_options: dict[str, Any], path: str = "/v1/config", method: str = "GET", **headers: str) -> str:
    """The principal that a request gets."""
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return ask_raw(guard_options, raw, path, method)


def ask_raw(
    guard_options: dict[str, Any], raw: list[tuple[bytes, bytes]], path: str = "/v1/config", method: str = "GET"
) -> str:
    """As `ask`, with header lines that may come twice."""
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope)

    scope = {"type": "http", "path": path, "method": method, "headers": raw}
    asyncio.run(Guard(app, **guard_options)(scope, None, None))  # type: ignore[arg-type]
    return str(seen[PRINCIPAL])


OPEN: dict[str, Any] = {"token": None, "local_only": True}
LOCKED: dict[str, Any] = {"token": "sesame", "local_only": True}


def test_the_right_token_is_let_in() -> None:
    """A request with the token has a principal of its own."""
    assert ask(LOCKED, authorization="Bearer sesame", host="db.example") == TOKEN_HOLDER


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer None", "Bearer ", "Basic sesame", "sesame", ""])
def test_any_other_authorization_is_refused(header: str) -> None:
    """A wrong token, PyIceberg's `None`, another scheme and nothing at all are not authenticated."""
    with pytest.raises(NotAuthenticated):
        ask(LOCKED, authorization=header, host="127.0.0.1")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_needs_no_token(path: str) -> None:
    """Probes carry no secrets."""
    assert ask(LOCKED, path=path, host="127.0.0.1") == ANONYMOUS


def test_metrics_need_the_token() -> None:
    """Numbers tell about tables, so they are not public."""
    with pytest.raises(NotAuthenticated):
        ask(LOCKED, path="/metrics", host="127.0.0.1")


@pytest.mark.parametrize("header", ["Bearer None", "Bearer something", ""])
def test_without_a_token_everybody_is_anonymous(header: str) -> None:
    """A server without a token ignores the ones that clients send."""
    assert ask(OPEN, authorization=header, host="localhost:8181") == ANONYMOUS


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8181", "localhost", "LOCALHOST:1", "[::1]:8181", "127.8.9.1", "db.localhost"]
)
def test_names_of_this_machine_are_fine(host: str) -> None:
    """Every loopback name is answered."""
    assert ask(OPEN, host=host) == ANONYMOUS


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1.evil.example", "10.0.0.1:8181", "", "[::1", "localhost.evil.example",
        "127.0.0.\xb2", "127.0.0.\xb9:8181", "127.0.0." + "1" * 5000, "127.0.0.-1", "\xff",
    ],
)  # fmt: skip
def test_a_foreign_host_is_refused(host: str) -> None:
    """A page that points its own name at 127.0.0.1 gets nothing."""
    with pytest.raises(Forbidden):
        ask(OPEN, host=host)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://localhost:9999", "http://127.0.0.1", "http://[::1", "http://[x]",
        "http://\xb2", "//", "localhost:8181", "\xff",
    ],
)  # fmt: skip
def test_a_foreign_origin_is_refused(origin: str) -> None:
    """A page of another origin is refused, even one on this machine but another port."""
    with pytest.raises(Forbidden):
        ask(OPEN, method="POST", host="localhost:8181", origin=origin)


def test_the_servers_own_origin_is_fine() -> None:
    """A page that this server gave out may ask it."""
    assert ask(OPEN, method="POST", host="localhost:8181", origin="http://localhost:8181") == ANONYMOUS


def test_a_cross_site_write_without_origin_is_refused() -> None:
    """Browsers name the site of a request even where they leave Origin out."""
    with pytest.raises(Forbidden):
        ask(OPEN, method="POST", host="localhost:8181", sec_fetch_site="cross-site")


@pytest.mark.parametrize("name", [b"host", b"origin", b"authorization"])
@pytest.mark.parametrize("guard", [OPEN, LOCKED])
def test_a_doubled_header_is_refused(guard: dict[str, Any], name: bytes) -> None:
    """Of two, a proxy may have judged the other one; even two equal ones, and with the right token too."""
    once = {b"host": b"localhost", b"origin": b"http://localhost", b"authorization": b"Bearer sesame"}
    for twice in ([(name, once[name])], [(name, b"https://evil.example")]):
        for raw in ([*once.items(), *twice], [*twice, *once.items()]):
            with pytest.raises(BadRequest, match=f"Header {name.decode()} was sent more than once"):
                ask_raw(guard, raw)
    ask_raw(guard, list(once.items()))


def test_one_foreign_site_among_several_is_enough() -> None:
    """A later line does not take back what an earlier one said."""
    sites = [(b"sec-fetch-site", b"cross-site"), (b"sec-fetch-site", b"same-origin")]
    for raw in (sites, sites[::-1]):
        with pytest.raises(Forbidden):
            ask_raw(OPEN, [(b"host", b"localhost"), *raw], method="POST")


def test_any_host_is_fine_when_others_are_served() -> None:
    """With --allow-anonymous the name under which others reach the server cannot be known."""
    assert ask({"token": None, "local_only": False}, host="catalog.internal") == ANONYMOUS


def test_a_token_makes_host_and_origin_irrelevant() -> None:
    """A page cannot know the token, so nothing else needs checking."""
    assert (
        ask(LOCKED, host="evil.example", origin="https://evil.example", authorization="bearer sesame") == TOKEN_HOLDER
    )


def test_bearer_reads_the_scheme_in_any_case() -> None:
    """RFC 9110: authentication schemes have no case."""
    assert bearer(b"bEaReR  abc ") == b"abc"


@pytest.mark.parametrize(
    ("authority", "host"), [("a:1", "a"), ("[::1]:2", "::1"), ("A.b", "a.b"), ("[x", ""), ("", "")]
)
def test_host_name_drops_the_port(authority: str, host: str) -> None:
    """Only the host counts."""
    assert host_name(authority) == host


def test_looks_like_loopback_but_is_not() -> None:
    """A label that begins like a loopback address does not make a name local."""
    assert not is_loopback_name("127.0.0.300")
    assert not is_loopback_name("127.0.0.1.nip.example")
