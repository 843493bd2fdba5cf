"""A table under change: what the updates of one commit edit, one after another.

Updates are applied by the modules beside this one, a noun each; `tables` runs them and closes the draft. The base is
never touched: containers are immutable and share structure with it.
"""

from __future__ import annotations

from app.errors import ValidationFailed
from app.iceberg.ref import SnapshotRef
from app.iceberg.schema import Schema
from app.iceberg.schema_counter import remembered_schema_id, remembered_spec_id
from app.iceberg.schemas import GrowingSchemas, Schemas
from app.iceberg.snapshot import Snapshot, Snapshots
from app.iceberg.statistics import PartitionStatisticsFile, StatisticsFile
from app.iceberg.table import DEFAULT_FORMAT_VERSION, TableMetadata
from app.iceberg.update import TableUpdate
from app.metadata.listings import Orders, Specs

NO_PARTITION_FIELD_YET = 999


class MainMove:
    """A change of main within the commit; `timestamp_ms` None means that it is the commit itself that counts."""

    __slots__ = ("snapshot_id", "timestamp_ms")

    def __init__(self, snapshot_id: int, timestamp_ms: int | None) -> None:
        self.snapshot_id = snapshot_id
        self.timestamp_ms = timestamp_ms


class TableMetadataBuilder:
    """Mutable state of one fold. `base` None means that the table is being created.

    Added and removed snapshots are kept aside until the end, because thousands of one-element removals must cost
    one pass over the list and not one each.
    """

    def __init__(self, base: TableMetadata | None, format_version: int = DEFAULT_FORMAT_VERSION) -> None:
        self.base = base
        self.effective: list[TableUpdate] = []

        self.format_version = format_version if base is None else base.format_version
        self.table_uuid = None if base is None else base.table_uuid
        self.location = None if base is None else base.location
        self.last_sequence_number = 0 if base is None else base.last_sequence_number
        self.last_column_id = 0 if base is None else base.last_column_id
        self.next_row_id = 0 if base is None else base.next_row_id

        self.schemas = GrowingSchemas(Schemas() if base is None else base.schemas)
        self.current_schema_id = None if base is None else base.current_schema_id
        self.last_added_schema_id: int | None = None
        self.removed_schema_ids: set[int] = set()
        self.remembered_schema_id = -1 if base is None else remembered_schema_id(base.extra)
        self.assigned_schema_ids: dict[int, int] = {}
        # Where the search for an unused id goes on once the highest is given out.
        self.free_schema_id = 0
        self._named_schema_ids: frozenset[int] | None = None

        self.specs = Specs() if base is None else Specs(base.partition_specs)
        self.default_spec_id = None if base is None else base.default_spec_id
        self.last_partition_id = NO_PARTITION_FIELD_YET if base is None else base.last_partition_id
        self.last_added_spec_id: int | None = None
        self.removed_spec_ids: set[int] = set()
        self.remembered_spec_id = -1 if base is None else remembered_spec_id(base.extra)
        self.assigned_spec_ids: dict[int, int] = {}

        self.orders = Orders() if base is None else Orders(base.sort_orders)
        self.default_order_id = None if base is None else base.default_sort_order_id
        self.last_added_order_id: int | None = None
        self.assigned_order_ids: dict[int, int] = {}

        self.properties: dict[str, str] = {} if base is None else dict(base.properties)
        self.encryption_keys = {} if base is None else {key.key_id: key for key in base.encryption_keys}
        self.removed_key_ids: set[str] = set()

        self.current_snapshot_id = None if base is None else base.current_snapshot_id
        self.listed = Snapshots() if base is None else base.snapshots
        self.added_snapshots: dict[int, Snapshot] = {}
        self.removed_snapshot_ids: set[int] = set()
        self.refs: dict[str, SnapshotRef] = {} if base is None else dict(base.refs)
        self._names_by_snapshot: dict[int, set[str]] | None = None
        self.main_moves: list[MainMove] = []

        self.statistics: dict[int, tuple[StatisticsFile, ...]] = {}
        self.partition_statistics: dict[int, tuple[PartitionStatisticsFile, ...]] = {}
        if base is not None:
            for file in base.statistics:
                self.statistics[file.snapshot_id] = (*self.statistics.get(file.snapshot_id, ()), file)
            for part in base.partition_statistics:
                known = self.partition_statistics.get(part.snapshot_id, ())
                self.partition_statistics[part.snapshot_id] = (*known, part)

    @property
    def creating(self) -> bool:
        return self.base is None

    def record(self, update: TableUpdate) -> None:
        """Note that `update` changed something."""
        self.effective.append(update)

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot as the updates so far leave it."""
        added = self.added_snapshots.get(snapshot_id)
        if added is not None:
            return added
        return None if snapshot_id in self.removed_snapshot_ids else self.listed.get(snapshot_id)

    @property
    def named_schema_ids(self) -> frozenset[int]:
        """The schemas that snapshots of the base name."""
        if self._named_schema_ids is None:
            ids = (snapshot.schema_id for snapshot in self.listed)
            self._named_schema_ids = frozenset(schema_id for schema_id in ids if schema_id is not None)
        return self._named_schema_ids

    def names_of(self, snapshot_id: int) -> list[str]:
        """The refs that point to a snapshot. The index is made on first use: most commits remove nothing."""
        if self._names_by_snapshot is None:
            self._names_by_snapshot = {}
            for name, ref in self.refs.items():
                self._names_by_snapshot.setdefault(ref.snapshot_id, set()).add(name)
        return sorted(self._names_by_snapshot.get(snapshot_id, ()))

    def put_ref(self, name: str, ref: SnapshotRef) -> None:
        self.pop_ref(name)
        self.refs[name] = ref
        if self._names_by_snapshot is not None:
            self._names_by_snapshot.setdefault(ref.snapshot_id, set()).add(name)

    def pop_ref(self, name: str) -> bool:
        """Forget the ref; True if it existed."""
        known = self.refs.pop(name, None)
        if known is not None and self._names_by_snapshot is not None:
            self._names_by_snapshot[known.snapshot_id].discard(name)
        return known is not None

    @property
    def bound_schema_id(self) -> int:
        """The schema that new specs and orders are bound to; on create the first one until another is made current."""
        return 0 if self.current_schema_id is None else self.current_schema_id

    def bound_schema(self, what: str) -> Schema:
        schema = self.schemas.get(self.bound_schema_id)
        if schema is None:
            raise ValidationFailed(f"Cannot add a {what} before a schema is added")
        return schema
