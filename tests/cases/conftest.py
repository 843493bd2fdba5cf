from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.cases.wire import Catalog
from tests.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server process for all cases that need not stop it."""
    with Server(tmp_path_factory.mktemp("cases") / "home") as running:
        yield running


@pytest.fixture(scope="session")
def http(server: Server) -> Iterator[httpx.Client]:
    with server.client(timeout=60.0) as client:
        yield client


@pytest.fixture(scope="session")
def catalog(server: Server, http: httpx.Client) -> Catalog:
    return Catalog(http, server.warehouse)


@pytest.fixture
def ns(catalog: Catalog) -> tuple[str, ...]:
    """A namespace that no other test uses."""
    return catalog.namespace()
