"""Idempotency keys: one effect, one answer."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from app.catalog import commits, namespaces, tables
from app.catalog.context import Caller
from app.catalog.results import Committed, LoadedTable
from app.errors import (
    AlreadyExists,
    CommitFailed,
    EvolutionRefused,
    NamespaceNotEmpty,
    NoSuchTable,
    NotFound,
    Unavailable,
    Unprocessable,
)
from tests.catalog.faults import faulty_objects, faulty_store
from tests.catalog.shorthand import (
    NS,
    Json,
    append,
    change,
    commit,
    committing,
    create,
    create_view,
    document,
    field,
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
from tests.catalog.world import HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    return world


def test_a_repeated_commit_answers_again_and_changes_nothing(shop: World) -> None:
    """Same location, document and tag; one new file in all."""
    first = commit(shop, "t", append(1, None, 1), caller=keyed(1))
    files = shop.files()
    assert commit(shop, "t", append(1, None, 1), caller=keyed(1)) == first
    assert shop.files() == files


def test_a_repeat_in_another_process_answers_the_same(shop: World) -> None:
    """The record is in the database, beside the change."""
    first = commit(shop, "t", append(1, None, 1), caller=keyed(1))
    other = shop.run(shop.second())
    assert shop.run(committing(other, "t", append(1, None, 1), caller=keyed(1))) == first


def test_a_repeat_after_a_later_commit_still_succeeds(shop: World) -> None:
    """It answers with its own version, or with the present one when its file was trimmed since."""
    first = commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    last = commit(shop, "t", [set_properties(a="2")])
    assert commit(shop, "t", [set_properties(a="1")], caller=keyed(1)) == first
    os.remove(first.metadata_location)
    shop.ctx.caches.documents.forget(first.metadata_location)
    assert commit(shop, "t", [set_properties(a="1")], caller=keyed(1)).metadata_location == last.metadata_location
    assert metadata(shop, "t")["properties"]["a"] == "2"


def test_one_key_for_two_requests_is_unprocessable(shop: World) -> None:
    """Another body or operation under the same key is refused, and the record stays."""
    first = commit(shop, "t", [set_properties(a="1")], caller=keyed(1, "one"))
    with pytest.raises(Unprocessable, match="Idempotency-Key"):
        commit(shop, "t", [set_properties(a="2")], caller=keyed(1, "two"))
    assert commit(shop, "t", [set_properties(a="1")], caller=keyed(1, "one")) == first


def test_the_key_is_one_in_any_letter_case(shop: World) -> None:
    """Clients differ in how they write a uuid."""
    lower = replace(keyed(1), key="0190abcd")
    first = commit(shop, "t", [set_properties(a="1")], caller=lower)
    assert commit(shop, "t", [set_properties(a="1")], caller=replace(lower, key="0190ABCD")) == first


def test_a_deterministic_refusal_is_repeated(shop: World) -> None:
    """Even when the request would succeed by now: the client may have acted on the first answer."""
    stale = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}]
    with pytest.raises(CommitFailed, match="Requirement failed") as first:
        commit(shop, "t", [set_properties(a="1")], stale, caller=keyed(1))
    commit(shop, "t", append(1, None, 1))
    with pytest.raises(CommitFailed) as again:
        commit(shop, "t", [set_properties(a="1")], stale, caller=keyed(1))
    assert again.value.message == first.value.message
    commit(shop, "t", [set_properties(a="1")], stale, caller=keyed(2))


def test_a_refused_evolution_is_repeated_with_its_findings(shop: World) -> None:
    """The replay carries what the first answer carried."""
    commit(shop, "t", append(1, None, 1))
    narrow = schema_json(field(1, "id", required=True), field(2, "price", "decimal(4,2)"))
    updates: list[Json] = [
        {"action": "add-schema", "schema": narrow},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    refusals = []
    for _ in range(2):
        with pytest.raises(EvolutionRefused) as refused:
            commit(shop, "t", updates, caller=keyed(1))
        refusals.append(refused.value)
    assert refusals[0].findings == refusals[1].findings != ()
    assert refusals[0].message == refusals[1].message


def test_a_failure_of_the_moment_is_not_kept(shop: World) -> None:
    """A disk that was full or a database that was away lets the same key try again."""
    objects = faulty_objects(shop)
    objects.fail = ["before"]
    with pytest.raises(Unavailable):
        commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    assert metadata(shop, "t")["properties"]["a"] == "1"


def test_a_vanished_file_is_not_a_final_answer(shop: World) -> None:
    """When the file is back, the same key may succeed."""
    where = load(shop, "t").metadata_location
    os.rename(where, where + ".away")
    shop.ctx.caches.documents.forget(where)
    with pytest.raises(NotFound):
        commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    os.rename(where + ".away", where)
    commit(shop, "t", [set_properties(a="1")], caller=keyed(1))


def test_concurrent_duplicates_have_one_effect(shop: World) -> None:
    """In one process and across two, every duplicate gets the one answer."""
    other = shop.run(shop.second())
    files = len(shop.files())

    async def race() -> list[object]:
        tries = [committing(world, "t", append(1, None, 1), caller=keyed(1)) for world in (shop, other) * 3]
        return list(await asyncio.gather(*tries, return_exceptions=True))

    results = shop.run(race())
    assert all(isinstance(r, Committed) for r in results), results
    assert len({r.metadata_location for r in results if isinstance(r, Committed)}) == 1
    assert len(shop.files()) == files + 1


def test_a_key_is_looked_up_again_before_a_refusal(shop: World) -> None:
    """A duplicate elsewhere lands between our look-up and our check: the answer is its success, not our refusal."""
    other = shop.run(shop.second())
    unseen = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]
    store = faulty_store(shop)
    landed = []

    async def duplicate() -> None:
        landed.append(await committing(other, "t", append(1, None, 1), unseen, caller=keyed(1)))

    store.before_write = duplicate
    done = commit(shop, "t", append(1, None, 1), unseen, caller=keyed(1))
    assert done.metadata_location == landed[0].metadata_location
    assert len(metadata(shop, "t")["snapshots"]) == 1


def test_an_expired_key_is_a_new_request(shop: World) -> None:
    """After the advertised lifetime and its grace the request runs again."""
    commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    commit(shop, "t", [set_properties(a="2")])
    limits = shop.ctx.limits
    shop.clock.ms += limits.idempotency_lifetime_ms - 10_000
    commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    assert metadata(shop, "t")["properties"]["a"] == "2"
    shop.clock.ms += limits.idempotency_grace_ms + 20_000
    commit(shop, "t", [set_properties(a="1")], caller=keyed(1))
    assert metadata(shop, "t")["properties"]["a"] == "1"


def test_every_kind_of_mutation_is_repeatable(shop: World) -> None:
    """The second sending of each answers like the first and does nothing."""
    ctx = shop.ctx
    run = shop.run
    for _ in range(2):
        assert run(namespaces.create_namespace(ctx, keyed(1), HOME, ("n",), {"a": "1"})).properties["a"] == "1"
    for _ in range(2):
        got = run(namespaces.update_properties(ctx, keyed(2), HOME, ("n",), {"b": "2"}, ["a", "x"]))
        assert (got.updated, got.removed, got.missing) == (("b",), ("a",), ("x",))
    made = [create(shop, "u", ("n",), keyed(3)) for _ in range(2)]
    assert made[0] == made[1]
    for _ in range(2):
        run(tables.rename_table(ctx, keyed(4), HOME, (("n",), "u"), (("n",), "w")))
    for _ in range(2):
        run(tables.drop_table(ctx, keyed(5), HOME, ("n",), "w", purge=True))
    assert len(run(shop.store.purge_jobs(10))) == 1
    location = made[0].metadata_location or ""
    registered = [run(tables.register_table(ctx, keyed(6), HOME, ("n",), "r", location)) for _ in range(2)]
    assert registered[0] == registered[1] and registered[0].metadata_location == location
    gone = [run(tables.unregister_table(ctx, keyed(7), HOME, ("n",), "r")) for _ in range(2)]
    assert gone[0] == gone[1]
    for _ in range(2):
        run(namespaces.drop_namespace(ctx, keyed(8), HOME, ("n",)))
    views = [create_view(shop, "v", caller=keyed(9)) for _ in range(2)]
    assert views[0] == views[1]
    changed = [replace_view(shop, "v", [set_properties(a="1")], caller=keyed(10)) for _ in range(2)]
    assert changed[0] == changed[1] != views[0]
    for _ in range(2):
        transact(shop, change("t", append(1, None, 1)), caller=keyed(11))
    assert len(metadata(shop, "t")["snapshots"]) == 1


def test_refusals_of_other_operations_are_repeated_too(shop: World) -> None:
    """A drop that found the namespace full, a create that found the name taken, a drop that found nothing."""
    for _ in range(2):
        with pytest.raises(NamespaceNotEmpty):
            shop.run(namespaces.drop_namespace(shop.ctx, keyed(1), HOME, NS))
        with pytest.raises(AlreadyExists, match="Table already exists"):
            create(shop, "t", caller=keyed(2))
        with pytest.raises(NoSuchTable, match="Table does not exist"):
            shop.run(tables.drop_table(shop.ctx, keyed(3), HOME, NS, "x"))
        shop.run(tables.rename_table(shop.ctx, keyed(4), HOME, (NS, "t"), (NS, "t2")))
        create(shop, "x", caller=keyed(5))


def test_a_staged_create_is_repeated_with_the_same_identity(shop: World) -> None:
    """A client that asks again gets the same uuid and location, not a second stage."""
    staged = [create(shop, "u", caller=keyed(1), stage=True) for _ in range(2)]
    assert staged[0] == staged[1]
    assert document(staged[0].metadata)["table-uuid"]


def test_a_commit_that_changed_nothing_is_remembered_too(shop: World) -> None:
    """Its repeat does not run against a newer state."""
    first = commit(shop, "t", [], caller=keyed(1))
    commit(shop, "t", [set_properties(a="1")])
    assert commit(shop, "t", [], caller=keyed(1)) == first


def test_the_mutation_goes_on_when_the_client_leaves(shop: World) -> None:
    """A disconnect in the middle of a create leaves a whole table, and the repeat finds it."""

    async def leave() -> None:
        task = asyncio.ensure_future(tables.create_table(shop.ctx, keyed(1), HOME, NS, request("u")))
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await shop.ctx.caches.tasks.drain()

    shop.run(leave())
    made = load(shop, "u")
    again = create(shop, "u", caller=keyed(1))
    assert isinstance(again, LoadedTable) and again.metadata_location == made.metadata_location


def test_a_caller_without_a_key_is_not_remembered(shop: World) -> None:
    """Nothing is recorded, and the same request runs twice."""
    nobody = Caller()
    shop.run(namespaces.update_properties(shop.ctx, nobody, HOME, NS, {"a": "1"}, ()))
    got = shop.run(namespaces.update_properties(shop.ctx, nobody, HOME, NS, {}, ["a"]))
    assert got.removed == ("a",)
    assert shop.run(namespaces.update_properties(shop.ctx, nobody, HOME, NS, {}, ["a"])).missing == ("a",)


def test_one_recorded_transaction_lands_once_among_processes(shop: World) -> None:
    """Duplicates of a multi-table commit in two processes change each table once."""
    other = shop.run(shop.second())
    create(shop, "u")

    async def race() -> None:
        changes = [change("t", append(1, None, 1)), change("u", append(2, None, 1))]
        await asyncio.gather(
            *(commits.commit_transaction(w.ctx, keyed(1), HOME, changes) for w in (shop, other, shop, other))
        )

    shop.run(race())
    assert [len(metadata(shop, name)["metadata-log"]) for name in "tu"] == [1, 1]
