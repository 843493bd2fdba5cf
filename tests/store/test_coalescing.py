"""Questions that wait while a statement is in flight, asked together by the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import BadRequest, OutcomeUnknown, Unavailable
from app.store import coalescing
from app.store.coalescing import Board, Coalescer

pytestmark = pytest.mark.anyio


class Counter:
    """A database of numbers that answers a statement with what it held when the statement was sent."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.statements: list[Sequence[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: list[Exception] = []

    async def ask(self, board: Board[str]) -> Mapping[str, int]:
        asked = board()
        self.statements.append(asked)
        seen = dict(self.held)
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if "poison" in asked:
            raise BadRequest("poison")
        return {question: seen[question] for question in asked if question in seen}


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_question_is_sent_at_once_when_nothing_is_in_flight(anyio_backend: str) -> None:
    """Nobody waits for company; the answer of what is not there is None."""
    counter = Counter()
    counter.held["a"] = 1
    line = Coalescer(counter.ask)
    assert await line.get("a") == 1
    assert await line.get("b") is None
    assert counter.statements == [("a",), ("b",)]


async def test_what_arrives_meanwhile_rides_the_next_statement(anyio_backend: str) -> None:
    """One statement for all that wait, with equal questions asked once and answered to each."""
    counter = Counter()
    counter.held = {"a": 1, "b": 2, "c": 3}
    line = Coalescer(counter.ask)
    counter.gate.clear()
    asked = [asyncio.ensure_future(line.get(each)) for each in "abcbb"]
    await turn()
    assert counter.statements == [("a",)]
    counter.gate.set()
    assert await asyncio.gather(*asked) == [1, 2, 3, 2, 2]
    assert counter.statements == [("a",), ("b", "c")]


async def test_an_answer_is_never_older_than_its_question(anyio_backend: str) -> None:
    """A change between the sending and a new equal question is seen by that question."""
    counter = Counter()
    counter.held["a"] = 1
    line = Coalescer(counter.ask)
    counter.gate.clear()
    before = asyncio.ensure_future(line.get("a"))
    await turn()
    counter.held["a"] = 2
    after = asyncio.ensure_future(line.get("a"))
    await turn()
    counter.gate.set()
    assert await before == 1
    assert await after == 2


@settings(max_examples=60)
@given(acts=st.lists(st.tuples(st.sampled_from("wrgk"), st.sampled_from("ab")), max_size=60))
def test_every_answer_lies_between_question_and_answer(acts: list[tuple[str, str]]) -> None:
    """Whatever the order of writes, questions, turns of the loop and cancellations, no answer is stale."""

    async def run() -> None:
        counter = Counter()
        counter.held = {"a": 0, "b": 0}
        line = Coalescer(counter.ask, flights=2)
        running: list[asyncio.Task[None]] = []

        async def read(name: str) -> None:
            least = counter.held[name]
            found = await line.get(name)
            assert found is not None and least <= found <= counter.held[name]

        for act, name in acts:
            if act == "w":
                counter.held[name] += 1
            elif act == "r":
                running.append(asyncio.ensure_future(read(name)))
            elif act == "k" and running:
                running[len(running) // 2].cancel()
            else:
                await asyncio.sleep(0)
        for result in await asyncio.gather(*running, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError)

    asyncio.run(run())


async def test_a_cancelled_caller_disturbs_nobody(anyio_backend: str) -> None:
    """Neither the one in flight nor one of several with the same question takes the others along."""
    counter = Counter()
    counter.held = {"a": 1, "b": 2}
    line = Coalescer(counter.ask)
    counter.gate.clear()
    first = asyncio.ensure_future(line.get("a"))
    await turn()
    same = [asyncio.ensure_future(line.get("b")) for _ in range(3)]
    await turn()
    first.cancel()
    same[1].cancel()
    await turn()
    counter.gate.set()
    assert list(await asyncio.wait_for(asyncio.gather(same[0], same[2]), 5)) == [2, 2]
    assert first.cancelled() and same[1].cancelled()
    assert await line.get("a") == 1


async def test_one_bad_question_fails_alone(anyio_backend: str) -> None:
    """The batch is taken apart: everybody else is answered."""
    counter = Counter()
    counter.held = {"a": 1, "b": 2, "c": 3}
    line = Coalescer(counter.ask)
    counter.gate.clear()
    asked = [asyncio.ensure_future(line.get(each)) for each in ("a", "b", "poison", "c")]
    await turn()
    counter.gate.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [answers[0], answers[1], answers[3]] == [1, 2, 3]
    assert isinstance(answers[2], BadRequest)


@pytest.mark.parametrize("kind", [Unavailable, OutcomeUnknown])
async def test_when_the_database_is_away_all_are_told_and_none_asks_again(
    anyio_backend: str, kind: type[Unavailable]
) -> None:
    """Each with an error of its own; the next question is asked as ever."""
    counter = Counter()
    counter.held["a"] = 1
    line = Coalescer(counter.ask)
    counter.gate.clear()
    asked = [asyncio.ensure_future(line.get(each)) for each in "abcc"]
    await turn()
    counter.failures = [kind("away"), kind("still away")]
    counter.gate.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [kind] * 4
    assert len(set(map(id, answers))) == 4
    assert len(counter.statements) == 2
    assert await line.get("a") == 1


async def test_a_statement_that_hangs_does_not_hold_up_the_rest(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while another one is sent beside it, as often as `flights` allows."""
    monkeypatch.setattr(coalescing, "PATIENCE_S", 0.01)
    stuck = asyncio.Event()

    async def ask(board: Board[str]) -> Mapping[str, int]:
        asked = board()
        if "slow" in asked:
            await stuck.wait()
        return dict.fromkeys(asked, 1)

    line = Coalescer(ask, flights=2)
    slow = asyncio.ensure_future(line.get("slow"))
    await turn()
    assert await asyncio.wait_for(line.get("a"), 5) == 1
    assert await asyncio.wait_for(line.get("b"), 5) == 1
    assert not slow.done()
    stuck.set()
    assert await slow == 1


async def test_a_long_line_goes_in_several_statements(anyio_backend: str) -> None:
    """None has more than the most."""
    counter = Counter()
    counter.held = {str(i): i for i in range(3 * coalescing.MOST)}
    line = Coalescer(counter.ask)
    answers = await asyncio.gather(*(line.get(question) for question in counter.held))
    assert list(answers) == list(counter.held.values())
    assert max(map(len, counter.statements)) == coalescing.MOST
    assert len(counter.statements) == 4


async def test_a_flight_that_is_ended_from_outside_answers_its_callers(anyio_backend: str) -> None:
    """A loop that shuts down cancels its tasks: their callers hear of it instead of waiting for ever."""
    counter = Counter()
    line = Coalescer(counter.ask)
    counter.gate.clear()
    first = asyncio.ensure_future(line.get("a"))
    await turn()
    second = asyncio.ensure_future(line.get("b"))
    counter.gate.set()
    await first
    counter.gate.clear()
    await turn()
    (flight,) = line._tasks
    flight.cancel()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(second, 5)
