"""What every use case is handed: the world (`Context`), its limits, and who is asking (`Caller`)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from app.catalog.keyed_locks import KeyedLocks
from app.catalog.metadata_cache import MetadataCache
from app.catalog.tasks import Tasks
from app.catalog.usage import Usage
from app.ports import Clock, Ids, ObjectStores, Store, Tabular, Warehouse

ANONYMOUS = "anonymous"
DEFAULT_WAREHOUSE = "default"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds and policy of one server, as plain values. Times are milliseconds, sizes bytes.

    `allowed_locations` (the setting ICEKEEL_ALLOWED_LOCATIONS) are the prefixes that the server may touch beside each
    warehouse's own. `commit_attempts` counts lost swaps that are tried again before the client is told to do so.
    `queue_length` is how many commits may wait for one table before the next is turned away. `local_roots` are the
    folders of the server's disk in which warehouses may be made; None means anywhere. `callers_known` says that nobody
    comes this far without a token.
    """

    allowed_locations: tuple[str, ...] = ()
    local_roots: tuple[str, ...] | None = None
    callers_known: bool = True
    default_warehouse: str = DEFAULT_WAREHOUSE
    idempotency_lifetime_ms: int = 30 * 60_000
    idempotency_grace_ms: int = 5 * 60_000
    commit_attempts: int = 10
    retry_wait_ms: int = 20
    queue_length: int = 256
    document_bytes: int = 1 << 30
    warehouse_ttl_ms: int = 2_000
    page_size: int = 1_000
    page_size_max: int = 10_000
    report_bytes: int = 256 << 10
    purge_batch: int = 500
    waiver_lifetime_max_ms: int = 90 * 24 * 3_600_000


@dataclass(slots=True)
class Caches:
    """What one process remembers. Losing all of it costs time, never truth."""

    documents: MetadataCache = field(default_factory=MetadataCache)
    locks: KeyedLocks = field(default_factory=KeyedLocks)
    keys: KeyedLocks = field(default_factory=KeyedLocks)
    usage: Usage = field(default_factory=Usage)
    tasks: Tasks = field(default_factory=Tasks)
    warehouses: dict[str, tuple[float, Warehouse]] = field(default_factory=dict)
    leaders: tuple[float, tuple[Tabular, ...]] = (0.0, ())
    purge_wanted: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Context:
    """The world as the use cases see it; wired once by `main`.

    `configured` is the default warehouse as the settings describe it; its storage options win over stored ones.
    """

    store: Store
    objects: ObjectStores
    clock: Clock
    ids: Ids
    caches: Caches = field(default_factory=Caches)
    limits: Limits = field(default_factory=Limits)
    configured: Warehouse | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `client` and `client_version` come from the request's own headers and are only ever observed.

    `key` is the request's Idempotency-Key and `fingerprint` a digest of operation and body: one key may stand for one
    fingerprint only.
    """

    principal: str = ANONYMOUS
    client: str = ""
    client_version: str = ""
    key: str | None = None
    fingerprint: str = ""
