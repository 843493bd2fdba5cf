"""Views."""

from __future__ import annotations

import asyncio
import os

import pytest

from app.catalog import namespaces, tables, views
from app.catalog.results import LoadedView
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    IllegalArgument,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchView,
    NotFound,
)
from app.iceberg.requirement import parse_view_requirements
from app.iceberg.schema import parse_schema
from app.iceberg.update import parse_view_updates
from app.iceberg.view import view_version_from_json
from tests.catalog.shorthand import (
    NS,
    create,
    create_view,
    document,
    field,
    namespace,
    replace_view,
    schema_json,
    set_properties,
    view_version,
)
from tests.catalog.world import ALICE, HOME, World

SET_LAST = {"action": "set-current-view-version", "view-version-id": -1}


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    return world


def load(world: World, name: str, levels: tuple[str, ...] = NS) -> LoadedView:
    return world.run(views.load_view(world.ctx, ALICE, HOME, levels, name))


def new_text(sql: str, version_id: int = 2) -> list[dict[str, object]]:
    return [{"action": "add-view-version", "view-version": view_version(sql, version_id)}, SET_LAST]


def test_what_create_answers_is_what_the_next_load_shows(shop: World) -> None:
    """Same location and bytes, at a place of the view's own."""
    made = create_view(shop, "v")
    assert made == load(shop, "v")
    got = document(made.metadata)
    assert got["location"] == f"{shop.warehouse}/shop/v-{got['view-uuid'][:8]}"
    assert got["current-version-id"] == 1 and got["versions"][0]["schema-id"] == 0


def test_one_name_space_with_tables(shop: World) -> None:
    """A table's name is taken for views, a view's name for tables."""
    create(shop, "t")
    create_view(shop, "v")
    with pytest.raises(AlreadyExists, match=r"^Table with same name already exists: shop\.t$"):
        create_view(shop, "t")
    with pytest.raises(AlreadyExists, match=r"^View already exists: shop\.v$"):
        create_view(shop, "v")
    with pytest.raises(NoSuchView, match=r"View does not exist: shop\.t"):
        load(shop, "t")


def test_missing_places(shop: World) -> None:
    """create: NoSuchNamespace; load, drop and replace: NoSuchView."""
    with pytest.raises(NoSuchNamespace):
        create_view(shop, "v", levels=("nope",))
    with pytest.raises(NoSuchView, match=r"View does not exist: nope\.v"):
        load(shop, "v", ("nope",))
    with pytest.raises(NoSuchView):
        shop.run(views.drop_view(shop.ctx, ALICE, HOME, NS, "v"))
    with pytest.raises(NoSuchView):
        replace_view(shop, "v", [set_properties(a="1")])
    with pytest.raises(NoSuchView):
        shop.run(views.view_exists(shop.ctx, HOME, NS, "v"))


def test_a_replaced_view_has_a_new_file_and_keeps_its_identity(shop: World) -> None:
    """The uuid stays, both versions are listed, the file counts up."""
    made = create_view(shop, "v", "select 1")
    done = replace_view(shop, "v", new_text("select 2"))
    assert done == load(shop, "v") and done.metadata_location != made.metadata_location
    assert os.path.basename(done.metadata_location).startswith("00001-")
    before, after = document(made.metadata), document(done.metadata)
    assert after["view-uuid"] == before["view-uuid"]
    assert [v["version-id"] for v in after["versions"]] == [1, 2] and after["current-version-id"] == 2


def test_going_back_to_an_earlier_text(shop: World) -> None:
    """Two versions, not three; the log tells 1, 2, 1 with rising times; a property commit adds no entry."""
    create_view(shop, "v", "select 1")
    replace_view(shop, "v", new_text("select 2"))
    replace_view(shop, "v", new_text("select 1", 3))
    replace_view(shop, "v", [set_properties(a="1")])
    got = document(load(shop, "v").metadata)
    assert [v["version-id"] for v in got["versions"]] == [1, 2]
    log = got["version-log"]
    assert [e["version-id"] for e in log] == [1, 2, 1]
    assert [e["timestamp-ms"] for e in log] == sorted(e["timestamp-ms"] for e in log)
    assert log[-1]["timestamp-ms"] > 1_800_000_000_000
    replace_view(shop, "v", [{"action": "set-current-view-version", "view-version-id": 2}])
    assert [e["version-id"] for e in document(load(shop, "v").metadata)["version-log"]] == [1, 2, 1, 2]


def test_a_replace_that_changes_nothing_writes_nothing(shop: World) -> None:
    """The present state is answered."""
    made = create_view(shop, "v", "select 1")
    files = shop.files()
    assert replace_view(shop, "v", new_text("select 1")) == made
    assert shop.files() == files


def test_another_uuid_is_a_conflict(shop: World) -> None:
    """assert-view-uuid is checked before anything is applied."""
    create_view(shop, "v")
    wrong = [{"type": "assert-view-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}]
    with pytest.raises(CommitFailed, match="Requirement failed: view UUID does not match"):
        replace_view(shop, "v", new_text("select 2"), wrong)


def test_two_texts_in_one_dialect_are_refused(shop: World) -> None:
    """Under the name and in the words that the reference suite expects, and nothing is stored."""
    version = view_version("select 1", dialect="trino")
    version["representations"].append({"type": "sql", "sql": "select 2", "dialect": "TRINO"})
    wanted = views.ViewRequest("v", parse_schema(schema_json(field(1, "one"))), view_version_from_json(version, "$"))
    with pytest.raises(IllegalArgument, match="Cannot add multiple queries for dialect trino"):
        shop.run(views.create_view(shop.ctx, ALICE, HOME, NS, wanted))
    assert shop.files() == []


def test_locations_are_checked_like_those_of_tables(shop: World) -> None:
    """At create and at set-location."""
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        create_view(shop, "v", location="/elsewhere")
    create_view(shop, "v", location=f"{shop.warehouse}/v/")
    assert document(load(shop, "v").metadata)["location"] == f"{shop.warehouse}/v"
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        replace_view(shop, "v", [{"action": "set-location", "location": "s3://elsewhere/v"}])


def test_parallel_replaces_all_take_effect(shop: World) -> None:
    """In two processes, every accepted property is there."""
    create_view(shop, "v")
    other = shop.run(shop.second())

    async def one(world: World, number: int) -> None:
        for _ in range(20):
            try:
                await views.replace_view(
                    world.ctx, ALICE, HOME, NS, "v", (), parse_view_updates([set_properties(**{f"k{number}": "1"})])
                )
                return
            except CommitFailed:
                continue
        raise AssertionError("never succeeded")

    async def race() -> None:
        await asyncio.gather(*(one((shop, other)[n % 2], n) for n in range(20)))

    shop.run(race())
    assert {f"k{n}" for n in range(20)} <= set(document(load(shop, "v").metadata)["properties"])


def test_views_are_listed_renamed_and_dropped(shop: World) -> None:
    """Each like a table, and neither shows the other."""
    create(shop, "t")
    made = create_view(shop, "v")
    namespace(shop, ("other",))
    with pytest.raises(NamespaceNotEmpty):
        shop.run(namespaces.drop_namespace(shop.ctx, ALICE, HOME, NS))
    assert shop.run(views.list_views(shop.ctx, HOME, NS)).items == ("v",)
    for target, kind in (((NS, "t"), AlreadyExists), ((("nope",), "w"), NoSuchNamespace)):
        with pytest.raises(kind):
            shop.run(views.rename_view(shop.ctx, ALICE, HOME, (NS, "v"), target))
    with pytest.raises(NoSuchView):
        shop.run(views.rename_view(shop.ctx, ALICE, HOME, (NS, "t"), (NS, "w")))
    shop.run(views.rename_view(shop.ctx, ALICE, HOME, (NS, "v"), (("other",), "w")))
    assert load(shop, "w", ("other",)) == made
    shop.run(views.drop_view(shop.ctx, ALICE, HOME, ("other",), "w"))
    assert shop.run(views.list_views(shop.ctx, HOME, ("other",))).items == ()
    assert os.path.exists(made.metadata_location)
    assert shop.run(tables.list_tables(shop.ctx, HOME, NS)).items == ("t",)


def test_a_vanished_view_file_is_not_found(shop: World) -> None:
    """As for tables."""
    made = create_view(shop, "v")
    os.remove(made.metadata_location)
    with pytest.raises(NotFound, match="Failed to open input stream for file"):
        load(shop, "v")


def test_the_right_uuid_in_any_case_passes(shop: World) -> None:
    """Letter case of a uuid means nothing."""
    uuid = document(create_view(shop, "v").metadata)["view-uuid"]
    right = parse_view_requirements([{"type": "assert-view-uuid", "uuid": uuid.upper()}])
    shop.run(views.replace_view(shop.ctx, ALICE, HOME, NS, "v", right, parse_view_updates([set_properties(a="1")])))
