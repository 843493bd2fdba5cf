"""Bodies of the table operations. Embedded documents are read by the parsers of `app.iceberg`, not here."""

from __future__ import annotations

from typing import Any

from app.api.documents import PartitionSpec, Schema, SortOrder, TableMetadata
from app.api.shapes import Embedded, Int64, Properties, Shape, TableIdentifier
from app.api.updates import TableRequirement, TableUpdate


class CreateTableRequest(Shape):
    """A new table. With `stage-create` nothing is stored: the answer is what a later commit creates."""

    name: str
    schema_: Embedded[Schema]
    location: str | None = None
    partition_spec: Embedded[PartitionSpec] | None = None
    write_order: Embedded[SortOrder] | None = None
    stage_create: bool | None = None
    properties: Properties | None = None


class RegisterTableRequest(Shape):
    """An existing metadata file to be known under a name."""

    name: str
    metadata_location: str
    overwrite: bool | None = None


class CommitTableRequest(Shape):
    """Updates to apply in order, if every requirement holds."""

    requirements: Embedded[list[TableRequirement]] | None = None
    updates: Embedded[list[TableUpdate]]
    identifier: TableIdentifier | None = None


class LoadTableResult(Shape):
    """A table as it is now. A staged table has no `metadata-location`."""

    metadata: TableMetadata
    metadata_location: str | None = None
    config: Properties | None = None


class CommitTableResponse(Shape):
    """The table as it is after the commit."""

    metadata_location: str
    metadata: TableMetadata


class MetricsReport(Shape):
    """A scan or commit report, or one of a kind this server does not know. Other members are kept as they are."""

    report_type: str
    table_name: str | None = None
    snapshot_id: Int64 | None = None
    metrics: dict[str, Any] | None = None
