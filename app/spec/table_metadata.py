"""Table metadata, format versions 1 to 3 (table spec: Table Metadata, Appendix C).

The document is data that a commit edits sparingly: snapshots and logs are index entries over text, schemas are
parsed on demand, and one version shares structure with the next. Reading it is `table_reader`, writing it
`table_writer`, what must hold of it `invariants`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.errors import SpecError
from app.spec.codec import NO_EXTRA
from app.spec.encryption import EncryptedKey
from app.spec.logs import MetadataLog, SnapshotLog
from app.spec.partition import PartitionSpec
from app.spec.ref import SnapshotRef
from app.spec.schema import Schema
from app.spec.schemas import Schemas
from app.spec.snapshot import Snapshot, Snapshots
from app.spec.sort import UNSORTED, SortOrder
from app.spec.statistics import PartitionStatisticsFile, StatisticsFile

SUPPORTED_FORMAT_VERSION = 3
DEFAULT_FORMAT_VERSION = 2
ROW_LINEAGE_VERSION = 3

KNOWN_KEYS = frozenset(
    {
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schema",
        "schemas",
        "current-schema-id",
        "partition-spec",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
        "properties",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "refs",
        "statistics",
        "partition-statistics",
        "next-row-id",
        "encryption-keys",
    }
)


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a table. Times are epoch milliseconds; `extra` holds unknown top-level members as text.

    `current_snapshot_id` is None when there is none, whatever a document writes for that. `refs` holds a `main` for
    documents of versions 1 and 2 that have no refs but a current snapshot.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    schemas: Schemas
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    properties: Mapping[str, str] = {}
    current_snapshot_id: int | None = None
    snapshots: Snapshots = msgspec.field(default_factory=Snapshots)
    snapshot_log: SnapshotLog = msgspec.field(default_factory=SnapshotLog)
    metadata_log: MetadataLog = msgspec.field(default_factory=MetadataLog)
    refs: Mapping[str, SnapshotRef] = {}
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = 0
    encryption_keys: tuple[EncryptedKey, ...] = ()
    extra: Mapping[str, msgspec.Raw] = NO_EXTRA

    @property
    def schema(self) -> Schema:
        """The current schema."""
        found = self.schemas.get(self.current_schema_id)
        if found is None:
            raise SpecError(f"Cannot find schema with current-schema-id={self.current_schema_id}")
        return found

    def spec(self, spec_id: int) -> PartitionSpec | None:
        return next((item for item in self.partition_specs if item.spec_id == spec_id), None)

    @property
    def default_spec(self) -> PartitionSpec:
        found = self.spec(self.default_spec_id)
        if found is None:
            raise SpecError(f"Cannot find partition spec with default-spec-id={self.default_spec_id}")
        return found

    def sort_order(self, order_id: int) -> SortOrder | None:
        return next((item for item in self.sort_orders if item.order_id == order_id), None)

    @property
    def default_sort_order(self) -> SortOrder:
        """Order 0 is the unsorted one even when a document does not list it."""
        found = self.sort_order(self.default_sort_order_id)
        if found is None:
            if self.default_sort_order_id == UNSORTED.order_id:
                return UNSORTED
            raise SpecError(f"Cannot find sort order with default-sort-order-id={self.default_sort_order_id}")
        return found

    @property
    def never_written(self) -> bool:
        """Whether the table never had a snapshot, as far as its metadata tells."""
        return not len(self.snapshots) and not len(self.snapshot_log) and self.last_sequence_number == 0

    @property
    def current_snapshot(self) -> Snapshot | None:
        return None if self.current_snapshot_id is None else self.snapshots.get(self.current_snapshot_id)
