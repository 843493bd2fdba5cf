"""A server on PostgreSQL and S3; its fixtures carry the names of those of the HTTP suite, whose tests run here too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.backends import CANNOT_START, Scaled, scaled
from tests.cases.wire import Catalog
from tests.server import Server

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
"""A secret key of the right form."""


@pytest.fixture(scope="session")
def backend() -> Scaled:
    """PostgreSQL and S3; tests skip with the reason where one of them cannot start."""
    try:
        return scaled()
    except CANNOT_START as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def settings(backend: Scaled, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What all replicas share."""
    return {**backend.settings(tmp_path_factory.mktemp("scaled") / "home" / "warehouse"), "SECRET_KEY": KEY}


@pytest.fixture(scope="session")
def server(settings: dict[str, str]) -> Iterator[Server]:
    home = Path(settings["ALLOWED_LOCATIONS"].split(",")[0]).parent
    with Server(home, settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def operator(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A replica of the shared server with a token: without one no server makes warehouses in a cloud."""
    home = tmp_path_factory.mktemp("operator") / "home"
    with Server(home, settings=settings, token="of-the-operator") as running:
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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
