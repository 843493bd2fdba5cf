"""Purge jobs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog import purges, tables
from app.catalog.background import Background
from app.errors import ObjectsUnavailable
from app.events import Dropped, Purged
from app.ports import Columns, CreateTabular
from tests.catalog.faults import faulty_objects
from tests.catalog.shorthand import NS, commit, create, document, load, metadata, namespace, request, set_properties
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t", location=f"{world.warehouse}/t")
    write(world, "t/data/part=1/a.parquet", "t/data/b.parquet", "t/metadata/snap-1.avro")
    # Files of the test are written now, and the clock under test stands in the future: all of them are old enough.
    return world


def write(world: World, *files: str) -> None:
    for file in files:
        path = world.warehouse / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)


def drop(world: World, name: str = "t", *, purge: bool = True) -> None:
    world.run(tables.drop_table(world.ctx, ALICE, HOME, NS, name, purge=purge))


def work(world: World) -> int:
    return world.run(purges.work(world.ctx))


def last_purge(world: World) -> Purged:
    event = world.run(world.store.journal(warehouse=HOME, limit=1))[0].event
    assert isinstance(event, Purged)
    return event


def test_drop_with_purge_deletes_everything_and_nothing_else(shop: World) -> None:
    """The table's folder goes, its neighbour with a longer name stays."""
    create(shop, "t2", location=f"{shop.warehouse}/t2")
    write(shop, "t2/data/a.parquet", "loose.txt")
    kept = [f for f in shop.files() if not f.startswith("t/")]
    drop(shop)
    assert work(shop) == 1
    assert shop.files() == kept
    assert not (shop.warehouse / "t").exists()
    assert shop.run(shop.store.purge_jobs(10)) == ()
    event = last_purge(shop)
    assert (event.refused, event.deleted, event.namespace, event.name) == (None, 4, NS, "t")


def test_the_job_is_stored_with_the_drop(shop: World) -> None:
    """Until the worker comes nothing is deleted; the journal says that a purge was asked for."""
    files = shop.files()
    drop(shop)
    assert shop.files() == files
    (job,) = shop.run(shop.store.purge_jobs(10))
    assert job.location == f"{shop.warehouse}/t" and job.attempts == 0
    event = shop.run(shop.store.journal(warehouse=HOME, limit=1))[0].event
    assert isinstance(event, Dropped) and event.purge


def test_a_plain_drop_makes_no_job(shop: World) -> None:
    """Only purge may ever delete."""
    drop(shop, purge=False)
    files = shop.files()
    assert work(shop) == 0 and shop.files() == files


def stored(world: World, name: str, doc: dict[str, Any]) -> None:
    """A row for this document as earlier releases took it, wherever it says that it lies."""
    file = world.warehouse / f"{name}.metadata.json"
    file.write_text(json.dumps(doc))
    op = CreateTabular(
        warehouse=HOME, namespace=NS, name=name, kind="table", uuid=doc["table-uuid"], location=doc["location"],
        metadata_location=str(file), exclusive_location=False, now_ms=1,
        columns=Columns(format_version=2, last_column_id=1, current_schema_id=0, field_count=1),
    )  # fmt: skip
    world.run(world.store.write([op]))


@pytest.mark.parametrize("place", ["t", "t/inner", ""])
def test_a_live_table_in_the_way_stops_the_purge(shop: World, place: str) -> None:
    """At, below or above: nothing is deleted, and the journal says why."""
    where = load(shop, "t").metadata_location
    drop(shop)
    doc = json.loads(Path(where).read_bytes())
    doc |= {"location": str(shop.warehouse / place), "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}
    stored(shop, "live", doc)
    files = shop.files()
    assert work(shop) == 1
    assert shop.files() == files
    event = last_purge(shop)
    assert event.deleted == 0 and event.refused is not None and "shop.live" in event.refused


def test_a_table_that_moves_in_half_way_stops_the_rest(shop: World) -> None:
    """The guard is asked before every batch, not once."""
    shop.ctx = replace(shop.ctx, limits=replace(shop.ctx.limits, purge_batch=1))
    objects = faulty_objects(shop)
    drop(shop)
    real = objects.delete
    moved: list[str] = []

    async def delete(location: str) -> None:
        await real(location)
        if not moved:
            moved.append(location)
            await tables.create_table(
                shop.ctx, ALICE, HOME, NS, replace(request("u"), location=f"{shop.warehouse}/t/again")
            )

    objects.__dict__["delete"] = delete
    assert work(shop) == 1
    event = last_purge(shop)
    assert event.deleted == 1 and event.refused is not None
    load(shop, "u")


def test_a_failing_store_is_tried_again_and_goes_on_where_it_stopped(shop: World) -> None:
    """What was deleted is not listed again; attempts and the last error are kept."""
    shop.ctx = replace(shop.ctx, limits=replace(shop.ctx.limits, purge_batch=2))
    objects = faulty_objects(shop)
    drop(shop)
    real, calls = objects.delete, []

    async def delete(location: str) -> None:
        calls.append(location)
        if len(calls) == 3:
            raise ObjectsUnavailable("slow down")
        await real(location)

    objects.__dict__["delete"] = delete
    assert work(shop) == 0
    (job,) = shop.run(shop.store.purge_jobs(10))
    assert (job.attempts, job.last_error) == (1, "slow down")
    assert work(shop) == 1
    assert shop.files() == [] and last_purge(shop).deleted == 4
    assert shop.run(shop.store.purge_jobs(10)) == ()


def test_a_worker_that_died_leaves_its_job_to_the_next(shop: World) -> None:
    """Another process finishes what is left."""
    drop(shop)
    os.remove(shop.warehouse / "t/data/b.parquet")
    other = shop.run(shop.second())
    assert work(other) == 1 and shop.files() == []


def test_metadata_elsewhere_goes_too(shop: World) -> None:
    """Files that the metadata names outside the location are deleted, if they are nobody's and allowed."""
    meta = f"{shop.warehouse}/meta"
    commit(shop, "t", [set_properties(**{"write.metadata.path": meta})])
    commit(shop, "t", [set_properties(a="1")])
    write(shop, "meta/foreign.json")
    drop(shop)
    assert work(shop) == 1
    assert shop.files() == ["meta/foreign.json"]


def test_a_named_file_of_a_live_table_stays(shop: World) -> None:
    """A log may name anything; what lies in another table's place is not deleted."""
    create(shop, "victim", location=f"{shop.warehouse}/victim")
    victim = load(shop, "victim").metadata_location
    doc = metadata(shop, "t")
    doc["metadata-log"] = [
        {"timestamp-ms": doc["last-updated-ms"], "metadata-file": file} for file in (victim, "/etc/hostname")
    ]
    where = load(shop, "t").metadata_location
    Path(where).write_text(json.dumps(doc))
    drop(shop)
    assert work(shop) == 1
    assert [f for f in shop.files() if f.startswith("victim/")] != [] and os.path.exists("/etc/hostname")
    assert metadata(shop, "victim")


def test_an_unreadable_metadata_file_does_not_stop_the_purge(shop: World) -> None:
    """What lies below the location goes, whatever the file says or whether it is there."""
    where = load(shop, "t").metadata_location
    Path(where).write_bytes(b"{broken")
    drop(shop)
    assert work(shop) == 1 and shop.files() == []
    create(shop, "u", location=f"{shop.warehouse}/u")
    os.remove(load(shop, "u").metadata_location)
    write(shop, "u/data/a.parquet")
    drop(shop, "u")
    assert work(shop) == 1 and shop.files() == []


def test_files_younger_than_the_drop_stay(shop: World) -> None:
    """Whoever wrote them there after the drop, they are not the dropped table's."""
    drop(shop)
    late = shop.warehouse / "t/data/late.parquet"
    late.write_text("late")
    os.utime(late, (shop.clock.ms / 1000 + 60,) * 2)
    assert work(shop) == 1
    assert shop.files() == ["t/data/late.parquet"]


def test_the_warehouse_itself_is_never_emptied(shop: World) -> None:
    """A registered table that claims the whole warehouse as its place can be dropped, but not purged."""
    doc = metadata(shop, "t") | {
        "location": str(shop.warehouse),
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    }
    stored(shop, "whole", doc)
    drop(shop, purge=False)
    files = shop.files()
    drop(shop, "whole")
    assert work(shop) == 1
    assert shop.files() == files
    assert last_purge(shop).refused == f"{shop.warehouse} holds the whole warehouse"


def test_a_missing_folder_is_a_finished_purge(shop: World) -> None:
    """Somebody else was faster."""
    drop(shop)
    shutil.rmtree(shop.warehouse / "t")
    assert work(shop) == 1 and last_purge(shop).refused is None


def test_the_background_purges_at_start_and_when_asked(shop: World) -> None:
    """A job left by a crash is done at once after a start, a new one without waiting for the next round."""
    drop(shop)

    async def gone(folder: str) -> None:
        for _ in range(500):
            if not (shop.warehouse / folder).exists():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("not purged")

    async def story() -> None:
        background = Background(shop.ctx)
        await background.start()
        await gone("t")
        made = await tables.create_table(shop.ctx, ALICE, HOME, NS, request("u"))
        await tables.load_table(shop.ctx, ALICE, HOME, NS, "u")
        place = document(made.metadata)["location"]
        await tables.drop_table(shop.ctx, ALICE, HOME, NS, "u", purge=True)
        await gone(place)
        await background.stop()

    shop.run(story())
    assert shop.files() == []
