"""Table and view updates, and the requirements of a commit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.api.documents import (
    EncryptedKey,
    PartitionSpec,
    PartitionStatisticsFile,
    Schema,
    Snapshot,
    SortOrder,
    StatisticsFile,
    ViewVersion,
)
from app.api.shapes import Int32, Int64, Shape

LastAddedId = Annotated[Int32, Field(description="An id, or -1 for the one added last in this request.")]


class AssignUuidUpdate(Shape):
    """Gives a new table or view its UUID; on an existing one it must be equal."""

    action: Literal["assign-uuid"]
    uuid: str


class UpgradeFormatVersionUpdate(Shape):
    """Raises the format version; never lowers it."""

    action: Literal["upgrade-format-version"]
    format_version: Int32


class AddSchemaUpdate(Shape):
    """Adds a schema, or finds the equal one that is there. `last-column-id` is accepted and ignored."""

    action: Literal["add-schema"]
    schema_: Schema
    last_column_id: Int32 | None = None


class SetCurrentSchemaUpdate(Shape):
    """Makes a schema current."""

    action: Literal["set-current-schema"]
    schema_id: LastAddedId


class AddSpecUpdate(Shape):
    """Adds a partition spec, or finds the equal one."""

    action: Literal["add-spec"]
    spec: PartitionSpec


class SetDefaultSpecUpdate(Shape):
    """Makes a partition spec the one for new data."""

    action: Literal["set-default-spec"]
    spec_id: LastAddedId


class AddSortOrderUpdate(Shape):
    """Adds a sort order, or finds the equal one."""

    action: Literal["add-sort-order"]
    sort_order: SortOrder


class SetDefaultSortOrderUpdate(Shape):
    """Makes a sort order the one for new data."""

    action: Literal["set-default-sort-order"]
    sort_order_id: LastAddedId


class AddSnapshotUpdate(Shape):
    """Adds a snapshot; a ref must be set for it to become visible."""

    action: Literal["add-snapshot"]
    snapshot: Snapshot


class SetSnapshotRefUpdate(Shape):
    """Creates or moves a branch or tag."""

    action: Literal["set-snapshot-ref"]
    ref_name: str
    type: Literal["branch", "tag"]
    snapshot_id: Int64
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


class RemoveSnapshotsUpdate(Shape):
    """Removes snapshots with their statistics and the refs that pointed at them; unknown ids are ignored."""

    action: Literal["remove-snapshots"]
    snapshot_ids: list[Int64]


class RemoveSnapshotRefUpdate(Shape):
    """Removes a branch or tag."""

    action: Literal["remove-snapshot-ref"]
    ref_name: str


class SetLocationUpdate(Shape):
    """Moves the place for new files; existing files stay where they are."""

    action: Literal["set-location"]
    location: str


class SetPropertiesUpdate(Shape):
    """Sets properties."""

    action: Literal["set-properties"]
    updates: dict[str, str]


class RemovePropertiesUpdate(Shape):
    """Removes properties; unknown names are ignored."""

    action: Literal["remove-properties"]
    removals: list[str]


class SetStatisticsUpdate(Shape):
    """Sets the statistics file of a snapshot."""

    action: Literal["set-statistics"]
    statistics: StatisticsFile
    snapshot_id: Int64 | None = None


class RemoveStatisticsUpdate(Shape):
    """Removes the statistics file of a snapshot."""

    action: Literal["remove-statistics"]
    snapshot_id: Int64


class SetPartitionStatisticsUpdate(Shape):
    """Sets the partition statistics file of a snapshot."""

    action: Literal["set-partition-statistics"]
    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatisticsUpdate(Shape):
    """Removes the partition statistics file of a snapshot."""

    action: Literal["remove-partition-statistics"]
    snapshot_id: Int64


class RemovePartitionSpecsUpdate(Shape):
    """Removes partition specs that no data uses; never the default one."""

    action: Literal["remove-partition-specs"]
    spec_ids: list[Int32]


class RemoveSchemasUpdate(Shape):
    """Removes schemas that nothing refers to; never the current one."""

    action: Literal["remove-schemas"]
    schema_ids: list[Int32]


class AddEncryptionKeyUpdate(Shape):
    """Adds a wrapped encryption key."""

    action: Literal["add-encryption-key"]
    encryption_key: EncryptedKey


class RemoveEncryptionKeyUpdate(Shape):
    """Removes an encryption key."""

    action: Literal["remove-encryption-key"]
    key_id: str


class AddViewVersionUpdate(Shape):
    """Adds a version of the view; `schema-id` -1 means the schema added last in this request."""

    action: Literal["add-view-version"]
    view_version: ViewVersion


class SetCurrentViewVersionUpdate(Shape):
    """Makes a version current."""

    action: Literal["set-current-view-version"]
    view_version_id: LastAddedId


class AssertCreate(Shape):
    """The table must not exist."""

    type: Literal["assert-create"]


class AssertTableUuid(Shape):
    """The table must have this UUID."""

    type: Literal["assert-table-uuid"]
    uuid: str


class AssertRefSnapshotId(Shape):
    """The ref must point at this snapshot; null means that it must not exist."""

    type: Literal["assert-ref-snapshot-id"]
    ref: str
    snapshot_id: Int64 | None = None


class AssertLastAssignedFieldId(Shape):
    """The highest column id ever given must be this."""

    type: Literal["assert-last-assigned-field-id"]
    last_assigned_field_id: Int32


class AssertCurrentSchemaId(Shape):
    """The current schema must have this id."""

    type: Literal["assert-current-schema-id"]
    current_schema_id: Int32


class AssertLastAssignedPartitionId(Shape):
    """The highest partition field id ever given must be this."""

    type: Literal["assert-last-assigned-partition-id"]
    last_assigned_partition_id: Int32


class AssertDefaultSpecId(Shape):
    """The default partition spec must have this id."""

    type: Literal["assert-default-spec-id"]
    default_spec_id: Int32


class AssertDefaultSortOrderId(Shape):
    """The default sort order must have this id."""

    type: Literal["assert-default-sort-order-id"]
    default_sort_order_id: Int32


class AssertViewUuid(Shape):
    """The view must have this UUID."""

    type: Literal["assert-view-uuid"]
    uuid: str


_Shared = (
    AssignUuidUpdate
    | UpgradeFormatVersionUpdate
    | AddSchemaUpdate
    | SetLocationUpdate
    | SetPropertiesUpdate
    | RemovePropertiesUpdate
)
TableUpdate = Annotated[
    _Shared
    | SetCurrentSchemaUpdate
    | AddSpecUpdate
    | SetDefaultSpecUpdate
    | AddSortOrderUpdate
    | SetDefaultSortOrderUpdate
    | AddSnapshotUpdate
    | SetSnapshotRefUpdate
    | RemoveSnapshotsUpdate
    | RemoveSnapshotRefUpdate
    | SetStatisticsUpdate
    | RemoveStatisticsUpdate
    | SetPartitionStatisticsUpdate
    | RemovePartitionStatisticsUpdate
    | RemovePartitionSpecsUpdate
    | RemoveSchemasUpdate
    | AddEncryptionKeyUpdate
    | RemoveEncryptionKeyUpdate,
    Field(discriminator="action"),
]
ViewUpdate = Annotated[_Shared | AddViewVersionUpdate | SetCurrentViewVersionUpdate, Field(discriminator="action")]
TableRequirement = Annotated[
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId,
    Field(discriminator="type"),
]
ViewRequirement = AssertViewUuid
