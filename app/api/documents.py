"""Iceberg's documents: schemas, partition specs, sort orders, snapshots, table and view metadata."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.api.shapes import Int32, Int64, Shape


class StructField(Shape):
    """A column or a member of a struct; `id` identifies it for the life of the table."""

    id: Int32
    name: str
    type: Type
    required: bool
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


class StructType(Shape):
    """A struct of fields."""

    type: Literal["struct"]
    fields: list[StructField]


class ListType(Shape):
    """A list; the element has an id of its own."""

    type: Literal["list"]
    element_id: Int32
    element: Type
    element_required: bool


class MapType(Shape):
    """A map; key and value have ids of their own."""

    type: Literal["map"]
    key_id: Int32
    key: Type
    value_id: Int32
    value: Type
    value_required: bool


PrimitiveType = Annotated[
    str, Field(description="Name of a primitive type, such as `long`, `decimal(9, 2)`, `fixed[16]` or `timestamptz`.")
]
Type = PrimitiveType | StructType | ListType | MapType


class Schema(Shape):
    """A table or view schema: a struct with an id."""

    type: Literal["struct"]
    fields: list[StructField]
    schema_id: Int32 | None = None
    identifier_field_ids: list[Int32] | None = None


class PartitionField(Shape):
    """One partition field: a transform of a source column, or of several (`source-ids`, version 3).

    Without `field-id` the server assigns one.
    """

    source_id: Int32 | None = None
    source_ids: list[Int32] | None = None
    transform: str
    name: str
    field_id: Int32 | None = None


class PartitionSpec(Shape):
    """How rows are divided into partitions."""

    fields: list[PartitionField]
    spec_id: Int32 | None = None


class SortField(Shape):
    """One key of a sort order: of a source column, or of several (`source-ids`, version 3)."""

    source_id: Int32 | None = None
    source_ids: list[Int32] | None = None
    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(Shape):
    """How rows are sorted in files; order 0 is unsorted."""

    order_id: Int32
    fields: list[SortField]


class SnapshotSummary(Shape):
    """What the snapshot did, and counts of it by name. Tables of format version 1 may lack the operation."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]

    operation: Literal["append", "replace", "overwrite", "delete"] | None = None


class Snapshot(Shape):
    """A state of the table at a point in time."""

    snapshot_id: Int64
    timestamp_ms: Int64
    manifest_list: str | None = None
    summary: SnapshotSummary | None = None
    parent_snapshot_id: Int64 | None = None
    sequence_number: Int64 | None = None
    schema_id: Int32 | None = None
    first_row_id: Int64 | None = None
    added_rows: Int64 | None = None
    key_id: str | None = None


class SnapshotReference(Shape):
    """A branch or tag."""

    type: Literal["branch", "tag"]
    snapshot_id: Int64
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


class SnapshotLogEntry(Shape):
    """When a snapshot became current."""

    snapshot_id: Int64
    timestamp_ms: Int64


class MetadataLogEntry(Shape):
    """An earlier metadata file."""

    metadata_file: str
    timestamp_ms: Int64


class BlobMetadata(Shape):
    """A blob of a statistics file."""

    type: str
    snapshot_id: Int64
    sequence_number: Int64
    fields: list[Int32]
    properties: dict[str, str] | None = None


class StatisticsFile(Shape):
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64
    file_footer_size_in_bytes: Int64
    blob_metadata: list[BlobMetadata]


class PartitionStatisticsFile(Shape):
    """A file with per-partition statistics of one snapshot."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64


class EncryptedKey(Shape):
    """A wrapped encryption key; `encrypted-key-metadata` is base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


class TableMetadata(Shape):
    """The table's metadata document. Members that this server does not know are kept as they were written."""

    format_version: Annotated[int, Field(ge=1, le=3)]
    table_uuid: str
    location: str
    last_updated_ms: Int64
    last_column_id: Int32
    current_schema_id: Int32
    schemas: list[Schema]
    default_spec_id: Int32
    partition_specs: list[PartitionSpec]
    last_partition_id: Int32
    default_sort_order_id: Int32
    sort_orders: list[SortOrder]
    last_sequence_number: Int64 | None = None
    next_row_id: Int64 | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Int64 | None = None
    snapshots: list[Snapshot] | None = None
    snapshot_log: list[SnapshotLogEntry] | None = None
    metadata_log: list[MetadataLogEntry] | None = None
    refs: dict[str, SnapshotReference] | None = None
    statistics: list[StatisticsFile] | None = None
    partition_statistics: list[PartitionStatisticsFile] | None = None
    encryption_keys: list[EncryptedKey] | None = None


class SqlViewRepresentation(Shape):
    """The view's definition in one SQL dialect."""

    type: Literal["sql"]
    sql: str
    dialect: str


class ViewVersion(Shape):
    """One definition of a view; versions never change."""

    version_id: Int32
    timestamp_ms: Int64
    schema_id: Int32
    summary: dict[str, str]
    representations: list[SqlViewRepresentation]
    default_namespace: list[str]
    default_catalog: str | None = None


class ViewHistoryEntry(Shape):
    """When a version became current."""

    version_id: Int32
    timestamp_ms: Int64


class ViewMetadata(Shape):
    """The view's metadata document."""

    view_uuid: str
    format_version: Annotated[int, Field(ge=1, le=1)]
    location: str
    current_version_id: Int32
    versions: list[ViewVersion]
    version_log: list[ViewHistoryEntry]
    schemas: list[Schema]
    properties: dict[str, str] | None = None
