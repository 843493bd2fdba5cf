"""A unit of work as one program: its operations in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from app.ports import (
    AddPurgeJob,
    AddWaiver,
    AppendJournal,
    CreateNamespace,
    CreateTabular,
    DropNamespace,
    DropTabular,
    DropWarehouse,
    FinishPurgeJob,
    PutWarehouse,
    RecordKey,
    RenameTabular,
    RevokeWaiver,
    SetPolicy,
    SwapTabular,
    UpdateNamespace,
    UpdatePurgeJob,
    UseWaiver,
    WriteOp,
)
from app.store import journals, keys, namespaces, policies, purges, tabulars, waivers, warehouses
from app.store.program import Lock, Program

_PROGRAMS: Final[dict[type, Callable[[Any], Program[None]]]] = {
    CreateNamespace: namespaces.create,
    UpdateNamespace: namespaces.update_properties,
    DropNamespace: namespaces.drop,
    CreateTabular: tabulars.create,
    SwapTabular: tabulars.swap,
    DropTabular: tabulars.drop,
    RenameTabular: tabulars.rename,
    AddPurgeJob: purges.add,
    UpdatePurgeJob: purges.update_progress,
    FinishPurgeJob: purges.finish,
    AppendJournal: journals.append,
    RecordKey: keys.record,
    SetPolicy: policies.put,
    AddWaiver: waivers.add,
    RevokeWaiver: waivers.revoke,
    UseWaiver: waivers.use,
    PutWarehouse: warehouses.put,
    DropWarehouse: warehouses.drop,
}


def ordered(unit: Sequence[WriteOp]) -> list[WriteOp]:
    """The unit with its swaps in the order of their rows, everything else in its place.

    Two commits that touch the same tables then lock them in the same order and cannot deadlock.
    """
    swaps = iter(sorted((op for op in unit if isinstance(op, SwapTabular)), key=lambda op: op.tabular_id))
    return [next(swaps) if isinstance(op, SwapTabular) else op for op in unit]


def _claims(op: WriteOp) -> bool:
    if isinstance(op, CreateTabular):
        return op.exclusive_location or op.registered
    if isinstance(op, SwapTabular):
        return op.registered
    return isinstance(op, AddPurgeJob) or (isinstance(op, UpdatePurgeJob) and bool(op.places))


def apply(unit: Sequence[WriteOp]) -> Program[None]:
    """Run all operations. The location lock comes first, before any row is locked.

    With purge jobs under it too, whoever claims old files and whoever is about to delete them see each other.
    """
    if any(_claims(op) for op in unit):
        yield Lock()
    for op in ordered(unit):
        yield from _PROGRAMS[type(op)](op)
