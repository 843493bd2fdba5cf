"""Faults at every step of a change: the answer is always true, and no live file is ever deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.catalog import commit_point, namespaces, tables, views
from app.catalog.context import Caller
from app.catalog.results import Committed
from app.errors import (
    AlreadyExists,
    CommitFailed,
    CommitStateUnknown,
    IcekeelError,
    NoSuchTable,
    OutcomeUnknown,
    Unavailable,
)
from tests.catalog.faults import FaultyStore, faulty_objects, faulty_store
from tests.catalog.shorthand import (
    CREATE,
    NS,
    append,
    change,
    commit,
    committing,
    create,
    create_view,
    document,
    field,
    first_version,
    keyed,
    load,
    metadata,
    namespace,
    replace_view,
    request,
    schema_json,
    set_properties,
    transact,
)
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between two questions to a lost database, without the waiting."""
    monkeypatch.setattr(commit_point, "_FIRST_WAIT_S", 0.0)


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    return world


def no_orphans(world: World) -> None:
    """Every metadata file is one that some table names, now or in its log."""
    named = set()
    for name in world.run(tables.list_tables(world.ctx, HOME, NS)).items:
        named.add(load(world, name).metadata_location)
        named |= {entry["metadata-file"] for entry in metadata(world, name)["metadata-log"]}
    assert {str(world.warehouse / f) for f in world.files() if f.endswith("metadata.json")} == named


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_disk_that_fails_while_writing_changes_nothing(shop: World, when: Any) -> None:
    """503: surely nothing happened, and nothing of the attempt is left, even if the file did arrive."""
    objects = faulty_objects(shop)
    objects.fail = [when]
    with pytest.raises(Unavailable):
        commit(shop, "t", [set_properties(a="1")])
    assert "a" not in metadata(shop, "t")["properties"]
    no_orphans(shop)


def test_one_file_of_many_that_fails_takes_the_others_with_it(shop: World) -> None:
    """A transaction's files are all there or all gone."""
    create(shop, "u")
    objects = faulty_objects(shop)
    objects.fail = [None, "after"]
    with pytest.raises(Unavailable):
        transact(shop, change("t", [set_properties(a="1")]), change("u", [set_properties(a="1")]))
    no_orphans(shop)


@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "before"], ["before", "after"], ["before"] * 5])
def test_a_connection_lost_while_committing_is_settled(shop: World, lost: list[Any]) -> None:
    """Whether the first sending landed or not, the change happens once and the answer is success."""
    store = faulty_store(shop)
    store.lose = list(lost)
    done = commit(shop, "t", append(1, None, 1))
    assert load(shop, "t").metadata_location == done.metadata_location
    assert len(metadata(shop, "t")["snapshots"]) == 1 and len(metadata(shop, "t")["metadata-log"]) == 1
    no_orphans(shop)


@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "after"]])
def test_a_lost_create_is_settled(shop: World, lost: list[Any]) -> None:
    """Plain and staged: the table is there once, and its creator is told so."""
    store = faulty_store(shop)
    store.lose = list(lost)
    made = create(shop, "u")
    assert load(shop, "u").metadata_location == made.metadata_location
    staged = document(create(shop, "w", stage=True).metadata)
    store.lose = list(lost)
    commit(shop, "w", first_version(staged), [CREATE])
    assert metadata(shop, "w")["table-uuid"] == staged["table-uuid"]
    no_orphans(shop)


def test_a_database_that_stays_away_is_unknown_and_nothing_is_deleted(shop: World) -> None:
    """The commit did land; saying anything but unknown would make the client delete live files."""
    store = faulty_store(shop)
    store.lose = ["after"]

    async def away() -> None:
        store.away = 1_000

    store.after_write = away
    with pytest.raises(CommitStateUnknown):
        commit(shop, "t", append(1, None, 1))
    store.away = 0
    assert metadata(shop, "t")["current-snapshot-id"] == 1
    assert Path(load(shop, "t").metadata_location).exists()


def test_a_database_that_stays_away_and_had_not_committed(shop: World) -> None:
    """Unknown as well; the file of the attempt stays, for nobody knows whose it is."""
    store = faulty_store(shop)
    store.lose = ["before"]
    files = len(shop.files())

    async def away() -> None:
        store.away = 1_000

    store.before_write = away
    with pytest.raises(CommitStateUnknown):
        commit(shop, "t", append(1, None, 1))
    store.away = 0
    assert metadata(shop, "t")["snapshots"] == [] and len(shop.files()) == files + 1


def test_a_lost_commit_that_others_built_upon_is_found_in_the_log(shop: World) -> None:
    """By the time we look, another commit stands on top of ours: still a success."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["after"]

    async def on_top() -> None:
        await committing(other, "t", [set_properties(b="2")])

    store.after_write = on_top
    commit(shop, "t", [set_properties(a="1")])
    assert {"a": "1", "b": "2"}.items() <= metadata(shop, "t")["properties"].items()
    no_orphans(shop)


def test_a_lost_commit_whose_traces_were_trimmed_is_unknown(shop: World) -> None:
    """Neither our file nor our base is in the log any more: nothing is claimed and nothing is deleted."""
    other = shop.run(shop.second())
    commit(shop, "t", [set_properties(**{"write.metadata.previous-versions-max": "1"})])
    files = set(shop.files())
    store = faulty_store(shop)
    store.lose = ["after"]

    async def on_top() -> None:
        for number in range(2):
            await committing(other, "t", [set_properties(b=str(number))])

    store.after_write = on_top
    with pytest.raises(CommitStateUnknown):
        commit(shop, "t", [set_properties(a="1")])
    assert metadata(shop, "t")["properties"]["a"] == "1" and len(set(shop.files()) - files) == 3


def test_a_lost_commit_that_was_overtaken_is_tried_again(shop: World) -> None:
    """Ours did not land and another one did: the change is applied to the new state."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["before"]

    async def overtake() -> None:
        await committing(other, "t", [set_properties(b="2")])

    store.before_write = overtake
    commit(shop, "t", [set_properties(a="1")])
    assert {"a": "1", "b": "2"}.items() <= metadata(shop, "t")["properties"].items()
    no_orphans(shop)


def test_a_lost_swap_checks_requirements_again(shop: World) -> None:
    """The other commit made ours stale: final, and our file is gone."""
    other = shop.run(shop.second())
    store = faulty_store(shop)

    async def overtake() -> None:
        await committing(other, "t", append(1, None, 1))

    store.before_write = overtake
    with pytest.raises(CommitFailed, match="Requirement failed"):
        commit(shop, "t", append(2, None, 1), [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}])
    no_orphans(shop)


def test_a_lost_swap_is_judged_again(shop: World) -> None:
    """A widening that was legal on the base we read is refused on the one that is there."""
    other = shop.run(shop.second())
    store = faulty_store(shop)

    def widen(precision: int) -> list[dict[str, Any]]:
        schema = schema_json(field(1, "id", required=True), field(2, "price", f"decimal({precision},2)"))
        return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]

    async def overtake() -> None:
        await committing(other, "t", [*append(1, None, 1), *widen(12)])
        await committing(other, "t", append(2, 1, 2, **{"schema-id": 1}))

    store.before_write = overtake
    with pytest.raises(IcekeelError):
        commit(shop, "t", widen(10))
    assert metadata(shop, "t")["schemas"][-1]["fields"][1]["type"].replace(" ", "") == "decimal(12,2)"
    no_orphans(shop)


def test_endless_contention_ends_in_a_conflict(shop: World) -> None:
    """After the attempts are used up the client is told to refresh which table, and no file of an attempt is left."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    count = 0

    async def overtake() -> None:
        nonlocal count
        count += 1
        store.before_write = overtake
        await committing(other, "t", [set_properties(n=str(count))])

    store.before_write = overtake
    with pytest.raises(CommitFailed, match=r"concurrent changes of .*\bt; nothing was changed. Refresh"):
        commit(shop, "t", [set_properties(a="1")])
    assert count == shop.ctx.limits.commit_attempts
    no_orphans(shop)


def test_a_table_dropped_under_a_commit(shop: World) -> None:
    """The commit finds no table, and leaves no file."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    files = shop.files()

    async def vanish() -> None:
        await tables.drop_table(other.ctx, ALICE, HOME, NS, "t")

    store.before_write = vanish
    with pytest.raises(NoSuchTable):
        commit(shop, "t", [set_properties(a="1")])
    assert shop.files() == files


def test_a_failure_nobody_expected_is_unknown(shop: World) -> None:
    """A bug between sending and answering must not make clients delete what may be live."""
    store = faulty_store(shop)

    async def bug() -> None:
        raise RuntimeError("bug")

    store.after_write = bug
    with pytest.raises(CommitStateUnknown):
        commit(shop, "t", append(1, None, 1))
    assert metadata(shop, "t")["current-snapshot-id"] == 1


Mutation = Callable[[World], Any]

MUTATIONS: dict[str, tuple[Mutation, Mutation]] = {
    "create namespace": (
        lambda w: w.run(namespaces.create_namespace(w.ctx, keyed(1), HOME, ("n",), {})),
        lambda w: w.run(namespaces.namespace_exists(w.ctx, HOME, ("n",))),
    ),
    "update properties": (
        lambda w: w.run(namespaces.update_properties(w.ctx, keyed(1), HOME, NS, {"a": "1"}, ())),
        lambda w: w.run(namespaces.load_namespace(w.ctx, HOME, NS)).properties["a"],
    ),
    "drop": (
        lambda w: w.run(tables.drop_table(w.ctx, keyed(1), HOME, NS, "t", purge=True)),
        lambda w: w.run(w.store.purge_jobs(5))[0],
    ),
    "rename": (
        lambda w: w.run(tables.rename_table(w.ctx, keyed(1), HOME, (NS, "t"), (NS, "u"))),
        lambda w: load(w, "u"),
    ),
    "create view": (lambda w: create_view(w, "v", caller=keyed(1)), lambda w: replace_view(w, "v", [])),
    "commit": (
        lambda w: commit(w, "t", append(1, None, 1), caller=keyed(1)),
        lambda w: metadata(w, "t")["snapshots"][0],
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "after"]])
def test_every_mutation_with_a_key_survives_a_lost_connection(shop: World, name: str, lost: list[Any]) -> None:
    """The key recorded beside the change settles what happened; the effect is there, once."""
    act, check = MUTATIONS[name]
    store = faulty_store(shop)
    store.lose = list(lost)
    act(shop)
    check(shop)
    act(shop)


@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "after"]])
def test_a_lost_namespace_is_settled_without_a_key(shop: World, lost: list[Any]) -> None:
    """A key of our own in the unit tells our namespace from another's."""
    store = faulty_store(shop)
    store.lose = list(lost)
    shop.run(namespaces.create_namespace(shop.ctx, ALICE, HOME, ("n",), {}))
    shop.run(namespaces.namespace_exists(shop.ctx, HOME, ("n",)))


@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "after"]])
def test_drop_and_rename_are_settled_without_a_key(shop: World, lost: list[Any]) -> None:
    """A key of our own in the unit tells."""
    store = faulty_store(shop)
    store.lose = list(lost)
    shop.run(tables.rename_table(shop.ctx, ALICE, HOME, (NS, "t"), (NS, "u")))
    load(shop, "u")
    store.lose = list(lost)
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "u"))
    with pytest.raises(NoSuchTable):
        load(shop, "u")


CREATIONS: dict[str, Callable[[World, Caller], Any]] = {
    "table": lambda w, caller: create(w, "u", caller=caller),
    "staged table": lambda w, caller: commit(
        w, "u", first_version(document(create(w, "u", stage=True).metadata)), [CREATE], caller=caller
    ),
    "view": lambda w, caller: create_view(w, "u", caller=caller),
}


@pytest.mark.parametrize("caller", [ALICE, keyed(1)], ids=["without a key", "with a key"])
@pytest.mark.parametrize("kind", CREATIONS)
def test_a_lost_create_whose_name_was_changed_since_is_a_success(shop: World, kind: str, caller: Caller) -> None:
    """The name is free again because it did land: no refusal, and its one metadata file is still there."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["after"]
    rename = views.rename_view if kind == "view" else tables.rename_table

    async def away() -> None:
        await rename(other.ctx, ALICE, HOME, (NS, "u"), (NS, "w"))

    store.after_write = away
    made = CREATIONS[kind](shop, caller)
    assert Path(made.metadata_location).exists()
    if kind == "view":
        assert replace_view(shop, "w", []).metadata_location == made.metadata_location
    else:
        assert load(shop, "w").metadata_location == made.metadata_location


@pytest.mark.parametrize("caller", [ALICE, keyed(1)], ids=["without a key", "with a key"])
def test_a_lost_create_that_was_dropped_since_stays_dropped(shop: World, caller: Caller) -> None:
    """Who dropped it was told that it is gone."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["after"]

    async def drop() -> None:
        await tables.drop_table(other.ctx, ALICE, HOME, NS, "u")

    store.after_write = drop
    create(shop, "u", caller=caller)
    with pytest.raises(NoSuchTable):
        load(shop, "u")


KEYED: dict[str, tuple[str, Callable[[World], Any]]] = {
    "create": ("u", lambda w: tables.create_table(w.ctx, keyed(1), HOME, NS, request("u"))),
    "commit": ("t", lambda w: committing(w, "t", append(1, None, 1), caller=keyed(1))),
}


@pytest.mark.parametrize("kind", KEYED)
def test_a_lost_change_that_another_server_made_with_the_same_key(shop: World, kind: str) -> None:
    """Both heard the request; the answer is that of the one that landed, and no file of the other stays."""
    name, act = KEYED[kind]
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["before"]
    theirs: list[Any] = []

    async def same() -> None:
        theirs.append(await act(other))

    store.before_write = same
    made = shop.run(act(shop))
    assert made.metadata_location == theirs[0].metadata_location == load(shop, name).metadata_location
    no_orphans(shop)


def test_a_lost_rename_that_was_undone_since_stays_undone(shop: World) -> None:
    """It took effect once; who renamed the table back was told so."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["after"]

    async def back() -> None:
        await tables.rename_table(other.ctx, ALICE, HOME, (NS, "u"), (NS, "t"))

    store.after_write = back
    shop.run(tables.rename_table(shop.ctx, ALICE, HOME, (NS, "t"), (NS, "u")))
    load(shop, "t")
    with pytest.raises(NoSuchTable):
        load(shop, "u")


def test_a_lost_commit_whose_pointer_was_set_back_since_is_unknown(shop: World) -> None:
    """A pointer that moved and came back is not one that never moved: the commit is not made a second time."""
    before = load(shop, "t").metadata_location
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["after"]

    async def set_back() -> None:
        await tables.register_table(other.ctx, ALICE, HOME, NS, "t", before, overwrite=True)

    store.after_write = set_back
    with pytest.raises(CommitStateUnknown):
        commit(shop, "t", append(1, None, 1))
    assert load(shop, "t").metadata_location == before


def test_the_replay_tells_the_truth_after_an_unknown(shop: World) -> None:
    """A client that got 500 asks again with its key: success if it had landed, a fresh run if not."""
    for when, number in (("after", 1), ("before", 2)):
        store = faulty_store(shop)
        store.lose = [when]  # type: ignore[list-item]
        moment = "after_write" if when == "after" else "before_write"

        async def away(store: FaultyStore = store) -> None:
            store.away = 1_000

        setattr(store, moment, away)
        parent = number - 1 or None
        with pytest.raises(CommitStateUnknown):
            commit(shop, "t", append(number, parent, number), caller=keyed(number))
        store.away = 0
        commit(shop, "t", append(number, parent, number), caller=keyed(number))
        assert [s["snapshot-id"] for s in metadata(shop, "t")["snapshots"]] == list(range(1, number + 1))


def test_a_client_that_leaves_mid_commit_leaves_nothing_half_done(shop: World) -> None:
    """Cancelled after any number of steps, the commit is whole or absent, and no orphan stays."""

    async def leave(steps: int) -> None:
        task = asyncio.ensure_future(committing(shop, "t", [set_properties(**{f"k{steps}": "1"})]))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for steps in range(25):
        shop.run(leave(steps))
    shop.run(shop.ctx.caches.tasks.drain())
    no_orphans(shop)
    done = commit(shop, "t", [set_properties(last="1")])
    assert isinstance(done, Committed)


def test_a_lost_create_that_another_won(shop: World) -> None:
    """Our unit surely did not land, and the name is another's now: AlreadyExists, and only their file stays."""
    other = shop.run(shop.second())
    store = faulty_store(shop)
    store.lose = ["before"]

    async def overtake() -> None:
        await tables.create_table(other.ctx, ALICE, HOME, NS, request("u"))

    store.before_write = overtake
    with pytest.raises(AlreadyExists, match=r"Table already exists: shop\.u"):
        create(shop, "u")
    no_orphans(shop)


def test_a_raw_unknown_never_leaves(shop: World) -> None:
    """`OutcomeUnknown` is the store's word; callers get CommitStateUnknown."""
    store = faulty_store(shop)
    store.lose = ["before"] * 100
    with pytest.raises(CommitStateUnknown) as unknown:
        commit(shop, "t", [set_properties(a="1")])
    assert isinstance(unknown.value.__cause__, OutcomeUnknown)
