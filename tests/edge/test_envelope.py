"""`app.edge.envelope`: nothing escapes to the server, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from app.edge.access_log import Observe, Observer
from app.edge.answer import Answer
from app.edge.envelope import Envelope
from app.edge.metrics import Metrics
from app.errors import BadRequest


def render(error: BaseException, scope: Any) -> Answer:
    return Answer(400 if isinstance(error, BadRequest) else 500, type(error).__name__.encode())


def observer(metrics: Metrics) -> Observer:
    return Observer(metrics=metrics, monotonic=lambda: 0.0, id_prefix="p", sample=0, slow_s=1.0)


def ask(app: Any, method: str = "GET", headers: tuple[tuple[bytes, bytes], ...] = ()) -> tuple[list[Any], Metrics]:
    """Run one request through the outer layers; answers what was sent, and what was counted."""
    sent: list[Any] = []
    metrics = Metrics()

    async def send(message: Any) -> None:
        sent.append(message)

    layers = Observe(Envelope(app, render=render), observer(metrics))
    scope = {"type": "http", "method": method, "path": "/x", "headers": list(headers)}
    asyncio.run(layers(scope, None, send))  # type: ignore[arg-type]
    return sent, metrics


async def fine(scope: Any, receive: Any, send: Any) -> None:
    await Answer(200, b"fine", [("ETag", '"t"')])(scope, receive, send)


async def bad(scope: Any, receive: Any, send: Any) -> None:
    raise BadRequest("no")


async def crash(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


async def late(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ZeroDivisionError


async def cancelled(scope: Any, receive: Any, send: Any) -> None:
    raise asyncio.CancelledError


def test_an_answer_passes_with_its_id() -> None:
    """Header names keep their case; the request id is added."""
    (start, body), metrics = ask(fine)
    assert (b"ETag", b'"t"') in start["headers"] and (b"X-Request-Id", b"p-1") in start["headers"]
    assert body["body"] == b"fine"
    assert b'status="200"' in metrics.render()


@pytest.mark.parametrize(("app", "status"), [(bad, 400), (crash, 500)])
def test_an_error_becomes_an_answer(app: Any, status: int) -> None:
    """One that is ours and one that is not."""
    (start, body), metrics = ask(app)
    assert start["status"] == status and body["body"]
    assert f'status="{status}"'.encode() in metrics.render()


def test_head_gets_no_body() -> None:
    """The same status, and nothing after the headers."""
    (start, body), _ = ask(bad, method="HEAD")
    assert start["status"] == 400 and body["body"] == b""
    assert (b"Content-Length", b"0") in start["headers"]


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    """The server must close the connection, so that the client sees a broken answer and not a complete one."""
    with pytest.raises(ZeroDivisionError):
        ask(late)


def test_a_cancelled_request_is_answered_before_it_ends() -> None:
    """A client that hears nothing would not know that the outcome is unknown."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    layers = Observe(Envelope(cancelled, render=render), observer(Metrics()))

    async def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            await layers({"type": "http", "method": "POST", "path": "/x", "headers": []}, None, send)  # type: ignore[arg-type]

    asyncio.run(run())
    assert sent[0]["status"] == 500


def test_a_clients_own_id_is_kept_if_it_is_plain() -> None:
    """Anything that could disturb a log line is replaced."""
    (start, _), _ = ask(fine, headers=((b"x-request-id", b"abc-1"),))
    assert (b"X-Request-Id", b"abc-1") in start["headers"]
    (start, _), _ = ask(fine, headers=((b"x-request-id", b"a\x0bb"),))
    assert (b"X-Request-Id", b"p-1") in start["headers"]


def test_what_failed_is_freed_at_once() -> None:
    """A frame that knows its failure would keep all that it held until the next collection, and those are rare."""

    class Held:
        pass

    alive: list[weakref.ref[Held]] = []

    async def selfish(scope: Any, receive: Any, send: Any) -> None:
        held = Held()
        alive.append(weakref.ref(held))
        try:
            raise KeyError
        except KeyError as cause:
            failure = BadRequest("no")
            raise failure from cause

    gc.collect()
    gc.disable()
    try:
        ask(selfish)
        assert alive[0]() is None
    finally:
        gc.enable()
