"""Tables by how their schemas have grown."""

from __future__ import annotations

import pytest

from app.catalog import results, table_ranking
from app.errors import BadRequest, NoSuchNamespace, Unavailable
from tests.catalog.shorthand import NS, commit, create, field, namespace, schema_json
from tests.catalog.world import HOME, World


def grow(world: World, name: str, *ids: int, levels: tuple[str, ...] = NS) -> None:
    """Make the table's schema consist of these fields."""
    added = {"action": "add-schema", "schema": schema_json(*(field(number, f"c{number}") for number in ids))}
    commit(world, name, [added, {"action": "set-current-schema", "schema-id": -1}], levels=levels)


@pytest.fixture
def shop(world: World) -> World:
    """`wide` has 6 fields, `worn` 1 field and 8 retired ids in 4 schemas, `young` is as it was created."""
    namespace(world)
    namespace(world, ("shop", "eu"))
    for name in ("wide", "worn"):
        create(world, name)
    create(world, "young", ("shop", "eu"))
    grow(world, "wide", 1, 2, 3, 4, 5, 6)
    grow(world, "worn", 1, 2, *range(3, 10))
    grow(world, "worn", 1, 2)
    grow(world, "worn", 2)
    return world


def order(world: World, by: str, levels: tuple[str, ...] | None = None) -> list[str]:
    found = world.run(table_ranking.table_standings(world.ctx, HOME, by, levels=levels, token=None, size=None))
    return [row.name for row in found.items]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("last-column-id", ["worn", "wide", "young"]),
        ("field-count", ["wide", "young", "worn"]),
        ("retired-ids", ["worn", "wide", "young"]),
        ("schema-count", ["worn", "wide", "young"]),
        ("schema-changed", ["worn", "wide", "young"]),
    ],
)
def test_the_largest_come_first(shop: World, by: str, expected: list[str]) -> None:
    """By the highest id, fields, retired ids, kept schemas, and the last change; ties in order of creation."""
    assert order(shop, by) == expected


def test_a_namespace_holds_those_below_it(shop: World) -> None:
    """And no others."""
    assert order(shop, "last-column-id", ("shop", "eu")) == ["young"]
    assert order(shop, "last-column-id", NS) == ["worn", "wide", "young"]


def test_a_data_commit_leaves_the_time_of_the_last_change(shop: World) -> None:
    """Only schemas count."""
    before = shop.run(shop.store.tabular(HOME, NS, "wide"))
    commit(shop, "wide", [{"action": "set-properties", "updates": {"a": "b"}}])
    after = shop.run(shop.store.tabular(HOME, NS, "wide"))
    assert before is not None and after is not None and before.version < after.version
    assert after.columns == before.columns


def test_pages_join_to_the_whole(shop: World) -> None:
    """A token belongs to its own listing."""
    names: list[str] = []
    token: str | None = None
    while True:
        page = shop.run(table_ranking.table_standings(shop.ctx, HOME, "retired-ids", levels=None, token=token, size=1))
        names += [row.name for row in page.items]
        token = page.next_token
        if token is None:
            break
        with pytest.raises(BadRequest):
            shop.run(table_ranking.table_standings(shop.ctx, HOME, "field-count", levels=None, token=token, size=1))
    assert names == order(shop, "retired-ids")


def test_an_unknown_order_or_namespace_is_refused(shop: World) -> None:
    """With the orders that there are."""
    with pytest.raises(BadRequest, match="use last-column-id, field-count"):
        order(shop, "name")
    with pytest.raises(NoSuchNamespace):
        order(shop, "field-count", ("nope",))


def test_the_leaders_are_few_and_kept_for_a_while(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table once, whatever it leads; while the store is away, what was known last."""
    first = shop.run(table_ranking.leaders(shop.ctx))
    assert [row.name for row in first] == ["wide", "worn", "young"]
    create(shop, "newest")
    assert shop.run(table_ranking.leaders(shop.ctx)) is first
    shop.clock.ms += 31_000
    assert len(shop.run(table_ranking.leaders(shop.ctx))) == 4

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("away")

    shop.clock.ms += 31_000
    monkeypatch.setattr(type(shop.store), "standings", away)
    assert len(shop.run(table_ranking.leaders(shop.ctx))) == 4


@pytest.mark.parametrize("after", ["", "x:1", "1:", "9" * 5_000 + ":1", "1:" + "9" * 30])
def test_a_token_that_nobody_handed_out_is_a_bad_request(world: World, after: str) -> None:
    """Its digest is no secret, so what it holds is looked at."""
    token = results._token(("standings", HOME, None, "field-count"), after)
    with pytest.raises(BadRequest, match="Invalid page token"):
        world.run(table_ranking.table_standings(world.ctx, HOME, "field-count", levels=None, token=token, size=None))
