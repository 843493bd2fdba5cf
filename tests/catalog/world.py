"""The catalog under test: real store, real files, and a clock that only moves when it is told to (or by a tick)."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from app.catalog.context import Caches, Caller, Context, Limits
from app.catalog.warehouses import ensure_warehouse
from app.objects import WarehouseObjects
from app.ports import Store, Warehouse
from app.store import open_store

T = TypeVar("T")

HOME = "default"
DATABASE = "catalog.db"
ALICE = Caller(principal="alice", client="pyiceberg", client_version="0.12.0")


class Clock:
    """Milliseconds since the epoch, one more on every look, so that order is visible."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class Ids:
    """Real uuids from a seeded generator, so that a failing test fails again."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def uuid4(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


ALLOWED_ENDPOINT = "http://store:8333"


class World:
    """One server's catalog. `second()` gives another server's on the same database and folder."""

    def __init__(self, folder: Path, runner: asyncio.Runner, *, seed: int = 7, **limits: Any) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.clock = Clock()
        self.store: Store = open_store(f"sqlite:///{folder / DATABASE}", secret_keys=(bytes(32),))
        self.ctx = Context(
            store=self.store,
            objects=WarehouseObjects(allowed_endpoints=[ALLOWED_ENDPOINT]),
            clock=self.clock,
            ids=Ids(seed),
            caches=Caches(),
            limits=Limits(**limits),
        )
        self._runner = runner
        self._seconds: list[World] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    async def open(self) -> None:
        await self.store.open()
        self.warehouse.mkdir(exist_ok=True)
        await ensure_warehouse(self.ctx, Warehouse(name=HOME, location=str(self.warehouse)))

    async def close(self) -> None:
        for other in self._seconds:
            await other.close()
        await self.ctx.caches.tasks.drain()
        await self.store.close()
        await self.ctx.objects.close()

    async def second(self) -> World:
        other = World(self.folder, self._runner, seed=len(self._seconds) + 100)
        self._seconds.append(other)
        await other.open()
        return other

    def files(self) -> list[str]:
        """Every file below the warehouse, relative to it."""
        return sorted(str(p.relative_to(self.warehouse)) for p in self.warehouse.rglob("*") if p.is_file())
