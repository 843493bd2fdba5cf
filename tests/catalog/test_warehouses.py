"""Warehouses and the client configuration."""

from __future__ import annotations

import pytest

from app.catalog import namespaces, tables, warehouses
from app.errors import AlreadyExists, BadRequest, NamespaceNotEmpty, NoSuchWarehouse
from app.ports import Warehouse
from tests.catalog.shorthand import create, metadata, namespace
from tests.catalog.world import ALICE, HOME, World


def test_the_default_warehouse_is_found_by_nothing_name_and_any_spelling_of_its_location(world: World) -> None:
    """`warehouse=` takes a name or a location; absent or empty means the default one."""
    for wanted in (None, "", HOME, str(world.warehouse), f"file://{world.warehouse}/", f"file:{world.warehouse}"):
        got = world.run(warehouses.get_config(world.ctx, wanted))
        assert got.warehouse.name == HOME
        assert got.overrides == {"prefix": HOME}


@pytest.mark.parametrize("wanted", ["nope", "s3://nowhere/x", "../..", "\u00fc"])
def test_an_unknown_warehouse_is_not_found(world: World, wanted: str) -> None:
    """Whatever is asked for, the answer is NoSuchWarehouse and never a crash."""
    with pytest.raises(NoSuchWarehouse, match="Warehouse does not exist"):
        world.run(warehouses.get_config(world.ctx, wanted))


def test_clients_are_told_storage_options_but_no_secret(world: World) -> None:
    """Options that a FileIO understands are handed out, secrets never."""
    new = Warehouse(
        name="lake",
        location="s3://b/lake/",
        storage={"s3.endpoint": "http://store:8333", "icekeel.client.endpoint": "true"},
        secrets={"s3.secret-access-key": "x", "s3.access-key-id": "y"},
    )
    made = world.run(warehouses.create_warehouse(world.ctx, new))
    assert made.location == "s3://b/lake"
    assert world.run(warehouses.get_config(world.ctx, "lake")).defaults == {
        "s3.endpoint": "http://store:8333",
        "s3.region": "us-east-1",
        "client.region": "us-east-1",
        "s3.path-style-access": "true",
    }


@pytest.mark.parametrize("name", ["tables", "config", "A", "", "a/b", "x" * 65, "a b"])
def test_a_name_that_urls_could_mistake_is_refused(world: World, name: str) -> None:
    """A warehouse name is a path segment right after /v1."""
    with pytest.raises(BadRequest, match="warehouse name"):
        world.run(warehouses.create_warehouse(world.ctx, Warehouse(name=name, location="s3://b/x")))


def test_a_taken_name_is_refused(world: World) -> None:
    """Creating twice is AlreadyExists."""
    with pytest.raises(AlreadyExists):
        world.run(warehouses.create_warehouse(world.ctx, Warehouse(name=HOME, location="s3://b/x")))


def test_a_moved_default_warehouse_keeps_its_old_place_allowed(world: World) -> None:
    """New tables go to the new location, old ones stay where the server may still touch them."""
    moved = world.run(warehouses.ensure_warehouse(world.ctx, Warehouse(name=HOME, location="s3://new/place")))
    assert moved.location == "s3://new/place" and moved.allowed_locations == (str(world.warehouse),)
    again = world.run(warehouses.ensure_warehouse(world.ctx, Warehouse(name=HOME, location="s3a://new/place/")))
    assert again == world.run(world.store.warehouse(HOME))


def test_only_an_empty_warehouse_is_dropped(world: World) -> None:
    """One with a namespace stays, an empty one is gone for every read."""
    world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, ("a",), {}))
    with pytest.raises(NamespaceNotEmpty):
        world.run(warehouses.drop_warehouse(world.ctx, HOME))
    world.run(namespaces.drop_namespace(world.ctx, ALICE, HOME, ("a",)))
    world.run(warehouses.drop_warehouse(world.ctx, HOME))
    with pytest.raises(NoSuchWarehouse):
        world.run(namespaces.list_namespaces(world.ctx, HOME))


def test_a_slash_behind_a_location_is_no_difference(world: World) -> None:
    """With one slash or several."""
    for wanted in (f"{world.warehouse}/", f"{world.warehouse}//"):
        assert world.run(warehouses.get_config(world.ctx, wanted)).warehouse.name == HOME


def test_whoever_asks_for_no_warehouse_is_told_which_there_are(world: World) -> None:
    """Names and locations, twenty at most."""
    with pytest.raises(NoSuchWarehouse, match=f"does not exist: .*/rest/. There are: {HOME} at {world.warehouse}"):
        world.run(warehouses.get_config(world.ctx, f"{world.warehouse}/rest/"))
    for number in range(21):
        place = str(world.folder / f"w{number}")
        world.run(warehouses.create_warehouse(world.ctx, Warehouse(name=f"w{number}", location=place)))
    with pytest.raises(NoSuchWarehouse, match=r"and 2 more$"):
        world.run(warehouses.get_config(world.ctx, "nope"))


def plain_locations(world: World, value: str | None) -> None:
    change = warehouses.WarehouseChange(properties={"unique-table-location": value})
    world.run(warehouses.change_warehouse(world.ctx, HOME, change))


def test_table_locations_can_do_without_digits(world: World) -> None:
    """With `unique-table-location=false` a table lies at `<namespace>/<table>`; the setting is no table property, and
    taking it away brings the digits back."""
    namespace(world)
    plain_locations(world, "false")
    create(world, "a b")
    assert metadata(world, "a b")["location"] == f"{world.warehouse}/shop/a_b"
    assert "unique-table-location" not in metadata(world, "a b")["properties"]
    plain_locations(world, None)
    create(world, "c")
    assert metadata(world, "c")["location"].startswith(f"{world.warehouse}/shop/c-")


def test_a_plain_location_that_others_have_is_not_taken(world: World) -> None:
    """A table that was renamed keeps its folder, and a namespace of the name has it: then the digits come back."""
    namespace(world)
    namespace(world, ("shop", "n"))
    plain_locations(world, "false")
    create(world, "t")
    world.run(tables.rename_table(world.ctx, ALICE, HOME, (("shop",), "t"), (("shop",), "old")))
    for name in ("t", "n"):
        create(world, name)
        assert metadata(world, name)["location"].startswith(f"{world.warehouse}/shop/{name}-")


def test_the_setting_of_table_locations_is_true_or_false(world: World) -> None:
    """Anything else would be taken for one of them."""
    with pytest.raises(BadRequest, match="true or false"):
        plain_locations(world, "no")
