"""Bodies of requests and answers of the Iceberg REST protocol."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from app.api.models.metadata import (
    Int64,
    PartitionSpec,
    Schema,
    Shape,
    SortOrder,
    TableMetadata,
    ViewMetadata,
    ViewVersion,
)
from app.api.models.updates import TableRequirement, TableUpdate, ViewRequirement, ViewUpdate

Namespace = Annotated[list[str], Meta(description="Levels of a namespace, outermost first.")]
Properties = dict[str, str]


class FindingModel(Shape, rename="kebab"):
    """One fault of a schema change, with the rule that found it and a fix."""

    code: str
    rule: str
    severity: str
    message: str
    fix: str
    spec: str
    field_id: int | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    waived_by: str | None = None


class ErrorModel(Shape):
    """What went wrong. `code` equals the HTTP status; `findings` come with refused schema changes."""

    message: str
    type: str
    code: int
    findings: list[FindingModel] | None = None


class ErrorResponse(Shape):
    """The body of every answer that is not a success."""

    error: ErrorModel


class CatalogConfig(Shape):
    """What a client needs to know about the catalog before its first call."""

    defaults: Properties
    overrides: Properties
    endpoints: list[str]
    idempotency_key_lifetime: str


class ListNamespacesResponse(Shape):
    """A page of namespaces, each as its full path."""

    namespaces: list[Namespace]
    next_page_token: str | None = None


class CreateNamespaceRequest(Shape):
    """A new namespace."""

    namespace: Annotated[list[str], Meta(min_length=1)]
    properties: Properties | None = None


class NamespaceResponse(Shape):
    """A namespace and its properties."""

    namespace: Namespace
    properties: Properties


class UpdateNamespacePropertiesRequest(Shape):
    """Properties to set and to remove; no name may be in both."""

    removals: list[str] | None = None
    updates: Properties | None = None


class UpdateNamespacePropertiesResponse(Shape):
    """What was done; `missing` are removals of properties that were not set."""

    updated: list[str]
    removed: list[str]
    missing: list[str]


class TableIdentifier(Shape):
    """A table or view by namespace and name."""

    namespace: Namespace
    name: str


class ListTablesResponse(Shape):
    """A page of tables or views."""

    identifiers: list[TableIdentifier]
    next_page_token: str | None = None


class CreateTableRequest(Shape):
    """A new table. With `stage-create` nothing is stored: the answer is what a later commit creates."""

    name: str
    schema: Schema
    location: str | None = None
    partition_spec: PartitionSpec | None = None
    write_order: SortOrder | None = None
    stage_create: bool | None = None
    properties: Properties | None = None


class RegisterTableRequest(Shape):
    """An existing metadata file to be known under a name."""

    name: str
    metadata_location: str
    overwrite: bool | None = None


class RenameTableRequest(Shape):
    """From where to where."""

    source: TableIdentifier
    destination: TableIdentifier


class CommitTableRequest(Shape):
    """Updates to apply in order, if every requirement holds."""

    requirements: list[TableRequirement]
    updates: list[TableUpdate]
    identifier: TableIdentifier | None = None


class TableChange(Shape):
    """The part of a transaction that concerns one table."""

    identifier: TableIdentifier
    requirements: list[TableRequirement]
    updates: list[TableUpdate]


class CommitTransactionRequest(Shape):
    """Changes of several tables, applied all or none."""

    table_changes: Annotated[list[TableChange], Meta(min_length=1)]


class LoadTableResult(Shape):
    """A table as it is now. A staged table has no `metadata-location`."""

    metadata: TableMetadata
    metadata_location: str | None = None
    config: Properties | None = None


class CommitTableResponse(Shape):
    """The table as it is after the commit."""

    metadata_location: str
    metadata: TableMetadata


class CreateViewRequest(Shape):
    """A new view; the schema id inside `view-version` is replaced by the one given to `schema`."""

    name: str
    schema: Schema
    view_version: ViewVersion
    location: str | None = None
    properties: Properties | None = None


class CommitViewRequest(Shape):
    """Updates of a view."""

    updates: list[ViewUpdate]
    requirements: list[ViewRequirement] | None = None
    identifier: TableIdentifier | None = None


class RegisterViewRequest(Shape):
    """An existing view metadata file to be known under a name."""

    name: str
    metadata_location: str


class LoadViewResult(Shape):
    """A view as it is now."""

    metadata_location: str
    metadata: ViewMetadata
    config: Properties | None = None


class MetricsReport(Shape):
    """A scan or commit report, or one of a kind this server does not know. Other members are kept as they are."""

    report_type: str
    table_name: str | None = None
    snapshot_id: Int64 | None = None
    metrics: dict[str, Any] | None = None
