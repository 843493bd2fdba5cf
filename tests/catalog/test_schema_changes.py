"""Check, plan and apply as use cases: nothing is changed by asking, and applying goes through the one pipeline."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.catalog import namespaces, schema_changes, schema_history, strictness
from app.catalog.context import Caller
from app.catalog.rebasing import SchemaChange
from app.errors import CommitFailed, EvolutionRefused, NoSuchTable, Unprocessable, ValidationFailed
from app.evolution.editing.operations import parse_operations
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.update import parse_table_updates
from tests.catalog.shorthand import NS, append, commit, create, keyed, namespace, set_properties
from tests.catalog.world import ALICE, HOME, World

Json = dict[str, Any]
BOB = Caller(principal="bob", client="spark", client_version="3.5")


@pytest.fixture
def orders(world: World) -> World:
    """A table `orders` with `id` (1) and `price` (2), and one snapshot."""
    namespace(world)
    create(world, "orders")
    commit(world, "orders", append(1, None, 1))
    return world


def wish(*operations: Json, **more: Any) -> SchemaChange:
    return SchemaChange(parse_operations(list(operations)), **more)


def apply(world: World, *operations: Json, caller: Caller = ALICE, **more: Any) -> schema_changes.Applied:
    return world.run(schema_changes.apply_change(world.ctx, caller, HOME, NS, "orders", wish(*operations, **more)))


def plan(world: World, *operations: Json, **more: Any) -> schema_changes.Planned:
    return world.run(schema_changes.plan_change(world.ctx, HOME, NS, "orders", wish(*operations, **more)))


def check(world: World, updates: list[Json], requirements: list[Json] | None = None) -> Any:
    return world.run(
        schema_changes.check_commit(
            world.ctx, HOME, NS, "orders",
            parse_table_requirements(requirements or []), parse_table_updates(updates),
        )
    )  # fmt: skip


ADD = {"op": "add", "path": "note", "type": "string"}
RETYPE = {"op": "promote", "path": "price", "type": "string"}


def test_asking_changes_nothing(orders: World) -> None:
    """No file, no journal entry, no pointer moves for a check or a plan."""
    files = orders.files()
    entries = len(orders.run(orders.store.journal()))
    assert plan(orders, ADD).dry_run.verdict == "compatible"
    assert plan(orders, RETYPE).dry_run.verdict == "incompatible"
    assert check(orders, [{"action": "set-properties", "updates": {"a": "b"}}]).verdict == "compatible"
    assert orders.files() == files
    assert len(orders.run(orders.store.journal())) == entries


def test_a_check_says_what_a_commit_would_meet(orders: World) -> None:
    """The same findings as the refusal of the real commit."""
    planned = plan(orders, RETYPE)
    with pytest.raises(EvolutionRefused) as caught:
        apply(orders, RETYPE)
    assert caught.value.findings == planned.dry_run.findings
    assert planned.dry_run.findings[0].code == "ICE201"


def test_a_stale_requirement_leaves_the_rest_unchecked(orders: World) -> None:
    """A client would refresh and send something else: nobody can say what."""
    stale = {"type": "assert-current-schema-id", "current-schema-id": 9}
    found = check(orders, [], [stale])
    assert found.verdict == "not-checked"
    assert found.reason == "Requirement failed: current schema changed: expected id 9 != 0"


def test_updates_that_no_table_takes_are_incompatible(orders: World) -> None:
    """With the reason that the commit would be refused for; so is a place outside the warehouse."""
    found = check(orders, [{"action": "set-current-schema", "schema-id": 9}])
    assert (found.verdict, found.findings) == ("incompatible", ())
    assert found.reason == "Cannot set current schema to unknown schema: 9"
    assert check(orders, [{"action": "set-location", "location": "/etc/orders"}]).verdict == "incompatible"


def test_a_policy_counts_for_a_check(orders: World) -> None:
    """What the table's own strictness lets through is compatible, with a warning."""
    orders.run(strictness.set_policy(orders.ctx, ALICE, HOME, NS, "orders", "ICE201", strictness.Severity.WARN))
    found = plan(orders, RETYPE).dry_run
    assert (found.verdict, found.findings[0].severity) == ("compatible", "warn")
    assert found.reads[0].snapshots == 1
    assert [read.returns for read in found.reads[0].columns] == ["unreadable"]


def test_a_plan_hash_holds_only_for_that_plan(orders: World) -> None:
    """The same operations on another state are another commit: 409, and nothing happens."""
    planned = plan(orders, ADD)
    apply(orders, {"op": "add", "path": "first", "type": "int"})
    with pytest.raises(CommitFailed, match="no longer holds"):
        apply(orders, ADD, plan_hash=planned.plan.digest)
    done = apply(orders, ADD, plan_hash=plan(orders, ADD).plan.digest)
    assert done.record["assigned-ids"] == {"note": 4}


def test_operations_are_rebased_when_they_mean_the_same(orders: World) -> None:
    """Somebody else's column came meanwhile; the answer says onto what."""
    apply(orders, ADD, caller=BOB)
    done = apply(orders, {"op": "rename", "path": "price", "to": "amount"}, base_schema_id=0)
    assert done.record["rebased"] == {"from-schema-id": 0, "onto-schema-id": 1}
    assert "rebased" not in apply(orders, {"op": "set-doc", "path": "amount", "doc": "net"}, base_schema_id=2).record


@pytest.mark.parametrize(
    ("theirs", "mine", "told"),
    [
        (
            {"op": "drop", "path": "price"}, {"op": "set-doc", "path": "price", "doc": "net"},
            r"column price \(field 2\) was dropped by bob \(spark 3.5\) at 20\d\d-",
        ),
        (
            {"op": "rename", "path": "price", "to": "amount"}, {"op": "drop", "path": "price"},
            r"column amount \(field 2\) was renamed from price to amount by bob",
        ),
        (
            {"op": "promote", "path": "price", "type": "decimal(12, 2)"},
            {"op": "promote", "path": "price", "type": "decimal(11, 2)"},
            r"column price \(field 2\) was type changed from decimal\(9, 2\) to decimal\(12, 2\) by bob",
        ),
        (ADD, ADD, r"column note \(field 3\) was added by bob"),
    ],
    ids=["dropped", "renamed", "retyped", "taken"],
)  # fmt: skip
def test_a_change_that_means_something_else_is_told_of(orders: World, theirs: Json, mine: Json, told: str) -> None:
    """409 with what happened to the column, by whom and when."""
    apply(orders, theirs, caller=BOB)
    with pytest.raises(CommitFailed, match=told) as caught:
        apply(orders, mine, base_schema_id=0)
    assert caught.value.message.startswith("Cannot rebase onto schema 1: since schema 0, ")
    with pytest.raises(CommitFailed, match=told):
        plan(orders, mine, base_schema_id=0)


def test_a_schema_that_is_gone_is_no_base(orders: World) -> None:
    """Nobody can tell what the operations were about."""
    with pytest.raises(CommitFailed, match="Schema 7 is not retained"):
        apply(orders, ADD, base_schema_id=7)


def test_a_lost_swap_is_planned_again(orders: World) -> None:
    """Two servers at once: both changes are there, each with an ID of its own."""
    other = orders.run(orders.second())

    async def both() -> list[schema_changes.Applied]:
        return list(
            await asyncio.gather(
                *(
                    schema_changes.apply_change(
                        world.ctx, ALICE, HOME, NS, "orders",
                        wish({"op": "add", "path": f"c{n}", "type": "int"}, base_schema_id=0),
                    )
                    for n in range(4)
                    for world in [(orders, other)[n % 2]]
                )
            )
        )  # fmt: skip

    done = orders.run(both())
    assert sorted(one.record["assigned-ids"][f"c{n}"] for n, one in enumerate(done)) == [3, 4, 5, 6]


def test_a_key_has_one_effect(orders: World) -> None:
    """The second request gets the first one's answer, plan and all; another body is refused."""
    first = apply(orders, ADD, caller=keyed(1))
    again = apply(orders, ADD, caller=keyed(1))
    assert again.record == first.record
    assert again.committed.metadata_location == first.committed.metadata_location
    with pytest.raises(Unprocessable):
        apply(orders, ADD, caller=keyed(1, "another"))


def test_nothing_to_do_is_no_commit(orders: World) -> None:
    """The present state is the answer, and no file is written."""
    files = orders.files()
    done = apply(orders, {"op": "rename", "path": "price", "to": "price"})
    assert done.record["updates"] == [] and orders.files() == files


def test_a_tag_is_taken_where_the_namespace_asks_for_it(orders: World) -> None:
    """The property of namespace or table; what the request says wins."""
    drop = {"op": "drop", "path": "price"}
    commit(orders, "orders", [{"action": "set-properties", "updates": {"icekeel.tag-before-drop": "true"}}])
    assert plan(orders, drop).plan.tag == "before-drop-price"
    assert plan(orders, drop, tag=False).plan.tag is None
    done = apply(orders, drop)
    assert done.record["tag"] == "before-drop-price"
    assert [finding.code for finding in done.committed.findings if finding.code == "ICE801"] == []


def test_a_namespace_above_asks_for_the_tag_and_a_nearer_one_takes_it_back(world: World) -> None:
    """As the settings of the policy API do, the property holds for everything below; the nearest one counts."""
    outer, middle, inner = ("shop",), ("shop", "eu"), ("shop", "eu", "north")
    for levels in (outer, middle, inner):
        namespace(world, levels)
    create(world, "orders", inner)
    commit(world, "orders", append(1, None, 1), levels=inner)
    drop = wish({"op": "drop", "path": "price"})

    def tagged() -> bool:
        made = world.run(schema_changes.plan_change(world.ctx, HOME, inner, "orders", drop)).plan
        return made.tag is not None

    def ask(levels: tuple[str, ...], value: str) -> None:
        change = {"icekeel.tag-before-drop": value}
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, levels, change, ()))

    assert not tagged()
    ask(outer, "true")
    assert tagged()
    ask(middle, "false")
    assert not tagged()
    ask(inner, "True")
    assert tagged()
    commit(world, "orders", [set_properties(**{"icekeel.tag-before-drop": "false"})], levels=inner)
    assert not tagged()


def test_unknown_tables_and_senseless_operations_are_refused(orders: World) -> None:
    """404 and 400; a check of senseless operations is incompatible, with the reason."""
    with pytest.raises(NoSuchTable):
        orders.run(schema_changes.plan_change(orders.ctx, HOME, NS, "nope", wish(ADD)))
    with pytest.raises(ValidationFailed, match="Cannot drop nope: No such column: nope"):
        apply(orders, {"op": "drop", "path": "nope"})
    operations = parse_operations([{"op": "drop", "path": "nope"}])
    found = orders.run(schema_changes.check_operations(orders.ctx, HOME, NS, "orders", operations))
    assert (found.verdict, found.reason) == ("incompatible", "Cannot drop nope: No such column: nope")


def test_every_change_has_its_chapter(orders: World) -> None:
    """Newest first, whoever made it: an engine's commit and an applied plan alike."""
    apply(orders, ADD, caller=BOB)
    found = orders.run(schema_history.table_chronicle(orders.ctx, HOME, NS, "orders"))
    assert [(one.to_schema_id, one.by, one.source) for one in found.chapters] == [
        (1, "bob", "journal"), (0, "alice", "journal"),
    ]  # fmt: skip
