"""Namespaces."""

from __future__ import annotations

import asyncio

import pytest

from app.catalog import namespaces
from app.catalog.results import PageRequest
from app.errors import AlreadyExists, BadRequest, NamespaceNotEmpty, NoSuchNamespace, NoSuchWarehouse, Unprocessable
from app.events import ParentCreated
from tests.catalog.shorthand import create as table
from tests.catalog.world import ALICE, HOME, World


def create(world: World, *levels: str, **properties: str) -> None:
    world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, levels, properties))


def test_children_are_full_paths_one_level_down(world: World) -> None:
    """A listing shows direct children only, and an unknown parent is not an empty one."""
    for levels in (("n",), ("n", "m"), ("n", "m", "k"), ("o",)):
        create(world, *levels)
    assert world.run(namespaces.list_namespaces(world.ctx, HOME)).items == (("n",), ("o",))
    assert world.run(namespaces.list_namespaces(world.ctx, HOME, ("n",))).items == (("n", "m"),)
    assert world.run(namespaces.list_namespaces(world.ctx, HOME, ("n", "m", "k"))).items == ()
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: nope"):
        world.run(namespaces.list_namespaces(world.ctx, HOME, ("nope",)))


def test_listing_in_pages(world: World) -> None:
    """Seven namespaces come in pages of three, three and one."""
    for number in range(7):
        create(world, f"n{number}")
    sizes: list[int] = []
    token: str | None = ""
    while token is not None:
        got = world.run(namespaces.list_namespaces(world.ctx, HOME, (), PageRequest(token, 3)))
        sizes.append(len(got.items))
        token = got.next_token
    assert sizes == [3, 3, 1]


def test_a_computed_location_is_shown_until_one_is_set(world: World) -> None:
    """The parent's own location, or the warehouse, extended by the levels below it."""
    create(world, "a")
    create(world, "a", "b c")
    shown = world.run(namespaces.load_namespace(world.ctx, HOME, ("a", "b c"))).properties
    assert shown == {"location": f"{world.warehouse}/a/b_c"}
    world.run(
        namespaces.update_properties(world.ctx, ALICE, HOME, ("a",), {"location": f"{world.warehouse}/elsewhere/"}, ())
    )
    shown = world.run(namespaces.load_namespace(world.ctx, HOME, ("a", "b c"))).properties
    assert shown == {"location": f"{world.warehouse}/elsewhere/b_c"}


def test_the_answer_of_a_create_is_what_a_load_shows(world: World) -> None:
    """Properties as given, and the computed location."""
    made = world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, ("a",), {"owner": "me"}))
    assert made == world.run(namespaces.load_namespace(world.ctx, HOME, ("a",)))
    assert made.properties["owner"] == "me"


@pytest.mark.parametrize("location", ["/elsewhere", "s3://other/x", "relative", "/tmp/../etc"])
def test_a_foreign_location_is_refused(world: World, location: str) -> None:
    """A namespace decides where new tables go, so it cannot point outside; the message names the setting."""
    with pytest.raises(BadRequest, match="location"):
        create(world, "a", location=location)
    create(world, "a")
    with pytest.raises(BadRequest, match="location"):
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, ("a",), {"location": location}, ()))


def test_the_refusal_names_the_setting(world: World) -> None:
    """Whoever reads the message knows what to change."""
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        create(world, "a", location="s3://other/x")


def test_a_taken_namespace(world: World) -> None:
    """AlreadyExists in the words clients match."""
    create(world, "a")
    with pytest.raises(AlreadyExists, match="Namespace already exists: a"):
        create(world, "a")


def test_missing_namespaces_above_are_made_and_journalled(world: World) -> None:
    """Each one is there without properties, with a row that names whom it was made for; what was there has none."""
    create(world, "a", owner="me")
    create(world, "a", "b", "c", "d", owner="you")
    for levels, owner in ((("a",), "me"), (("a", "b"), None), (("a", "b", "c"), None), (("a", "b", "c", "d"), "you")):
        assert world.run(namespaces.load_namespace(world.ctx, HOME, levels)).properties.get("owner") == owner
    entries = [entry.event for entry in world.run(world.store.journal(warehouse=HOME))]
    made = [event for event in entries if isinstance(event, ParentCreated)]
    assert [event.namespace for event in reversed(made)] == [("a", "b"), ("a", "b", "c")]
    assert {(event.by, event.wanted) for event in made} == {("alice", ("a", "b", "c", "d"))}


def test_no_parent_is_made_for_a_namespace_that_is_refused(world: World) -> None:
    """The parents stand and fall with what they were made for."""
    with pytest.raises(BadRequest):
        create(world, "a", "b", location="s3://other/x")
    with pytest.raises(NoSuchNamespace):
        world.run(namespaces.namespace_exists(world.ctx, HOME, ("a",)))


def test_two_that_need_the_same_parent_are_both_made(world: World) -> None:
    """Whoever finds the parent made by another meanwhile uses it."""

    async def both() -> None:
        one, two = (namespaces.create_namespace(world.ctx, ALICE, HOME, ("a", "b", last), {}) for last in "xy")
        await asyncio.gather(one, two)

    world.run(both())
    assert world.run(namespaces.list_namespaces(world.ctx, HOME, ("a", "b"))).items == (
        ("a", "b", "x"),
        ("a", "b", "y"),
    )


@pytest.mark.parametrize("levels", [(), ("",), ("a", ""), ("..",), ("a\x00",), ("a\x1fb",)])
def test_a_name_that_no_request_could_carry_is_refused(world: World, levels: tuple[str, ...]) -> None:
    """Empty levels, dots that mean folders and control characters are a bad request at creation."""
    create(world, "a")
    with pytest.raises(BadRequest):
        create(world, *levels)


@pytest.mark.parametrize("level", ["a.b", "x y", "p/q", "\u00fcml\u00e4ut", "%2F", "x" * 300])
def test_free_names_are_kept_as_they_are(world: World, level: str) -> None:
    """Dots, slashes, blanks and any script are names like others."""
    create(world, level)
    assert world.run(namespaces.list_namespaces(world.ctx, HOME)).items == ((level,),)
    world.run(namespaces.namespace_exists(world.ctx, HOME, (level,)))
    world.run(namespaces.drop_namespace(world.ctx, ALICE, HOME, (level,)))
    with pytest.raises(NoSuchNamespace):
        world.run(namespaces.namespace_exists(world.ctx, HOME, (level,)))


def test_updating_properties_tells_what_happened(world: World) -> None:
    """updated, removed and missing are told apart, and the result is stored."""
    create(world, "a", one="1", two="2")
    removals = ["one", "nope", "one"]
    got = world.run(namespaces.update_properties(world.ctx, ALICE, HOME, ("a",), {"three": "3"}, removals))
    assert (got.updated, got.removed, got.missing) == (("three",), ("one",), ("nope",))
    shown = world.run(namespaces.load_namespace(world.ctx, HOME, ("a",))).properties
    assert {k: v for k, v in shown.items() if k != "location"} == {"two": "2", "three": "3"}


def test_one_key_both_set_and_removed_is_unprocessable(world: World) -> None:
    """And nothing is changed."""
    create(world, "a", one="1")
    with pytest.raises(Unprocessable):
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, ("a",), {"one": "2"}, ["one"]))
    assert world.run(namespaces.load_namespace(world.ctx, HOME, ("a",))).properties["one"] == "1"


def test_only_an_empty_namespace_is_dropped(world: World) -> None:
    """A child keeps its parent."""
    create(world, "n")
    create(world, "n", "m")
    with pytest.raises(NamespaceNotEmpty, match="is not empty"):
        world.run(namespaces.drop_namespace(world.ctx, ALICE, HOME, ("n",)))
    with pytest.raises(NoSuchNamespace):
        world.run(namespaces.drop_namespace(world.ctx, ALICE, HOME, ("x",)))


def test_an_unknown_warehouse_is_named_before_the_namespace(world: World) -> None:
    """NoSuchWarehouse, also for reads."""
    with pytest.raises(NoSuchWarehouse):
        world.run(namespaces.load_namespace(world.ctx, "nope", ("a",)))


def test_a_namespace_has_a_bounded_number_of_properties(world: World) -> None:
    """On create and on update; what an update takes away makes room."""
    many = {f"p{at}": "x" for at in range(namespaces.MOST_PROPERTIES)}
    with pytest.raises(BadRequest, match=f"at most {namespaces.MOST_PROPERTIES} are kept"):
        create(world, "n", **many, q="x")
    create(world, "n", **many)

    def update(removals: tuple[str, ...]) -> None:
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, ("n",), {"q": "x"}, removals))

    with pytest.raises(BadRequest, match=f"at most {namespaces.MOST_PROPERTIES} are kept"):
        update(())
    update(("p0",))


def test_the_properties_of_a_namespace_have_a_bounded_size(world: World) -> None:
    """Names and values together, those that are there included."""
    half = "x" * (namespaces.MOST_PROPERTY_CHARACTERS // 2)
    create(world, "n", a=half)
    with pytest.raises(BadRequest, match=f"at most {namespaces.MOST_PROPERTY_CHARACTERS} are kept"):
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, ("n",), {"b": half}, ()))


@pytest.mark.parametrize("levels", [("b",), ("b", "c"), ("b", "c", "d")])
def test_a_table_in_the_way_of_a_new_namespace_blocks_nobody(world: World, levels: tuple[str, ...]) -> None:
    """The namespace gets a folder beside the one that the table took, shows it as its location, and its own children
    and tables go there."""
    create(world, "a")
    taken = f"{world.warehouse}/{'/'.join(levels[:2])}"
    table(world, "early", ("a",), location=taken)
    made = world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, levels, {}))
    assert made == world.run(namespaces.load_namespace(world.ctx, HOME, levels))
    assert made.properties["location"].startswith(f"{taken}-")
    table(world, "t", levels)
    create(world, *levels, "child")
    table(world, "t", (*levels, "child"))


def test_a_namespace_beside_tables_has_its_computed_folder(world: World) -> None:
    """A table below that folder is in nobody's way."""
    create(world, "a")
    table(world, "early", ("a",), location=f"{world.warehouse}/b/c")
    made = world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, ("b",), {}))
    assert made.properties == {"location": f"{world.warehouse}/b"}
