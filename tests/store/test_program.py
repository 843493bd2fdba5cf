"""Statements compiled for both dialects, and the programs that carry operations out."""

from __future__ import annotations

from types import ModuleType

import pytest

from app.ports import Tabular, UpdatePurgeJob, WriteOp
from app.store import (
    journals,
    keys,
    namespaces,
    observations,
    overlaps,
    policies,
    purges,
    standings,
    tabulars,
    units,
    waivers,
    warehouses,
)
from app.store.program import DONE, Call, Lock, Statements
from tests.store.acts import COLUMNS, NOW, drop, make, purge_job, space, swap

MODULES: tuple[ModuleType, ...] = (
    journals, keys, namespaces, observations, overlaps, policies, purges, standings, tabulars, waivers,
    warehouses,
)  # fmt: skip


def table(tabular_id: int) -> Tabular:
    return Tabular(
        tabular_id=tabular_id, warehouse="w", namespace=("n",), name="t", kind="table", uuid="u", location="/x",
        metadata_location="m", version=1, columns=COLUMNS, created_at_ms=NOW, updated_at_ms=NOW,
    )  # fmt: skip


def test_parameters_are_bound_in_the_order_of_the_dialect() -> None:
    """SQLite repeats a value for each mark; PostgreSQL numbers it once."""
    params = {"warehouse": "w", "path": "p", "parent": None}
    _, args = Statements.of_sqlite().bind(namespaces._BEFORE_CREATE, params)
    assert args == ("w", "p", "w", None, "w")
    _, args = Statements.of_postgresql().bind(namespaces._BEFORE_CREATE, params)
    assert args == ("w", "p", None)


def test_no_limit_is_spelled_per_dialect() -> None:
    """SQLite takes -1 for all rows, PostgreSQL null."""
    params = {"warehouse": "w", "path": "p", "kind": "table", "after": ""}
    for statements, spelled in ((Statements.of_sqlite(), -1), (Statements.of_postgresql(), None)):
        compiled, args = statements.bind(tabulars.NAMES, {**params, "limit": None})
        assert args[compiled.names.index("limit")] == spelled
        compiled, args = statements.bind(tabulars.NAMES, {**params, "limit": 3})
        assert args[compiled.names.index("limit")] == 3


def test_a_missing_parameter_is_a_fault() -> None:
    """It is not silently null."""
    for statements in (Statements.of_sqlite(), Statements.of_postgresql()):
        with pytest.raises(KeyError):
            statements.bind(warehouses.ONE, {})


def test_swaps_of_a_unit_are_sorted_in_their_own_places() -> None:
    """Rows are locked in one order by everybody; other operations stay where they are."""
    unit: list[WriteOp] = [swap(table(3), "a"), space("x"), swap(table(1), "b"), drop(table(9)), swap(table(2), "c")]
    ordered = units.ordered(unit)
    assert [getattr(op, "tabular_id", None) for op in ordered] == [1, None, 2, 9, 3]
    assert sorted(map(repr, ordered)) == sorted(map(repr, unit))


@pytest.mark.parametrize(
    "op",
    [
        make("t"),
        make("t", exclusive=False, registered=True),
        swap(table(1), "a", roots=(), registered=True),
        purge_job("t", at="/w/t"),
        UpdatePurgeJob(job_id=1, progress=b"", attempts=0, last_error=None, places=("/w/t",)),
    ],
)
def test_the_location_lock_comes_before_any_row(op: WriteOp) -> None:
    """Once, for whatever claims places or files, and for whatever is about to delete some."""
    program = units.apply([drop(table(9)), op, make("t", warehouse="z")])
    assert isinstance(next(program), Lock)
    step = program.send(DONE)
    assert isinstance(step, Call) and step.statement == "tabulars.IDENTITY"
    program.close()


@pytest.mark.parametrize("op", [make("t", exclusive=False), swap(table(1), "a"), drop(table(9))])
def test_what_claims_nothing_takes_no_lock(op: WriteOp) -> None:
    """Commits of different tables never wait for each other."""
    program = units.apply([op])
    assert isinstance(next(program), Call)
    program.close()
