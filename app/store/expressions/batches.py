"""Many reads or swaps in one statement, on PostgreSQL alone: each parameter is a list, with one entry for each member.

An answer names the members it is about by their ordinals, which count from one.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Integer, Text, cast, column, func, literal_column, select, types, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.expression import CTE, Select, TableValuedAlias
from sqlalchemy.types import TypeEngine

from app.store.expressions import keys, tabulars, warehouses
from app.store.expressions.params import param
from app.store.expressions.tabulars import COLUMNS, JOINED
from app.store.schema import idempotency_key, journal, namespace, tabular, warehouse

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


WAREHOUSES: Final = select(*warehouses.COLUMNS).where(
    warehouse.c.name == func.any(cast(param("names"), types.ARRAY(Text)))
)
POINTERS: Final = _each(tabular.c.tabular_id, tabular.c.kind, tabular.c.uuid, tabular.c.metadata_location)
TABULARS: Final = _each(*COLUMNS)

_SWAPS: Final[Columns] = {
    "id": BigInteger(),
    "expected": Text(),
    "metadata_location": Text(),
    "uuid": Text(),
    "location": Text(),
    "format_version": Integer(),
    "last_column_id": Integer(),
    "current_schema_id": Integer(),
    "field_count": Integer(),
    "schema_count": Integer(),
    "schema_changed_at_ms": BigInteger(),
    "now_ms": BigInteger(),
}
_MOVED = (
    "metadata_location",
    "format_version",
    "last_column_id",
    "current_schema_id",
    "field_count",
    "schema_count",
    "schema_changed_at_ms",
)

_swap = _listed("swap", _SWAPS)
# A row that somebody else has locked is passed over, so that no member waits for another's table and none deadlocks.
_locked = (
    select(tabular.c.tabular_id)
    .where(
        tabular.c.tabular_id == _swap.c.id,
        tabular.c.metadata_location == _swap.c.expected,
        tabular.c.uuid == _swap.c.uuid,
        tabular.c.location == _swap.c.location,
    )
    .with_for_update(key_share=True, skip_locked=True)
    .lateral("locked")
)
_held = (
    select(_locked.c.tabular_id, _swap.c.ordinal, _swap.c.now_ms, *(_swap.c[name] for name in _MOVED))
    .select_from(_swap.join(_locked, literal_column("true")))
    .cte("held")
)
_swapped = (
    update(tabular)
    .where(tabular.c.tabular_id == _held.c.tabular_id)
    .values(
        **{name: _held.c[name] for name in _MOVED},
        version=tabular.c.version + literal_column("1"),
        updated_at_ms=_held.c.now_ms,
    )
    .returning(_held.c.ordinal)
    .cte("swapped")
)
SWAPS: Final = select(_swapped.c.ordinal)
"""The swaps of commits that keep UUID and location, each on its own. Those that the answer does not name did nothing:
their row has moved on, is gone, or was locked."""

_JOURNAL: Final[Columns] = {
    "at_ms": BigInteger(),
    "warehouse": Text(),
    "path": Text(),
    "table_uuid": Text(),
    "payload": Text(),
}
_note = _listed("note", {"swap": BigInteger(), **_JOURNAL}, "note_")


def _noted(swapped: CTE, of_its_swap: Any) -> CTE:
    """The journal entries of swaps that were made, in the order they are given."""
    entries = select(*(_note.c[name] for name in _JOURNAL)).select_from(_note.join(swapped, of_its_swap))
    stored = ["namespace_path" if name == "path" else name for name in _JOURNAL]
    return insert(journal).inline().from_select(stored, entries.order_by(_note.c.ordinal)).cte("noted")


NOTED_SWAPS: Final = SWAPS.add_cte(_noted(_swapped, _note.c.swap == _swapped.c.ordinal))
"""SWAPS with journal entries: each names the ordinal of its swap, and is written only with it."""

_one = tabulars.SWAP.returning(tabular.c.tabular_id).cte("swapped")
_noted_of_one = _noted(_one, literal_column("true"))
NOTED_SWAP: Final[Select[Any]] = select(literal_column("1")).select_from(_one).add_cte(_noted_of_one)
"""One swap with its journal entries: half the work of NOTED_SWAPS with one member. It waits for the row."""

_typed_record = select(*(cast(value, idempotency_key.c[name].type) for name, value in keys.record_values.items()))
_recorded = (
    keys.over_expired(
        insert(idempotency_key).inline().from_select(list(keys.record_values), _typed_record.select_from(_one))
    )
    .returning(idempotency_key.c.key)
    .cte("recorded")
)
KEYED_SWAP: Final = (
    select(literal_column("1").op("/")(select(func.count()).select_from(_recorded).scalar_subquery()))
    .select_from(_one)
    .add_cte(_noted_of_one)
)
"""One swap with its journal entries and its idempotency key. A key in use divides by zero, and so undoes all."""
