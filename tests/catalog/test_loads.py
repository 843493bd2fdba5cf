"""One understood load that several requests share: each is answered for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from app.catalog import etags, tables
from app.catalog.answers import LoadedTable
from tests.catalog.shorthand import NS, commit, create, document, namespace, set_properties
from tests.catalog.world import ALICE, HOME, World


def shared(world: World, **more: Any) -> tables.TableLoad:
    return tables.TableLoad(world.ctx, ALICE, HOME, NS, "t", **more)


class Gate:
    """Objects whose reading waits until it is opened."""

    def __init__(self, objects: Any) -> None:
        self._objects = objects
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def of(self, warehouse: Any) -> Any:
        return Gate.Reader(self, self._objects.of(warehouse))

    class Reader:
        def __init__(self, gate: Gate, objects: Any) -> None:
            self._gate = gate
            self._objects = objects

        def __getattr__(self, name: str) -> Any:
            return getattr(self._objects, name)

        async def read(self, location: str, *, limit: int | None = None) -> bytes:
            self._gate.reached.set()
            await self._gate.opened.wait()
            data: bytes = await self._objects.read(location, limit=limit)
            return data


async def _overtaken(world: World, load: tables.TableLoad, newer: Awaitable[Any]) -> tuple[LoadedTable, LoadedTable]:
    """The answers of two requests: the second one asks, and is answered, while the first still reads its file."""
    gate = Gate(world.ctx.objects)
    object.__setattr__(world.ctx, "objects", gate)
    slow = asyncio.ensure_future(load.answer())
    await gate.reached.wait()
    object.__setattr__(world.ctx, "objects", gate._objects)
    await newer
    second = await load.answer()
    gate.opened.set()
    first = await slow
    assert isinstance(first, LoadedTable) and isinstance(second, LoadedTable)
    return first, second


def test_a_slow_load_that_is_overtaken_keeps_its_own_tag(world: World) -> None:
    """The tag of a newer version would tell the client for ever that its older copy is current."""
    namespace(world)
    made = create(world, "t")
    assert made.metadata_location is not None
    world.ctx.caches.documents.forget(made.metadata_location)

    async def newer() -> None:
        from tests.catalog.shorthand import committing

        await committing(world, "t", [set_properties(a="1")])

    first, second = world.run(_overtaken(world, shared(world), newer()))
    for answer in (first, second):
        assert answer.etag == etags.etag(answer.metadata_location or "", etags.ALL, answer.config)
    assert first.metadata_location != second.metadata_location or first.etag == second.etag
    assert "a" in document(second.metadata)["properties"]
