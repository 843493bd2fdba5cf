"""SQL without I/O: programs that a driver runs.

A program is a generator that yields steps and is sent their outcomes. Both adapters run the same programs, one on a
thread with sqlite3, one on the event loop with asyncpg, so an operation is written down once and cannot differ.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from app.store.statements import Params, Statement

T = TypeVar("T")

Row = Sequence[Any]


class Call(NamedTuple):
    """Run a statement."""

    statement: Statement
    params: Params


class Lock(NamedTuple):
    """Hold the lock on locations until the transaction ends: a single one, because those of different warehouses may
    meet. Nothing to do where there is a single writer."""


class Outcome(NamedTuple):
    """`rows` of a query, or the number of rows a change `touched`."""

    rows: Sequence[Row]
    touched: int


Step = Call | Lock
Program = Generator[Step, Outcome, T]

DONE: Final = Outcome((), 0)
