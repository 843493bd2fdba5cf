"""Fixtures of the black-box tests: one shared server per session, and a factory for servers of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.server import Server

MakeServer = Callable[..., Server]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server that tests share: use names of your own and do not stop it."""
    with Server(tmp_path_factory.mktemp("icekeel") / "home") as running:
        yield running


@pytest.fixture(scope="session")
def base_url(server: Server) -> str:
    return server.url


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    """A client of the shared server."""
    with server.client() as client:
        yield client


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """`make_server(settings={...}, args=[...], token=..., workers=...)` starts a server and stops it after the test.

    `start=False` returns it unstarted, for tests of a refused start.
    """
    made: list[Server] = []

    def make(home: Path | None = None, *, start: bool = True, **options: object) -> Server:
        fresh = Server(home or tmp_path / f"home{len(made)}", **options)  # type: ignore[arg-type]
        made.append(fresh)
        return fresh.start() if start else fresh

    yield make
    for server in made:
        server.stop()
