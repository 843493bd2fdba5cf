"""Statements as each driver gets them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from app.store import batches
from app.store.schema import tabular
from app.store.statements import Statement, Statements, param
from tests.store.test_program import MODULES


def stated(*, postgresql: bool) -> Iterator[tuple[str, Statement]]:
    """Every statement of the programs, by module and name."""
    for module in (*MODULES, batches) if postgresql else MODULES:
        for name, value in vars(module).items():
            some = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
            yield from ((f"{module.__name__}.{name}", each) for each in some if isinstance(each, Statement))


TARGETS = [(Statements.of_sqlite(), False), (Statements.of_postgresql(), True)]


@pytest.mark.parametrize(("statements", "postgresql"), TARGETS)
def test_every_statement_says_whether_it_has_rows(statements: Statements, postgresql: bool) -> None:
    """A query that forgot to say so would lose its answer; a change that says so would have none."""
    found = list(stated(postgresql=postgresql))
    assert len(found) > 60
    for name, statement in found:
        compiled = statements[statement]
        query = compiled.sql.lstrip().upper().startswith(("SELECT", "WITH"))
        assert compiled.rows is query, name
        assert query or "RETURNING" not in compiled.sql, name


@pytest.mark.parametrize(("statements", "postgresql"), TARGETS)
def test_every_parameter_has_a_name_and_a_place(statements: Statements, postgresql: bool) -> None:
    """As many marks in the SQL as names, and a constant only for a parameter that no program gives."""
    for name, statement in stated(postgresql=postgresql):
        compiled = statements[statement]
        marks = set(re.findall(r"\$\d+", compiled.sql)) or re.findall(r"\?", compiled.sql)
        assert len(marks) == len(compiled.names), name
        assert set(compiled.constants) <= set(compiled.names), name
        assert {n for n in compiled.names if n.startswith("param_")} <= set(compiled.constants), name


def test_a_value_in_an_expression_becomes_a_constant() -> None:
    """It is bound with every call, and a program cannot override it."""
    statement = Statement(select(tabular.c.uuid).where(tabular.c.kind == "view", tabular.c.name == param("name")))
    statements = Statements.of_sqlite()
    assert statements[statement].names == ("kind_1", "name")
    assert statements.bind(statement, {"name": "n", "kind_1": "table"})[1] == ("view", "n")


def test_a_statement_is_compiled_once() -> None:
    """Whoever runs it next finds it ready."""
    statements = Statements.of_postgresql()
    assert statements[batches.POINTERS] is statements[batches.POINTERS]
