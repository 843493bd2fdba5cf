"""Which storage a warehouse uses: chosen by the scheme of each location, with the options of the warehouse."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from app.objects.local import LocalObjects
from app.objects.options import check_options
from app.ports import Folder, Objects, ObjectStat, Warehouse
from app.spec.endpoint import origin
from app.spec.location import is_local, local_path

_THREADS: Final = 16


class WarehouseObjects:
    """`ports.ObjectStores`. `allowed_locations` are the ones that every warehouse may use beside its own,
    `allowed_endpoints` the ones that may lie anywhere and are sent the credentials of the server's environment.

    One pool of threads serves all local files, so that a stalled disk holds up files and nothing else.
    """

    def __init__(self, allowed_locations: Iterable[str] = (), allowed_endpoints: Iterable[str] = ()) -> None:
        self._allowed = tuple(allowed_locations)
        self._endpoints = frozenset(origin(endpoint) for endpoint in allowed_endpoints)
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="icekeel-files")
        self._opened: dict[str, tuple[Warehouse, RoutedObjects]] = {}

    def of(self, warehouse: Warehouse) -> RoutedObjects:
        """BadRequest when the storage options make no sense, Forbidden when they lead where nobody allowed; nothing is
        contacted yet.

        Objects are kept per warehouse until its record differs.
        """
        known = self._opened.get(warehouse.name)
        if known is not None and (known[0] is warehouse or known[0] == warehouse):
            return known[1]
        places = (warehouse.location, *warehouse.allowed_locations, *self._allowed)
        roots = tuple(local_path(place) for place in places if is_local(place))
        objects = RoutedObjects(
            LocalObjects(
                roots, self._executor, local_path(warehouse.location) if is_local(warehouse.location) else None
            ),
            {**warehouse.storage, **warehouse.secrets},
            self._endpoints,
            local=is_local(warehouse.location),
        )
        self._opened[warehouse.name] = (warehouse, objects)
        return objects

    async def close(self) -> None:
        """Waits for files that are being written."""
        self._opened.clear()
        await asyncio.to_thread(self._executor.shutdown)


class RoutedObjects:
    """`ports.Objects` of one warehouse: disk for `file:` and bare paths, cloud clients for the rest.

    BadRequest and Forbidden as `check_options`.
    """

    def __init__(
        self, disk: LocalObjects, options: Mapping[str, str], allowed_endpoints: Collection[str], *, local: bool
    ) -> None:
        check_options(options, allowed_endpoints)
        self._disk = disk
        self._options = options
        self._cloud: Objects | None = None
        self.local = local

    def _of(self, location: str) -> Objects:
        if is_local(location):
            return self._disk
        if self._cloud is None:
            self._cloud = _remote_objects(self._options)
        return self._cloud

    async def read(self, location: str, *, limit: int | None = None) -> bytes:
        return await self._of(location).read(location, limit=limit)

    async def read_range(self, location: str, start: int, length: int) -> bytes:
        return await self._of(location).read_range(location, start, length)

    async def stat(self, location: str) -> ObjectStat | None:
        return await self._of(location).stat(location)

    def vanished(self, location: str) -> bool:
        return self._of(location).vanished(location)

    async def create(self, location: str, data: bytes) -> None:
        await self._of(location).create(location, data)

    async def delete(self, location: str) -> None:
        await self._of(location).delete(location)

    def list(self, prefix: str) -> AsyncIterator[ObjectStat]:
        return self._of(prefix).list(prefix)

    async def look(self, location: str) -> Folder:
        return await self._of(location).look(location)

    async def prepare(self, location: str) -> None:
        await self._of(location).prepare(location)

    async def remove_empty_folders(self, location: str) -> None:
        await self._of(location).remove_empty_folders(location)

    async def resolved(self, location: str) -> str:
        return await self._of(location).resolved(location)

    async def establish(self, location: str) -> None:
        await self._of(location).establish(location)

    async def check_root(self, location: str) -> None:
        await self._of(location).check_root(location)


def _remote_objects(options: Mapping[str, str]) -> Objects:
    # The library of its clients costs a server on local files 5 MB.
    made: Objects = importlib.import_module("app.objects.remote").RemoteObjects(options)
    return made
