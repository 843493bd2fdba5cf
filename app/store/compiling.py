"""Compiles what servers run ahead of time, so that none of them loads SQLAlchemy: `python -m app.store.compiling`.

It writes `compiled/`: every statement of `expressions/` in the SQL of each dialect, and the script that makes the
tables of an empty SQLite database, taken from a file that the migrations made. Run it after every change of a
statement or a migration; a test compares.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import Executable, SelectBase

from app.store.expressions import (
    batches,
    journals,
    keys,
    namespaces,
    policies,
    purges,
    table_ranking,
    tabulars,
    usage,
    waivers,
    warehouses,
)
from app.store.expressions.params import PREFIX, DialectInsert, Expression
from app.store.migrations import migrate_sqlite
from app.store.program import COMPILED, Compiled
from app.store.sqlite_files import create_file

NOUNS: Final[tuple[ModuleType, ...]] = (
    journals,
    keys,
    namespaces,
    usage,
    policies,
    purges,
    table_ranking,
    tabulars,
    waivers,
    warehouses,
)
POSTGRESQL: Final[tuple[ModuleType, ...]] = (batches,)
"""Nouns of PostgreSQL alone."""


class Target:
    """A dialect that statements are compiled for, and the nouns that it has statements of."""

    def __init__(self, dialect: Dialect, insert: DialectInsert, nouns: tuple[ModuleType, ...] = NOUNS) -> None:
        self._dialect = dialect
        self._insert = insert
        self.nouns = nouns

    @classmethod
    def sqlite(cls) -> Target:
        return cls(sqlite.dialect(paramstyle="qmark"), sqlite.insert)

    @classmethod
    def postgresql(cls) -> Target:
        # The base dialect renders bare $n parameters; asyncpg's would cast each to a type without our collation.
        dialect: Dialect = postgresql.base.PGDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
        return cls(dialect, postgresql.insert, NOUNS + POSTGRESQL)

    def compile(self, source: Expression) -> Compiled:
        expression: Any = source if isinstance(source, Executable) else source(self._insert)
        compiled = expression.compile(dialect=self._dialect)
        assert isinstance(compiled, SQLCompiler)
        names = tuple(name.removeprefix(PREFIX) for name in compiled.positiontup or ())
        given = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        return Compiled(
            sql=str(compiled),
            names=names,
            constants={name: given[name] for name in names if name in given},
            rows=isinstance(expression, SelectBase),
        )


def expressions(nouns: tuple[ModuleType, ...] = NOUNS) -> Iterator[tuple[str, Expression]]:
    """Every statement with its name: `noun.NAME`, or `noun.NAME.key` where a name holds several."""
    for module in nouns:
        noun = module.__name__.rpartition(".")[2]
        for name, value in vars(module).items():
            if name.startswith("_") or not name.isupper() or isinstance(value, type):
                continue
            if isinstance(value, Executable) or callable(value):
                yield f"{noun}.{name}", value
            elif isinstance(value, Mapping):
                for key, each in value.items():
                    yield f"{noun}.{name}.{key}", each


def files() -> dict[str, bytes]:
    """What belongs into `compiled/`, by file name."""
    return {
        "sqlite.json": _statements(Target.sqlite()),
        "postgresql.json": _statements(Target.postgresql()),
        "sqlite.sql": _script(),
    }


def _statements(target: Target) -> bytes:
    written = sorted(expressions(target.nouns), key=lambda one: one[0])
    compiled = {name: target.compile(expression) for name, expression in written}
    return msgspec.json.format(msgspec.json.encode(compiled), indent=1) + b"\n"


def _script() -> bytes:
    """What SQLite itself recorded of every table and index, in the order they were made, and the revision."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.db"
        create_file(path)
        migrate_sqlite(path, "head")
        with closing(sqlite3.connect(path)) as made:
            statements = [
                f"{sql};\n"
                for (sql,) in made.execute(
                    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY rowid"
                )
            ]
            ((revision,),) = made.execute("SELECT version_num FROM alembic_version").fetchall()
    statements.append(f"INSERT INTO alembic_version (version_num) VALUES ('{revision}');\n")
    return "\n".join(statements).encode()


def main() -> None:
    for name, content in files().items():
        (COMPILED / name).write_bytes(content)


if __name__ == "__main__":
    main()
