"""What PostgreSQL does for many callers in one statement: read pointers and rows, and swap.

A commit of one table whose unit is a swap with journal entries, and perhaps an idempotency key, is one statement that
is its own transaction. Swaps of different tables share one; each of them happens or not whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from app.ports import AppendJournal, Pointer, RecordKey, SwapTabular, Tabular, WriteOp
from app.store import journals, keys
from app.store.program import Params, Row, Statement
from app.store.tabulars import SWAP, swap_params, tabular_of

WAREHOUSES: Final = Statement("batches.WAREHOUSES")
POINTERS: Final = Statement("batches.POINTERS")
TABULARS: Final = Statement("batches.TABULARS")
SWAPS: Final = Statement("batches.SWAPS")
NOTED_SWAPS: Final = Statement("batches.NOTED_SWAPS")
NOTED_SWAP: Final = Statement("batches.NOTED_SWAP")
KEYED_SWAP: Final = Statement("batches.KEYED_SWAP")

Place = tuple[str, str, str]
"""Warehouse, path and name of a table or view."""


class LoneSwap:
    """A unit that swaps one table and keeps its roots. Two of them are never the same."""

    __slots__ = ("entries", "op", "record")

    def __init__(self, op: SwapTabular, entries: Sequence[AppendJournal], record: RecordKey | None) -> None:
        self.op = op
        self.entries = entries
        self.record = record

    @classmethod
    def of(cls, unit: Sequence[WriteOp]) -> LoneSwap | None:
        """The unit as a lone swap; None if it is more than that."""
        swaps = [op for op in unit if isinstance(op, SwapTabular)]
        records = [op for op in unit if isinstance(op, RecordKey)]
        entries = [op for op in unit if isinstance(op, AppendJournal)]
        if len(swaps) != 1 or swaps[0].roots is not None or len(records) > 1:
            return None
        if len(swaps) + len(records) + len(entries) != len(unit):
            return None
        return cls(swaps[0], entries, records[0] if records else None)


def places(asked: Iterable[Place]) -> Params:
    warehouses, paths, names = zip(*asked, strict=True)
    return {"warehouses": warehouses, "paths": paths, "names": names}


def pointers_at(asked: Sequence[Place], rows: Iterable[Row]) -> Mapping[Place, Pointer]:
    return {asked[row[0] - 1]: Pointer(*row[1:]) for row in rows}


def tabulars_at(asked: Sequence[Place], rows: Iterable[Row]) -> Mapping[Place, Tabular]:
    return {asked[row[0] - 1]: tabular_of(row[1:]) for row in rows}


def call_of(swaps: Sequence[LoneSwap]) -> tuple[Statement, Params]:
    """The statement that makes all these swaps, or the one with a key. Rows are the ordinals, from 1, of those made;
    SWAP alone has none and tells how many."""
    notes = _notes(swaps)
    members = [swap_params(swap.op) for swap in swaps]
    if len(swaps) > 1:
        lists = {name: _texts(member[name] for member in members) for name in members[0]}
        return (NOTED_SWAPS, {**lists, **notes}) if notes["note_swap"] else (SWAPS, lists)
    (only,) = swaps
    if only.record is not None:
        return KEYED_SWAP, {**members[0], **notes, **keys.record_params(only.record)}
    return (NOTED_SWAP, {**members[0], **notes}) if only.entries else (SWAP, members[0])


def _notes(swaps: Sequence[LoneSwap]) -> dict[str, Any]:
    noted = [(at, journals.entry_params(op)) for at, swap in enumerate(swaps, 1) for op in swap.entries]
    lists = {f"note_{name}": _texts(entry[name] for _, entry in noted) for name in journals.ENTRY}
    return {"note_swap": _texts(at for at, _ in noted), **lists}


def _texts(values: Iterable[object]) -> list[str | None]:
    """As lists are handed over, whatever they are lists of."""
    return [None if value is None else str(value) for value in values]
