"""Reads of many callers, and whole commits, in one statement on PostgreSQL: everybody is served as if alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from app.errors import BadRequest, IcekeelError, KeyAlreadyUsed, OutcomeUnknown, SwapLost
from app.events import Dropped
from app.ports import AppendJournal, Columns, Tabular, WriteOp
from app.store import open_store
from app.store.batches import one_trip
from app.store.postgres_store import PostgresStore
from tests.postgres import Postgres
from tests.store.acts import HOUSE, NOW, drop, get, house, key, make, space, swap
from tests.store.proxy import Moment, proxy

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(url: str, *, pool_size: int = 10) -> AsyncIterator[PostgresStore]:
    store = open_store(url, pool_size=pool_size)
    assert isinstance(store, PostgresStore)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def url(postgres_server: Postgres) -> str:
    return postgres_server.emptied_database()


@pytest.fixture
async def store(url: str, anyio_backend: str) -> AsyncIterator[PostgresStore]:
    """An open store with the warehouse `default` and the namespace `n`."""
    async with opened(url) as store:
        await store.write([house(), space("n")])
        yield store


async def tables(store: PostgresStore, count: int) -> list[Tabular]:
    await store.write([make(f"t{i}") for i in range(count)])
    return [await get(store, f"t{i}") for i in range(count)]


def note(table: Tabular, text: str) -> AppendJournal:
    return AppendJournal(event=Dropped(
        at_ms=NOW, by=text, client="x", warehouse=HOUSE, namespace=table.namespace, name=table.name, uuid=table.uuid,
        kind="table", metadata_location="m",
    ))  # fmt: skip


async def pointers(store: PostgresStore, rows: Sequence[Tabular]) -> list[str]:
    found = [await store.tabular_by_id(row.tabular_id) for row in rows]
    return ["gone" if row is None else row.metadata_location for row in found]


async def noted(store: PostgresStore) -> list[str]:
    return [entry.event.by for entry in reversed(await store.journal())]


@asynccontextmanager
async def statements(store: PostgresStore) -> AsyncIterator[list[str]]:
    """What the one connection of a store is sent meanwhile."""
    assert store._pool is not None
    async with store._pool.acquire() as lent:
        connection = lent._con
    sent: list[str] = []

    def log(record: Any) -> None:
        sent.append(record.query)

    connection.add_query_logger(log)
    yield sent
    await asyncio.sleep(0)
    connection.remove_query_logger(log)


# --- what is one statement ------- ---------------------------------------------------------------------------------


async def test_only_a_swap_with_its_journal_and_key_is_one_statement(store: PostgresStore) -> None:
    """Whatever else a unit holds, a second swap or other roots make it a transaction of several statements."""
    a, b = await tables(store, 2)
    units: list[list[WriteOp]] = [
        [swap(a, "x")],
        [swap(a, "x"), note(a, "one"), note(a, "two")],
        [swap(a, "x"), note(a, "one"), key("k")],
    ]
    assert None not in [one_trip(unit) for unit in units]
    others: list[list[WriteOp]] = [
        [], [note(a, "one")], [swap(a, "x"), swap(b, "x")], [swap(a, "x", roots=())], [swap(a, "x"), drop(b)],
        [swap(a, "x"), key("k"), key("l")], [key("k")],
    ]  # fmt: skip
    assert [one_trip(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize("more", [0, 1, 2])
async def test_a_commit_is_one_round_trip(url: str, anyio_backend: str, more: int) -> None:
    """With and without journal entries and an idempotency key."""
    async with opened(url, pool_size=1) as store:
        await store.write([house(), space("n")])
        (a,) = await tables(store, 1)
        unit: list[WriteOp] = [swap(a, "t0-1"), note(a, "one"), key("k")]
        async with statements(store) as sent:
            await store.write(unit[: more + 1])
        assert len(sent) == 1, sent
        assert await pointers(store, [a]) == ["t0-1"]
        assert await noted(store) == ["one"][: min(more, 1)]
        assert (await store.key(HOUSE, "k", NOW) is not None) is (more == 2)


async def test_everything_beside_the_pointer_moves_with_it(store: PostgresStore) -> None:
    """One statement stores the same columns as a transaction."""
    rows = await tables(store, 2)
    columns = Columns(
        format_version=3, last_column_id=70, current_schema_id=5, field_count=9, schema_count=6,
        schema_changed_at_ms=NOW - 5,
    )  # fmt: skip
    await store.write([swap(rows[0], "next", columns=columns, now_ms=NOW + 9)])
    await store.write([swap(row, "next", columns=columns, now_ms=NOW + 9, roots=()) for row in rows[1:]])
    for before in rows:
        after = await get(store, before.name)
        assert (after.columns, after.updated_at_ms, after.version) == (columns, NOW + 9, 2)
        assert (after.uuid, after.location, after.created_at_ms) == (before.uuid, before.location, NOW)


async def test_journal_entries_are_written_with_their_swap_or_not_at_all(store: PostgresStore) -> None:
    """In their order; a swap that is not made leaves none."""
    rows = await tables(store, 2)
    await store.write([swap(rows[1], "elsewhere")])
    await store.write([swap(rows[0], "next"), note(rows[0], "a"), note(rows[0], "b")])
    with pytest.raises(SwapLost):
        await store.write([swap(rows[1], "next"), note(rows[1], "never")])
    assert await noted(store) == ["a", "b"]


# --- callers side by side ------------------------------------------------------------------------------------------


async def test_commits_side_by_side_do_not_share_a_fate(store: PostgresStore) -> None:
    """One loses, one cannot be stored, all others land with their journal."""
    rows = await tables(store, 20)
    await store.write([swap(rows[3], "elsewhere")])
    huge = Columns(format_version=2, last_column_id=2**40, current_schema_id=0, field_count=1)
    units: list[list[WriteOp]] = [[swap(row, "next"), note(row, row.name)] for row in rows]
    units[5] = [swap(rows[5], "next", columns=huge)]
    results = await asyncio.gather(*map(store.write, units), return_exceptions=True)
    assert isinstance(results[3], SwapLost)
    assert isinstance(results[5], BadRequest)
    assert [at for at, result in enumerate(results) if result is not None] == [3, 5]
    assert sorted(await noted(store)) == sorted(row.name for row in rows if row not in (rows[3], rows[5]))


async def test_a_locked_table_does_not_hold_up_the_others(store: PostgresStore, url: str) -> None:
    """Its own commits wait for the lock, and one of them lands when it is free."""
    rows = await tables(store, 10)
    other = await asyncpg.connect(url)
    try:
        await other.execute(f"BEGIN; SELECT * FROM tabular WHERE tabular_id = {rows[0].tabular_id} FOR UPDATE")
        waiting = [asyncio.ensure_future(store.write([swap(rows[0], "alone")]))]
        await asyncio.sleep(0.01)
        await asyncio.wait_for(asyncio.gather(*(store.write([swap(row, "one")]) for row in rows[1:])), 5)
        sent = [asyncio.ensure_future(store.write([swap(row, "two", expected="one")])) for row in rows[1:]]
        waiting.append(asyncio.ensure_future(store.write([swap(rows[0], "too")])))
        sent += [asyncio.ensure_future(store.write([swap(row, "three", expected="two")])) for row in rows[1:]]
        await asyncio.wait_for(asyncio.wait(sent), 5)
        assert not any(one.done() for one in waiting)
        await other.execute("ROLLBACK")
        results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
    finally:
        await other.close()
    assert sorted(map(repr, map(type, results))) == sorted(map(repr, (type(None), SwapLost)))
    assert set((await pointers(store, rows))[1:]) <= {"two", "three"}


async def test_a_used_key_undoes_its_swap_alone(store: PostgresStore) -> None:
    """The commit of a repeated request changes nothing; those beside it land; an expired key is overwritten."""
    rows = await tables(store, 4)
    await store.write([key("used"), key("old", at=NOW - 10_000, lasts=1)])
    results = await asyncio.gather(
        store.write([swap(rows[0], "next"), note(rows[0], "a"), key("used")]),
        store.write([swap(rows[1], "next"), note(rows[1], "b"), key("new")]),
        store.write([swap(rows[2], "next"), note(rows[2], "c"), key("old", fingerprint="g")]),
        store.write([swap(rows[3], "next")]),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [KeyAlreadyUsed, *[type(None)] * 3]
    assert await pointers(store, rows) == ["t0-0", "next", "next", "next"]
    assert sorted(await noted(store)) == ["b", "c"]
    overwritten = await store.key(HOUSE, "old", NOW)
    assert overwritten is not None and overwritten.fingerprint == "g"


async def test_of_many_commits_with_one_key_exactly_one_lands(store: PostgresStore) -> None:
    """Each to a table of its own."""
    rows = await tables(store, 10)
    results = await asyncio.gather(
        *(store.write([swap(row, "next"), key("k")]) for row in rows), return_exceptions=True
    )
    assert results.count(None) == 1
    assert {type(result) for result in results if result is not None} == {KeyAlreadyUsed}
    assert (await pointers(store, rows)).count("next") == 1


@pytest.mark.parametrize(("moment", "stored"), [("before", False), ("after", True)])
async def test_a_connection_lost_in_a_commit_is_an_unknown_outcome(
    url: str, postgres_server: Postgres, anyio_backend: str, moment: Moment, stored: bool
) -> None:
    """Of that commit alone; those beside it land."""
    async with proxy(postgres_server.port) as cutter, opened(url) as direct:
        await direct.write([house(), space("n")])
        rows = await tables(direct, 4)
        async with opened(postgres_server.url(url.rpartition("/")[2], port=cutter.port)) as store:
            await asyncio.gather(*(store.ping() for _ in range(4)))
            cutter.cut(b"t0-the-next", moment)
            results = await asyncio.gather(
                *(store.write([swap(row, f"{row.name}-the-next")]) for row in rows), return_exceptions=True
            )
            assert [type(result) for result in results] == [OutcomeUnknown, *[type(None)] * 3]
        assert await pointers(direct, rows) == [
            "t0-the-next" if stored else "t0-0",
            *(f"{row.name}-the-next" for row in rows[1:]),
        ]


async def test_commits_of_two_servers_over_the_same_tables_never_deadlock(url: str, anyio_backend: str) -> None:
    """Batches and transactions in every order: each attempt lands or loses, and the versions tell how many landed."""
    async with opened(url) as one, opened(url) as two:
        await one.write([house(), space("n")])
        rows = await tables(one, 12)
        landed = dict.fromkeys((row.tabular_id for row in rows), 0)

        async def writer(store: PostgresStore, number: int) -> None:
            dice = random.Random(number)
            for turn in range(6):
                some = dice.sample(rows, dice.choice([1, 1, 1, 3]))
                bases = [await store.tabular_by_id(row.tabular_id) for row in some]
                try:
                    await store.write([swap(base, f"{number}-{turn}-{base.name}") for base in bases if base])
                except SwapLost:
                    continue
                for row in some:
                    landed[row.tabular_id] += 1

        await asyncio.gather(*(writer(store, n + 100 * m) for n in range(8) for m, store in enumerate((one, two))))
        for row in rows:
            after = await one.tabular_by_id(row.tabular_id)
            assert after is not None and after.version == 1 + landed[row.tabular_id]


async def test_a_read_begun_after_a_commit_was_acknowledged_sees_it(url: str, anyio_backend: str) -> None:
    """Through any server, by either read, however the statements were shared."""
    async with opened(url, pool_size=3) as one, opened(url, pool_size=3) as two:
        await one.write([house(), space("n")])
        rows = await tables(one, 3)
        acknowledged = {row.name: 0 for row in rows}
        sent = dict(acknowledged)
        ended = False

        async def commit(row: Tabular) -> None:
            for number in range(1, 40):
                sent[row.name] = number
                store = (one, two)[number % 2]
                at = f"{row.name}-{number - 1}"
                await store.write([swap(row, f"{row.name}-{number}", expected=at)])
                acknowledged[row.name] = number

        async def read(number: int) -> None:
            dice = random.Random(number)
            while not ended:
                store, row = dice.choice((one, two)), dice.choice(rows)
                ask: Callable[..., Awaitable[Any]] = dice.choice((store.pointer, store.tabular))
                least = acknowledged[row.name]
                found = await ask(HOUSE, ("n",), row.name)
                seen = int(found.metadata_location.rpartition("-")[2])
                assert least <= seen <= sent[row.name]
                if dice.random() < 0.2:
                    await asyncio.sleep(0)

        readers = [asyncio.ensure_future(read(number)) for number in range(24)]
        await asyncio.gather(*map(commit, rows))
        ended = True
        await asyncio.gather(*readers)


async def test_a_read_that_cannot_be_sent_fails_alone(store: PostgresStore) -> None:
    """A name that is no text is refused; what was asked beside it is answered."""
    await tables(store, 3)
    asked = [store.pointer(HOUSE, ("n",), f"t{i % 3}") for i in range(8)]
    asked.insert(4, store.pointer("\ud800", ("n",), "t0"))
    results = await asyncio.gather(*asked, return_exceptions=True)
    refused = results.pop(4)
    assert isinstance(refused, IcekeelError)
    assert [result.metadata_location for result in results if not isinstance(result, BaseException) and result] == [
        f"t{i % 3}-0" for i in range(8)
    ]


async def test_readers_that_go_away_leave_the_others_their_answers(store: PostgresStore) -> None:
    """Cancelled at many different moments."""
    await tables(store, 4)
    for turns in range(12):
        asked = [asyncio.ensure_future(store.tabular(HOUSE, ("n",), f"t{i % 4}")) for i in range(16)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for one in asked[::3]:
            one.cancel()
        kept = await asyncio.wait_for(asyncio.gather(*(one for at, one in enumerate(asked) if at % 3)), 10)
        assert [row.name for row in kept if row] == [f"t{i % 4}" for i in range(16) if i % 3]


async def test_warehouses_asked_for_together_come_apart(store: PostgresStore) -> None:
    """Each caller gets its own, or None."""
    await store.write([house("other")])
    names = [HOUSE, "other", "missing", HOUSE, "other"]
    found = await asyncio.gather(*map(store.warehouse, names))
    assert [each and each.name for each in found] == [HOUSE, "other", None, HOUSE, "other"]
