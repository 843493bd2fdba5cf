"""Connections lent to one caller at a time, from a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from app.store import postgres_pool
from app.store.postgres_pool import Pool
from tests.postgres import Postgres

pytestmark = pytest.mark.anyio


class Maker:
    """Connects, counting; the next attempts may fail."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.made: list[Any] = []
        self.failures = 0

    async def __call__(self) -> Any:
        if self.failures:
            self.failures -= 1
            await asyncio.sleep(0)
            raise OSError("refused")
        connection = await asyncpg.connect(self.url)
        self.made.append(connection)
        return connection

    @property
    def living(self) -> int:
        return sum(not connection.is_closed() for connection in self.made)


@pytest.fixture
async def maker(postgres_server: Postgres, anyio_backend: str) -> AsyncIterator[Maker]:
    maker = Maker(postgres_server.url("postgres"))
    yield maker
    for connection in maker.made:
        connection.terminate()


async def test_a_connection_is_used_again(maker: Maker) -> None:
    """Callers one after the other share one."""
    pool = Pool(maker, 5, wait_s=5)
    for _ in range(4):
        connection = await pool.acquire()
        assert await connection.fetchval("SELECT 1") == 1
        pool.release(connection)
    assert len(maker.made) == 1
    await pool.close()
    assert maker.living == 0


async def test_no_more_than_size_are_made_and_nobody_shares(maker: Maker) -> None:
    """Fifty callers stand in line for three connections."""
    pool = Pool(maker, 3, wait_s=30)
    lent: set[Any] = set()

    async def use(number: int) -> None:
        connection = await pool.acquire()
        assert connection not in lent
        lent.add(connection)
        assert len(lent) <= 3
        assert await connection.fetchval("SELECT $1::int", number) == number
        lent.discard(connection)
        pool.release(connection)

    await asyncio.gather(*(use(number) for number in range(50)))
    assert len(maker.made) == 3
    await pool.close()


async def test_who_waits_too_long_is_told(maker: Maker) -> None:
    """TimeoutError; and the connection that comes back later is not lost."""
    pool = Pool(maker, 1, wait_s=0.05)
    held = await pool.acquire()
    with pytest.raises(TimeoutError):
        await pool.acquire()
    pool.release(held)
    again = await pool.acquire()
    assert again is held
    pool.release(again)
    await pool.close()


async def test_a_dead_connection_makes_room(maker: Maker) -> None:
    """Whoever waits for it gets a new one, and so does the next caller when it died in the pool."""
    pool = Pool(maker, 1, wait_s=5)
    held = await pool.acquire()
    waiting = asyncio.ensure_future(pool.acquire())
    await asyncio.sleep(0)
    held.terminate()
    pool.release(held)
    fresh = await waiting
    assert fresh is not held and await fresh.fetchval("SELECT 1") == 1
    pool.release(fresh)
    fresh.terminate()
    another = await pool.acquire()
    assert another is not fresh and await another.fetchval("SELECT 1") == 1
    pool.release(another)
    await pool.close()


async def test_a_failed_attempt_makes_room(maker: Maker) -> None:
    """Failures to connect reach their callers and cost no place, also those of callers in line."""
    pool = Pool(maker, 2, wait_s=5)
    maker.failures = 4
    results = await asyncio.gather(*(pool.acquire() for _ in range(6)), return_exceptions=True)
    failed = [result for result in results if isinstance(result, OSError)]
    assert len(failed) == 4
    for connection in results:
        if not isinstance(connection, BaseException):
            pool.release(connection)
    assert len(maker.made) <= 2
    await asyncio.gather(*(pool.acquire() for _ in range(2)))


async def test_giving_up_loses_no_connection(maker: Maker) -> None:
    """Callers that are cancelled at any moment, also when a connection is just being handed to them."""
    pool = Pool(maker, 2, wait_s=5)

    async def use() -> None:
        connection = await pool.acquire()
        try:
            await asyncio.sleep(0)
        finally:
            pool.release(connection)

    for turns in range(30):
        callers = [asyncio.ensure_future(use()) for _ in range(8)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for caller in callers[::2]:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    both = await asyncio.gather(pool.acquire(), pool.acquire())
    for connection in both:
        pool.release(connection)
    await pool.close()
    assert maker.living == 0


async def test_an_idle_connection_is_not_trusted_for_ever(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit it is closed, and another one made."""
    pool = Pool(maker, 3, wait_s=5)
    several = [await pool.acquire() for _ in range(3)]
    for connection in several:
        pool.release(connection)
    monkeypatch.setattr(postgres_pool, "IDLE_S", 0.0)
    await asyncio.sleep(0.01)
    fresh = await pool.acquire()
    assert fresh not in several
    pool.release(fresh)
    assert all(connection.is_closed() for connection in several)
    await pool.close()


async def test_closing_waits_for_what_is_lent_and_refuses_the_rest(maker: Maker) -> None:
    """Those in line and those that come later get InterfaceError."""
    pool = Pool(maker, 1, wait_s=5)
    held = await pool.acquire()
    waiting = asyncio.ensure_future(pool.acquire())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(pool.close())
    with pytest.raises(asyncpg.InterfaceError):
        await waiting
    with pytest.raises(asyncpg.InterfaceError):
        await pool.acquire()
    assert not closing.done()
    assert await held.fetchval("SELECT 1") == 1
    pool.release(held)
    await asyncio.wait_for(closing, 5)
    assert maker.living == 0
