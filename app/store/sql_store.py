"""`ports.Store` over any driver that can run a query and a program: all reads, written once."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from app.errors import BadRequest, IcekeelError
from app.ports import (
    JournalEntry,
    KeyRecord,
    Kind,
    Levels,
    Namespace,
    Page,
    Pointer,
    PolicySetting,
    PurgeJob,
    PutWarehouse,
    Report,
    Sighting,
    Standing,
    Tabular,
    Warehouse,
    WriteOp,
)
from app.rules import Waiver
from app.store import (
    journals,
    keys,
    namespaces,
    observations,
    policies,
    purges,
    standings,
    tabulars,
    units,
    waivers,
    warehouses,
)
from app.store.overlaps import overlap_queries, overlapping_names
from app.store.paths import SEPARATOR, is_path, levels_of, location_key, look_up_path, storable
from app.store.program import Params, Program, Row, Statement
from app.store.secrets import Sealer, opened, sealed

log = logging.getLogger(__name__)

T = TypeVar("T")
Decoded = TypeVar("Decoded")


class SqlStore(ABC):
    """Reads and writes as statements and programs; the adapter brings connections, transactions and their failures."""

    sealer: Sealer | None = None
    """What hides the secrets of warehouses from whoever reads the database."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def ping(self) -> None: ...

    @abstractmethod
    async def fetch(self, statement: Statement, params: Params) -> Sequence[Row]:
        """One query outside of any transaction; Unavailable when the database does not answer."""

    @abstractmethod
    async def run(self, program: Callable[[], Program[T]]) -> T:
        """One program in one durable transaction. It may be started several times, so it is handed in as a factory."""

    async def write(self, unit: Sequence[WriteOp]) -> None:
        if unit:
            hidden = [sealed(op, self.sealer) if isinstance(op, PutWarehouse) else op for op in unit]
            await self.run(partial(units.apply, hidden))

    # --- warehouses and namespaces ---

    async def warehouse(self, name: str) -> Warehouse | None:
        if not storable(name):
            return None
        found = await self.warehouse_of(name)
        return None if found is None else opened(found, self.sealer)

    async def warehouse_of(self, name: str) -> Warehouse | None:
        """What `warehouse` reads, with its secrets sealed."""
        return _first(warehouses.warehouse_of, await self.fetch(warehouses.ONE, {"name": name}))

    async def warehouses(self) -> tuple[Warehouse, ...]:
        found = _all(warehouses.warehouse_of, await self.fetch(warehouses.ALL, {}))
        return tuple(opened(warehouse, self.sealer) for warehouse in found)

    async def namespace(self, warehouse: str, levels: Levels) -> Namespace | None:
        if not is_path(levels):
            return None
        params = {"warehouse": warehouse, "path": SEPARATOR.join(levels)}
        return _first(namespaces.namespace_of, await self.fetch(namespaces.ONE, params))

    async def namespaces(self, warehouse: str, parent: Levels, *, after: str | None, limit: int | None) -> Page[Levels]:
        params: dict[str, Any] = {"warehouse": warehouse, "limit": _one_more(limit)}
        prefix = ""
        if not parent:
            statement = namespaces.TOP_LEVEL
        elif is_path(parent):
            statement = namespaces.CHILDREN
            params["parent"] = SEPARATOR.join(parent)
            prefix = params["parent"] + SEPARATOR
        else:
            return Page(items=())
        params["after"] = prefix + _position(after)
        rows = await self.fetch(statement, params)
        paths, more = _cut(rows, limit)
        return Page(
            items=tuple(levels_of(path) for path in paths),
            after=paths[-1].removeprefix(prefix) if more else None,
        )

    # --- tables and views ---

    async def tabular(self, warehouse: str, namespace: Levels, name: str) -> Tabular | None:
        path = look_up_path(namespace)
        if path is None or not storable(name):
            return None
        return await self.tabular_at((warehouse, path, name))

    async def tabular_at(self, place: tuple[str, str, str]) -> Tabular | None:
        """What `tabular` reads, by warehouse, path and name."""
        return _first(
            tabulars.tabular_of, await self.fetch(tabulars.BY_NAME, dict(zip(tabulars.PLACE, place, strict=True)))
        )

    async def pointer(self, warehouse: str, namespace: Levels, name: str) -> Pointer | None:
        path = look_up_path(namespace)
        if path is None or not storable(name):
            return None
        return await self.pointer_at((warehouse, path, name))

    @abstractmethod
    async def pointer_at(self, place: tuple[str, str, str]) -> Pointer | None:
        """What `pointer` reads, by warehouse, path and name."""

    async def tabular_by_id(self, tabular_id: int) -> Tabular | None:
        return _first(tabulars.tabular_of, await self.fetch(tabulars.BY_ID, {"id": tabular_id}))

    async def tabulars(
        self, warehouse: str, namespace: Levels, kind: Kind, *, after: str | None, limit: int | None
    ) -> Page[str]:
        if not is_path(namespace):
            return Page(items=())
        rows = await self.fetch(
            tabulars.NAMES,
            {
                "warehouse": warehouse,
                "path": SEPARATOR.join(namespace),
                "kind": kind,
                "after": _position(after),
                "limit": _one_more(limit),
            },
        )
        names, more = _cut(rows, limit)
        return Page(items=tuple(names), after=names[-1] if more else None)

    async def standings(
        self,
        warehouse: str | None,
        namespace: Levels | None,
        by: Standing,
        *,
        after: tuple[int, int] | None,
        limit: int,
    ) -> tuple[Tabular, ...]:
        if namespace and not is_path(namespace):
            return ()
        statement, params = standings.query(warehouse, namespace, by, after, limit)
        return _all(tabulars.tabular_of, await self.fetch(statement, params))

    async def locations_overlapping(self, location: str, *, besides: int | None = None) -> tuple[str, ...]:
        rows: list[Row] = []
        for call in overlap_queries(location_key(location), besides):
            rows.extend(await self.fetch(call.statement, call.params))
        return overlapping_names(rows)

    # --- keys, jobs, journal ---

    async def key(self, warehouse: str, key: str, now_ms: int) -> KeyRecord | None:
        params = {"warehouse": warehouse, "key": keys.stored_key(key), "now_ms": now_ms}
        return _first(keys.key_of, await self.fetch(keys.ONE, params))

    async def expire_keys(self, now_ms: int) -> int:
        return await self.run(partial(keys.expire, now_ms))

    async def purge_jobs(self, limit: int) -> tuple[PurgeJob, ...]:
        return _all(purges.job_of, await self.fetch(purges.NEXT, {"limit": limit}))

    async def journal(
        self,
        *,
        table_uuid: str | None = None,
        warehouse: str | None = None,
        namespace: Levels | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> tuple[JournalEntry, ...]:
        statement, params = journals.query(table_uuid, warehouse, namespace, before_id, limit)
        return _all(journals.entry_of, await self.fetch(statement, params))

    # --- policy and waivers ---

    async def policy(self, warehouse: str, namespace: Levels, table_uuid: str | None) -> tuple[PolicySetting, ...]:
        found: list[PolicySetting] = []
        for params in policies.scope_queries(warehouse, namespace, table_uuid):
            found.extend(map(policies.setting_of, await self.fetch(policies.IN_SCOPES, params)))
        return policies.nearest_last(found)

    async def waivers(self, table_uuid: str) -> tuple[Waiver, ...]:
        return _all(waivers.waiver_of, await self.fetch(waivers.OF_TABLE, {"table_uuid": table_uuid}))

    # --- observations ---

    async def note(self, sightings: Sequence[Sighting], reports: Sequence[Report]) -> None:
        if not (sightings or reports):
            return
        try:
            await self.run(partial(observations.note, tuple(sightings), tuple(reports)))
        except IcekeelError as error:
            log.warning("observations of %d clients were not kept: %s", len(sightings) + len(reports), error.message)

    async def sightings(self, table_uuid: str) -> tuple[Sighting, ...]:
        return _all(observations.sighting_of, await self.fetch(observations.SIGHTINGS, {"table_uuid": table_uuid}))

    async def reports(self, table_uuid: str) -> tuple[Report, ...]:
        return _all(observations.report_of, await self.fetch(observations.REPORTS, {"table_uuid": table_uuid}))


def _first(decode: Callable[[Row], Decoded], rows: Sequence[Row]) -> Decoded | None:
    return decode(rows[0]) if rows else None


def _all(decode: Callable[[Row], Decoded], rows: Iterable[Row]) -> tuple[Decoded, ...]:
    return tuple(map(decode, rows))


def _position(after: str | None) -> str:
    if after is None:
        return ""
    if not storable(after):
        raise BadRequest("Invalid page token")
    return after


def _one_more(limit: int | None) -> int | None:
    """One row beyond the page tells whether there is a next one."""
    return None if limit is None else limit + 1


def _cut(rows: Sequence[Row], limit: int | None) -> tuple[list[str], bool]:
    values = [row[0] for row in rows]
    if limit is None or len(values) <= limit:
        return values, False
    return values[:limit], True
