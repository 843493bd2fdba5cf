"""Statements compiled for both dialects, and the programs that carry operations out."""

from __future__ import annotations

from types import ModuleType

import pytest
from sqlalchemy import select

from app.ports import Tabular, WriteOp
from app.store import (
    journals,
    keys,
    namespaces,
    observations,
    policies,
    purges,
    tabulars,
    units,
    waivers,
    warehouses,
)
from app.store.program import Compiler, Lock, Statement, param
from app.store.schema import tabular, warehouse
from tests.store.acts import COLUMNS, NOW, drop, make, space, swap

MODULES: tuple[ModuleType, ...] = (
    journals, keys, namespaces, observations, policies, purges, tabulars, waivers, warehouses,
)  # fmt: skip


def statements() -> list[tuple[str, Statement]]:
    found = []
    for module in MODULES:
        for name, value in vars(module).items():
            some = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
            found += [(f"{module.__name__}.{name}", each) for each in some if isinstance(each, Statement)]
    return found


@pytest.mark.parametrize("compiler", [Compiler.for_sqlite(), Compiler.for_postgresql()])
def test_every_statement_compiles_and_says_whether_it_has_rows(compiler: Compiler) -> None:
    """A query that forgot to say so would lose its answer; a change that says so would have none."""
    assert len(statements()) > 50
    for name, statement in statements():
        compiled = compiler._compile(statement)
        assert compiled.rows is compiled.sql.lstrip().upper().startswith("SELECT"), name
        assert "RETURNING" not in compiled.sql, name


def test_parameters_are_bound_in_the_order_of_the_dialect() -> None:
    """SQLite repeats a value for each mark; PostgreSQL numbers it once."""
    statement = Statement(
        select(warehouse.c.name).where(warehouse.c.name > param("b"), warehouse.c.location == param("a"),
                                       warehouse.c.name != param("b")),
        rows=True,
    )  # fmt: skip
    assert Compiler.for_sqlite().bind(statement, {"a": 1, "b": 2})[1] == (2, 1, 2)
    assert Compiler.for_postgresql().bind(statement, {"a": 1, "b": 2})[1] == (2, 1)


def test_no_limit_is_spelled_per_dialect() -> None:
    """SQLite takes -1 for all rows, PostgreSQL null."""
    statement = Statement(select(tabular.c.name).limit(param("limit")), rows=True)
    assert Compiler.for_sqlite().bind(statement, {"limit": None})[1][0] == -1
    assert Compiler.for_postgresql().bind(statement, {"limit": None})[1] == (None,)
    assert Compiler.for_postgresql().bind(statement, {"limit": 3})[1] == (3,)


def test_a_missing_parameter_is_a_fault() -> None:
    """It is not silently null."""
    statement = Statement(select(tabular.c.name).where(tabular.c.name == param("name")), rows=True)
    for compiler in (Compiler.for_sqlite(), Compiler.for_postgresql()):
        with pytest.raises(KeyError):
            compiler.bind(statement, {})


def table(tabular_id: int) -> Tabular:
    return Tabular(
        tabular_id=tabular_id, warehouse="w", namespace=("n",), name="t", kind="table", uuid="u", location="/x",
        metadata_location="m", version=1, columns=COLUMNS, created_at_ms=NOW, updated_at_ms=NOW,
    )  # fmt: skip


def test_swaps_of_a_unit_are_sorted_in_their_own_places() -> None:
    """Rows are locked in one order by everybody; other operations stay where they are."""
    unit: list[WriteOp] = [swap(table(3), "a"), space("x"), swap(table(1), "b"), drop(table(9)), swap(table(2), "c")]
    ordered = units.ordered(unit)
    assert [getattr(op, "tabular_id", None) for op in ordered] == [1, None, 2, 9, 3]
    assert sorted(map(repr, ordered)) == sorted(map(repr, unit))


def test_location_locks_come_before_any_row() -> None:
    """A unit that creates in two warehouses takes both locks first, in one order."""
    unit = [make("t", warehouse="z"), make("t", warehouse="a"), make("u", exclusive=False, warehouse="m")]
    program = units.apply(unit)
    assert next(program) == Lock("a")
    assert program.send(None) == Lock("z")  # type: ignore[arg-type]
    program.close()
