"""What is compiled ahead of time is what the expressions and the migrations say."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import select

from app.store import batches, migrate
from app.store.compiling import NOUNS, POSTGRESQL, Target, expressions, files
from app.store.expressions.params import param
from app.store.migrations import migrate_sqlite
from app.store.program import COMPILED, Statement, Statements
from app.store.schema import tabular
from app.store.sqlite_files import create_file
from tests.store.test_program import MODULES


def named_in(module: ModuleType) -> set[str]:
    """Every statement that the programs of a noun can ask for."""
    found: set[str] = set()
    for value in vars(module).values():
        some = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        found |= {each for each in some if isinstance(each, Statement)}
    return found


@pytest.fixture(scope="module")
def generated() -> dict[str, bytes]:
    return files()


@pytest.mark.parametrize("name", ["sqlite.json", "postgresql.json", "sqlite.sql"])
def test_the_compiled_files_are_up_to_date(generated: dict[str, bytes], name: str) -> None:
    """Run `make sql` after a change of a statement, a table or a migration."""
    assert (COMPILED / name).read_text() == generated[name].decode()


def test_nothing_else_is_compiled(generated: dict[str, bytes]) -> None:
    """The folder holds the generated files and no others."""
    assert {path.name for path in COMPILED.iterdir()} == set(generated)


def test_programs_name_exactly_the_statements_there_are() -> None:
    """No program asks for a statement that does not exist, and none is compiled for nobody."""
    asked = {name for module in (*MODULES, batches) for name in named_in(module)}
    written = {name for name, _ in expressions(NOUNS + POSTGRESQL)}
    assert len(written) > 60
    assert asked == written


@pytest.mark.parametrize("target", [Target.sqlite(), Target.postgresql()])
def test_every_statement_says_whether_it_has_rows(target: Target) -> None:
    """A query that forgot to say so would lose its answer; a change that says so would have none."""
    for name, expression in expressions(target.nouns):
        compiled = target.compile(expression)
        query = compiled.sql.lstrip().upper().startswith(("SELECT", "WITH"))
        assert compiled.rows is query, name
        assert query or "RETURNING" not in compiled.sql, name


@pytest.mark.parametrize(
    ("statements", "nouns"), [(Statements.of_sqlite(), NOUNS), (Statements.of_postgresql(), NOUNS + POSTGRESQL)]
)
def test_every_parameter_has_a_name_and_a_place(statements: Statements, nouns: tuple[ModuleType, ...]) -> None:
    """As many marks in the SQL as names, and a constant only for a parameter that no program gives."""
    for name, _ in expressions(nouns):
        compiled = statements[name]
        marks = set(re.findall(r"\$\d+", compiled.sql)) or re.findall(r"\?", compiled.sql)
        assert len(marks) == len(compiled.names), name
        assert set(compiled.constants) <= set(compiled.names), name
        assert {n for n in compiled.names if n.startswith("param_")} <= set(compiled.constants), name


def test_a_value_in_an_expression_becomes_a_constant() -> None:
    """It is bound with every call, and a program cannot override it."""
    source = select(tabular.c.uuid).where(tabular.c.kind == "view", tabular.c.name == param("name"))
    compiled = Target.sqlite().compile(source)
    assert compiled.names == ("kind_1", "name")
    assert compiled.constants == {"kind_1": "view"}
    statements = Statements({"one": compiled}, no_limit=-1)
    assert statements.bind(Statement("one"), {"name": "n", "kind_1": "table"})[1] == ("view", "n")


def everything(path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
        revisions = connection.execute("SELECT * FROM alembic_version")
        sequences = connection.execute("SELECT * FROM sqlite_sequence")
        return objects.fetchall(), revisions.fetchall(), sequences.fetchall()


def test_the_script_makes_exactly_what_the_migrations_make(tmp_path: Path) -> None:
    """Every table, index and automatic index, letter by letter, and the revision."""
    scripted, migrated = tmp_path / "scripted.db", tmp_path / "migrated.db"
    migrate(f"sqlite:///{scripted}")
    create_file(migrated)
    migrate_sqlite(migrated, "head")
    assert everything(scripted) == everything(migrated)
