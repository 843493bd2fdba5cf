"""Turns of the writers of one table, told on a clock that jumps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from app.edge.contention import Contention, Peer, peer_of
from app.errors import BadRequest, CommitFailed
from tests.catalog.warp import warped

T, U = ("t",), ("u",)
A, B, C = (("127.0.0.1", port) for port in (1, 2, 3))


def commit(turns: Contention, address: Peer | None, error: Exception | None = None) -> None:
    try:
        with turns.commit([T], address):
            if error is not None:
                raise error
    except (CommitFailed, BadRequest):
        pass


def lose(turns: Contention, *addresses: Peer) -> None:
    for address in addresses:
        commit(turns, address, CommitFailed("too late"))


def now() -> float:
    return asyncio.get_running_loop().time()


async def waited(turns: Contention, address: Peer | None) -> float:
    began = now()
    await turns.take(T, address)
    return now() - began


def test_where_nobody_lost_nobody_waits() -> None:
    """Commits that land and loads beside them leave no trace."""

    async def story() -> None:
        turns = Contention()
        for address in (A, B, None):
            assert await waited(turns, address) == 0
            commit(turns, address)
            commit(turns, address, BadRequest("nonsense"))
        assert len(turns) == 0

    warped(story())


def test_after_a_lost_commit_the_next_writer_waits_for_the_one_before() -> None:
    """Whoever loads first commits first, and the next load sees what came of it."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        assert await waited(turns, A) == 0
        second = asyncio.create_task(waited(turns, B))
        await asyncio.sleep(0.01)
        assert not second.done()
        commit(turns, A)
        assert await second == pytest.approx(0.01)

    warped(story())


@pytest.mark.parametrize("end", [None, CommitFailed("too late"), BadRequest("nonsense"), TimeoutError()])
def test_however_a_commit_ends_the_turn_is_over(end: Exception | None) -> None:
    """It landed, was too late, was nonsense, or nobody knows: the next one goes on at once."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        second = asyncio.create_task(waited(turns, B))
        await asyncio.sleep(0)
        try:
            commit(turns, A, end)
        except TimeoutError:
            assert end is not None
        assert await second == 0

    warped(story())


def test_readers_do_not_wait() -> None:
    """A connection that never lost a commit here loads at once, and so does one that stands for nobody."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        waiting = asyncio.create_task(turns.take(T, B))
        await asyncio.sleep(0)
        assert await waited(turns, C) == 0 and await waited(turns, None) == 0
        assert await waited(turns, A) == 0  # its own turn already
        assert not waiting.done()
        waiting.cancel()

    warped(story())


def test_a_writer_that_won_takes_turns_too() -> None:
    """Else it would start over at once, and those that lost would lose again."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A)
        commit(turns, B)
        await turns.take(T, A)
        winner = asyncio.create_task(waited(turns, B))
        await asyncio.sleep(0.005)
        commit(turns, A)
        assert await winner == pytest.approx(0.005)

    warped(story())


def test_a_commit_of_somebody_else_ends_the_turn() -> None:
    """Whoever loaded before it has lost anyway."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        second = asyncio.create_task(waited(turns, B))
        await asyncio.sleep(0)
        commit(turns, None)
        assert await second == 0

    warped(story())


def test_a_turn_that_is_not_used_ends_by_itself() -> None:
    """After some tenths of a second; who lets one pass and loads again only reads, until it loses again."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        assert 0.02 <= await waited(turns, B) <= 0.5
        commit(turns, B)
        await turns.take(T, B)
        assert await waited(turns, A) == 0
        lose(turns, A)
        assert await waited(turns, A) > 0

    warped(story())


@pytest.mark.parametrize(("loads", "takes_turns"), [(1, True), (3, True), (4, False), (60, False)])
def test_turns_are_for_loads_that_a_commit_follows(loads: int, takes_turns: bool) -> None:
    """Engines load a table up to three times for a commit; who loads it more often mostly reads and holds up nobody."""

    async def story() -> None:
        turns = Contention()
        lose(turns, B)
        for _ in range(8):
            for _ in range(loads):
                await turns.take(T, A)
            commit(turns, A)
        lose(turns, B)
        await turns.take(T, A)
        assert (await waited(turns, B) > 0) is takes_turns

    warped(story())


def test_a_connection_has_one_turn_at_a_time() -> None:
    """Who would commit to two tables loads the second one at once: two that began at either end would wait in vain."""

    async def story() -> None:
        turns = Contention()
        for key in (T, U):
            for address in (A, B):
                with pytest.raises(CommitFailed), turns.commit([key], address):
                    raise CommitFailed("too late")
        await turns.take(T, A)
        await turns.take(U, B)
        began = now()
        await turns.take(U, A)
        await turns.take(T, B)
        assert now() == began
        with turns.commit([T, U], A):
            pass
        with pytest.raises(CommitFailed), turns.commit([U], B):
            raise CommitFailed("too late")
        await turns.take(U, A)
        await turns.take(U, B)
        assert now() > began

    warped(story())


def test_a_slow_writer_does_not_hold_up_the_quick_ones_each_time_around() -> None:
    """A turn's price is its length: next is who has waited longest for what it takes, or else more than a second."""

    async def story() -> tuple[list[int], int]:
        chance = random.Random(1)
        pauses = {0: 0.4}
        return await contend(Contention(), 9, 20.0, lambda number: pauses.get(number, 0.01) * chance.uniform(0.8, 1.2))

    landed, _ = warped(story())
    assert 8 <= landed[0] <= 15
    assert sum(landed[1:]) >= 0.7 * 20 / 0.016


def test_a_turn_does_not_end_while_its_commit_is_under_way() -> None:
    """However long the file takes to write: nobody else loads what is about to be replaced."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        second = asyncio.create_task(waited(turns, B))
        with turns.commit([T], A):
            await asyncio.sleep(1.5)
            assert not second.done()
        assert await second == 1.5

    warped(story())


def test_nobody_waits_for_long() -> None:
    """A load goes on after two seconds, whatever the others do."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        with turns.commit([T], A):
            assert await waited(turns, B) == 2

    warped(story())


def test_slow_writers_get_longer_turns_and_very_slow_ones_none() -> None:
    """What a writer needed between load and commit is what it is given; beyond half a second it holds up nobody."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        for _ in range(6):
            await turns.take(T, A)
            await asyncio.sleep(0.3)
            commit(turns, A)
            lose(turns, A)
        await turns.take(T, A)
        assert await waited(turns, B) == pytest.approx(0.5)
        commit(turns, B)
        for _ in range(6):
            await turns.take(T, A)
            await asyncio.sleep(3)
            lose(turns, A)
        await turns.take(T, A)
        assert await waited(turns, B) == 0

    warped(story())


def test_a_load_that_is_given_up_passes_its_turn_on() -> None:
    """Cancelled while it waits or just when its turn came, it stops nobody."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B, C)
        await turns.take(T, A)
        second, third = (asyncio.create_task(waited(turns, address)) for address in (B, C))
        await asyncio.sleep(0)
        commit(turns, A)
        second.cancel()
        assert await third == 0
        fourth, fifth = (asyncio.create_task(waited(turns, address)) for address in (A, B))
        await asyncio.sleep(0)
        fourth.cancel()
        await asyncio.sleep(0)
        commit(turns, C)
        assert await fifth == 0

    warped(story())


def test_peace_is_kept_in_mind_for_seconds_only() -> None:
    """Some seconds after the last lost commit nothing is remembered, not even by those who still wait."""

    async def story() -> None:
        turns = Contention()
        lose(turns, A, B)
        await turns.take(T, A)
        with turns.commit([T], A):
            await asyncio.sleep(4)
            late = asyncio.create_task(waited(turns, B))
            await asyncio.sleep(6)
            assert len(turns) == 0 and late.done()
        assert await waited(turns, A) == await waited(turns, B) == 0

    warped(story())


def test_memory_is_bounded() -> None:
    """Neither many tables nor many connections fill it, and the latest writers are the ones that are known."""

    async def story() -> None:
        turns = Contention()
        for number in range(3_000):
            with pytest.raises(CommitFailed), turns.commit([(number,)], A):
                raise CommitFailed("too late")
        assert len(turns) == 1_024
        await asyncio.sleep(11)
        assert len(turns) == 0
        lose(turns, *(("127.0.0.1", port) for port in range(1, 3_000)))
        await turns.take(T, ("127.0.0.1", 2_999))
        assert await waited(turns, ("127.0.0.1", 1)) == 0
        assert await waited(turns, ("127.0.0.1", 2_998)) > 0

    warped(story())


async def contend(
    turns: Contention, writers: int, seconds: float, pause: Callable[[int], float]
) -> tuple[list[int], int]:
    """Writers that load, take a while, commit, and back off when they are too late: what each landed, how many lost."""
    version, landed, lost, chance = 0, [0] * writers, 0, random.Random(writers)

    async def writer(number: int) -> None:
        nonlocal version, lost
        address, backoff = ("127.0.0.1", number), 0.1
        while now() < seconds:
            await turns.take(T, address)
            seen = version
            await asyncio.sleep(pause(number))
            try:
                with turns.commit([T], address):
                    await asyncio.sleep(0.003)
                    if seen != version:
                        raise CommitFailed("too late")
                    version += 1
                landed[number] += 1
                backoff = 0.1
            except CommitFailed:
                lost += 1
                await asyncio.sleep(chance.uniform(backoff / 2, backoff))
                backoff = min(2 * backoff, 1.0)

    tasks: list[Awaitable[None]] = [writer(number) for number in range(writers)]
    await asyncio.gather(*tasks)
    return landed, lost


@settings(max_examples=30)
@given(st.integers(2, 40), st.integers(1, 30))
def test_everybody_gets_through(writers: int, milliseconds: int) -> None:
    """Any number of equally quick writers land equally often, and hardly a commit is lost once they take turns."""

    async def story() -> tuple[list[int], int]:
        return await contend(Contention(), writers, 20.0, lambda _: milliseconds / 1000)

    landed, lost = warped(story())
    assert min(landed) > 0 and max(landed) <= 1.5 * min(landed) + 5
    assert lost <= 4 * writers


@given(st.integers(0, 2**32))
def test_nobody_is_left_waiting(seed: int) -> None:
    """Whatever loads, commits and cancellations come in whatever order, every load ends and no turn stays taken."""
    chance = random.Random(seed)

    async def story() -> None:
        turns = Contention()
        running: list[asyncio.Task[None]] = []

        async def one(address: Peer) -> None:
            await turns.take(T, address)
            if chance.random() < 0.7:
                await asyncio.sleep(chance.choice([0, 0.01, 0.3]))
                try:
                    with turns.commit([T], address):
                        await asyncio.sleep(chance.choice([0, 0.01, 1]))
                        if chance.random() < 0.6:
                            raise chance.choice([CommitFailed("too late"), BadRequest("nonsense")])
                except (CommitFailed, BadRequest):
                    pass

        for _ in range(chance.randrange(1, 60)):
            running.append(asyncio.create_task(one(("127.0.0.1", chance.randrange(1, 6)))))
            await asyncio.sleep(chance.choice([0, 0, 0.01, 0.5]))
            if chance.random() < 0.1:
                chance.choice(running).cancel()
        async with asyncio.timeout(60):
            await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(20)
        assert len(turns) == 0

    warped(story())


def request(client: Peer | None, **headers: str) -> Request:
    """A GET on the connection of `client`."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": raw, "client": client}
    return Request(scope)


@pytest.mark.parametrize(
    ("client", "headers", "told"),
    [
        (("10.0.0.7", 4711), {}, ("10.0.0.7", 4711)),
        (
            ("10.0.0.7", 4711),
            {"user_agent": "x", "idempotency_key": "0190c5ae-7a9c-7000-8000-000000000001"},
            ("10.0.0.7", 4711),
        ),
        *((("10.0.0.7", 4711), {name: "x"}, None) for name in ("x_forwarded_for", "x_real_ip", "forwarded", "via")),
        (None, {}, None),
    ],
)
def test_a_connection_stands_for_one_client_unless_it_is_a_proxys(
    client: Peer | None, headers: dict[str, str], told: Peer | None
) -> None:
    """Its host and port, with an idempotency key too; nothing where a proxy says that it speaks for somebody else."""
    assert peer_of(request(client, **headers)) == told
