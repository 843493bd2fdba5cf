"""The places outside its location where a table's files may lie: nobody else's, and emptied by no other's purge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.catalog import locations, purges, tables, versions
from app.errors import ValidationFailed
from app.events import Created, Purged
from app.rules import Severity
from tests.catalog.shorthand import (
    NS,
    commit,
    committing,
    create,
    create_view,
    document,
    field,
    first_version,
    load,
    metadata,
    namespace,
    request,
    schema_json,
    set_properties,
)
from tests.catalog.world import ALICE, HOME, World

PATHS = locations.PATH_PROPERTIES


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    return world


def write(world: World, *files: str) -> None:
    for file in files:
        path = world.warehouse / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)


def purge(world: World, name: str) -> Purged:
    world.run(tables.drop_table(world.ctx, ALICE, HOME, NS, name, purge=True))
    world.run(purges.work(world.ctx))
    event = world.run(world.store.journal(warehouse=HOME, limit=1))[0].event
    assert isinstance(event, Purged)
    return event


def rooted(world: World, key: str = "write.data.path", place: str = "data/b") -> None:
    """Table `b` at meta/b, whose `key` names a place elsewhere."""
    asked = request("b", location=f"{world.warehouse}/meta/b", **{key: f"{world.warehouse}/{place}"})
    world.run(tables.create_table(world.ctx, ALICE, HOME, NS, asked))


def register(world: World, doc: dict[str, Any], name: str, *, overwrite: bool = False) -> Any:
    file = world.warehouse / f"{name}.metadata.json"
    file.write_text(json.dumps(doc))
    return world.run(tables.register_table(world.ctx, ALICE, HOME, NS, name, str(file), overwrite=overwrite))


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize("place", ["data", "data/b", "data/b/inner"])
def test_a_location_at_above_or_below_anothers_path(shop: World, key: str, place: str) -> None:
    """Create, completed stage and set-location are refused alike, and nothing of them stays."""
    rooted(shop, key)
    here = f"{shop.warehouse}/{place}"
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.b at"):
        create(shop, "c", location=here)
    staged = document(create(shop, "s", stage=True).metadata) | {"location": here}
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.b at"):
        commit(shop, "s", first_version(staged), [{"type": "assert-create"}])
    create(shop, "m")
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.b at"):
        commit(shop, "m", [{"action": "set-location", "location": here}])
    assert shop.run(shop.store.tabulars(HOME, NS, "table", after=None, limit=None)).items == ("b", "m")


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize("place", ["a", "a/data", "meta", "shop", ""])
def test_a_path_at_above_or_below_anothers_location(shop: World, key: str, place: str) -> None:
    """Of a new table and of one that is there; a namespace's folder and the warehouse itself count as others'."""
    rooted(shop)
    create(shop, "a", location=f"{shop.warehouse}/a")
    create(shop, "t")
    where = f"{shop.warehouse}/{place}"
    with pytest.raises(ValidationFailed):
        commit(shop, "t", [set_properties(**{key: where})])
    with pytest.raises(ValidationFailed):
        shop.run(tables.create_table(shop.ctx, ALICE, HOME, NS, request("new", **{key: where})))
    assert key not in metadata(shop, "t")["properties"]


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize("place", ["data/b", "data/b/x", "data"])
def test_paths_may_be_shared(shop: World, key: str, place: str) -> None:
    """Engines put a folder per table below a shared data path; a purge of one leaves what the others may need."""
    rooted(shop)
    write(shop, "data/b/part.parquet")
    create(shop, "t")
    commit(shop, "t", [set_properties(**{key: f"{shop.warehouse}/{place}"})])
    assert metadata(shop, "t")["properties"][key] == f"{shop.warehouse}/{place}"
    purge(shop, "t")
    assert (shop.warehouse / "data/b/part.parquet").exists()


def test_ones_own_places_are_fine(shop: World) -> None:
    """Inside, around, twice the same; and moving between them."""
    here = f"{shop.warehouse}/own"
    create(shop, "t", location=f"{here}/t")
    commit(shop, "t", [set_properties(**{"write.data.path": f"{here}/t/data", "write.metadata.path": here})])
    commit(shop, "t", [set_properties(**{"write.folder-storage.path": f"{here}/t"})])
    commit(shop, "t", [{"action": "set-location", "location": f"{here}/t2"}])
    assert metadata(shop, "t")["location"] == f"{here}/t2"
    with pytest.raises(ValidationFailed):
        create(shop, "c", location=f"{here}/t")


def test_a_path_that_was_given_up_is_free(shop: World) -> None:
    """By removing the property, and by dropping the table."""
    rooted(shop)
    commit(shop, "b", [{"action": "remove-properties", "removals": ["write.data.path"]}])
    create(shop, "c", location=f"{shop.warehouse}/data/b")
    rooted_again = f"{shop.warehouse}/again"
    commit(shop, "b", [set_properties(**{"write.data.path": rooted_again})])
    commit(shop, "b", [set_properties(other="x")])
    with pytest.raises(ValidationFailed):
        create(shop, "d", location=rooted_again)
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "b"))
    create(shop, "d", location=rooted_again)


def test_two_newcomers_to_one_place(shop: World) -> None:
    """A location and a path that meet: one of the two commits is refused, whichever comes second."""
    create(shop, "t")
    where = f"{shop.warehouse}/contested"

    async def both() -> list[object]:
        return await asyncio.gather(
            committing(shop, "t", [set_properties(**{"write.data.path": f"{where}/t"})]),
            tables.create_table(shop.ctx, ALICE, HOME, NS, request("c", location=where)),
            return_exceptions=True,
        )

    assert sum(isinstance(one, ValidationFailed) for one in shop.run(both())) == 1


def test_a_purge_leaves_what_lies_under_a_live_tables_path(shop: World) -> None:
    """Though a registered table may overlap: purging it deletes nothing and says why."""
    rooted(shop)
    write(shop, "data/b/part.parquet")
    create(shop, "t")
    doc = metadata(shop, "t") | {
        "location": f"{shop.warehouse}/data", "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    }  # fmt: skip
    register(shop, doc, "c")
    event = purge(shop, "c")
    assert event.deleted == 0 and event.refused is not None and "shop.b" in event.refused
    assert (shop.warehouse / "data/b/part.parquet").exists()


def test_a_purge_leaves_what_metadata_merely_names(shop: World) -> None:
    """Statistics, manifest lists and logs may name anything in the warehouse; only below an own path do files go."""
    create(shop, "u")
    unregistered = load(shop, "u").metadata_location
    shop.run(tables.unregister_table(shop.ctx, ALICE, HOME, NS, "u"))
    write(shop, "keep/precious.txt", "mine/stats.puffin", "mine/other.txt")
    own = f"{shop.warehouse}/mine"
    create(shop, "x")
    commit(shop, "x", [set_properties(**{"write.metadata.path": own})])
    named = [f"{shop.warehouse}/keep/precious.txt", unregistered, f"{own}/stats.puffin"]
    for number, path in enumerate(named, 1):
        statistics = {
            "snapshot-id": number, "statistics-path": path, "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1, "blob-metadata": [],
        }  # fmt: skip
        commit(shop, "x", [{"action": "set-statistics", "statistics": statistics}])
    assert purge(shop, "x").refused is None
    assert [Path(path).exists() for path in named] == [True, True, False]
    assert [file for file in shop.files() if file.startswith("mine/")] == ["mine/other.txt"]


def test_a_pointer_file_elsewhere_is_its_tables_place(shop: World) -> None:
    """A registered file in another table's folder: that table is not purged from under it."""
    create(shop, "t")
    create(shop, "host", location=f"{shop.warehouse}/host")
    doc = metadata(shop, "t") | {
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": f"{shop.warehouse}/g",
    }
    (shop.warehouse / "host/guest.metadata.json").write_text(json.dumps(doc))
    file = f"{shop.warehouse}/host/guest.metadata.json"
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "guest", file))
    assert "shop.guest" in (purge(shop, "host").refused or "")
    assert Path(file).exists() and metadata(shop, "guest")


def test_links_are_followed_before_two_places_are_told_apart(shop: World) -> None:
    """A folder and a symbolic link to it are one place for create, path properties and purge."""
    (shop.warehouse / "real").mkdir()
    (shop.warehouse / "alias").symlink_to(shop.warehouse / "real")
    create(shop, "r", location=f"{shop.warehouse}/real/t")
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.r"):
        create(shop, "a", location=f"{shop.warehouse}/alias/t")
    create(shop, "p")
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.r"):
        commit(shop, "p", [set_properties(**{"write.data.path": f"{shop.warehouse}/alias/t/x"})])
    doc = metadata(shop, "p") | {
        "location": f"{shop.warehouse}/alias/t", "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    }  # fmt: skip
    register(shop, doc, "a")
    event = purge(shop, "a")
    assert event.deleted == 0 and "shop.r" in (event.refused or "")
    assert metadata(shop, "r")


def test_a_table_behind_a_link_keeps_the_real_place(shop: World) -> None:
    """The other way round: the live table is the one that is spelled through the link."""
    (shop.warehouse / "real").mkdir()
    (shop.warehouse / "alias").symlink_to(shop.warehouse / "real")
    create(shop, "a", location=f"{shop.warehouse}/alias/t")
    with pytest.raises(ValidationFailed, match=r"overlaps table shop\.a"):
        create(shop, "r", location=f"{shop.warehouse}/real/t")
    doc = metadata(shop, "a") | {
        "location": f"{shop.warehouse}/real", "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    }  # fmt: skip
    register(shop, doc, "r")
    assert "shop.a" in (purge(shop, "r").refused or "")
    assert metadata(shop, "a")


def test_a_views_path_counts_too(shop: World) -> None:
    """Its metadata files lie there."""
    create_view(shop, "v", properties={"write.metadata.path": f"{shop.warehouse}/vm"})
    with pytest.raises(ValidationFailed, match=r"overlaps view shop\.v"):
        create(shop, "t", location=f"{shop.warehouse}/vm")


def test_registering_over_a_table_tells_what_the_judge_says(shop: World) -> None:
    """A retyped column of a descendant is taken as asked; the finding is a warning in the answer and in the journal."""
    create(shop, "t", schema=schema_json(field(1, "a", "int")))
    snapshot = {
        "snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1_800_000_000_001, "schema-id": 0,
        "manifest-list": f"{shop.warehouse}/snap.avro", "summary": {"operation": "append"},
    }  # fmt: skip
    commit(shop, "t", [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ])  # fmt: skip
    doc = metadata(shop, "t")
    doc["schemas"][0]["fields"][0]["type"] = "string"
    doc["metadata-log"].append(
        {"timestamp-ms": doc["last-updated-ms"], "metadata-file": load(shop, "t").metadata_location}
    )
    done = register(shop, doc, "t", overwrite=True)
    assert done.findings and all(finding.severity is Severity.WARN for finding in done.findings)
    entries = shop.run(shop.store.journal(warehouse=HOME, limit=5))
    (born,) = [entry.event for entry in entries if isinstance(entry.event, Created) and entry.event.registered]
    assert born.findings == tuple(finding.to_json() for finding in done.findings)
    again = register(shop, doc, "t", overwrite=True)
    assert again.findings == ()
    assert versions.Version(done.metadata_location, done.metadata).file == load(shop, "t").metadata_location
