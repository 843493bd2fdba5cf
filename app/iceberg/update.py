"""Updates of tables and views, one struct per action (REST protocol: TableUpdate, ViewUpdate).

Parsing checks form only: whether an update may be applied is for `app.metadata`. Unknown keys of the envelope are
ignored, unknown keys of embedded documents are kept. Action names are matched without regard to case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from app.errors import BadRequest, SpecError
from app.iceberg.datetimes import check_epoch_ms
from app.iceberg.encryption import EncryptedKey, encrypted_key_from_json
from app.iceberg.json.codec import (
    Json,
    as_int32_list,
    as_int64_list,
    as_list,
    as_object,
    as_str_list,
    as_str_map,
    optional_int32,
    required,
    required_int32,
    required_int64,
    required_str,
)
from app.iceberg.partition import UnboundPartitionSpec, parse_unbound_partition_spec
from app.iceberg.ref import SnapshotRef, parse_ref, refuse_no_snapshot
from app.iceberg.schema import Schema, parse_schema
from app.iceberg.snapshot import OPERATIONS, Snapshot, snapshot_from_json
from app.iceberg.sort import SortOrder, parse_sort_order
from app.iceberg.statistics import (
    PartitionStatisticsFile,
    StatisticsFile,
    partition_statistics_from_json,
    statistics_from_json,
)
from app.iceberg.values import check_uuid
from app.iceberg.view_version import ViewVersion, view_version_from_json

LAST_ADDED = -1
"""In place of an id: the schema, spec, order or view version that this request added last."""


class AssignUuid(msgspec.Struct, frozen=True):
    uuid: str


class UpgradeFormatVersion(msgspec.Struct, frozen=True):
    format_version: int


class AddSchema(msgspec.Struct, frozen=True):
    """`sent_id` is the schema-id that the client wrote, if any; the server numbers schemas itself."""

    schema: Schema
    sent_id: int | None = None


class SetCurrentSchema(msgspec.Struct, frozen=True):
    schema_id: int


class AddPartitionSpec(msgspec.Struct, frozen=True):
    spec: UnboundPartitionSpec


class SetDefaultSpec(msgspec.Struct, frozen=True):
    spec_id: int


class AddSortOrder(msgspec.Struct, frozen=True):
    order: SortOrder


class SetDefaultSortOrder(msgspec.Struct, frozen=True):
    sort_order_id: int


class AddSnapshot(msgspec.Struct, frozen=True):
    snapshot: Snapshot


class SetSnapshotRef(msgspec.Struct, frozen=True):
    ref_name: str
    ref: SnapshotRef


class RemoveSnapshots(msgspec.Struct, frozen=True):
    snapshot_ids: tuple[int, ...]


class RemoveSnapshotRef(msgspec.Struct, frozen=True):
    ref_name: str


class SetLocation(msgspec.Struct, frozen=True):
    location: str


class SetProperties(msgspec.Struct, frozen=True):
    updates: Mapping[str, str]


class RemoveProperties(msgspec.Struct, frozen=True):
    removals: tuple[str, ...]


class SetStatistics(msgspec.Struct, frozen=True):
    statistics: StatisticsFile


class RemoveStatistics(msgspec.Struct, frozen=True):
    snapshot_id: int


class SetPartitionStatistics(msgspec.Struct, frozen=True):
    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(msgspec.Struct, frozen=True):
    snapshot_id: int


class RemovePartitionSpecs(msgspec.Struct, frozen=True):
    spec_ids: tuple[int, ...]


class RemoveSchemas(msgspec.Struct, frozen=True):
    schema_ids: tuple[int, ...]


class AddEncryptionKey(msgspec.Struct, frozen=True):
    encryption_key: EncryptedKey


class RemoveEncryptionKey(msgspec.Struct, frozen=True):
    key_id: str


class AddViewVersion(msgspec.Struct, frozen=True):
    view_version: ViewVersion


class SetCurrentViewVersion(msgspec.Struct, frozen=True):
    view_version_id: int


TableUpdate = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
ViewUpdate = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)

_Obj = dict[str, Json]


def _assign_uuid(obj: _Obj, path: str) -> AssignUuid:
    uuid = required_str(obj, "uuid", path)
    check_uuid(uuid, f"{path}.uuid")
    return AssignUuid(uuid)


def _upgrade(obj: _Obj, path: str) -> UpgradeFormatVersion:
    return UpgradeFormatVersion(required_int32(obj, "format-version", path))


def _add_schema(obj: _Obj, path: str) -> AddSchema:
    inner = as_object(required(obj, "schema", path), f"{path}.schema")
    sent_id = optional_int32(inner, "schema-id", f"{path}.schema")
    return AddSchema(parse_schema(inner, f"{path}.schema"), sent_id)


def _add_spec(obj: _Obj, path: str) -> AddPartitionSpec:
    return AddPartitionSpec(parse_unbound_partition_spec(required(obj, "spec", path), f"{path}.spec"))


def _add_order(obj: _Obj, path: str) -> AddSortOrder:
    return AddSortOrder(parse_sort_order(required(obj, "sort-order", path), f"{path}.sort-order"))


def _add_snapshot(obj: _Obj, path: str) -> AddSnapshot:
    snapshot = snapshot_from_json(required(obj, "snapshot", path), f"{path}.snapshot")
    refuse_no_snapshot(snapshot.snapshot_id, "snapshot-id", f"{path}.snapshot.snapshot-id")
    check_epoch_ms(snapshot.timestamp_ms, f"{path}.snapshot.timestamp-ms")
    # Stored tables may hold anything here; but readers of changes (incremental scans, CDC) skip or fail on such a one.
    if snapshot.operation is not None and snapshot.operation not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        where = f"{path}.snapshot.summary.operation"
        raise SpecError(f"Unknown snapshot operation {snapshot.operation!r}: it must be one of {known}", where)
    return AddSnapshot(snapshot)


def _set_ref(obj: _Obj, path: str) -> SetSnapshotRef:
    # The ref's members lie flat in the update, beside keys that are not the ref's.
    ref = msgspec.structs.replace(parse_ref(obj, path), extra={})
    refuse_no_snapshot(ref.snapshot_id, "snapshot-id", f"{path}.snapshot-id")
    return SetSnapshotRef(required_str(obj, "ref-name", path), ref)


def _remove_snapshots(obj: _Obj, path: str) -> RemoveSnapshots:
    return RemoveSnapshots(as_int64_list(required(obj, "snapshot-ids", path), f"{path}.snapshot-ids"))


def _either(obj: _Obj, key: str, legacy: str, path: str) -> tuple[Json, str]:
    """The member `key`, or what older Java clients send in its place."""
    if obj.get(key) is None and obj.get(legacy) is not None:
        return obj[legacy], f"{path}.{legacy}"
    return required(obj, key, path), f"{path}.{key}"


def _set_properties(obj: _Obj, path: str) -> SetProperties:
    return SetProperties(as_str_map(*_either(obj, "updates", "updated", path)))


def _remove_properties(obj: _Obj, path: str) -> RemoveProperties:
    return RemoveProperties(as_str_list(*_either(obj, "removals", "removed", path)))


def _set_location(obj: _Obj, path: str) -> SetLocation:
    return SetLocation(required_str(obj, "location", path))


def _set_statistics(obj: _Obj, path: str) -> SetStatistics:
    file = statistics_from_json(required(obj, "statistics", path), f"{path}.statistics")
    refuse_no_snapshot(file.snapshot_id, "snapshot-id", f"{path}.statistics.snapshot-id")
    return SetStatistics(file)


def _set_partition_statistics(obj: _Obj, path: str) -> SetPartitionStatistics:
    value = required(obj, "partition-statistics", path)
    file = partition_statistics_from_json(value, f"{path}.partition-statistics")
    refuse_no_snapshot(file.snapshot_id, "snapshot-id", f"{path}.partition-statistics.snapshot-id")
    return SetPartitionStatistics(file)


def _remove_specs(obj: _Obj, path: str) -> RemovePartitionSpecs:
    return RemovePartitionSpecs(as_int32_list(required(obj, "spec-ids", path), f"{path}.spec-ids"))


def _remove_schemas(obj: _Obj, path: str) -> RemoveSchemas:
    return RemoveSchemas(as_int32_list(required(obj, "schema-ids", path), f"{path}.schema-ids"))


def _add_key(obj: _Obj, path: str) -> AddEncryptionKey:
    return AddEncryptionKey(encrypted_key_from_json(required(obj, "encryption-key", path), f"{path}.encryption-key"))


def _add_view_version(obj: _Obj, path: str) -> AddViewVersion:
    return AddViewVersion(view_version_from_json(required(obj, "view-version", path), f"{path}.view-version"))


_TABLE: dict[str, Callable[[_Obj, str], TableUpdate]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "add-schema": _add_schema,
    "set-current-schema": lambda obj, path: SetCurrentSchema(required_int32(obj, "schema-id", path)),
    "add-spec": _add_spec,
    "set-default-spec": lambda obj, path: SetDefaultSpec(required_int32(obj, "spec-id", path)),
    "add-sort-order": _add_order,
    "set-default-sort-order": lambda obj, path: SetDefaultSortOrder(required_int32(obj, "sort-order-id", path)),
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_ref,
    "remove-snapshots": _remove_snapshots,
    "remove-snapshot-ref": lambda obj, path: RemoveSnapshotRef(required_str(obj, "ref-name", path)),
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "set-statistics": _set_statistics,
    "remove-statistics": lambda obj, path: RemoveStatistics(required_int64(obj, "snapshot-id", path)),
    "set-partition-statistics": _set_partition_statistics,
    "remove-partition-statistics": lambda obj, path: RemovePartitionStatistics(
        required_int64(obj, "snapshot-id", path)
    ),
    "remove-partition-specs": _remove_specs,
    "remove-schemas": _remove_schemas,
    "add-encryption-key": _add_key,
    "remove-encryption-key": lambda obj, path: RemoveEncryptionKey(required_str(obj, "key-id", path)),
}
_VIEW: dict[str, Callable[[_Obj, str], ViewUpdate]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "add-schema": _add_schema,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "add-view-version": _add_view_version,
    "set-current-view-version": lambda obj, path: SetCurrentViewVersion(required_int32(obj, "view-version-id", path)),
}


def _action(item: Json, path: str) -> tuple[str, _Obj]:
    obj = as_object(item, path)
    if obj.get("action") is None:
        raise SpecError("Cannot parse metadata update. Missing field: action", path)
    return required_str(obj, "action", path).lower(), obj


def parse_table_updates(value: Json, path: str = "$.updates") -> tuple[TableUpdate, ...]:
    """From decoded JSON (null counts as none). BadRequest for an action that tables do not have, SpecError for form."""
    parsed = []
    for at, item in enumerate(as_list([] if value is None else value, path)):
        here = f"{path}[{at}]"
        action, obj = _action(item, here)
        reader = _TABLE.get(action)
        if reader is None:
            raise BadRequest(f"Unknown metadata update for a table: {action} (at {here}.action)")
        parsed.append(reader(obj, here))
    return tuple(parsed)


def parse_view_updates(value: Json, path: str = "$.updates") -> tuple[ViewUpdate, ...]:
    """From decoded JSON (null counts as none). BadRequest for an action that views do not have, SpecError for form."""
    parsed = []
    for at, item in enumerate(as_list([] if value is None else value, path)):
        here = f"{path}[{at}]"
        action, obj = _action(item, here)
        reader = _VIEW.get(action)
        if reader is None:
            raise BadRequest(f"Unknown metadata update for a view: {action} (at {here}.action)")
        parsed.append(reader(obj, here))
    return tuple(parsed)
