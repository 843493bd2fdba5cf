"""Loading tables: the request that every query of every engine waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from app.catalog import content_encoding, etags, places, warehouses
from app.catalog.config import client_config
from app.catalog.contention import Peer
from app.catalog.context import Caller, Context
from app.catalog.results import LoadedTable, NotModified
from app.errors import BadRequest, NotFound, ObjectMissing
from app.ports import Levels, Pointer, Warehouse

# A pointer that moves and a trimmed file between the two reads of a load: more than twice in a row means it is gone.
_ATTEMPTS = 3


class _Seen(NamedTuple):
    """What follows from warehouse and file alone: what the client is told, the tag, whether it has that already."""

    home: Warehouse
    file: str
    config: Mapping[str, str]
    tag: str
    unmodified: NotModified | None


class TableLoad:
    """One understood loadTable request; `answer` may be awaited as often as the request comes.

    The table is given in full (`snapshots` "all") or with referenced snapshots only ("refs"); as gzip when it is large
    and the client takes that. BadRequest for another `snapshots`.
    """

    __slots__ = (
        "_caller",
        "_ctx",
        "_gzip",
        "_if_none_match",
        "_levels",
        "_name",
        "_seen",
        "_snapshots",
        "_warehouse",
    )

    def __init__(
        self,
        ctx: Context,
        caller: Caller,
        warehouse: str,
        levels: Levels,
        name: str,
        *,
        snapshots: str = etags.ALL,
        if_none_match: str | None = None,
        gzip: bool = False,
    ) -> None:
        if snapshots not in (etags.ALL, etags.REFS):
            raise BadRequest(f"Invalid snapshots: {snapshots} (use all or refs)")
        self._ctx = ctx
        self._caller = caller
        self._warehouse = warehouse
        self._levels = levels
        self._name = name
        self._snapshots = snapshots
        self._if_none_match = if_none_match
        self._gzip = gzip
        self._seen: _Seen | None = None

    async def answer(self, peer: Peer | None = None) -> LoadedTable | NotModified:
        """The table as its pointer names it now, for the connection of `peer`.

        NoSuchTable, also for a missing namespace; NotFound when the metadata file has vanished. NotModified is answered
        without reading the document.
        """
        ctx, caller = self._ctx, self._caller
        home = warehouses.held_warehouse(ctx, self._warehouse) or await warehouses.fresh_warehouse(ctx, self._warehouse)
        if ctx.caches.turns:
            await ctx.caches.turns.take((home.name, self._levels, self._name), peer)
        pointer = await places.table_pointer(ctx, home, self._levels, self._name)
        for _ in range(_ATTEMPTS):
            try:
                answer = await self._load(home, pointer)
            except NotFound:
                newer = await places.table_pointer(ctx, home, self._levels, self._name)
                if newer.metadata_location == pointer.metadata_location:
                    raise
                pointer = newer
                continue
            ctx.caches.observations.saw(pointer.uuid, caller.client, caller.client_version, "load", ctx.clock.now_ms())
            return answer
        raise NotFound(ObjectMissing(pointer.metadata_location).message)

    async def _load(self, home: Warehouse, pointer: Pointer) -> LoadedTable | NotModified:
        ctx, file = self._ctx, pointer.metadata_location
        objects = ctx.objects.of(home)
        if objects.vanished(file):
            ctx.caches.documents.forget(file)
            raise NotFound(ObjectMissing(file).message, location=file)
        # Kept for the next request, but read once: another one may put its own in place while this one waits.
        seen = self._seen
        if seen is None or file != seen.file or home is not seen.home:
            seen = self._seen = self._look(home, file)
        if seen.unmodified is not None:
            return seen.unmodified
        documents, limit = ctx.caches.documents, ctx.limits.document_bytes
        document = documents.held_table(file, pointer.uuid)
        if document is None:
            document = await documents.table(objects, file, limit, uuid=pointer.uuid)
        ready = document.ready.get(seen.tag)
        if ready is None:
            data = document.text
            if self._snapshots == etags.REFS:
                data = await documents.refs_only(objects, file, limit, uuid=pointer.uuid)
            ready = LoadedTable(file, data, seen.config, seen.tag)
            documents.keep_ready(file, document, ready)
        if self._gzip and content_encoding.is_large(ready):
            packed = document.ready.get(etags.of_gzip(seen.tag))
            if packed is None:
                packed = await content_encoding.loaded(ctx, ready)
                documents.keep_ready(file, document, packed)
            return packed
        return ready

    def _look(self, home: Warehouse, file: str) -> _Seen:
        before = self._seen
        config = before.config if before is not None and before.home is home else client_config(home)
        tag = etags.etag(file, self._snapshots, config)
        held = etags.matched(self._if_none_match, tag)
        return _Seen(home, file, config, tag, None if held is None else NotModified(held))
