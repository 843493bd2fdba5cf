"""Many questions, one statement: what arrives while a statement is in flight rides the next one.

A question boards at the moment its statement is sent, never later, so the database answers it as it would have answered
it alone: with everything that was committed before it was asked. With nothing in flight it is sent at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from app.errors import OutcomeUnknown, Unavailable

K = TypeVar("K")
V = TypeVar("V")

MOST: Final = 512
"""Questions in one statement at most, so that a long line does not make one statement slow for all."""
PATIENCE_S: Final = 0.05
"""Behind a statement that takes longer than this another one is sent: a connection that hangs, or a row that is locked,
must not hold up everybody. Sooner would only make batches smaller: one at a time costs the least."""

Board = Callable[[], Sequence[K]]
"""Who rides along, asked when the statement can be sent; the same again whenever it is sent anew. It may be nobody."""

Ask = Callable[[Board[K]], Awaitable[Mapping[K, V]]]
"""Send what boards as one statement. A question that the answer does not mention has the answer None."""


class Coalescer(Generic[K, V]):
    """Runs `ask` for one batch after the other, or for `flights` at a time while they are slow. For one event loop.

    Equal questions of a batch are asked once. A caller that is cancelled disturbs no other. When a batch fails each
    question is asked alone, so that none fails for another's sake; but when the database is away all are told so.
    """

    def __init__(self, ask: Ask[K, V], *, flights: int = 1) -> None:
        self._ask = ask
        self._most = flights
        self._line: dict[K, list[asyncio.Future[V | None]]] = {}
        self._flights = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None

    async def get(self, question: K) -> V | None:
        """The answer of a statement that was sent after this call; fails with what `ask` raises for it."""
        if not (self._flights or self._line):
            return await self._alone(question)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[V | None] = loop.create_future()
        if self._alarm is None:
            self._alarm = loop.call_later(PATIENCE_S, self._hurry)
        self._line.setdefault(question, []).append(future)
        return await future

    async def _alone(self, question: K) -> V | None:
        # In the caller's own task: it spares the commonest case, one caller at a time, a fifth of its cost.
        self._flights += 1
        try:
            return (await self._ask(lambda: (question,))).get(question)
        finally:
            self._flights -= 1
            if self._line and not self._flights:
                self._launch()

    def _launch(self) -> None:
        self._flights += 1
        task = asyncio.ensure_future(self._fly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fly(self) -> None:
        try:
            while self._line:
                await self._one_batch()
        finally:
            self._flights -= 1

    def _hurry(self) -> None:
        self._alarm = None
        if self._line and self._flights < self._most:
            self._launch()
            self._alarm = asyncio.get_running_loop().call_later(PATIENCE_S, self._hurry)

    def _leave(self) -> dict[K, list[asyncio.Future[V | None]]]:
        """The next batch, taken from the line."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        line = self._line
        if len(line) <= MOST:
            self._line = {}
            return line
        return {question: line.pop(question) for question in list(line)[:MOST]}

    async def _one_batch(self) -> None:
        batch: dict[K, list[asyncio.Future[V | None]]] = {}

        def board() -> Sequence[K]:
            if not batch:
                batch.update(self._leave())
            return tuple(batch)

        try:
            answers = await self._ask(board)
        except (Unavailable, OutcomeUnknown) as error:
            board()
            _refuse(batch, error)
        except Exception as error:
            board()
            await self._take_apart(batch, error)
        except BaseException:
            board()
            _refuse(batch, Unavailable("The store was closed"))
            raise
        else:
            for question, futures in batch.items():
                _answer(futures, answers.get(question))

    async def _take_apart(self, batch: Mapping[K, list[asyncio.Future[V | None]]], error: Exception) -> None:
        for question, futures in batch.items():
            if len(batch) == 1:
                _fail(futures, error)
                return
            try:
                answers = await self._ask(lambda question=question: (question,))  # type: ignore[misc]
            except Exception as own:
                _fail(futures, own)
            else:
                _answer(futures, answers.get(question))


def _answer(futures: Sequence[asyncio.Future[V | None]], found: V | None) -> None:
    for future in futures:
        if not future.done():
            future.set_result(found)


def _fail(futures: Sequence[asyncio.Future[V | None]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)


def _refuse(batch: Mapping[K, Sequence[asyncio.Future[V | None]]], error: Unavailable | OutcomeUnknown) -> None:
    """Nobody can be answered now, whether the statement was sent or not. Each caller gets an error of its own."""
    for futures in batch.values():
        for future in futures:
            _fail([future], type(error)(error.message))
