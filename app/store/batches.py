"""What PostgreSQL does in one statement: reads for many callers, and a whole commit of one table.

A unit that is a swap with journal entries, and perhaps an idempotency key, is one statement that is its own
transaction: one round trip instead of four. Many reads share one; each parameter is a list, with one entry for each
reader, and an answer names the readers it is about by their ordinals, which count from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, Text, cast, column, func, literal_column, select, types
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.expression import Select, TableValuedAlias
from sqlalchemy.types import TypeEngine

from app.ports import AppendJournal, Pointer, RecordKey, SwapTabular, Tabular, WriteOp
from app.store import journals, keys, tabulars, warehouses
from app.store.program import Row
from app.store.schema import idempotency_key, journal, namespace, tabular, warehouse
from app.store.statements import Params, Statement, param
from app.store.tabulars import COLUMNS, JOINED, POINTER_COLUMNS, SWAP, swap_params, tabular_of

Columns = dict[str, TypeEngine[Any]]


def _list(values: Any, kind: TypeEngine[Any]) -> Any:
    texts = cast(values, types.ARRAY(Text))
    return texts if isinstance(kind, Text) else cast(texts, types.ARRAY(kind))


def _listed(name: str, columns: Columns, prefix: str = "") -> TableValuedAlias:
    """The lists side by side as rows, with their ordinal.

    Every list comes as text: lists of numbers would make the driver look their type up first on each new connection,
    and change a session setting while it does.
    """
    lists = [_list(param(prefix + each), kind) for each, kind in columns.items()]
    typed = [column(each, kind) for each, kind in columns.items()]
    return func.unnest(*lists).table_valued(*typed, with_ordinality="ordinal").render_derived(name=name)


_ASKED = _listed("asked", {"warehouses": Text(), "paths": Text(), "names": Text()})


def _each(*columns: Any) -> Select[Any]:
    """One look-up for each member, by index: with OFFSET the planner cannot turn it into a join of whole tables."""
    found = (
        select(*columns)
        .select_from(JOINED)
        .where(
            namespace.c.warehouse == _ASKED.c.warehouses,
            namespace.c.path == _ASKED.c.paths,
            tabular.c.name == _ASKED.c.names,
        )
        .offset(literal_column("0"))
        .lateral("found")
    )
    return select(_ASKED.c.ordinal, *found.c).select_from(_ASKED.join(found, literal_column("true")))


WAREHOUSES: Final = Statement(
    select(*warehouses.COLUMNS).where(warehouse.c.name == func.any(cast(param("names"), types.ARRAY(Text))))
)
POINTERS: Final = Statement(_each(*POINTER_COLUMNS))
TABULARS: Final = Statement(_each(*COLUMNS))
_JOURNAL: Final[Columns] = {
    "at_ms": BigInteger(),
    "warehouse": Text(),
    "path": Text(),
    "table_uuid": Text(),
    "payload": Text(),
}
_note = _listed("note", _JOURNAL, "note_")


_one = tabulars.swap_in_place.returning(tabular.c.tabular_id).cte("swapped")
_stored = ["namespace_path" if name == "path" else name for name in _JOURNAL]
_entries = select(*(_note.c[name] for name in _JOURNAL)).select_from(_note.join(_one, literal_column("true")))
# In the order they are given, and only with the swap.
_noted = insert(journal).inline().from_select(_stored, _entries.order_by(_note.c.ordinal)).cte("noted")
NOTED_SWAP: Final = Statement(select(literal_column("1")).select_from(_one).add_cte(_noted))
"""A swap with its journal entries."""
_typed_record = select(*(cast(value, idempotency_key.c[name].type) for name, value in keys.record_values.items()))
_recorded = (
    keys.over_expired(
        insert(idempotency_key).inline().from_select(list(keys.record_values), _typed_record.select_from(_one))
    )
    .returning(idempotency_key.c.key)
    .cte("recorded")
)
KEYED_SWAP: Final = Statement(
    select(literal_column("1").op("/")(select(func.count()).select_from(_recorded).scalar_subquery()))
    .select_from(_one)
    .add_cte(_noted)
)
"""A swap with its journal entries and its idempotency key. A key in use divides by zero, and so undoes all."""


Place = tuple[str, str, str]
"""Warehouse, path and name of a table or view."""


def places(asked: Iterable[Place]) -> Params:
    warehouses, paths, names = zip(*asked, strict=True)
    return {"warehouses": warehouses, "paths": paths, "names": names}


def pointers_at(asked: Sequence[Place], rows: Iterable[Row]) -> Mapping[Place, Pointer]:
    return {asked[row[0] - 1]: Pointer(*row[1:]) for row in rows}


def tabulars_at(asked: Sequence[Place], rows: Iterable[Row]) -> Mapping[Place, Tabular]:
    return {asked[row[0] - 1]: tabular_of(row[1:]) for row in rows}


def one_trip(unit: Sequence[WriteOp]) -> tuple[Statement, Params] | None:
    """The statement that carries out a unit which swaps one table and keeps its roots; None if the unit is more."""
    swaps = [op for op in unit if isinstance(op, SwapTabular)]
    records = [op for op in unit if isinstance(op, RecordKey)]
    entries = [op for op in unit if isinstance(op, AppendJournal)]
    if len(swaps) != 1 or swaps[0].roots is not None or len(records) > 1:
        return None
    if len(swaps) + len(records) + len(entries) != len(unit):
        return None
    params = swap_params(swaps[0])
    if not (entries or records):
        return SWAP, params
    noted = [journals.entry_params(op) for op in entries]
    params = {**params, **{f"note_{name}": _texts(entry[name] for entry in noted) for name in journals.ENTRY}}
    return (KEYED_SWAP, {**params, **keys.record_params(records[0])}) if records else (NOTED_SWAP, params)


def _texts(values: Iterable[object]) -> list[str | None]:
    """As lists are handed over, whatever they are lists of."""
    return [None if value is None else str(value) for value in values]
