"""What `catalog` needs of the world, as protocols and plain values.

A change to the catalog is a *unit*: a list of write operations (values) that an adapter applies in one SQL
transaction, all or nothing. Two adapters and one contract suite interpret the same operations.
All times are epoch milliseconds; all locations are URIs or absolute paths, kept in the client's spelling.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from app.events import AnyEvent
from app.rules import Severity, Waiver

Kind = Literal["table", "view"]
Levels = tuple[str, ...]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every stored value."""


class Warehouse(Record, frozen=True, kw_only=True):
    """`location` has no trailing slash. `storage` holds the storage profile without its secrets, `secrets` those."""

    name: str
    location: str
    allowed_locations: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    storage: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    version: int = 1


class Namespace(Record, frozen=True, kw_only=True):
    namespace_id: int
    warehouse: str
    levels: Levels
    properties: Mapping[str, str]


class Columns(Record, frozen=True, kw_only=True):
    """The plain columns kept beside the pointer, for monitoring and listing.

    `schema_count` and `schema_changed_at_ms` are None where no commit has told yet.
    """

    format_version: int
    last_column_id: int
    current_schema_id: int
    field_count: int
    schema_count: int | None = None
    schema_changed_at_ms: int | None = None

    @property
    def retired_ids(self) -> int:
        """Field IDs that were given out and that the current schema has not."""
        return self.last_column_id - self.field_count


Standing = Literal["last-column-id", "field-count", "retired-ids", "schema-count", "schema-changed"]
"""What a listing of tables can be sorted by."""


class Tabular(Record, frozen=True, kw_only=True):
    """A table or view: the pointer and what must be found or listed.

    `checksum` is the SHA-256 (hex) of the metadata file as this catalog wrote it; None when somebody else did.
    """

    tabular_id: int
    warehouse: str
    namespace: Levels
    name: str
    kind: Kind
    uuid: str
    location: str
    metadata_location: str
    version: int
    columns: Columns
    created_at_ms: int
    updated_at_ms: int
    namespace_properties: Mapping[str, str] = {}
    checksum: str | None = None


class Pointer(msgspec.Struct, frozen=True):
    """What a load needs to know of a table or view, and nothing that costs more to read."""

    tabular_id: int
    kind: Kind
    uuid: str
    metadata_location: str
    checksum: str | None = None


T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """`after` is the keyset position of the last item; None means there is nothing more."""

    items: tuple[T, ...]
    after: str | None = None


OutcomeKind = Literal["done", "refused"]


class KeyRecord(Record, frozen=True, kw_only=True):
    """An idempotency key and the outcome of its request; `outcome` is opaque JSON bytes owned by `catalog`.

    `kind` tells whether the request took effect or was refused.
    """

    key: str
    warehouse: str
    fingerprint: str
    kind: OutcomeKind
    outcome: bytes
    created_at_ms: int
    expires_at_ms: int


class PurgeJob(Record, frozen=True, kw_only=True):
    """Files of a dropped table still to be deleted. `progress` is opaque JSON bytes owned by `catalog`."""

    job_id: int
    warehouse: str
    table_uuid: str
    name: str
    location: str
    metadata_location: str
    progress: bytes
    created_at_ms: int
    attempts: int = 0
    last_error: str | None = None


class Sighting(Record, frozen=True, kw_only=True):
    """Which client loads or commits a table, and when it was last seen."""

    table_uuid: str
    client: str
    client_version: str
    action: Literal["load", "commit"]
    last_seen_ms: int


class Report(Record, frozen=True, kw_only=True):
    """A metrics report as received (JSON bytes), kept in bounded number per table."""

    table_uuid: str
    kind: str
    received_at_ms: int
    body: bytes


class JournalEntry(Record, frozen=True, kw_only=True):
    entry_id: int
    event: AnyEvent


class PolicySetting(Record, frozen=True, kw_only=True):
    """A rule's severity set through the policy API. `table_uuid` None = for the namespace (and those below it)."""

    warehouse: str
    namespace: Levels
    table_uuid: str | None
    code: str
    severity: Severity
    set_by: str
    set_at_ms: int


# --- write operations ------------------------------------------------------------------------------------------


class CreateNamespace(Record, frozen=True, kw_only=True):
    """AlreadyExists if taken; NoSuchNamespace if the parent is missing."""

    warehouse: str
    levels: Levels
    properties: Mapping[str, str]
    now_ms: int


class UpdateNamespace(Record, frozen=True, kw_only=True):
    """NoSuchNamespace if missing. Removals of absent keys are ignored."""

    warehouse: str
    levels: Levels
    updates: Mapping[str, str]
    removals: tuple[str, ...]
    now_ms: int


class DropNamespace(Record, frozen=True, kw_only=True):
    """NoSuchNamespace; NamespaceNotEmpty when it holds tables, views or namespaces."""

    warehouse: str
    levels: Levels


class CreateTabular(Record, frozen=True, kw_only=True):
    """NoSuchNamespace; AlreadyExists for a taken name (table or view), UuidInUse for a uuid of the same warehouse.

    `roots` are the places outside `location` that its files may lie in. With `exclusive_location`, ValidationFailed
    when another table or view of any warehouse has its location at, above or below any of these places, or a root at,
    above or below `location`. Roots may meet each other. With `registered` the files were there before: CommitFailed
    when a purge that has begun may delete some of them. `checksum` is that of `Tabular`.
    """

    warehouse: str
    namespace: Levels
    name: str
    kind: Kind
    uuid: str
    location: str
    metadata_location: str
    columns: Columns
    exclusive_location: bool
    now_ms: int
    roots: tuple[str, ...] = ()
    registered: bool = False
    checksum: str | None = None


class SwapTabular(Record, frozen=True, kw_only=True):
    """Move the pointer from `expected` to `metadata_location`; SwapLost unless exactly that row still matches.

    `location` and `uuid` are stored too, and `roots` unless None, which leaves them; `exclusive_location` as in
    CreateTabular, for those places that the row did not have before, and `registered` as there. With `keeps_roots` the
    former roots stay beside the new ones, and a location that it leaves becomes one. `checksum` is stored, None too.
    """

    tabular_id: int
    expected: str
    metadata_location: str
    uuid: str
    location: str
    columns: Columns
    exclusive_location: bool
    now_ms: int
    roots: tuple[str, ...] | None = None
    keeps_roots: bool = False
    registered: bool = False
    checksum: str | None = None


class DropTabular(Record, frozen=True, kw_only=True):
    """Remove the row if its pointer is still `expected`, else SwapLost. Policies and waivers of the table go too."""

    tabular_id: int
    expected: str


class RenameTabular(Record, frozen=True, kw_only=True):
    """NoSuchTable/NoSuchView (source), NoSuchNamespace (target), AlreadyExists (target taken, rename wording)."""

    warehouse: str
    kind: Kind
    source: tuple[Levels, str]
    target: tuple[Levels, str]
    now_ms: int


class AddPurgeJob(Record, frozen=True, kw_only=True):
    warehouse: str
    table_uuid: str
    name: str
    location: str
    metadata_location: str
    now_ms: int


class UpdatePurgeJob(Record, frozen=True, kw_only=True):
    """From the first one on the job counts as begun. ValidationFailed, which names them, when live tables or views of
    any warehouse have files at, above or below one of `places`; SwapLost when with places the job is gone."""

    job_id: int
    progress: bytes
    attempts: int
    last_error: str | None
    places: tuple[str, ...] = ()


class FinishPurgeJob(Record, frozen=True, kw_only=True):
    job_id: int


class AppendJournal(Record, frozen=True, kw_only=True):
    event: AnyEvent


class RecordKey(Record, frozen=True, kw_only=True):
    """KeyAlreadyUsed if an unexpired record with this key and warehouse exists (the whole unit is undone)."""

    record: KeyRecord


class SetPolicy(Record, frozen=True, kw_only=True):
    """`severity` None removes the setting."""

    warehouse: str
    namespace: Levels
    table_uuid: str | None
    code: str
    severity: Severity | None
    set_by: str
    now_ms: int


class AddWaiver(Record, frozen=True, kw_only=True):
    """AlreadyExists when the id is taken."""

    waiver: Waiver


class RevokeWaiver(Record, frozen=True, kw_only=True):
    """NotFound unless an unused waiver has this id: a used one is history."""

    waiver_id: str


class UseWaiver(Record, frozen=True, kw_only=True):
    """Mark as used; SwapLost if it was used or revoked meanwhile (the commit is judged again)."""

    waiver_id: str
    now_ms: int


class PutWarehouse(Record, frozen=True, kw_only=True):
    """Insert (`expected_version` None: AlreadyExists if taken) or replace (SwapLost unless the version matches)."""

    warehouse: Warehouse
    expected_version: int | None
    now_ms: int


class DropWarehouse(Record, frozen=True, kw_only=True):
    """NoSuchWarehouse; NamespaceNotEmpty when it still holds namespaces."""

    name: str


WriteOp = (
    CreateNamespace
    | UpdateNamespace
    | DropNamespace
    | CreateTabular
    | SwapTabular
    | DropTabular
    | RenameTabular
    | AddPurgeJob
    | UpdatePurgeJob
    | FinishPurgeJob
    | AppendJournal
    | RecordKey
    | SetPolicy
    | AddWaiver
    | RevokeWaiver
    | UseWaiver
    | PutWarehouse
    | DropWarehouse
)


class Store(Protocol):
    """SQL behind the catalog. Reads see every write that was acknowledged before they began."""

    async def open(self) -> None:
        """Connect and verify the schema version; SchemaOutOfDate when it is not the one this server speaks."""

    async def close(self) -> None: ...

    async def ping(self) -> None:
        """One cheap read and a schema check; Unavailable or SchemaOutOfDate."""

    async def write(self, unit: Sequence[WriteOp]) -> None:
        """Apply all operations in order in one durable transaction, or none.

        Raises the domain error an operation documents; Unavailable when surely nothing was stored;
        OutcomeUnknown when the connection died while committing.
        """

    async def warehouse(self, name: str) -> Warehouse | None: ...

    async def warehouses(self) -> tuple[Warehouse, ...]: ...

    async def namespace(self, warehouse: str, levels: Levels) -> Namespace | None: ...

    async def namespaces(self, warehouse: str, parent: Levels, *, after: str | None, limit: int | None) -> Page[Levels]:
        """Direct children of `parent` (() = top level) as full paths, in name order."""

    async def tabular(self, warehouse: str, namespace: Levels, name: str) -> Tabular | None:
        """Table or view of that name, with its namespace's own properties. One indexed read."""

    async def pointer(self, warehouse: str, namespace: Levels, name: str) -> Pointer | None:
        """The pointer of `tabular` alone, at a fraction of the cost: for the path of every load."""

    async def tabular_by_id(self, tabular_id: int) -> Tabular | None: ...

    async def tabulars(
        self, warehouse: str, namespace: Levels, kind: Kind, *, after: str | None, limit: int | None
    ) -> Page[str]:
        """Names of one kind in a namespace, in name order; keyset on an index. Missing namespace: empty page."""

    async def standings(
        self,
        warehouse: str | None,
        namespace: Levels | None,
        by: Standing,
        *,
        after: tuple[int, int] | None,
        limit: int,
    ) -> tuple[Tabular, ...]:
        """Tables (of every warehouse; or of one; or of one namespace and those below it), largest value first.

        `after` is (value, tabular_id) of the last one seen. Tables whose value is not known come last, as 0. Reads
        every row of the scope: for people and for monitoring, not for the path of an engine.
        """

    async def locations_overlapping(self, location: str, *, besides: int | None = None) -> tuple[str, ...]:
        """The live tables and views of any warehouse, as `warehouse.namespace.name`, whose location or a root of whose
        is at, above or below `location` (spelling-insensitive). `besides` is the id of one that does not count."""

    async def key(self, warehouse: str, key: str, now_ms: int) -> KeyRecord | None: ...

    async def expire_keys(self, now_ms: int) -> int: ...

    async def purge_jobs(self, limit: int) -> tuple[PurgeJob, ...]: ...

    async def journal(
        self,
        *,
        table_uuid: str | None = None,
        warehouse: str | None = None,
        namespace: Levels | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> tuple[JournalEntry, ...]:
        """Newest first. A namespace includes those below it."""

    async def policy(self, warehouse: str, namespace: Levels, table_uuid: str | None) -> tuple[PolicySetting, ...]:
        """Settings of the table and of its namespace and every namespace above it."""

    async def waivers(self, table_uuid: str) -> tuple[Waiver, ...]: ...

    async def note(self, sightings: Sequence[Sighting], reports: Sequence[Report]) -> None:
        """Keep observations, best effort: the latest sighting of each client, and the last reports of each table."""

    async def sightings(self, table_uuid: str) -> tuple[Sighting, ...]: ...

    async def reports(self, table_uuid: str) -> tuple[Report, ...]: ...


# --- object storage --------------------------------------------------------------------------------------------


class ObjectStat(Record, frozen=True, kw_only=True):
    """`leftover`: the half-written file of a `create` that was cut short, or is running right now."""

    location: str
    size: int
    modified_ms: int
    leftover: bool = False


class Folder(Record, frozen=True, kw_only=True):
    """One level: the folders directly below a location, and the objects directly in it."""

    folders: tuple[str, ...]
    objects: tuple[ObjectStat, ...]


class Objects(Protocol):
    """Object storage of one warehouse. Every location is inside what the warehouse may touch (checked by `catalog`)."""

    local: bool
    """True for a warehouse on disk."""

    async def read(self, location: str, *, limit: int | None = None) -> bytes:
        """The whole object; ObjectMissing; PayloadTooLarge beyond `limit` bytes."""

    async def read_range(self, location: str, start: int, length: int) -> bytes: ...

    async def stat(self, location: str) -> ObjectStat | None: ...

    def vanished(self, location: str) -> bool:
        """Whether a file on disk is there no more, by one system call; False wherever asking would take longer.

        ObjectsUnavailable when the disk cannot tell.
        """

    async def create(self, location: str, data: bytes) -> None:
        """Durable, create-only, never seen half-written; ObjectExists; ObjectsUnavailable."""

    async def delete(self, location: str) -> None:
        """Idempotent: a missing object is fine."""

    def list(self, prefix: str) -> AsyncIterator[ObjectStat]:
        """Every object below `prefix` + "/", in no fixed order; a missing prefix is empty."""

    async def look(self, location: str) -> Folder:
        """What lies directly in `location`, in its spelling; a missing one is empty."""

    async def prepare(self, location: str) -> None:
        """Make the folder `location` exist where folders exist (local disks); nothing elsewhere."""

    async def remove_empty_folders(self, location: str) -> None:
        """Remove `location` and the folders below it that are empty, where folders exist; never fails."""

    async def resolved(self, location: str) -> str:
        """`location` with symbolic links followed, where these exist. Forbidden when it then lies outside."""

    async def establish(self, location: str) -> None:
        """Make the folder of a warehouse, where folders exist. Nothing else ever makes it: a disk that is not mounted
        shall be missed, not replaced. ObjectsUnavailable, BadRequest."""

    async def check_root(self, location: str) -> None:
        """ObjectsUnavailable when the folder of a warehouse is not there, where folders exist."""


class ObjectStores(Protocol):
    """Hands out the `Objects` of a warehouse."""

    def of(self, warehouse: Warehouse) -> Objects: ...

    async def close(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Randomness, handed in so that tests can fix it."""

    def uuid4(self) -> str: ...

    def uniform(self, low: float, high: float) -> float: ...
