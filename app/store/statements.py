"""Statements as SQLAlchemy writes them, compiled once for the driver that runs them.

A statement stands beside the program that runs it. The first use in a process compiles it for the dialect of the
store; from then on it is text and a list of names for the driver: an engine would cost four times the statement.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import Executable, SelectBase

Params = Mapping[str, Any]

DialectInsert = Callable[..., Any]
"""A dialect's own INSERT, which knows ON CONFLICT."""

_PREFIX: Final = "p_"


def param(name: str) -> BindParameter[Any]:
    """A named value of a statement.

    The prefix keeps names apart from columns: SQLAlchemy reserves bare column names in UPDATE and INSERT.
    """
    return bindparam(_PREFIX + name)


class Statement:
    """One statement: an expression, or what makes one of a dialect's INSERT."""

    __slots__ = ("_expression",)

    def __init__(self, expression: Executable | Callable[[DialectInsert], Any]) -> None:
        self._expression = expression

    def written(self, insert: DialectInsert) -> Any:
        """The expression, for a dialect's INSERT."""
        return self._expression if isinstance(self._expression, Executable) else self._expression(insert)


class Compiled(NamedTuple):
    """SQL of one dialect.

    `names` are its parameters in order, of which `constants` have their values already; `rows` tells a query from a
    change.
    """

    sql: str
    names: tuple[str, ...]
    constants: Params
    rows: bool


class Statements:
    """Every statement in the SQL of one dialect. `no_limit` is how it spells a LIMIT of everything."""

    def __init__(self, dialect: Dialect, insert: DialectInsert, *, no_limit: int | None) -> None:
        self._dialect = dialect
        self._insert = insert
        self._no_limit = no_limit
        self._compiled: dict[Statement, Compiled] = {}

    @classmethod
    def of_sqlite(cls) -> Statements:
        return cls(sqlite.dialect(paramstyle="qmark"), sqlite.insert, no_limit=-1)

    @classmethod
    def of_postgresql(cls) -> Statements:
        # A start on SQLite does not pay for it.
        postgresql = importlib.import_module("sqlalchemy.dialects.postgresql")
        # The base dialect renders bare $n parameters; asyncpg's would cast each to a type without our collation.
        dialect: Dialect = postgresql.base.PGDialect(paramstyle="numeric_dollar")
        return cls(dialect, postgresql.insert, no_limit=None)

    def __getitem__(self, statement: Statement) -> Compiled:
        found = self._compiled.get(statement)
        if found is None:
            found = self._compiled[statement] = self._compile(statement)
        return found

    def bind(self, statement: Statement, params: Params) -> tuple[Compiled, tuple[Any, ...]]:
        """The compiled statement and its positional arguments. A `limit` of None means no limit."""
        compiled = self[statement]
        if compiled.constants:
            params = {**params, **compiled.constants}
        args = tuple([params[name] for name in compiled.names])
        if params.get("limit", 0) is None:
            args = tuple(
                self._no_limit if name == "limit" else arg for name, arg in zip(compiled.names, args, strict=True)
            )
        return compiled, args

    def _compile(self, statement: Statement) -> Compiled:
        expression = statement.written(self._insert)
        compiled = expression.compile(dialect=self._dialect)
        assert isinstance(compiled, SQLCompiler)
        names = tuple(name.removeprefix(_PREFIX) for name in compiled.positiontup or ())
        given = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        return Compiled(
            sql=str(compiled),
            names=names,
            constants={name: given[name] for name in names if name in given},
            rows=isinstance(expression, SelectBase),
        )
