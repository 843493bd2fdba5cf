"""Requests that come again in the same words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Scope

from app.catalog.contention import Peer
from app.edge.access_log import Observe, Observer
from app.edge.answer import Answer
from app.edge.envelope import Envelope
from app.edge.metrics import Metrics
from app.edge.recall import Recall, repeated
from app.errors import BadRequest, Unavailable

HEAD = [(b"host", b"localhost"), (b"authorization", b"Bearer one")]


def render(error: BaseException, scope: Scope) -> Answer:
    return Answer(500 if isinstance(error, asyncio.CancelledError) else 400, str(error).encode())


class Shop:
    """An application behind the layer: it counts how often a request was understood, and how often it was answered."""

    def __init__(self, limit: int = 8) -> None:
        self.understood = 0
        self.answered = 0
        self.addresses: list[Peer | None] = []
        self.body = b"first"
        self.fault: BaseException | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.metrics = Metrics()
        observer = Observer(metrics=self.metrics, monotonic=lambda: 0.0, id_prefix="p", sample=0, slow_s=1.0)
        self.layer = Recall(Observe(Envelope(self._app, render=render), observer), observer, render, limit=limit)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.understood += 1
        scope["route"] = type("Route", (), {"path": "/{x}"})

        async def answer(address: Peer | None) -> Answer:
            self.answered += 1
            self.addresses.append(address)
            self.meanwhile()
            if self.fault is not None:
                raise self.fault
            return Answer(200, self.body, [("ETag", '"t"')])

        await (await repeated(Request(scope, receive, send), answer))(scope, receive, send)

    def ask(
        self,
        path: str = "/x",
        headers: list[tuple[bytes, bytes]] = HEAD,
        method: str = "GET",
        query: bytes = b"",
        sent: list[Any] | None = None,
        client: Peer | None = None,
    ) -> tuple[int, bytes, dict[bytes, bytes]]:
        sent = [] if sent is None else sent

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": list(headers),
            "client": client,
        }
        asyncio.run(self.layer(scope, None, send))  # type: ignore[arg-type]
        return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:]), dict(sent[0]["headers"])


def test_a_known_head_is_answered_anew_but_not_understood_anew() -> None:
    """The answer is of now, whatever it was when the head was first seen."""
    shop = Shop()
    assert shop.ask()[:2] == (200, b"first")
    shop.body = b"second"
    assert shop.ask()[:2] == (200, b"second")
    assert (shop.understood, shop.answered) == (1, 2)


def test_the_same_words_on_two_connections_are_one_head_asked_by_two() -> None:
    """Each answer is told which connection it is for, the first one and the known ones."""
    shop = Shop()
    for client in (("127.0.0.1", 1), ("127.0.0.1", 2), None):
        shop.ask(client=client)
    assert shop.understood == 1
    assert shop.addresses == [("127.0.0.1", 1), ("127.0.0.1", 2), None]


def test_every_part_of_the_head_counts() -> None:
    """Another token, path, query, method or order of headers is another request."""
    shop = Shop()
    shop.ask()
    shop.ask(headers=[(b"host", b"localhost"), (b"authorization", b"Bearer two")])
    shop.ask(headers=HEAD[::-1])
    shop.ask(path="/y")
    shop.ask(query=b"snapshots=refs")
    shop.ask(method="HEAD")
    assert shop.understood == 6


def test_a_repeat_that_fails_is_told_by_the_layers_below() -> None:
    """A refusal is computed and rendered in full, as for a head that was never seen."""
    shop = Shop()
    shop.ask()
    shop.fault = BadRequest("gone")
    status, body, _ = shop.ask()
    assert (status, body, shop.understood) == (400, b"gone", 2)
    shop.fault = None
    assert shop.ask()[0] == 200
    assert shop.understood == 2


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_store_that_is_away_is_told_at_once(method: str) -> None:
    """Asked once more below, a store that does not answer would be waited for twice."""
    shop = Shop()
    shop.ask(method=method)
    shop.fault = Unavailable("away")
    status, body, headers = shop.ask(method=method)
    assert (status, body) == (400, b"away" if method == "GET" else b"")
    assert headers[b"X-Request-Id"]
    assert (shop.understood, shop.answered) == (1, 2)


def test_only_good_answers_make_a_head_known() -> None:
    """A refused head is understood again each time."""
    shop = Shop()
    shop.fault = BadRequest("no")
    shop.ask()
    shop.ask()
    assert shop.understood == 2 and len(shop.layer) == 0


def test_changes_are_never_repeated() -> None:
    """A POST goes through every layer."""
    shop = Shop()
    shop.ask(method="POST")
    shop.ask(method="POST")
    assert shop.understood == 2


def test_heads_that_will_not_come_again_are_not_kept() -> None:
    """An id of the request's own, a body, or a head of more than 4 KiB."""
    shop = Shop()
    for header in (
        (b"x-request-id", b"1"),
        (b"traceparent", b"00-1-2-01"),
        (b"content-length", b"0"),
        (b"transfer-encoding", b"chunked"),
        (b"x-long", b"a" * 5000),
    ):
        shop.ask(headers=[*HEAD, header])
    assert len(shop.layer) == 0


def test_the_heads_used_last_are_kept() -> None:
    """The memory is bounded; what was not asked for the longest goes first."""
    shop = Shop(limit=2)
    shop.ask("/a")
    shop.ask("/b")
    shop.ask("/a")
    shop.ask("/c")
    assert len(shop.layer) == 2
    shop.ask("/a")
    assert shop.understood == 3
    shop.ask("/b")
    assert shop.understood == 4


def test_known_heads_are_counted_and_named_like_others() -> None:
    """Metrics by route and status; an X-Request-Id that differs each time."""
    shop = Shop()
    names = {shop.ask()[2][b"X-Request-Id"] for _ in range(3)}
    assert len(names) == 3
    assert b'icekeel_http_requests_total{method="GET",route="/{x}",status="200"} 3' in shop.metrics.render()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_repeat_that_is_cut_off_is_told(method: str) -> None:
    """A server that stops cancels what runs; the client hears of it in the envelope, and so do the metrics."""
    shop = Shop()
    shop.ask(method=method)
    shop.fault = asyncio.CancelledError("cut off")
    sent: list[Any] = []
    with pytest.raises(asyncio.CancelledError):
        shop.ask(method=method, sent=sent)
    assert sent[0]["status"] == 500
    assert b"X-Request-Id" in dict(sent[0]["headers"])
    assert bool(sent[-1].get("body")) is (method == "GET")
    counted = f'icekeel_http_requests_total{{method="{method}",route="/{{x}}",status="500"}} 1'
    assert counted.encode() in shop.metrics.render()


def test_a_head_that_is_pushed_out_while_it_is_answered_is_answered() -> None:
    """Others may fill the memory in the time that a repeat waits for the store."""
    shop = Shop(limit=1)
    shop.ask("/a")
    shop.meanwhile = shop.layer._known.clear
    assert shop.ask("/a")[:2] == (200, b"first")


def test_an_answer_that_breaks_off_is_counted() -> None:
    """The connection may fail, or the server stop, while a large answer is sent."""
    shop = Shop()
    shop.ask()

    class Broken(list[Any]):
        def append(self, message: Any) -> None:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        shop.ask(sent=Broken())
    assert b'icekeel_http_requests_total{method="GET",route="/{x}",status="200"} 2' in shop.metrics.render()
