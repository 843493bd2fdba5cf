from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from tests.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server process for each engine."""
    with Server(tmp_path_factory.mktemp("clients") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def catalog(server: Server) -> Catalog:
    """PyIceberg as its own documentation configures a REST catalog: an address and nothing else."""
    return load_catalog("icekeel", type="rest", uri=server.url)


@pytest.fixture(scope="session")
def duckdb_extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where DuckDB unpacks the extensions that come as Python packages, so that nothing is downloaded."""
    return tmp_path_factory.mktemp("duckdb-extensions")
