"""The application as the server that runs it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.middleware import Middleware

from app.edge.lifespan import OneLine
from app.errors import BadSettings


async def _cut() -> None:
    raise asyncio.CancelledError


def application(error: Exception | None = None, closed: list[bool] | None = None) -> FastAPI:
    """An application whose start fails with `error`, and which notes in `closed` that it was ended."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if error is not None:
            raise error
        try:
            yield
        finally:
            if closed is not None:
                closed.append(True)

    made = FastAPI(lifespan=lifespan, middleware=[Middleware(OneLine)])
    made.add_api_route("/cut", _cut)
    return made


def run(app: FastAPI, scope: dict[str, Any], *received: str) -> list[Any]:
    sent: list[Any] = []
    messages = iter(received)

    async def receive() -> Any:
        return {"type": next(messages)}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def test_what_is_cut_off_ends_in_silence() -> None:
    """The layers have answered; raised on, it would be a traceback for every request that a stop cuts off."""
    scope = {"type": "http", "method": "GET", "path": "/cut", "headers": [], "query_string": b""}
    assert run(application(), scope) == []


def test_a_lifetime_that_is_cut_off_ends_in_silence() -> None:
    """As when a stop is told twice: what was opened is closed, and there is no traceback."""
    sent: list[str] = []
    closed: list[bool] = []
    app = application(closed=closed)

    async def story() -> None:
        messages: asyncio.Queue[Any] = asyncio.Queue()
        messages.put_nowait({"type": "lifespan.startup"})

        async def send(message: Any) -> None:
            sent.append(message["type"])

        running = asyncio.ensure_future(app({"type": "lifespan"}, messages.get, send))
        await asyncio.sleep(0.01)
        running.cancel()
        await running

    asyncio.run(story())
    assert sent == ["lifespan.startup.complete"] and closed == [True]


def test_a_lifetime_is_told_in_two_messages() -> None:
    """Started, and ended."""
    sent = run(application(), {"type": "lifespan"}, "lifespan.startup", "lifespan.shutdown")
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.parametrize(("error", "told"), [(BadSettings("one line"), "one line"), (ValueError("odd"), "Traceback")])
def test_a_start_that_fails_says_why(error: Exception, told: str) -> None:
    """Our own failures by their message alone, others by their traceback."""
    (sent,) = run(application(error), {"type": "lifespan"}, "lifespan.startup")
    assert sent["type"] == "lifespan.startup.failed" and sent["message"].startswith(told)
    assert ("\n" in sent["message"]) is (told == "Traceback")
