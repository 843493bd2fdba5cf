"""Queues of one process."""

from __future__ import annotations

import asyncio

import pytest

from app.catalog.keyed_locks import KeyedLocks
from app.errors import TooManyRequests


def test_members_of_one_line_go_one_by_one_in_order() -> None:
    """Nobody overtakes, and nobody is inside beside another."""

    async def story() -> list[int]:
        locks, seen, inside = KeyedLocks(), [], 0

        async def member(number: int) -> None:
            nonlocal inside
            async with locks.hold([("t",)], 100):
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                seen.append(number)
                inside -= 1

        await asyncio.gather(*(member(n) for n in range(20)))
        assert len(locks) == 0
        return seen

    assert asyncio.run(story()) == list(range(20))


def test_a_full_line_turns_the_next_away() -> None:
    """With room for two waiters a fourth member gets TooManyRequests at once, and the others finish."""

    async def story() -> None:
        locks, done = KeyedLocks(), []

        async def member() -> None:
            async with locks.hold([("t",)], 2):
                await asyncio.sleep(0.01)
                done.append(1)

        three = [asyncio.create_task(member()) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await member()
        await asyncio.gather(*three)
        assert len(done) == 3

    asyncio.run(story())


def test_holders_of_several_keys_never_wait_for_each_other_for_ever() -> None:
    """Keys are taken in one order, whatever order they are named in."""

    async def story() -> None:
        locks = KeyedLocks()

        async def member(keys: list[tuple[object, ...]]) -> None:
            async with locks.hold(keys, 100):
                await asyncio.sleep(0)

        a, b = ("a", ("x",), 1), ("b", ("y",), 2)
        await asyncio.wait_for(asyncio.gather(*(member([a, b] if n % 2 else [b, a, b]) for n in range(40))), 5)

    asyncio.run(story())


def test_a_cancelled_waiter_leaves_the_line() -> None:
    """Its place is free again and the line still moves."""

    async def story() -> None:
        locks = KeyedLocks()

        async def member() -> None:
            async with locks.hold([("t",)], 10):
                await asyncio.sleep(0.01)

        first, second, third = (asyncio.create_task(member()) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, third)
        assert second.cancelled() and len(locks) == 0

    asyncio.run(story())
