"""SQL without I/O: statements compiled once per dialect, and programs that a driver runs.

A program is a generator that yields steps and is sent their outcomes. Both adapters run the same programs, one on a
thread with sqlite3, one on the event loop with asyncpg, so an operation is written down once and cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import BindParameter, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import Executable

T = TypeVar("T")
DialectInsert = Callable[..., Any]
"""A dialect's own INSERT, which knows ON CONFLICT."""

Row = Sequence[Any]
Params = Mapping[str, Any]

_PREFIX: Final = "p_"


def param(name: str) -> BindParameter[Any]:
    """A named value of a statement.

    The prefix keeps names apart from columns: SQLAlchemy reserves bare column names in UPDATE and INSERT.
    """
    return bindparam(_PREFIX + name)


class Statement:
    """One SQL statement as a Core expression, or as a function of the dialect's INSERT where there is an upsert."""

    __slots__ = ("build", "rows")

    def __init__(self, expression: Executable | Callable[[DialectInsert], Executable], *, rows: bool = False) -> None:
        self.build = expression
        self.rows = rows


class Call(NamedTuple):
    """Run a statement."""

    statement: Statement
    params: Params


class Lock(NamedTuple):
    """Hold the warehouse's location lock until the transaction ends. Nothing to do where there is a single writer."""

    warehouse: str


class Outcome(NamedTuple):
    """`rows` of a query, or the number of rows a change `touched`."""

    rows: Sequence[Row]
    touched: int


Step = Call | Lock
Program = Generator[Step, Outcome, T]

DONE: Final = Outcome((), 0)


class Compiled(NamedTuple):
    sql: str
    names: tuple[str, ...]
    constants: Params
    rows: bool


class Compiler:
    """Statements compiled for one dialect, each once, with the order of their parameters."""

    def __init__(self, dialect: Dialect, insert: DialectInsert, *, no_limit: int | None) -> None:
        self._dialect = dialect
        self._insert = insert
        self._no_limit = no_limit
        self._compiled: dict[Statement, Compiled] = {}

    @classmethod
    def for_sqlite(cls) -> Compiler:
        return cls(sqlite.dialect(paramstyle="qmark"), sqlite.insert, no_limit=-1)

    @classmethod
    def for_postgresql(cls) -> Compiler:
        # The base dialect renders bare $n parameters; asyncpg's would cast each to a type without our collation.
        dialect: Dialect = postgresql.base.PGDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
        return cls(dialect, postgresql.insert, no_limit=None)

    def bind(self, statement: Statement, params: Params) -> tuple[Compiled, tuple[Any, ...]]:
        """The compiled statement and its positional arguments. A `limit` of None means no limit."""
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = self._compile(statement)
        constants = compiled.constants
        args = tuple(params[name] if name in params else constants[name] for name in compiled.names)
        if params.get("limit", 0) is None:
            args = tuple(self._no_limit if name == "limit" else arg
                         for name, arg in zip(compiled.names, args, strict=True))
        return compiled, args

    def _compile(self, statement: Statement) -> Compiled:
        build = statement.build
        expression = build(self._insert) if callable(build) else build
        compiled = expression.compile(dialect=self._dialect)  # type: ignore[attr-defined]
        assert isinstance(compiled, SQLCompiler)
        names = tuple(name.removeprefix(_PREFIX) for name in compiled.positiontup or ())
        constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        return Compiled(str(compiled), names, constants, statement.rows)
