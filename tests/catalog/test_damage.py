"""Files that were damaged, and a disk that is not there: never the caller's fault, and never made up for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from app.catalog import purges, tables, views, warehouses
from app.catalog.metadata_cache import TABLE, read_afresh
from app.errors import BadRequest, CorruptMetadata, EvolutionRefused, ObjectsUnavailable, Unavailable
from app.ports import Warehouse
from tests.catalog.shorthand import (
    NS,
    commit,
    create,
    create_view,
    field,
    load,
    metadata,
    namespace,
    replace_view,
    schema_json,
    set_properties,
)
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    return world


@pytest.mark.parametrize(
    "content", [b"", b"null", b"{}", b'{"format-version":2,"lo', b"\xff\xfe\x00", b"[" * 100_000], ids=range(6)
)
def test_a_damaged_file_is_not_the_callers_fault(shop: World, content: bytes) -> None:
    """Load and commit name the file; registering the same file stays the caller's mistake; mending it cures all."""
    create(shop, "t")
    file = load(shop, "t").metadata_location
    whole = Path(file).read_bytes()
    shop.ctx.caches.documents.forget(file)
    Path(file).write_bytes(content)
    for attempt in (lambda: load(shop, "t"), lambda: load(shop, "t", snapshots="refs"), lambda: commit(shop, "t", [])):
        with pytest.raises(CorruptMetadata) as found:
            attempt()
        assert file in found.value.message and not isinstance(found.value, BadRequest)
    with pytest.raises(BadRequest):
        shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "other", file))
    Path(file).write_bytes(whole)
    assert commit(shop, "t", [set_properties(a="1")])


def test_a_file_of_another_table_is_damage(shop: World) -> None:
    """Whole and readable, but with a uuid that is not the pointer's: served to nobody, committed to by nobody."""
    create(shop, "t")
    file = shop.run(tables.unregister_table(shop.ctx, ALICE, HOME, NS, "t")).metadata_location
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "t", file))
    shop.ctx.caches.documents.forget(file)
    doc = json.loads(Path(file).read_bytes()) | {"table-uuid": "00000000-0000-4000-8000-000000000000"}
    Path(file).write_text(json.dumps(doc))
    with pytest.raises(CorruptMetadata, match=r"\$\.table-uuid"):
        load(shop, "t")
    with pytest.raises(CorruptMetadata, match=r"\$\.table-uuid"):
        commit(shop, "t", [set_properties(a="1")])


def flipped(file: str) -> bytes:
    """The file with one letter of a name changed in place: whole JSON, and a legal table. The bytes as they were."""
    whole = Path(file).read_bytes()
    assert b'"amount"' in whole
    Path(file).write_bytes(whole.replace(b'"amount"', b'"amounu"', 1))
    return whole


def test_an_altered_file_is_never_served(shop: World) -> None:
    """A flipped letter that leaves a legal table is told by the checksum: both sums are named, and the way out; loads,
    commits and new schemas are refused until the file is as it was."""
    create(shop, "t", schema=schema_json(field(1, "amount")))
    commit(shop, "t", [set_properties(a="1")])
    file = load(shop, "t").metadata_location
    whole = flipped(file)
    assert b'"amount"' in load(shop, "t").metadata  # held by this server, whatever the disk says
    shop.ctx.caches.documents.forget(file)
    sums = [hashlib.sha256(each).hexdigest() for each in (Path(file).read_bytes(), whole)]
    for attempt in (
        lambda: load(shop, "t"),
        lambda: load(shop, "t", snapshots="refs"),
        lambda: commit(shop, "t", [set_properties(a="2")]),
    ):
        with pytest.raises(CorruptMetadata, match=r"register.*overwrite") as found:
            attempt()
        assert all(each in found.value.message for each in (*sums, file))
    Path(file).write_bytes(whole)
    assert b'"amount"' in load(shop, "t").metadata


def test_an_altered_file_is_told_while_this_server_holds_it(shop: World) -> None:
    """What was read under the file's name before it was the table's version is not taken for it."""
    create(shop, "t", schema=schema_json(field(1, "amount")))
    file = load(shop, "t").metadata_location
    flipped(file)
    document = shop.run(
        read_afresh(shop.ctx.objects.of(shop.run(warehouses.warehouse(shop.ctx, HOME))), file, 1 << 20, TABLE)
    )
    shop.ctx.caches.documents.keep(file, document)
    with pytest.raises(CorruptMetadata):
        load(shop, "t")


def test_registering_over_an_altered_file_repairs_and_checks_no_more(shop: World) -> None:
    """The older version takes its place; a file that this catalog did not write has no checksum until the next
    commit."""
    create(shop, "t", schema=schema_json(field(1, "amount")))
    old = load(shop, "t").metadata_location
    commit(shop, "t", [set_properties(a="1")])
    newer = load(shop, "t").metadata_location
    flipped(newer)
    shop.ctx.caches.documents.forget(newer)
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "t", old, overwrite=True))
    flipped(old)
    shop.ctx.caches.documents.forget(old)
    assert b'"amounu"' in load(shop, "t").metadata
    file = commit(shop, "t", [set_properties(b="1")]).metadata_location
    Path(file).write_bytes(Path(file).read_bytes().replace(b'"amounu"', b'"amount"', 1))
    shop.ctx.caches.documents.forget(file)
    with pytest.raises(CorruptMetadata):
        load(shop, "t")


def test_an_altered_gzip_file_and_an_altered_view_likewise(shop: World) -> None:
    """The sum is that of the stored bytes, whatever they are."""
    create(shop, "z")
    commit(shop, "z", [{"action": "set-properties", "updates": {"write.metadata.compression-codec": "gzip"}}])
    assert load(shop, "z").metadata_location.endswith(".gz.metadata.json")
    for file in (load(shop, "z").metadata_location, create_view(shop, "v").metadata_location):
        stored = bytearray(Path(file).read_bytes())
        stored[len(stored) // 2] ^= 1
        Path(file).write_bytes(stored)
        shop.ctx.caches.documents.forget(file)
    with pytest.raises(CorruptMetadata, match="SHA-256"):
        load(shop, "z")
    with pytest.raises(CorruptMetadata, match="SHA-256"):
        shop.run(views.load_view(shop.ctx, ALICE, HOME, NS, "v"))


def test_a_damaged_view_likewise(shop: World) -> None:
    """Views have one truth too."""
    file = create_view(shop, "v").metadata_location
    shop.ctx.caches.documents.forget(file)
    Path(file).write_bytes(b"{")
    with pytest.raises(CorruptMetadata):
        shop.run(views.load_view(shop.ctx, ALICE, HOME, NS, "v"))
    with pytest.raises(CorruptMetadata):
        replace_view(shop, "v", [set_properties(a="1")])


def test_a_vanished_warehouse_folder_is_not_made_again(shop: World) -> None:
    """Create, stage, commit, load and purge wait for the disk; nothing is called missing and nothing is forgotten."""
    create(shop, "t")
    create(shop, "gone")
    away = shop.warehouse.rename(shop.folder / "elsewhere")
    shop.ctx.caches.documents.forget(load_location(shop, "t"))
    for attempt in (
        lambda: create(shop, "new"),
        lambda: create(shop, "new", stage=True),
        lambda: commit(shop, "t", [set_properties(a="1")]),
        lambda: load(shop, "t"),
    ):
        with pytest.raises(Unavailable, match="is not there"):
            attempt()
    with pytest.raises(ObjectsUnavailable):
        shop.run(warehouses.check_reachable(shop.ctx))
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "gone", purge=True))
    assert shop.run(purges.work(shop.ctx)) == 0
    assert not shop.warehouse.exists()
    away.rename(shop.warehouse)
    shop.run(warehouses.check_reachable(shop.ctx))
    assert commit(shop, "t", [set_properties(a="1")]) and create(shop, "new")
    assert shop.run(purges.work(shop.ctx)) == 1
    assert not [file for file in shop.files() if "/gone-" in file]


def load_location(world: World, name: str) -> str:
    row = world.run(world.store.tabular(HOME, NS, name))
    assert row is not None
    return row.metadata_location


def test_who_makes_the_folder(shop: World) -> None:
    """A new warehouse and a start by a person do; another process that merely comes up does not."""
    place = shop.folder / "second" / "deep"
    shop.run(warehouses.create_warehouse(shop.ctx, Warehouse(name="second", location=str(place))))
    assert place.is_dir()
    shop.warehouse.rename(shop.folder / "elsewhere")
    home = Warehouse(name=HOME, location=str(shop.warehouse))
    shop.run(warehouses.ensure_warehouse(shop.ctx, home))
    assert not shop.warehouse.exists()
    shop.run(warehouses.ensure_warehouse(shop.ctx, home, establish=True))
    assert shop.warehouse.is_dir()


@pytest.mark.parametrize("stage", [False, True])
def test_a_new_table_is_judged(shop: World, stage: bool) -> None:
    """Plain or staged: what no reader could load is refused before it exists."""
    bad = schema_json(field(1, "_file", "string"), field(2, "x", "int"))
    with pytest.raises(EvolutionRefused):
        create(shop, "t", schema=bad, stage=stage)
    assert shop.files() == []


@pytest.mark.parametrize("name", ["n" * 256, "n" * 1_023, "ü" * 300, "/" * 1_000])
def test_names_longer_than_a_folders(shop: World, name: str) -> None:
    """As a table, a view and a namespace level: the folder's name is cut, the name itself is kept."""
    namespace(shop, (name,))
    create(shop, name, (name,))
    assert metadata(shop, name, (name,))["format-version"] == 2
    create_view(shop, name + "v", levels=(name,))
    assert all(len(part.encode()) <= 255 for file in shop.files() for part in file.split("/"))


def test_a_path_longer_than_a_disk_takes(shop: World) -> None:
    """A requested folder of many levels, or of a long name: a clean refusal."""
    for folder in ("/".join(["x" * 127] * 40), "y" * 256):
        with pytest.raises(BadRequest):
            create(shop, "t", location=f"{shop.warehouse}/{folder}")
