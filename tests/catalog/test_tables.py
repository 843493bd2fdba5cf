"""Tables: create, stage, load, list, drop, rename."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from app.catalog import namespaces, tables, warehouses
from app.catalog.results import LoadedTable, NotModified, PageRequest
from app.errors import (
    AlreadyExists,
    BadRequest,
    CorruptMetadata,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    ValidationFailed,
)
from app.ports import Warehouse
from tests.catalog.shorthand import (
    NS,
    append,
    commit,
    create,
    create_view,
    document,
    field,
    load,
    loading,
    metadata,
    namespace,
    request,
    schema_json,
)
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    return world


def drop(world: World, name: str, *, purge: bool = False) -> None:
    world.run(tables.drop_table(world.ctx, ALICE, HOME, NS, name, purge=purge))


def rename(world: World, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]) -> None:
    world.run(tables.rename_table(world.ctx, ALICE, HOME, source, target))


def test_what_create_answers_is_what_the_next_load_shows(shop: World) -> None:
    """Same location, same bytes, same tag; and the file named holds exactly those bytes."""
    made, loaded = create(shop, "t"), load(shop, "t")
    assert made == loaded
    assert made.metadata_location is not None
    assert Path(made.metadata_location).read_bytes() == made.metadata


def test_column_ids_are_assigned_anew_and_sources_follow(shop: World) -> None:
    """Ids count from 1, and the partition field points at its column's new id."""
    schema = schema_json(field(70, "a"), field(90, "b", "date"))
    spec = {"fields": [{"source-id": 90, "transform": "day", "name": "b_day"}]}
    made = document(create(shop, "t", schema=schema, spec=spec).metadata)
    assert [f["id"] for f in made["schemas"][0]["fields"]] == [1, 2]
    assert made["partition-specs"][0]["fields"] == [
        {"source-id": 2, "field-id": 1000, "transform": "day", "name": "b_day"}
    ]


def test_the_catalog_gives_a_new_table_a_place_of_its_own(shop: World) -> None:
    """Below the namespace, with the name and a part of the uuid, so that a recreated table never shares files."""
    made = document(create(shop, "t/1").metadata)
    assert made["location"] == f"{shop.warehouse}/shop/t_1-{made['table-uuid'][:8]}"
    drop(shop, "t/1")
    again = document(create(shop, "t/1").metadata)
    assert again["location"] != made["location"] and again["table-uuid"] != made["table-uuid"]


def test_a_namespace_location_is_used_for_new_tables(shop: World) -> None:
    """A set location moves where tables of the namespace are born."""
    world = shop
    elsewhere = f"{world.warehouse}/else"
    world.run(namespaces.update_properties(world.ctx, ALICE, HOME, NS, {"location": elsewhere}, ()))
    assert document(create(world, "t").metadata)["location"].startswith(f"{elsewhere}/t-")


def test_a_taken_name_is_refused_in_the_words_clients_match(shop: World) -> None:
    """Whether a table or a view has it, plain or staged."""
    create(shop, "t")
    create_view(shop, "v")
    for stage in (False, True):
        with pytest.raises(AlreadyExists, match=r"^Table already exists: shop\.t$"):
            create(shop, "t", stage=stage)
        with pytest.raises(AlreadyExists, match=r"^View with same name already exists: shop\.v$"):
            create(shop, "v", stage=stage)


def test_a_missing_namespace_is_named_as_such(shop: World) -> None:
    """createTable: NoSuchNamespace; loading from there: NoSuchTable, as engines probe `ns.table.files`."""
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: nope"):
        create(shop, "t", levels=("nope",))
    with pytest.raises(NoSuchTable, match=r"Table does not exist: nope\.t"):
        load(shop, "t", levels=("nope",))
    create(shop, "t")
    with pytest.raises(NoSuchTable, match=r"Table does not exist: shop\.t\.files"):
        load(shop, "files", levels=("shop", "t"))


@pytest.mark.parametrize("name", ["", "..", "a\x00b", "a\x1fb"])
def test_an_unusable_name_is_refused(shop: World, name: str) -> None:
    """At creation, as a bad request."""
    with pytest.raises(BadRequest):
        create(shop, name)
    assert shop.files() == []


@pytest.mark.parametrize("name", ["p/q", "c.d", "e f", "\u00fcn\u00efc\u00f6de", "%2F", "x" * 300])
def test_any_other_name_lives_a_whole_life(shop: World, name: str) -> None:
    """Created, loaded, renamed, dropped."""
    create(shop, name)
    load(shop, name)
    rename(shop, (NS, name), (NS, name + "2"))
    load(shop, name + "2")
    drop(shop, name + "2")


@pytest.mark.parametrize("location", ["/etc/t", "s3://other/t", "t", "file:///tmp/../etc"])
def test_a_location_outside_is_refused_and_the_setting_named(shop: World, location: str) -> None:
    """Nothing is written anywhere."""
    with pytest.raises(BadRequest, match="location"):
        create(shop, "t", location=location)
    assert shop.files() == []


def test_paths_in_properties_are_checked_like_locations(shop: World) -> None:
    """`write.data.path` and the like send files elsewhere, so elsewhere must be allowed."""
    for key in ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"):
        wanted = request("t")
        bad = tables.TableRequest(name="t", schema=wanted.schema, properties={key: "s3://other/x"})
        with pytest.raises(BadRequest, match=f"{key}.*ICEKEEL_ALLOWED_LOCATIONS"):
            shop.run(tables.create_table(shop.ctx, ALICE, HOME, NS, bad))


def test_a_requested_location_is_kept_without_its_trailing_slash(shop: World) -> None:
    """And no file name has a double slash."""
    made = create(shop, "t", location=f"file:{shop.warehouse}/mine/")
    assert document(made.metadata)["location"] == f"file:{shop.warehouse}/mine"
    assert made.metadata_location is not None and "//" not in made.metadata_location


def test_folders_that_hold_other_tables_cannot_be_requested(shop: World) -> None:
    """The warehouse itself, a namespace's folder, and any place at, above or below another table."""
    namespace(shop, ("other",))
    create(shop, "t", location=f"{shop.warehouse}/mine")
    for place in ("", "/shop", "/other", "/mine", "/mine/", "/mine/inner"):
        with pytest.raises(ValidationFailed):
            create(shop, "u", location=f"{shop.warehouse}{place}")
    create(shop, "u", location=f"{shop.warehouse}/mine2")


def test_a_staged_table_is_a_document_and_nothing_else(shop: World) -> None:
    """No location, no tag, not listed, not loadable; but its metadata folder is there for engines to write into."""
    staged = create(shop, "t", stage=True)
    assert staged.metadata_location is None and staged.tag is None
    assert shop.run(tables.list_tables(shop.ctx, HOME, NS)).items == ()
    with pytest.raises(NoSuchTable):
        shop.run(tables.table_exists(shop.ctx, HOME, NS, "t"))
    assert shop.files() == []
    assert os.path.isdir(document(staged.metadata)["location"] + "/metadata")


def test_of_many_racing_creates_one_wins(shop: World) -> None:
    """The others are told that the name is taken, and no file of theirs stays."""

    async def race() -> list[object]:
        wanted = [tables.create_table(shop.ctx, ALICE, HOME, NS, request("t")) for _ in range(30)]
        return list(await asyncio.gather(*wanted, return_exceptions=True))

    results = shop.run(race())
    assert sum(isinstance(r, LoadedTable) for r in results) == 1
    refused = [r for r in results if not isinstance(r, LoadedTable)]
    assert all(isinstance(r, AlreadyExists) and r.message == "Table already exists: shop.t" for r in refused)
    assert len(shop.files()) == 1


def test_a_vanished_metadata_file_is_not_found(shop: World) -> None:
    """Also when the document is still in memory, and for a conditional load."""
    made = create(shop, "t")
    assert made.metadata_location is not None
    os.remove(made.metadata_location)
    for held in ((), (made.tag,)):
        with pytest.raises(NotFound, match=f"^Failed to open input stream for file: {made.metadata_location}$"):
            load(shop, "t", held=held)


def test_a_conditional_load_reads_no_document(shop: World) -> None:
    """The tag is compared before anything is read: an unreadable document does not matter."""
    made = create(shop, "t")
    assert made.metadata_location is not None
    shop.ctx.caches.documents.forget(made.metadata_location)
    Path(made.metadata_location).write_bytes(b"{broken")
    assert load(shop, "t", held=("x", made.tag)) == NotModified(made.tag or "")
    with pytest.raises(CorruptMetadata, match=r"is damaged"):
        load(shop, "t")


def test_tags_tell_versions_and_representations_apart(shop: World) -> None:
    """A tag of the short form never answers for the full one, and a commit's tag is good for the next load."""
    first = load(shop, "t") if create(shop, "t") else None
    assert isinstance(first, LoadedTable)
    refs = load(shop, "t", snapshots="refs")
    assert refs.tag != first.tag
    assert isinstance(load(shop, "t", held=(refs.tag,)), LoadedTable)
    done = commit(shop, "t", append(1, None, 1))
    assert isinstance(load(shop, "t", held=(first.tag,)), LoadedTable)
    assert load(shop, "t", held=(done.tag,)) == NotModified(done.tag)


def test_a_recreated_table_has_another_tag(shop: World) -> None:
    """A client that cached the dropped table sees the new one."""
    old = create(shop, "t").tag
    drop(shop, "t")
    create(shop, "t")
    assert isinstance(load(shop, "t", held=(old,)), LoadedTable)


def test_the_short_form_holds_referenced_snapshots_only(shop: World) -> None:
    """And everything else as the full form has it; nothing is lost for the next load or commit."""
    create(shop, "t")
    for number in range(1, 5):
        commit(shop, "t", append(number, number - 1 or None, number))
    tag = {"action": "set-snapshot-ref", "ref-name": "k", "type": "tag", "snapshot-id": 2}
    commit(shop, "t", [tag])
    full, short = load(shop, "t"), load(shop, "t", snapshots="refs")
    assert short.metadata_location == full.metadata_location
    whole, part = document(full.metadata), document(short.metadata)
    assert [s["snapshot-id"] for s in part["snapshots"]] == [2, 4]
    assert {k: v for k, v in part.items() if k != "snapshots"} == {k: v for k, v in whole.items() if k != "snapshots"}
    assert len(metadata(shop, "t")["snapshots"]) == 4


def test_a_cold_load_equals_a_warm_one(shop: World) -> None:
    """Another process reads the same bytes from the file."""
    warm = create(shop, "t")
    other = shop.run(shop.second())
    cold = shop.run(loading(other, "t"))
    assert (cold.metadata, cold.tag) == (warm.metadata, warm.tag)


def test_listing_tables_in_pages(shop: World) -> None:
    """Names in order, views not among them; a missing namespace is not an empty one."""
    for name in ("c", "a", "b"):
        create(shop, name)
    create_view(shop, "v")
    assert shop.run(tables.list_tables(shop.ctx, HOME, NS)).items == ("a", "b", "c")
    first = shop.run(tables.list_tables(shop.ctx, HOME, NS, PageRequest("", 2)))
    assert first.items == ("a", "b")
    last = shop.run(tables.list_tables(shop.ctx, HOME, NS, PageRequest(first.next_token, 2)))
    assert (last.items, last.next_token) == (("c",), None)
    with pytest.raises(NoSuchNamespace):
        shop.run(tables.list_tables(shop.ctx, HOME, ("nope",)))


def test_a_dropped_table_is_gone_but_its_files_stay(shop: World) -> None:
    """Only purge deletes; a second drop finds no table."""
    create(shop, "t")
    files = shop.files()
    drop(shop, "t")
    assert shop.files() == files
    with pytest.raises(NoSuchTable, match=r"Table does not exist: shop\.t"):
        drop(shop, "t")
    assert shop.run(shop.store.purge_jobs(10)) == ()


def test_a_drop_does_not_need_the_metadata_file(shop: World) -> None:
    """A table whose file has vanished can still be removed."""
    made = create(shop, "t")
    assert made.metadata_location is not None
    os.remove(made.metadata_location)
    drop(shop, "t")


def test_a_namespace_with_a_table_stays(shop: World) -> None:
    """Dropping it is refused until the table is gone."""
    create(shop, "t")
    with pytest.raises(NamespaceNotEmpty):
        shop.run(namespaces.drop_namespace(shop.ctx, ALICE, HOME, NS))
    drop(shop, "t")
    shop.run(namespaces.drop_namespace(shop.ctx, ALICE, HOME, NS))


def test_renaming_keeps_everything_but_the_name(shop: World) -> None:
    """Also into another namespace; the old name is free."""
    namespace(shop, ("other",))
    made = create(shop, "t")
    rename(shop, (NS, "t"), (("other",), "u"))
    moved = load(shop, "u", levels=("other",))
    assert (moved.metadata, moved.metadata_location) == (made.metadata, made.metadata_location)
    with pytest.raises(NoSuchTable):
        load(shop, "t")
    create(shop, "t")


def test_each_way_a_rename_can_fail(shop: World) -> None:
    """Missing source, missing target namespace, taken by a table, taken by a view, a view through the table route."""
    create(shop, "a")
    create(shop, "b")
    create_view(shop, "v")
    with pytest.raises(NoSuchTable):
        rename(shop, (NS, "x"), (NS, "y"))
    with pytest.raises(NoSuchNamespace):
        rename(shop, (NS, "a"), (("nope",), "y"))
    with pytest.raises(AlreadyExists, match=r"Cannot rename shop\.a to shop\.b\. Table already exists"):
        rename(shop, (NS, "a"), (NS, "b"))
    with pytest.raises(AlreadyExists, match=r"Cannot rename shop\.a to shop\.v\. View already exists"):
        rename(shop, (NS, "a"), (NS, "v"))
    with pytest.raises(NoSuchTable):
        rename(shop, (NS, "v"), (NS, "w"))
    with pytest.raises(BadRequest):
        rename(shop, (NS, "a"), (NS, ""))


def test_of_two_renames_to_one_name_one_wins(shop: World) -> None:
    """The other is told so, and keeps its name."""
    create(shop, "a")
    create(shop, "b")

    async def race() -> list[object]:
        both = (tables.rename_table(shop.ctx, ALICE, HOME, (NS, name), (NS, "c")) for name in ("a", "b"))
        return list(await asyncio.gather(*both, return_exceptions=True))

    results = shop.run(race())
    assert sorted(type(r).__name__ for r in results) == ["AlreadyExists", "NoneType"]
    assert len(shop.run(tables.list_tables(shop.ctx, HOME, NS)).items) == 2


def test_the_format_version_property_steers_and_is_not_kept(shop: World) -> None:
    """Plain and staged creates honour it alike."""
    for name, stage in (("t", False), ("u", True)):
        made = document(create(shop, name, stage=stage, format_version="1").metadata)
        assert made["format-version"] == 1 and "format-version" not in made["properties"]


def test_answers_carry_no_null_where_clients_choke(shop: World) -> None:
    """Java refuses explicit nulls for lists, maps, parents and the like."""

    def nulls(value: object, path: str) -> list[str]:
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in nulls(v, f"{path}.{k}")]
        if isinstance(value, list):
            return [p for v in value for p in nulls(v, path)]
        return [path] if value is None else []

    create(shop, "t")
    commit(shop, "t", append(1, None, 1))
    assert nulls(json.loads(load(shop, "t").metadata), "$") == []


def test_a_refused_location_in_a_store_leaves_nothing_to_clean_up(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """No file was written there, so none is removed, and the log tells of no trouble."""
    lake = Warehouse(
        name="lake", location="s3://lake/wh", secrets={"s3.access-key-id": "k", "s3.secret-access-key": "s"}
    )
    world.run(warehouses.create_warehouse(world.ctx, lake))
    world.run(namespaces.create_namespace(world.ctx, ALICE, "lake", ("ns",), {}))
    with pytest.raises(BadRequest, match="empty, relative"):
        world.run(tables.create_table(world.ctx, ALICE, "lake", ("ns",), request("t", location="s3://lake/wh/ns//t")))
    assert not [record for record in caplog.records if record.exc_info or "could not remove" in record.message]
