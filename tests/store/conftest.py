"""What tests of the store share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.ports import Store
from app.store import open_store
from tests.store.acts import house, space


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
async def sqlite(path: Path, anyio_backend: str) -> AsyncIterator[Store]:
    """An open store on a fresh file, with the warehouse `default` and the namespace `n`."""
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.write([house(), space("n")])
    yield store
    await store.close()
