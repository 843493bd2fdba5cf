"""SQL without I/O: the statements of one dialect, and programs that a driver runs.

A program is a generator that yields steps and is sent their outcomes. Both adapters run the same programs, one on a
thread with sqlite3, one on the event loop with asyncpg, so an operation is written down once and cannot differ.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

Row = Sequence[Any]
Params = Mapping[str, Any]

COMPILED: Final = Path(__file__).with_name("compiled")
"""What `compiling.py` wrote: for each dialect its statements, and the script of an empty SQLite database."""


class Statement(str):
    """The name of a statement, `noun.NAME`: `expressions/` holds its text, `compiled/` its SQL."""

    __slots__ = ()


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


class Compiled(msgspec.Struct, frozen=True, omit_defaults=True):
    """SQL of one dialect.

    `names` are its parameters in order, of which `constants` have their values already; `rows` tells a query from a
    change.
    """

    sql: str
    names: tuple[str, ...] = ()
    constants: Mapping[str, Any] = {}
    rows: bool = False


class Statements:
    """Every statement in the SQL of one dialect."""

    def __init__(self, compiled: Mapping[str, Compiled], *, no_limit: int | None) -> None:
        self._compiled = compiled
        self._no_limit = no_limit

    @classmethod
    def of_sqlite(cls) -> Statements:
        return cls(_read("sqlite"), no_limit=-1)

    @classmethod
    def of_postgresql(cls) -> Statements:
        return cls(_read("postgresql"), no_limit=None)

    def __getitem__(self, statement: str) -> Compiled:
        return self._compiled[statement]

    def bind(self, statement: Statement, params: Params) -> tuple[Compiled, tuple[Any, ...]]:
        """The compiled statement and its positional arguments. A `limit` of None means no limit."""
        compiled = self._compiled[statement]
        if compiled.constants:
            params = {**params, **compiled.constants}
        args = tuple([params[name] for name in compiled.names])
        if params.get("limit", 0) is None:
            args = tuple(
                self._no_limit if name == "limit" else arg for name, arg in zip(compiled.names, args, strict=True)
            )
        return compiled, args


def _read(dialect: str) -> dict[str, Compiled]:
    return msgspec.json.decode((COMPILED / f"{dialect}.json").read_bytes(), type=dict[str, Compiled])
