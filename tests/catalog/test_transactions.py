"""Commits to several tables: all or none."""

from __future__ import annotations

import asyncio

import pytest

from app.catalog import commits
from app.errors import AlreadyExists, BadRequest, CommitFailed, EvolutionRefused, IcekeelError, NoSuchTable
from tests.catalog.shorthand import (
    CREATE,
    NS,
    Json,
    append,
    change,
    commit,
    create,
    create_view,
    document,
    field,
    first_version,
    load,
    metadata,
    namespace,
    schema_json,
    set_properties,
    transact,
)
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    for name in ("a", "b", "c"):
        create(world, name)
    return world


def stale() -> list[Json]:
    return [{"type": "assert-current-schema-id", "current-schema-id": 7}]


def test_every_table_moves_at_once(shop: World) -> None:
    """After the call each table has its change, one new file each."""
    files = len(shop.files())
    transact(shop, *(change(name, append(n, None, 1)) for n, name in enumerate("abc", 1)))
    assert [metadata(shop, name)["current-snapshot-id"] for name in "abc"] == [1, 2, 3]
    assert len(shop.files()) == files + 3


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (change("c", [set_properties(a="1")], stale()), CommitFailed),
        (change("nope", [set_properties(a="1")]), NoSuchTable),
        (change("c", [{"action": "set-current-schema", "schema-id": 99}]), BadRequest),
        (change("c", [set_properties(**{"write.data.path": "/elsewhere"})]), BadRequest),
        (change("c", [{"action": "set-location", "location": "/elsewhere"}]), BadRequest),
    ],
)
def test_one_refusal_stops_all(shop: World, bad: commits.TableChange, kind: type[IcekeelError]) -> None:
    """The others keep their state, and no file stays behind."""
    before, files = [load(shop, name).metadata_location for name in "abc"], shop.files()
    with pytest.raises(kind):
        transact(shop, change("a", [set_properties(a="1")]), change("b", [set_properties(a="1")]), bad)
    assert [load(shop, name).metadata_location for name in "abc"] == before
    assert shop.files() == files


def test_a_refused_evolution_stops_all(shop: World) -> None:
    """Judged table by table before anything is written."""
    commit(shop, "b", append(1, None, 1))
    files = shop.files()
    narrow = schema_json(field(1, "id", required=True), field(2, "price", "decimal(4,2)"))
    with pytest.raises(EvolutionRefused):
        transact(
            shop,
            change("a", [set_properties(a="1")]),
            change(
                "b", [{"action": "add-schema", "schema": narrow}, {"action": "set-current-schema", "schema-id": -1}]
            ),
        )
    assert shop.files() == files and "a" not in metadata(shop, "a")["properties"]


def test_staged_creates_are_part_of_it(shop: World) -> None:
    """A new table appears together with the change of an old one, or not at all."""
    staged = document(create(shop, "new", stage=True).metadata)
    with pytest.raises(CommitFailed):
        transact(shop, change("new", first_version(staged), [CREATE]), change("a", [], stale()))
    with pytest.raises(NoSuchTable):
        load(shop, "new")
    transact(shop, change("new", first_version(staged), [CREATE]), change("a", [set_properties(a="1")]))
    assert metadata(shop, "new")["table-uuid"] == staged["table-uuid"]
    assert metadata(shop, "a")["properties"]["a"] == "1"
    with pytest.raises(CommitFailed, match="Requirement failed: table already exists"):
        transact(shop, change("new", first_version(staged), [CREATE]))


def test_two_new_tables_in_one_place_are_refused(shop: World) -> None:
    """The second of two overlapping creates stops both."""
    one, two = (document(create(shop, name, stage=True).metadata) for name in ("n1", "n2"))
    files = shop.files()
    with pytest.raises(BadRequest):
        transact(
            shop,
            change("n1", first_version(one), [CREATE]),
            change("n2", first_version({**two, "location": one["location"]}), [CREATE]),
        )
    assert shop.files() == files


def test_an_empty_transaction_is_a_bad_request(shop: World) -> None:
    """There is nothing that could be all or none."""
    with pytest.raises(BadRequest):
        transact(shop)


def test_a_transaction_that_changes_nothing_writes_nothing(shop: World) -> None:
    """Requirements are still checked."""
    files = shop.files()
    transact(shop, change("a", []), change("b", []))
    with pytest.raises(CommitFailed):
        transact(shop, change("a", []), change("b", [], stale()))
    assert shop.files() == files


def test_racing_transactions_over_the_same_tables_all_take_effect(shop: World) -> None:
    """Named in any order and from two processes, nobody waits for ever and no write is lost."""
    other = shop.run(shop.second())

    async def one(world: World, number: int) -> None:
        names = "ab" if number % 2 else "ba"
        for _ in range(20):
            try:
                await commits.commit_transaction(
                    world.ctx, ALICE, HOME, [change(n, [set_properties(**{f"k{number}": "1"})]) for n in names]
                )
                return
            except CommitFailed:
                continue
        raise AssertionError("never succeeded")

    async def race() -> None:
        await asyncio.wait_for(asyncio.gather(*(one((shop, other)[n % 3 == 0], n) for n in range(16))), 30)

    shop.run(race())
    for name in "ab":
        assert {f"k{n}" for n in range(16)} <= set(metadata(shop, name)["properties"])


def test_a_reader_never_sees_half_of_it(shop: World) -> None:
    """A table of the transaction read between two reads of another is never ahead of or behind both."""

    async def story() -> None:
        done = asyncio.Event()

        async def write() -> None:
            for n in range(15):
                await commits.commit_transaction(
                    shop.ctx, ALICE, HOME, [change(name, [set_properties(n=str(n))]) for name in "ab"]
                )
            done.set()

        async def version(name: str) -> int:
            row = await shop.store.tabular(HOME, NS, name)
            assert row is not None
            return row.version

        async def poll() -> None:
            while not done.is_set():
                before, between, after = await version("a"), await version("b"), await version("a")
                assert before <= between <= after
                await asyncio.sleep(0)

        await asyncio.gather(write(), poll())

    shop.run(story())


def test_a_view_in_a_create_entry_is_named(shop: World) -> None:
    """One name space: the entry that would create a table over a view stops all."""
    create_view(shop, "v")
    staged = document(create(shop, "n", stage=True).metadata)
    with pytest.raises(AlreadyExists, match="View with same name already exists"):
        transact(shop, change("a", [set_properties(a="1")]), change("v", first_version(staged), [CREATE]))
    assert "a" not in metadata(shop, "a")["properties"]
