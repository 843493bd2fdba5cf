"""Table and view updates, and the requirements of a commit."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from app.api.models.metadata import (
    EncryptedKey,
    Int32,
    Int64,
    PartitionSpec,
    PartitionStatisticsFile,
    Schema,
    Shape,
    Snapshot,
    SortOrder,
    StatisticsFile,
    ViewVersion,
)


def _kebab(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class Update(Shape, tag_field="action", tag=lambda name: _kebab(name.removesuffix("Update"))):
    """Base of every update; `action` tells them apart."""


class Requirement(Shape, tag_field="type", tag=_kebab):
    """Base of every requirement; `type` tells them apart."""


LastAddedId = Annotated[Int32, Meta(description="An id, or -1 for the one added last in this request.")]


class AssignUuidUpdate(Update):
    """Gives a new table or view its UUID; on an existing one it must be equal."""

    uuid: str


class UpgradeFormatVersionUpdate(Update):
    """Raises the format version; never lowers it."""

    format_version: Int32


class AddSchemaUpdate(Update):
    """Adds a schema, or finds the equal one that is there. `last-column-id` is accepted and ignored."""

    schema: Schema
    last_column_id: Int32 | None = None


class SetCurrentSchemaUpdate(Update):
    """Makes a schema current."""

    schema_id: LastAddedId


class AddSpecUpdate(Update, tag="add-spec"):
    """Adds a partition spec, or finds the equal one."""

    spec: PartitionSpec


class SetDefaultSpecUpdate(Update):
    """Makes a partition spec the one for new data."""

    spec_id: LastAddedId


class AddSortOrderUpdate(Update):
    """Adds a sort order, or finds the equal one."""

    sort_order: SortOrder


class SetDefaultSortOrderUpdate(Update):
    """Makes a sort order the one for new data."""

    sort_order_id: LastAddedId


class AddSnapshotUpdate(Update):
    """Adds a snapshot; a ref must be set for it to become visible."""

    snapshot: Snapshot


class SetSnapshotRefUpdate(Update):
    """Creates or moves a branch or tag."""

    ref_name: str
    type: Literal["branch", "tag"]
    snapshot_id: Int64
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


class RemoveSnapshotsUpdate(Update):
    """Removes snapshots with their statistics and the refs that pointed at them; unknown ids are ignored."""

    snapshot_ids: list[Int64]


class RemoveSnapshotRefUpdate(Update):
    """Removes a branch or tag."""

    ref_name: str


class SetLocationUpdate(Update):
    """Moves the place for new files; existing files stay where they are."""

    location: str


class SetPropertiesUpdate(Update):
    """Sets properties."""

    updates: dict[str, str]


class RemovePropertiesUpdate(Update):
    """Removes properties; unknown names are ignored."""

    removals: list[str]


class SetStatisticsUpdate(Update):
    """Sets the statistics file of a snapshot."""

    statistics: StatisticsFile
    snapshot_id: Int64 | None = None


class RemoveStatisticsUpdate(Update):
    """Removes the statistics file of a snapshot."""

    snapshot_id: Int64


class SetPartitionStatisticsUpdate(Update):
    """Sets the partition statistics file of a snapshot."""

    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatisticsUpdate(Update):
    """Removes the partition statistics file of a snapshot."""

    snapshot_id: Int64


class RemovePartitionSpecsUpdate(Update):
    """Removes partition specs that no data uses; never the default one."""

    spec_ids: list[Int32]


class RemoveSchemasUpdate(Update):
    """Removes schemas that nothing refers to; never the current one."""

    schema_ids: list[Int32]


class AddEncryptionKeyUpdate(Update):
    """Adds a wrapped encryption key."""

    encryption_key: EncryptedKey


class RemoveEncryptionKeyUpdate(Update):
    """Removes an encryption key."""

    key_id: str


class AddViewVersionUpdate(Update):
    """Adds a version of the view; `schema-id` -1 means the schema added last in this request."""

    view_version: ViewVersion


class SetCurrentViewVersionUpdate(Update):
    """Makes a version current."""

    view_version_id: LastAddedId


class AssertCreate(Requirement):
    """The table must not exist."""


class AssertTableUuid(Requirement):
    """The table must have this UUID."""

    uuid: str


class AssertRefSnapshotId(Requirement):
    """The ref must point at this snapshot; null means that it must not exist."""

    ref: str
    snapshot_id: Int64 | None = None


class AssertLastAssignedFieldId(Requirement):
    """The highest column id ever given must be this."""

    last_assigned_field_id: Int32


class AssertCurrentSchemaId(Requirement):
    """The current schema must have this id."""

    current_schema_id: Int32


class AssertLastAssignedPartitionId(Requirement):
    """The highest partition field id ever given must be this."""

    last_assigned_partition_id: Int32


class AssertDefaultSpecId(Requirement):
    """The default partition spec must have this id."""

    default_spec_id: Int32


class AssertDefaultSortOrderId(Requirement):
    """The default sort order must have this id."""

    default_sort_order_id: Int32


class AssertViewUuid(Requirement):
    """The view must have this UUID."""

    uuid: str


_Shared = (
    AssignUuidUpdate
    | UpgradeFormatVersionUpdate
    | AddSchemaUpdate
    | SetLocationUpdate
    | SetPropertiesUpdate
    | RemovePropertiesUpdate
)
TableUpdate = (
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
    | RemoveEncryptionKeyUpdate
)
ViewUpdate = _Shared | AddViewVersionUpdate | SetCurrentViewVersionUpdate
TableRequirement = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
ViewRequirement = AssertViewUuid
