"""A store and objects that fail on demand around the real ones: before, after, or instead of what was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal

from app.errors import ObjectsUnavailable, OutcomeUnknown, Unavailable
from app.ports import RecordKey
from tests.catalog.world import World

When = Literal["before", "after"]


class FaultyStore:
    """Passes everything on; the next writes may lose their connection before or after they really happened."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.lose: list[When] = []
        self.away = 0
        self.before_write: Callable[[], Awaitable[None]] | None = None
        self.after_write: Callable[[], Awaitable[None]] | None = None
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        if self.away and name in ("tabular", "tabular_by_id", "key"):
            self.away -= 1
            return _unavailable
        return getattr(self._store, name)

    async def write(self, unit: Any) -> None:
        if not unit:
            return
        self.writes += 1
        hook, self.before_write = self.before_write, None
        if hook is not None:
            await hook()
        fault = self.lose.pop(0) if self.lose else None
        if fault == "before":
            raise OutcomeUnknown("connection lost")
        await self._store.write(unit)
        hook, self.after_write = self.after_write, None
        if hook is not None:
            await hook()
        if fault == "after":
            raise OutcomeUnknown("connection lost")


async def _unavailable(*arguments: object, **named: object) -> Any:
    raise Unavailable("the database is away")


class FaultyObjects:
    """Passes everything on; the next creates may fail before or after the file is there."""

    def __init__(self, objects: Any) -> None:
        self._objects = objects
        self.fail: list[When | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    async def create(self, location: str, data: bytes) -> None:
        fault = self.fail.pop(0) if self.fail else None
        if fault == "before":
            raise ObjectsUnavailable("no space left on device")
        await self._objects.create(location, data)
        if fault == "after":
            raise ObjectsUnavailable("the answer was lost")


class FaultyStores:
    def __init__(self, stores: Any) -> None:
        self._stores = stores
        self.objects: FaultyObjects | None = None

    def of(self, warehouse: Any) -> Any:
        if self.objects is None:
            self.objects = FaultyObjects(self._stores.of(warehouse))
        return self.objects

    async def close(self) -> None:
        await self._stores.close()


def faulty_store(world: World) -> FaultyStore:
    """Put a failing store between the catalog and its real one."""
    store = FaultyStore(world.ctx.store)
    world.ctx = replace(world.ctx, store=store)
    return store


def faulty_objects(world: World) -> FaultyObjects:
    """Put failing storage between the catalog and its real one."""
    stores = FaultyStores(world.ctx.objects)
    world.ctx = replace(world.ctx, objects=stores)
    warehouse = world.run(world.store.warehouse("default"))
    objects: FaultyObjects = stores.of(warehouse)
    return objects


def keys_in(unit: Any) -> list[str]:
    return [op.record.key for op in unit if isinstance(op, RecordKey)]
