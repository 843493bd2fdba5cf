"""Loads beside each other, and what they leave behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from typing import Any

from app.catalog.results import LoadedTable, version_tag
from app.errors import CommitFailed, EvolutionRefused, ValidationFailed
from app.iceberg.table import TableMetadata
from tests.catalog.shorthand import (
    Json,
    commit,
    committing,
    create,
    field,
    load,
    loading,
    namespace,
    schema_json,
    set_properties,
)
from tests.catalog.world import World

SUMMARY = {"operation": "append"}


def main(snapshot_id: int) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}


WRONG: list[tuple[list[Json], list[Json]]] = [
    (
        [
            {"action": "add-schema", "schema": schema_json(field(1, "id", "string", required=True))},
            {"action": "set-current-schema", "schema-id": -1},
        ],
        [],
    ),
    ([set_properties(a="1")], [{"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}]),
    ([{"action": "set-current-schema", "schema-id": 77}], []),
]
"""Commits that are refused: by a rule, by a requirement, by what they name."""


async def failure(work: Awaitable[Any]) -> type[Exception] | None:
    """Of which kind it is; the failure itself is gone when this returns."""
    try:
        await work
    except Exception as error:
        return type(error)
    return None


def versions_alive() -> int:
    return sum(isinstance(found, TableMetadata) for found in gc.get_objects())


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


async def _overtaken(world: World, newer: Awaitable[Any]) -> tuple[LoadedTable, LoadedTable]:
    """The answers of two requests: the second one asks, and is answered, while the first still reads its file."""
    gate = Gate(world.ctx.objects)
    object.__setattr__(world.ctx, "objects", gate)
    slow = asyncio.ensure_future(loading(world, "t"))
    await gate.reached.wait()
    object.__setattr__(world.ctx, "objects", gate._objects)
    await newer
    second = await loading(world, "t")
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
    elsewhere = world.run(world.second())
    first, second = world.run(
        _overtaken(world, committing(elsewhere, "t", [set_properties(a="1")])),
    )
    for answer in (first, second):
        assert answer.tag == version_tag(answer.metadata_location or "", "all", answer.config)
    assert first.metadata_location == made.metadata_location != second.metadata_location
    assert first.tag != second.tag


def test_a_version_that_nobody_needs_is_freed_at_once(world: World) -> None:
    """Nothing of a load or a commit, refused ones too, refers to itself: a document in a cycle would stay until the
    next collection, and those are rare."""
    namespace(world)
    create(world, "t")
    first = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": world.clock.ms,
        "manifest-list": "x",
        "schema-id": 0,
    }
    second = {**first, "snapshot-id": 2, "parent-snapshot-id": 1, "sequence-number": 2}
    third = {**first, "snapshot-id": 3, "parent-snapshot-id": 1, "sequence-number": 3}
    world.ctx.caches.documents.limit = 0
    gc.collect()
    gc.disable()
    try:
        before = versions_alive()
        commit(world, "t", [{"action": "add-snapshot", "snapshot": {**first, "summary": SUMMARY}}, main(1)])
        commit(world, "t", [{"action": "add-snapshot", "snapshot": {**second, "summary": SUMMARY}}, main(2)])
        commit(world, "t", [{"action": "add-snapshot", "snapshot": {**third, "summary": SUMMARY}}])
        commit(world, "t", [set_properties(a="1")])
        load(world, "t", snapshots="refs")
        kinds = [world.run(failure(committing(world, "t", updates, asked))) for updates, asked in WRONG]
        assert kinds == [EvolutionRefused, CommitFailed, ValidationFailed]
        assert versions_alive() == before
    finally:
        gc.enable()
