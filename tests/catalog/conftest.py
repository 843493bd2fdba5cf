"""Fixtures of the use-case tests."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import migrate
from tests.catalog.world import DATABASE, World


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, made once: copying it is quicker than migrating for every test."""
    path = tmp_path_factory.mktemp("database") / DATABASE
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def world(tmp_path: Path, empty_database: Path) -> Iterator[World]:
    """A catalog with the default warehouse in a folder of its own; closed at the end, nothing left running."""
    shutil.copy(empty_database, tmp_path / DATABASE)
    with asyncio.Runner() as runner:
        made = World(tmp_path, runner)
        made.run(made.open())
        yield made
        made.run(made.close())
