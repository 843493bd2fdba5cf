"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.azurite import Azure, azurite
from tests.azurite import CannotStart as CannotStartAzure
from tests.postgres import CannotStart as CannotStartPostgres
from tests.postgres import Postgres, postgres
from tests.seaweedfs import S3, CannotStart, seaweedfs

# Machines are shared and small: how long an example takes says nothing about the law it tests.
settings.register_profile(
    "shared", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("shared")


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A real S3, one per test process; tests that need it skip with the reason where it cannot start."""
    server = seaweedfs(tmp_path_factory.mktemp("seaweedfs"))
    try:
        running = server.__enter__()
    except CannotStart as reason:
        pytest.skip(str(reason))
    try:
        yield running
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A real PostgreSQL, one per test process; tests that need it skip with the reason where it cannot start."""
    server = postgres()
    try:
        running = server.__enter__()
    except CannotStartPostgres as reason:
        pytest.skip(str(reason))
    try:
        yield running
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    """A real Azure Blob protocol; tests that need it skip with the reason where it cannot start."""
    server = azurite(tmp_path_factory.mktemp("azurite"))
    try:
        running = server.__enter__()
    except CannotStartAzure as reason:
        pytest.skip(str(reason))
    try:
        yield running
    finally:
        server.__exit__(None, None, None)
