"""Transactions that name one table several times: as if sent one after the other, but for the versions in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from app.catalog import commits, rules
from app.errors import BadRequest, CommitFailed, EvolutionRefused, IcekeelError, NoSuchTable
from app.events import SchemaChanged, WaiverUsed
from app.spec.table import TableMetadata, parse_table_metadata
from tests.catalog.shorthand import (
    CREATE,
    NS,
    Json,
    append,
    change,
    commit,
    create,
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
from tests.commit.client import legal_commit
from tests.commit.folding import add_schema, set_current
from tests.spec.documents import column, schema

Entry = tuple[list[Json], list[Json]]

ID, PRICE = field(1, "id", required=True), field(2, "price", "decimal(9,2)")
BY_ID = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}


def main_at(snapshot_id: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": snapshot_id}


def schema_is(schema_id: int) -> Json:
    return {"type": "assert-current-schema-id", "current-schema-id": schema_id}


def last_column(field_id: int) -> Json:
    return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": field_id}


def evolution(*others: Json) -> list[Json]:
    """The updates that leave the table with its id column and `others`."""
    return [
        {"action": "add-schema", "schema": schema_json(ID, *others)},
        {"action": "set-current-schema", "schema-id": -1},
    ]


COLUMNS = schema(0, column(1, "id", required=True), column(2, "name", "int"))
OF_THE_TABLE_ALONE = ("table-uuid", "location", "last-updated-ms", "metadata-log", "snapshot-log")

# What a client that knows little of the table might send; much of it is refused in one place or another.
BLUNT: tuple[list[Json], ...] = (
    [set_current(-1)],
    [set_current(0)],
    [{"action": "set-default-spec", "spec-id": -1}],
    [{"action": "set-default-sort-order", "sort-order-id": -1}],
    [{"action": "upgrade-format-version", "format-version": 3}],
    [{"action": "remove-schemas", "schema-ids": [0]}],
    *(
        [add_schema(schema(0, column(1, "id", required=True), column(2, "name", kind))), set_current()]
        for kind in ("int", "long", "string")
    ),
)

FACTS = (
    ("assert-current-schema-id", "current-schema-id", "current-schema-id"),
    ("assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id"),
    ("assert-default-spec-id", "default-spec-id", "default-spec-id"),
    ("assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id"),
    ("assert-default-sort-order-id", "default-sort-order-id", "default-sort-order-id"),
)


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "a")
    create(world, "b")
    return world


def test_one_table_twice_becomes_one_version(shop: World) -> None:
    """Each entry's requirements hold on what those before it made, their updates are folded in order, and the one
    file that is written names one predecessor."""
    files, before = len(shop.files()), load(shop, "a").metadata_location
    transact(
        shop,
        change("a", [set_properties(x="1", y="1"), *append(1, None, 1)], [main_at(None)]),
        change("b", [set_properties(x="1")]),
        change("a", [set_properties(y="2"), *append(2, 1, 2)], [main_at(1)]),
    )
    got = metadata(shop, "a")
    assert got["properties"] | {"x": "1", "y": "2"} == got["properties"]
    assert [entry["metadata-file"] for entry in got["metadata-log"]] == [before]
    assert len(shop.files()) == files + 2


def test_every_entrys_main_is_in_the_history(shop: World) -> None:
    """Two chained appends leave both snapshots on main's log, the second on the first."""
    transact(shop, change("a", append(1, None, 1), [main_at(None)]), change("a", append(2, 1, 2), [main_at(1)]))
    got = metadata(shop, "a")
    assert [entry["snapshot-id"] for entry in got["snapshot-log"]] == [1, 2]
    assert got["refs"]["main"]["snapshot-id"] == got["current-snapshot-id"] == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (change("a", append(2, 1, 2), [main_at(1)]), change("a", append(3, 1, 3), [main_at(1)])),
        (
            change("a", evolution(PRICE, field(3, "x")), [schema_is(0)]),
            change("a", evolution(PRICE, field(3, "y")), [schema_is(0)]),
        ),
        (
            change("a", evolution(PRICE, field(3, "x")), [last_column(2)]),
            change("a", evolution(PRICE, field(3, "x"), field(4, "y")), [last_column(2)]),
        ),
    ],
)
def test_an_entry_that_did_not_see_the_one_before_it_stops_all(
    shop: World, first: commits.TableChange, second: commits.TableChange
) -> None:
    """Thought of on one state, the second would undo the first: CommitFailed, and no table changes."""
    commit(shop, "a", append(1, None, 1))
    before, files = [load(shop, name).metadata_location for name in "ab"], shop.files()
    with pytest.raises(CommitFailed, match="Requirement failed"):
        transact(shop, first, change("b", [set_properties(x="1")]), second)
    assert [load(shop, name).metadata_location for name in "ab"] == before
    assert shop.files() == files
    transact(shop, first)


def test_columns_of_chained_entries_have_ids_of_their_own(shop: World) -> None:
    """Both are in the schema, and every schema on the way is kept."""
    transact(
        shop,
        change("a", evolution(PRICE, field(3, "x")), [schema_is(0), last_column(2)]),
        change("a", evolution(PRICE, field(3, "x"), field(4, "y")), [schema_is(1), last_column(3)]),
    )
    got = metadata(shop, "a")
    assert [(f["id"], f["name"]) for f in got["schemas"][-1]["fields"][2:]] == [(3, "x"), (4, "y")]
    assert (got["current-schema-id"], len(got["schemas"]), got["last-column-id"]) == (2, 3, 4)


def test_a_new_table_may_be_named_again(shop: World) -> None:
    """The entry after the create speaks of the table that it makes; the first file shows what both made."""
    staged = document(create(shop, "new", stage=True).metadata)
    uuid_is = {"type": "assert-table-uuid", "uuid": staged["table-uuid"]}
    transact(
        shop,
        change("new", first_version(staged), [CREATE]),
        change("new", append(1, None, 1), [uuid_is, main_at(None)]),
    )
    got = metadata(shop, "new")
    assert (got["current-snapshot-id"], got["metadata-log"]) == (1, [])


def test_a_table_is_created_once_and_first(shop: World) -> None:
    """A second create of a table is a conflict, and an entry before its create finds no table."""
    staged = document(create(shop, "new", stage=True).metadata)
    made = change("new", first_version(staged), [CREATE])
    with pytest.raises(CommitFailed, match="table already exists"):
        transact(shop, made, made)
    with pytest.raises(NoSuchTable):
        transact(shop, change("new", [set_properties(x="1")]), made)
    with pytest.raises(CommitFailed, match="table already exists"):
        transact(shop, change("a", [set_properties(x="1")]), change("a", first_version(staged), [CREATE]))
    with pytest.raises(NoSuchTable):
        load(shop, "new")


def test_a_state_between_two_entries_is_judged(shop: World) -> None:
    """A column that becomes text and a number again is refused, though the end is the beginning."""
    commit(shop, "a", append(1, None, 1))
    files = shop.files()
    there = evolution(field(2, "price", "string"))
    with pytest.raises(EvolutionRefused):
        transact(shop, change("a", there), change("a", evolution(PRICE)))
    assert shop.files() == files


def test_locations_between_two_entries_are_checked(shop: World) -> None:
    """A place outside the warehouse is refused, though the next entry leaves it again."""
    outside, back = set_properties(**{"write.data.path": "/elsewhere"}), ["write.data.path"]
    with pytest.raises(BadRequest, match="outside warehouse"):
        transact(shop, change("a", [outside]), change("a", [{"action": "remove-properties", "removals": back}]))


@pytest.mark.parametrize(
    ("added", "chosen"),
    [
        (
            {"action": "add-schema", "schema": schema_json(ID, PRICE, field(3, "x"))},
            {"action": "set-current-schema", "schema-id": -1},
        ),
        (
            {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "id"}]}},
            {"action": "set-default-spec", "spec-id": -1},
        ),
        (
            {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [BY_ID]}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ),
    ],
)
def test_the_last_added_is_that_of_the_entry(shop: World, added: Json, chosen: Json) -> None:
    """-1 means what this entry added; what an entry before it added is refused as nothing added."""
    with pytest.raises(BadRequest, match="last added"):
        transact(shop, change("a", [added]), change("a", [chosen]))
    transact(shop, change("a", [added, chosen]))


def test_a_waiver_is_good_for_one_of_the_entries(shop: World) -> None:
    """The second entry that would need it is refused, as it would be in a commit of its own."""
    commit(shop, "a", append(1, None, 1))
    first, second = (change("a", evolution(field(2, "price", f"decimal(9,{scale})"))) for scale in (4, 6))
    with pytest.raises(EvolutionRefused) as refused:
        transact(shop, first)
    rule = refused.value.findings[0].code
    waiver = shop.run(rules.grant_waiver(shop.ctx, ALICE, HOME, NS, "a", rule, "restated by hand", 3_600_000))
    with pytest.raises(EvolutionRefused):
        transact(shop, first, second)
    transact(shop, change("a", [set_properties(x="1")]), first)
    journal = shop.run(shop.store.journal(table_uuid=metadata(shop, "a")["table-uuid"]))
    assert [e.event.waiver_id for e in journal if isinstance(e.event, WaiverUsed)] == [waiver.waiver_id]


def test_the_journal_tells_of_one_move(shop: World) -> None:
    """From the schema that the table had to the one that it has, in the one file that was written."""
    transact(
        shop,
        change("a", evolution(PRICE, field(3, "x"))),
        change("a", evolution(PRICE, field(3, "x"), field(4, "y"))),
    )
    got = load(shop, "a")
    journal = shop.run(shop.store.journal(table_uuid=document(got.metadata)["table-uuid"]))
    moves = [e.event for e in journal if isinstance(e.event, SchemaChanged) and e.event.from_schema_id is not None]
    assert [(m.from_schema_id, m.to_schema_id, m.metadata_location) for m in moves] == [(0, 2, got.metadata_location)]


def test_an_entry_without_effect_leaves_the_others_theirs(shop: World) -> None:
    """First or last, it neither hides what the other did nor adds to the history."""
    before = load(shop, "a").metadata_location
    same, other = change("a", []), change("a", [set_properties(x="1")])
    transact(shop, same, other, same)
    got = metadata(shop, "a")
    assert got["properties"]["x"] == "1"
    assert [entry["metadata-file"] for entry in got["metadata-log"]] == [before]


def test_a_lost_swap_checks_every_entry_again(shop: World) -> None:
    """Chained entries that raced another process's append are refused by the requirement that it broke."""
    other = shop.run(shop.second())
    commit(shop, "a", append(1, None, 1))

    async def race() -> list[BaseException | None]:
        pairs = [
            (
                world,
                [
                    change("a", append(10 * n, 1, 2), [main_at(1)]),
                    change("a", append(10 * n + 1, 10 * n, 3), [main_at(10 * n)]),
                ],
            )
            for n, world in enumerate((shop, other), 1)
        ]
        return await asyncio.gather(
            *(commits.commit_transaction(world.ctx, ALICE, HOME, entries) for world, entries in pairs),
            return_exceptions=True,
        )

    outcomes = shop.run(race())
    lost = [outcome for outcome in outcomes if outcome is not None]
    assert len(lost) == 1 and isinstance(lost[0], CommitFailed)
    won = outcomes.index(None) + 1
    assert [entry["snapshot-id"] for entry in metadata(shop, "a")["snapshot-log"]] == [1, 10 * won, 10 * won + 1]


def seen(world: World, name: str) -> TableMetadata:
    return parse_table_metadata(load(world, name).metadata)


def requirements(state: Json) -> list[Json]:
    """All that a client can say of the table as it saw it."""
    main = state["refs"].get("main", {}).get("snapshot-id")
    facts = [{"type": kind, member: state[of]} for kind, member, of in FACTS]
    return [*facts, {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}]


def draw_entry(data: st.DataObject, state: TableMetadata, written: Json, stamp: int) -> Entry:
    """Requirements that held on `state`, and what was thought of on it."""
    if data.draw(st.booleans()) or data.draw(st.booleans()):
        updates = data.draw(legal_commit(state, stamp))
    else:
        updates = data.draw(st.sampled_from(BLUNT))
    checks = data.draw(st.lists(st.sampled_from(requirements(written)), max_size=2))
    # The locations of the client's world lie outside this warehouse.
    return checks, [update for update in updates if update["action"] != "set-location"]


def outcome_of(work: Any, *args: Any) -> IcekeelError | None:
    try:
        work(*args)
    except IcekeelError as refusal:
        return refusal
    return None


def comparable(world: World, name: str) -> Json:
    return {key: value for key, value in metadata(world, name).items() if key not in OF_THE_TABLE_ALONE}


def mains(world: World, name: str) -> list[int]:
    return [entry["snapshot-id"] for entry in metadata(world, name)["snapshot-log"]]


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), version=st.sampled_from([1, 2, 3]), chained=st.booleans())
def test_a_transaction_of_two_entries_is_two_commits(
    shop: World, data: st.DataObject, version: int, chained: bool
) -> None:
    """It ends in the state that the one committed after the other leave, and is refused as the first of them that is
    refused; then nothing has changed. So for any two entries, whether the second saw the first or not."""
    number = shop.clock.now_ms()
    apart, together = f"apart{number}", f"together{number}"
    for name in (apart, together):
        create(shop, name, schema=COLUMNS, format_version=str(version))
    past = draw_entry(data, seen(shop, apart), metadata(shop, apart), 1000)
    if outcome_of(commit, shop, apart, past[1]) is None:
        commit(shop, together, past[1])

    base, written = seen(shop, apart), metadata(shop, apart)
    before = load(shop, together).metadata_location
    first = draw_entry(data, base, written, 2000)
    refusal = outcome_of(commit, shop, apart, first[1], first[0])
    if chained:
        base, written = seen(shop, apart), metadata(shop, apart)
    second = draw_entry(data, base, written, 3000)
    if refusal is None:
        refusal = outcome_of(commit, shop, apart, second[1], second[0])

    found = outcome_of(transact, shop, *(change(together, updates, checks) for checks, updates in (first, second)))
    event(type(refusal).__name__)
    assert (type(found), str(found)) == (type(refusal), str(refusal))
    if refusal is None:
        assert comparable(shop, together) == comparable(shop, apart)
        assert mains(shop, together) == mains(shop, apart)
    else:
        assert load(shop, together).metadata_location == before
