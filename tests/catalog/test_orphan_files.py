"""Garbage collection: what is found, what is left alone, and that a second run finds nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.catalog import orphan_files, tables
from app.catalog.orphan_files import HOUR_MS, Report
from app.errors import NoSuchWarehouse
from tests.catalog.shorthand import NS, commit, create, create_view, first_version, metadata, namespace, set_properties
from tests.catalog.world import ALICE, HOME, World

OTHER = "6d6d6d6d-0000-4000-8000-000000000001"


def collect(world: World, **more: object) -> Report:
    """A run three days later than anything the test wrote."""
    return world.run(orphan_files.collect(world.ctx, **more))  # type: ignore[arg-type]


def aged(world: World) -> None:
    """Make every file older than the window. Files carry this machine's time, the world has a clock of its own."""
    past = world.clock.ms / 1000 - 3 * 24 * 3600
    for path in world.warehouse.rglob("*"):
        os.utime(path, (past, past))


def folder_of(world: World, name: str) -> Path:
    return Path(str(metadata(world, name)["location"])) / "metadata"


def orphan_of(world: World, name: str, version: int) -> Path:
    """What a process leaves that dies between the write and the swap: a good version that no pointer names."""
    path = folder_of(world, name) / f"{version:05d}-{OTHER}.metadata.json"
    path.write_text(json.dumps(metadata(world, name)))
    return path


def locations(report: Report) -> list[str]:
    return [found.location for found in report.garbage]


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    for number in range(3):
        commit(world, "t", [set_properties(a=str(number))])
    return world


def test_a_healthy_warehouse_holds_no_garbage(shop: World) -> None:
    """Every version that the pointer went through stays, and so do views and what engines wrote."""
    create_view(shop, "v")
    (folder_of(shop, "t") / "snap-1.avro").write_bytes(b"x")
    aged(shop)
    report = collect(shop, delete=True)
    assert locations(report) == [] and report.deleted == 0 and report.complete and report.tables == 2
    assert len([file for file in shop.files() if file.endswith(".metadata.json")]) == 5


def test_a_version_that_no_pointer_named_is_found_and_deleted(shop: World) -> None:
    """A dry run changes nothing; deleting removes exactly that file; a second run finds nothing."""
    lost = orphan_of(shop, "t", 2)
    aged(shop)
    before = shop.files()
    assert locations(collect(shop)) == [str(lost)] and shop.files() == before
    report = collect(shop, delete=True)
    assert report.deleted == 1 and not lost.exists() and len(shop.files()) == len(before) - 1
    assert locations(collect(shop, delete=True)) == []
    assert metadata(shop, "t")["properties"]["a"] == "2"


def test_a_young_file_may_still_be_named(shop: World) -> None:
    """A commit that runs right now has written its file and not moved its pointer."""
    aged(shop)
    lost = orphan_of(shop, "t", 4)
    now = shop.clock.ms / 1000
    os.utime(lost, (now, now))
    assert locations(collect(shop)) == []
    os.utime(lost, (now - 7200, now - 7200))
    assert locations(collect(shop)) == []
    assert locations(collect(shop, older_than_ms=HOUR_MS)) == [str(lost)]
    os.utime(lost, (now - 1800, now - 1800))
    assert locations(collect(shop, older_than_ms=0)) == [], "the window is never shorter than an hour"


def test_versions_that_fell_off_the_log_are_not_garbage(shop: World) -> None:
    """They were named once. The chain of logs is followed back through the files themselves."""
    commit(shop, "t", [set_properties(**{"write.metadata.previous-versions-max": "2"})])
    for number in range(4):
        commit(shop, "t", [set_properties(a=f"later {number}")])
    lost = orphan_of(shop, "t", 1)
    aged(shop)
    assert len(metadata(shop, "t")["metadata-log"]) == 2
    assert locations(collect(shop)) == [str(lost)]


def test_beyond_a_break_in_the_chain_nothing_is_judged(shop: World) -> None:
    """When an old file is gone, what it named cannot be known: versions up to it stay, later ones are judged."""
    commit(shop, "t", [set_properties(**{"write.metadata.previous-versions-max": "1"})])
    for number in range(3):
        commit(shop, "t", [set_properties(a=f"later {number}")])
    (third,) = folder_of(shop, "t").glob("00003-*")
    third.unlink()
    early, late = orphan_of(shop, "t", 2), orphan_of(shop, "t", 5)
    aged(shop)
    assert locations(collect(shop)) == [str(late)] and early.exists()


def test_a_registered_table_is_not_judged(shop: World) -> None:
    """Its pointer came from outside; what was before cannot be followed. The report says so."""
    location = str(next(iter(folder_of(shop, "t").glob("00003-*"))))
    shop.run(tables.unregister_table(shop.ctx, ALICE, HOME, NS, "t"))
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "again", location))
    orphan_of(shop, "again", 2)
    aged(shop)
    report = collect(shop)
    assert locations(report) == [] and "registered" in report.kept[0][1]


def test_files_of_a_dropped_table_stay(shop: World) -> None:
    """A drop without purge keeps them on purpose: they can be registered again."""
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "t"))
    aged(shop)
    before = shop.files()
    assert collect(shop, delete=True).deleted == 0 and shop.files() == before


def test_an_untouched_first_version_of_a_dropped_table_stays(world: World) -> None:
    """It looks exactly like what a create leaves that died; the journal knows better."""
    namespace(world)
    create(world, "short")
    world.run(tables.drop_table(world.ctx, ALICE, HOME, NS, "short"))
    aged(world)
    report = collect(world, delete=True)
    assert report.deleted == 0 and report.kept[0][1] == "it was a table once" and len(world.files()) == 1


def test_the_first_version_of_a_create_that_died_is_found(shop: World) -> None:
    """Its folder is no table's, its uuid is in no journal, and nothing else lies there."""
    document = {**metadata(shop, "t"), "table-uuid": OTHER}
    folder = shop.warehouse / "shop" / "died-6d6d6d6d" / "metadata"
    folder.mkdir(parents=True)
    lost = folder / f"00000-{OTHER}.metadata.json"
    lost.write_text(json.dumps(document))
    aged(shop)
    assert locations(collect(shop)) == [str(lost)]
    assert collect(shop, delete=True).deleted == 1 and not lost.exists()


@pytest.mark.parametrize("beside", ["data/part.parquet", "metadata/snap-1.avro", "metadata/00001-x.metadata.json"])
def test_a_folder_with_anything_else_in_it_is_kept(shop: World, beside: str) -> None:
    """An engine wrote there, or somebody copied a table in to register it: not ours to delete."""
    folder = shop.warehouse / "shop" / "staged"
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / f"00000-{OTHER}.metadata.json").write_text(json.dumps({"table-uuid": OTHER}))
    (folder / beside).parent.mkdir(exist_ok=True)
    (folder / beside).write_bytes(b"x")
    aged(shop)
    assert collect(shop, delete=True).deleted == 0


def test_what_cannot_be_read_is_kept(shop: World) -> None:
    """Neither JSON nor a uuid in it: nothing proves whose it is."""
    for name, text in (("a", "not json"), ("b", "{}"), ("c", '{"table-uuid": 7}')):
        folder = shop.warehouse / name / "metadata"
        folder.mkdir(parents=True)
        (folder / f"00000-{OTHER}.metadata.json").write_text(text)
    aged(shop)
    report = collect(shop, delete=True)
    assert report.deleted == 0 and len(report.kept) == 3


def test_half_written_files_are_found(shop: World) -> None:
    """A crash in the middle of a local write leaves a temporary file under a name of our own."""
    half = folder_of(shop, "t") / ".icekeel-0123456789abcdef.tmp"
    half.write_text("{")
    aged(shop)
    assert locations(collect(shop)) == [str(half)]


def test_a_file_that_another_table_names_is_not_garbage(shop: World) -> None:
    """Somebody registered the lost version, and it lives on under another name and another folder's log."""
    lost = orphan_of(shop, "t", 2)
    document = {**json.loads(lost.read_text()), "table-uuid": OTHER, "location": str(shop.warehouse / "moved")}
    lost.write_text(json.dumps(document))
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "other", str(lost)))
    commit(shop, "other", [set_properties(b="1")])
    aged(shop)
    assert str(lost) not in locations(collect(shop, delete=True)) and lost.exists()


def test_a_run_is_bounded(shop: World) -> None:
    """It stops at the limit, says so, and later runs finish the work."""
    for number in range(5):
        folder = shop.warehouse / "shop" / f"died-{number}" / "metadata"
        folder.mkdir(parents=True)
        uuid = OTHER[:-1] + str(number)
        (folder / f"00000-{uuid}.metadata.json").write_text(json.dumps({"table-uuid": uuid}))
    aged(shop)
    first = collect(shop, delete=True, limit=2)
    assert first.deleted == 2 and not first.complete
    assert collect(shop, delete=True).deleted == 3 and collect(shop).complete


def test_a_staged_create_leaves_nothing_to_collect(shop: World) -> None:
    """Staging writes no file; completing it makes an ordinary table."""
    staged = create(shop, "later", stage=True)
    aged(shop)
    assert locations(collect(shop)) == []
    commit(shop, "later", first_version(json.loads(staged.metadata)), [{"type": "assert-create"}])
    aged(shop)
    assert locations(collect(shop)) == []


def test_an_unknown_warehouse_is_told(shop: World) -> None:
    """Rather than finding nothing in it."""
    with pytest.raises(NoSuchWarehouse):
        collect(shop, warehouse="nope")
