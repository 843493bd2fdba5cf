"""What only the PostgreSQL adapter meets: lost connections, deadlocks, timeouts, poolers, locales."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from app.errors import BadSettings, OutcomeUnknown, Unavailable
from app.events import Dropped
from app.ports import AppendJournal, Store
from app.store import migrate, open_store, postgres_store
from tests.postgres import CannotStart, Postgres
from tests.store.acts import HOUSE, NOW, get, house, make, space, swap
from tests.store.pgbouncer import pgbouncer
from tests.store.proxy import Moment, Proxy, proxy

pytestmark = pytest.mark.anyio

NOTE = AppendJournal(event=Dropped(
    at_ms=NOW, by="me", client="x", warehouse=HOUSE, namespace=("n",), name="t", uuid="u", kind="table",
    metadata_location="m",
))  # fmt: skip


@pytest.fixture
def url(postgres_server: Postgres) -> str:
    return postgres_server.emptied_database()


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Store]:
    store = open_store(url, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def behind_proxy(server: Postgres, url: str) -> AsyncIterator[tuple[Proxy, Store, Store]]:
    """A proxy, a store that goes through it, and one that does not."""
    async with proxy(server.port) as cutter, opened(url) as direct:
        await direct.write([house(), space("n"), make("t")])
        async with opened(server.url(url.rpartition("/")[2], port=cutter.port), pool_size=2) as store:
            yield cutter, store, direct


async def test_a_connection_lost_before_commit_is_tried_again(
    url: str, postgres_server: Postgres, anyio_backend: str
) -> None:
    """Nothing was stored, so the unit simply runs once more."""
    async with behind_proxy(postgres_server, url) as (cutter, store, direct):
        for needle in (b"BEGIN ISOLATION", b"INSERT INTO tabular", b"INSERT INTO journal"):
            cutter.cut(needle, "before")
            name = needle.decode()
            await store.write([make(name, uuid=name), NOTE])
            assert cutter.cuts_left == 0
            assert (await get(direct, name)).name == name


async def test_a_connection_that_is_always_lost_before_commit_is_unavailable(
    url: str, postgres_server: Postgres, anyio_backend: str
) -> None:
    """Surely nothing was stored."""
    async with behind_proxy(postgres_server, url) as (cutter, store, direct):
        cutter.cut(b"INSERT INTO journal", "before", times=1000)
        with pytest.raises(Unavailable):
            await store.write([make("x"), NOTE])
        assert await direct.tabular(HOUSE, ("n",), "x") is None


@pytest.mark.parametrize(("moment", "stored"), [("before", False), ("after", True)])
async def test_a_connection_lost_during_commit_is_an_unknown_outcome(
    url: str, postgres_server: Postgres, anyio_backend: str, moment: Moment, stored: bool
) -> None:
    """From here both look alike, whether the COMMIT arrived or not; and it is not tried again behind one's back."""
    async with behind_proxy(postgres_server, url) as (cutter, store, direct):
        cutter.cut(b"COMMIT\x00", moment)
        with pytest.raises(OutcomeUnknown):
            await store.write([make("x"), NOTE])
        assert (await direct.tabular(HOUSE, ("n",), "x") is not None) is stored
        assert len(await direct.journal()) == int(stored)
        await store.write([make("y")])


@pytest.mark.parametrize(("moment", "stored"), [("before", False), ("after", True)])
async def test_a_connection_lost_in_a_lone_swap_is_an_unknown_outcome(
    url: str, postgres_server: Postgres, anyio_backend: str, moment: Moment, stored: bool
) -> None:
    """A unit of one swap is one statement that commits itself."""
    async with behind_proxy(postgres_server, url) as (cutter, store, direct):
        cutter.cut(b"t-the-next", moment)
        with pytest.raises(OutcomeUnknown):
            await store.write([swap(await get(store, "t"), "t-the-next")])
        assert ((await get(direct, "t")).metadata_location == "t-the-next") is stored


async def test_a_read_outlives_a_lost_connection(url: str, postgres_server: Postgres, anyio_backend: str) -> None:
    """It is asked again on a fresh one; when none holds, it is Unavailable."""
    async with behind_proxy(postgres_server, url) as (cutter, store, _):
        cutter.cut(HOUSE.encode(), "before")
        assert (await get(store, "t")).name == "t"
        assert cutter.cuts_left == 0
        cutter.cut(HOUSE.encode(), "before", times=1000)
        with pytest.raises(Unavailable):
            await store.tabular(HOUSE, ("n",), "t")
        cutter.cut(b"", "before", times=1000)
        with pytest.raises(Unavailable):
            await store.ping()


async def test_connections_lost_without_a_word_cost_one_wait(
    url: str, postgres_server: Postgres, anyio_backend: str
) -> None:
    """Whoever finds out waits for it; whoever asks after that is served over new connections."""
    async with proxy(postgres_server.port) as way, opened(url) as direct:
        await direct.write([house(), space("n"), make("t")])
        through = postgres_server.url(url.rpartition("/")[2], port=way.port)
        table = await get(direct, "t")
        async with opened(through, statement_timeout_ms=500) as store:
            attempts: tuple[Callable[[], Awaitable[object]], ...] = (
                lambda: get(store, "t"),
                lambda: store.write([swap(table, "t-1")]),
                lambda: store.write([make("x"), NOTE]),
            )
            for attempt in attempts:
                await asyncio.gather(*(store.policy(HOUSE, ("n",), None) for _ in range(8)))
                way.lose_all()
                with pytest.raises((Unavailable, OutcomeUnknown)):
                    await attempt()
                began = time.monotonic()
                await asyncio.gather(*(store.policy(HOUSE, ("n",), None) for _ in range(8)))
                assert (await get(store, "t")).name == "t"
                assert time.monotonic() - began < 1.0


async def test_a_write_that_waits_does_not_hold_up_the_end(
    url: str, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is told to stop stops, whoever holds the row; what became of the write is unknown."""
    monkeypatch.setattr(postgres_store, "_END_S", 0.3)
    async with opened(url) as store:
        await store.write([house(), space("n"), make("t")])
        table = await get(store, "t")
        other = await asyncpg.connect(url)
        try:
            await other.execute("BEGIN; SELECT * FROM tabular FOR UPDATE")
            writing = asyncio.ensure_future(store.write([swap(table, "t-1")]))
            await asyncio.sleep(0.2)
            began = time.monotonic()
            await store.close()
            assert time.monotonic() - began < 5
            with pytest.raises(OutcomeUnknown):
                await writing
        finally:
            await other.close()


async def test_a_restart_of_the_database_is_survived(url: str, postgres_server: Postgres, anyio_backend: str) -> None:
    """While it is away everything is Unavailable; afterwards the same store goes on over new connections."""
    async with opened(url, pool_size=3) as store:
        await store.write([house(), space("n"), make("t")])
        await asyncio.gather(*(store.ping() for _ in range(10)))
        await asyncio.to_thread(postgres_server.stop)
        try:
            with pytest.raises(Unavailable):
                await store.tabular(HOUSE, ("n",), "t")
            with pytest.raises(Unavailable):
                await store.write([make("x")])
            with pytest.raises(Unavailable):
                await store.ping()
        finally:
            await asyncio.to_thread(postgres_server.start)
        await store.ping()
        await store.write([make("x")])
        assert (await get(store, "t")).name == "t"


async def test_a_deadlock_is_tried_again(url: str, anyio_backend: str) -> None:
    """A foreign transaction that locks the same rows the other way round: the unit still lands."""
    async with opened(url) as store:
        await store.write([house(), space("n"), make("a"), make("b")])
        a, b = await get(store, "a"), await get(store, "b")
        other = await asyncpg.connect(url)
        try:
            await other.execute(f"BEGIN; UPDATE tabular SET format_version = 2 WHERE tabular_id = {b.tabular_id}")
            # It must not be the one that gives way.
            await other.execute("SET LOCAL deadlock_timeout = '60s'")
            sent = asyncio.ensure_future(store.write([swap(a, "a-1"), swap(b, "b-1")]))
            await asyncio.sleep(0.1)
            assert not sent.done()
            await other.execute(f"UPDATE tabular SET format_version = 2 WHERE tabular_id = {a.tabular_id}")
            await other.execute("COMMIT")
            await sent
        finally:
            await other.close()
        assert [(await get(store, name)).version for name in "ab"] == [2, 2]


async def test_a_statement_that_takes_too_long_is_given_up(url: str, anyio_backend: str) -> None:
    """Waiting for a lock counts: the unit is Unavailable, nothing of it is stored, the store goes on."""
    async with opened(url, statement_timeout_ms=300) as store:
        await store.write([house(), space("n"), make("t")])
        table = await get(store, "t")
        other = await asyncpg.connect(url)
        try:
            await other.execute("BEGIN; SELECT * FROM tabular FOR UPDATE")
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await store.write([make("x"), swap(table, "t-1")])
            assert 0.2 < time.monotonic() - began < 5
            await other.execute("ROLLBACK")
        finally:
            await other.close()
        assert await store.tabular(HOUSE, ("n",), "x") is None
        await store.write([swap(table, "t-1")])


async def test_a_small_pool_makes_callers_wait_in_line(url: str, anyio_backend: str) -> None:
    """One connection serves two hundred callers, and no transaction is left open on it."""
    async with opened(url, pool_size=1) as store:
        await store.write([house(), space("n")])
        await asyncio.gather(*(store.write([make(f"t{i}"), NOTE]) for i in range(50)), *(
            store.tabular(HOUSE, ("n",), f"t{i}") for i in range(150)
        ))  # fmt: skip
        connection = await asyncpg.connect(url)
        try:
            idle = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND state LIKE 'idle in transaction%'"
            )
        finally:
            await connection.close()
        assert idle == 0


async def test_a_database_in_another_encoding_is_a_wrong_setting(postgres_server: Postgres, anyio_backend: str) -> None:
    """Names could not be stored as they are."""

    def prepare() -> str:
        postgres_server.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        migrate(postgres_server.url("latin"))
        return postgres_server.url("latin")

    url = await asyncio.to_thread(prepare)
    with pytest.raises(BadSettings, match="LATIN1"):
        await open_store(url).open()


async def test_names_are_exact_under_a_linguistic_locale(postgres_server: Postgres, anyio_backend: str) -> None:
    """The database's own collation, which orders and folds as a dictionary does, changes nothing."""

    def prepare() -> str:
        try:
            postgres_server.execute(
                "CREATE DATABASE german TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' "
                "LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'"
            )
        except asyncpg.PostgresError as error:
            pytest.skip(f"this PostgreSQL has no ICU: {error}")
        migrate(postgres_server.url("german"))
        return postgres_server.url("german")

    names = ["a", "B", "ä", "Z", "z", "_", "é", "-b", "b", "10", "9"]
    async with opened(await asyncio.to_thread(prepare)) as store:
        await store.write([house(), space("n"), *(make(name) for name in names), *(space(name) for name in names)])
        page = await store.tabulars(HOUSE, ("n",), "table", after=None, limit=None)
        assert list(page.items) == sorted(names)
        spaces = await store.namespaces(HOUSE, (), after="Z", limit=3)
        assert [levels[0] for levels in spaces.items] == sorted([*names, "n"])[5:8]


@pytest.fixture
def bouncer(postgres_server: Postgres) -> Iterator[int]:
    running = pgbouncer(postgres_server)
    try:
        port = running.__enter__()
    except CannotStart as reason:
        pytest.skip(str(reason))
    yield port
    running.__exit__(None, None, None)


async def test_a_transaction_pooler_in_between_changes_nothing(
    url: str, postgres_server: Postgres, bouncer: int, anyio_backend: str
) -> None:
    """Reads, races and multi-table commits of many callers over two server connections."""
    through = postgres_server.url(url.rpartition("/")[2], port=bouncer) + "?statement_cache_size=0"
    async with opened(through, pool_size=20) as store:
        await store.write([house(), space("n")])
        creations = await asyncio.gather(
            *(store.write([make(f"t{i % 20}", uuid=f"u{i}", location=f"/w/{i}"), NOTE]) for i in range(60)),
            return_exceptions=True,
        )
        assert creations.count(None) == 20
        tables = [await get(store, f"t{i}") for i in range(20)]
        await asyncio.gather(*(store.write([swap(table, "next")]) for table in tables))
        await asyncio.gather(*(
            store.write([swap(one, "last", expected="next"), swap(other, "last", expected="next")])
            for one, other in zip(tables[::2], tables[1::2], strict=True)
        ))  # fmt: skip
        assert {(await get(store, f"t{i}")).metadata_location for i in range(20)} == {"last"}
