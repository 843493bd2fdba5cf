"""The history of schemas, from the journal and from what the metadata of an arriving table tells."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from app.catalog import schema_history, strictness, tables
from app.catalog.schema_history import Chapter, Chronicle, Query
from app.errors import BadRequest, NoSuchNamespace, NoSuchTable
from tests.catalog.shorthand import NS, append, commit, create, field, load, namespace, schema_json
from tests.catalog.world import ALICE, HOME, World

Json = dict[str, Any]


def evolve(world: World, name: str, *fields: Json) -> None:
    commit(
        world,
        name,
        [
            {"action": "add-schema", "schema": schema_json(*fields)},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    )


ID, PRICE = field(1, "id", required=True), field(2, "price", "decimal(9,2)")


@pytest.fixture
def shop(world: World) -> World:
    """`orders`, created with two columns and changed three times; one append between the changes."""
    namespace(world)
    create(world, "orders")
    evolve(world, "orders", ID, PRICE, field(3, "note", "string"))
    commit(world, "orders", append(1, None, 1, **{"schema-id": 1}))
    evolve(world, "orders", ID, field(2, "amount", "decimal(9,2)"), field(3, "note", "string"))
    evolve(world, "orders", ID, field(2, "amount", "decimal(9,2)"))
    return world


def told(world: World, name: str = "orders", query: Query = schema_history.EVERYTHING, **more: Any) -> Chronicle:
    return world.run(schema_history.table_chronicle(world.ctx, HOME, NS, name, query, **more))


def outline(chapters: tuple[Chapter, ...]) -> list[tuple[int, list[str]]]:
    return [(one.to_schema_id, [str(change["change"]) for change in one.changes]) for one in chapters]


WHOLE = [(3, ["dropped"]), (2, ["renamed"]), (1, ["added"]), (0, ["added", "added"])]


def test_every_change_is_told_newest_first(shop: World) -> None:
    """With who, when, by which client, and the commit's own file; appends are not changes."""
    found = told(shop).chapters
    assert outline(found) == WHOLE
    assert {(one.source, one.by, one.client) for one in found} == {("journal", "alice", "pyiceberg 0.12.0")}
    assert found[0].metadata_location == load(shop, "orders").metadata_location
    assert [one.from_schema_id for one in found] == [2, 1, 0, None]
    times = [one.at_ms or 0 for one in found]
    assert times == sorted(times, reverse=True) and all(times)


def test_pages_join_to_the_whole(shop: World) -> None:
    """Each token leads to the next page, none is given at the end."""
    token: str | None = None
    found: list[tuple[int, list[str]]] = []
    for _ in range(10):
        page = told(shop, token=token, limit=1)
        found += outline(page.chapters)
        token = page.next_token
        if token is None:
            break
    assert found == WHOLE


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(change="renamed"), [2]),
        (Query(field_id=3), [3, 1]),
        (Query(field_id=3, change="dropped"), [3]),
        (Query(by="bob"), []),
        (Query(by="alice", change="added"), [1, 0]),
        (Query(until_ms=0), []),
        (Query(since_ms=2**52), []),
        (Query(since_ms=0), [3, 2, 1, 0]),
    ],
)
def test_a_query_leaves_out_the_rest(shop: World, query: Query, expected: list[int]) -> None:
    """By kind of change, column, person and time."""
    assert [one.to_schema_id for one in told(shop, query=query).chapters] == expected


def test_a_registered_table_tells_of_the_time_before(shop: World) -> None:
    """From its own schemas: what changed, and when the first retained snapshot was written under each."""
    file = load(shop, "orders").metadata_location
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "orders"))
    other = shop.run(shop.second())
    # Another catalog, to whom the table is new: its journal knows nothing of it.
    shop.run(_forget_journal(other))
    other.run(tables.register_table(other.ctx, ALICE, HOME, NS, "orders", file))
    evolve(other, "orders", ID, field(2, "amount", "decimal(12,2)"))
    found = told(other).chapters
    assert outline(found) == [(4, ["type-changed"]), *WHOLE]
    assert [one.source for one in found] == ["journal", "metadata", "metadata", "metadata", "metadata"]
    assert [one.by for one in found[1:]] == [None] * 4
    assert [one.at_ms for one in found[1:]] == [None, None, 1_800_000_000_001, None]
    token = told(other, limit=2).next_token
    assert token == "m.2"
    assert outline(told(other, token=token, limit=2).chapters) == WHOLE[1:3]


async def _forget_journal(world: World) -> None:
    with closing(sqlite3.connect(world.folder / "catalog.db", isolation_level=None)) as database:
        database.execute("DELETE FROM journal")


def test_a_used_waiver_is_told_with_its_reason(shop: World) -> None:
    """Beside the change that it allowed, with the finding that it waived."""
    shop.run(strictness.grant_waiver(shop.ctx, ALICE, HOME, NS, "orders", "ICE201", "rewritten by hand", 60_000))
    evolve(shop, "orders", ID, field(2, "amount", "string"))
    chapter = told(shop).chapters[0]
    assert [(used.code, used.reason, used.granted_by) for used in chapter.waivers] == [
        ("ICE201", "rewritten by hand", "alice"),
    ]  # fmt: skip
    assert "ICE201" in {finding["code"] for finding in chapter.findings}
    assert [one.waivers for one in told(shop).chapters[1:]] == [()] * 4


def test_a_namespace_tells_of_all_its_tables(shop: World) -> None:
    """Those below it and dropped ones too; another namespace is another story."""
    namespace(shop, ("shop", "eu"))
    namespace(shop, ("other",))
    create(shop, "items", ("shop", "eu"))
    create(shop, "elsewhere", ("other",))
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "orders"))
    found = shop.run(schema_history.namespace_chronicle(shop.ctx, HOME, NS)).chapters
    assert [(one.levels, one.name, one.to_schema_id) for one in found] == [
        (("shop", "eu"), "items", 0), *((NS, "orders", number) for number in (3, 2, 1, 0)),
    ]  # fmt: skip
    page = shop.run(schema_history.namespace_chronicle(shop.ctx, HOME, NS, limit=2))
    rest = shop.run(schema_history.namespace_chronicle(shop.ctx, HOME, NS, token=page.next_token))
    assert (*page.chapters, *rest.chapters) == found


def test_the_life_of_a_column(shop: World) -> None:
    """What schemas and snapshots tell of it, and every change that was about it."""
    life = shop.run(schema_history.column_life(shop.ctx, HOME, NS, "orders", 3))
    assert (life.biography.state, life.biography.schema_ids) == ("dropped", (1, 2))
    assert life.biography.snapshots.count == 1 and life.biography.refs == ("main",)
    assert [one.to_schema_id for one in life.chapters] == [3, 1]


def test_what_is_not_there_has_no_history(shop: World) -> None:
    """404 for the table and the namespace, 400 for a limit or a token that nobody handed out."""
    with pytest.raises(NoSuchTable):
        told(shop, "nope")
    with pytest.raises(NoSuchNamespace):
        shop.run(schema_history.namespace_chronicle(shop.ctx, HOME, ("nope",)))
    for wrong in ({"limit": 0}, {"limit": 1001}, {"token": "x1"}, {"token": "j"}, {"token": "j-1"}, {"token": "j١"}):
        with pytest.raises(BadRequest):
            told(shop, **wrong)
    with pytest.raises(BadRequest):
        shop.run(schema_history.namespace_chronicle(shop.ctx, HOME, NS, token="m.1"))
