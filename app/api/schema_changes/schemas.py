"""Bodies of check, plan, apply, history and the biography of a column."""

from __future__ import annotations

from typing import Any, Literal

from app.api.documents import Schema
from app.api.shapes import Embedded, FindingModel, Int32, Int64, OwnShape, Shape, TableIdentifier
from app.api.updates import TableRequirement, TableUpdate

Verdict = Literal["compatible", "incompatible", "not-checked"]
ColumnPath = str | list[str]


class OperationModel(Shape):
    """One operation. `op` says which, and which of the other members it takes.

    `add` (path, type; required, doc, default or initial-default and write-default, first/after/before), `drop`,
    `rename` (to), `move` (first/after/before), `promote` (type), `make-optional`, `make-required`, `set-doc` (doc),
    `set-write-default` (value), `set-identifier-fields` (paths), `union-by-name` and `declare` (schema, fields or
    arrow-ipc-schema), `restore` (field-id or path; as, required, first/after/before), `rollback-to` (snapshot-id;
    branch), `replace-as` (type, keep-as; doc). A path is a full dotted name, or a list of names.
    """

    op: Literal[
        "add", "drop", "rename", "move", "promote", "make-optional", "make-required", "set-doc", "set-write-default",
        "set-identifier-fields", "union-by-name", "declare", "restore", "rollback-to", "replace-as",
    ]  # fmt: skip
    path: ColumnPath | None = None
    paths: list[ColumnPath] | None = None
    type: Any = None
    required: bool | None = None
    doc: str | None = None
    default: Any = None
    initial_default: Any = None
    write_default: Any = None
    value: Any = None
    to: str | None = None
    first: bool | None = None
    after: ColumnPath | None = None
    before: ColumnPath | None = None
    field_id: Int32 | None = None
    snapshot_id: Int64 | None = None
    branch: str | None = None
    keep_as: str | None = None
    match: Literal["name", "id"] | None = None
    schema_: Any = None
    fields: list[Any] | None = None
    arrow_ipc_schema: str | None = None
    identifier_fields: list[str] | None = None


class CheckRequest(Shape):
    """What to check: a commit as an engine would send it (`updates`, with or without `requirements`), `operations`, or
    the schema to arrive at.

    The schema is Iceberg's JSON (`schema`), a list of `fields` as PyIceberg dumps them, or a base64 `arrow-ipc-schema`.
    Without field IDs, columns are matched by name; a field may say `renamed-from`.
    """

    identifier: TableIdentifier | None = None
    requirements: Embedded[list[TableRequirement]] | None = None
    updates: Embedded[list[TableUpdate]] | None = None
    operations: Embedded[list[OperationModel]] | None = None
    schema_: Any = None
    fields: Embedded[list[Any]] | None = None
    arrow_ipc_schema: Embedded[str] | None = None
    identifier_fields: Embedded[list[str]] | None = None
    match: Literal["name", "id"] | None = None


class PlanRequest(OwnShape):
    """Operations, all on the columns as they are before the plan.

    `base-schema-id`: the schema that they were thought of on, the current one when absent. `tag-before-drop`: keep the
    current snapshot as a tag before a column goes; absent, the property `icekeel.tag-before-drop` decides.
    """

    operations: Embedded[list[OperationModel]]
    base_schema_id: Int32 | None = None
    tag_before_drop: bool | None = None


class ApplyRequest(PlanRequest):
    """As a plan; `plan-hash` makes sure that exactly what was planned is done, or nothing."""

    plan_hash: str | None = None


class Base(Shape):
    """The state of the table that an answer is about."""

    metadata_location: str
    schema_id: Int32
    last_column_id: Int32


class AssignedId(Shape):
    """A field ID that the change gives out."""

    field_id: Int32
    path: str
    type: str


class ChangeModel(Shape):
    """One aspect of one field that changes: added, dropped, restored, renamed, re-parented, moved, type-changed and
    so on."""

    change: str
    field_id: Int32
    path: str | None = None
    before: Any = None
    after: Any = None


class MetadataChange(Shape):
    """A member of the metadata before and after."""

    before: Any = None
    after: Any = None


class ColumnReading(Shape):
    """What a column returns from files of one schema; `stored-as` is the type in the file where it is another."""

    field_id: Int32
    path: str
    returns: Literal["value", "initial-default", "null", "unreadable"]
    value: Any = None
    stored_as: str | None = None
    reason: str | None = None


class SchemaReading(Shape):
    """What files written under one retained schema return for each new or changed column.

    `snapshots` counts the retained snapshots written under it: with none, there may be no such file.
    """

    schema_id: Int32
    snapshots: int
    columns: list[ColumnReading]


class CheckResult(Shape):
    """What the commit would meet. `not-checked` is no approval: `reason` says why nobody can tell."""

    verdict: Verdict
    findings: list[FindingModel]
    changes: list[ChangeModel]
    assigned_ids: list[AssignedId]
    metadata_changes: dict[str, MetadataChange]
    reads: list[SchemaReading]
    reason: str | None = None
    base: Base | None = None


class LaggardModel(Shape):
    """A client seen on the table that is not known to answer old rows from initial-default."""

    client: str
    version: str
    honours_initial_default: Literal["no", "unknown"]
    last_seen_ms: Int64


class PlanResult(CheckResult):
    """A commit that can be sent as it is, and what it would meet. The hash stands for its requirements and updates."""

    plan_hash: str
    requirements: list[TableRequirement]
    updates: list[TableUpdate]
    schema_: Schema
    notes: list[str]
    tag: str | None = None
    clients_without_defaults: list[LaggardModel] | None = None


class Rebased(Shape):
    """The operations landed on another schema than they were thought of on."""

    from_schema_id: Int32
    onto_schema_id: Int32


class ApplyResult(Shape):
    """What was committed."""

    metadata_location: str
    schema_id: Int32
    last_column_id: Int32
    plan_hash: str
    requirements: list[TableRequirement]
    updates: list[TableUpdate]
    changes: list[ChangeModel]
    assigned_ids: dict[str, Int32]
    notes: list[str]
    findings: list[FindingModel]
    tag: str | None = None
    rebased: Rebased | None = None


class UsedWaiver(Shape):
    """A waiver that a change used up."""

    waiver_id: str
    code: str
    reason: str
    granted_by: str


class HistoryEntry(Shape):
    """One change of a table's schema. Entries from `metadata` tell of the time before the table came here."""

    source: Literal["journal", "metadata"]
    namespace: list[str]
    table: str
    to_schema_id: Int32
    changes: list[ChangeModel]
    from_schema_id: Int32 | None = None
    entry_id: Int64 | None = None
    at_ms: Int64 | None = None
    by: str | None = None
    client: str | None = None
    metadata_location: str | None = None
    findings: list[FindingModel] | None = None
    waivers: list[UsedWaiver] | None = None


class History(Shape):
    """Schema changes, newest first."""

    entries: list[HistoryEntry]
    next_page_token: str | None = None


class FieldDefinition(Shape):
    """What a schema says of a field itself."""

    path: str
    type: str
    required: bool
    position: Int32
    parent_id: Int32 | None = None
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None
    schema_id: Int32 | None = None


class SnapshotModel(Shape):
    """A snapshot by id, time (epoch milliseconds) and schema."""

    snapshot_id: Int64
    timestamp_ms: Int64
    schema_id: Int32 | None = None


class CarrierModel(Shape):
    """Retained snapshots that were written under a schema with the field."""

    count: int
    oldest: SnapshotModel | None = None
    newest: SnapshotModel | None = None


class ColumnBiography(Shape):
    """The life of one field ID: `definitions` in order, `schema-ids` and `refs` that still carry it, `history`.

    `forgotten` means that the ID was given out and that no retained schema has it any more.
    """

    field_id: Int32
    state: Literal["current", "dropped", "forgotten", "never-assigned"]
    definitions: list[FieldDefinition]
    schema_ids: list[Int32]
    snapshots: CarrierModel
    refs: list[str]
    history: list[HistoryEntry]
    definition: FieldDefinition | None = None
