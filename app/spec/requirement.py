"""Requirements of a commit: what must still hold of the base (REST protocol: TableRequirement, ViewRequirement)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.errors import BadRequest, SpecError
from app.spec.codec import (
    Json,
    as_list,
    as_object,
    optional_int32,
    optional_int64,
    required_int32,
    required_str,
)
from app.spec.ref import NO_SNAPSHOT


class AssertCreate(msgspec.Struct, frozen=True):
    """The table must not exist yet."""


class AssertTableUuid(msgspec.Struct, frozen=True):
    uuid: str


class AssertRefSnapshotId(msgspec.Struct, frozen=True):
    """The ref points to this snapshot; None means that it does not exist."""

    ref: str
    snapshot_id: int | None


class AssertLastAssignedFieldId(msgspec.Struct, frozen=True):
    last_assigned_field_id: int


class AssertCurrentSchemaId(msgspec.Struct, frozen=True):
    current_schema_id: int


class AssertLastAssignedPartitionId(msgspec.Struct, frozen=True):
    """None (older Python clients) asserts nothing."""

    last_assigned_partition_id: int | None


class AssertDefaultSpecId(msgspec.Struct, frozen=True):
    default_spec_id: int


class AssertDefaultSortOrderId(msgspec.Struct, frozen=True):
    default_sort_order_id: int


class AssertViewUuid(msgspec.Struct, frozen=True):
    uuid: str


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

_Obj = dict[str, Json]


def _assert_ref(obj: _Obj, path: str) -> AssertRefSnapshotId:
    # -1 is how some serializers write "no snapshot"; a missing key is how others do.
    snapshot_id = optional_int64(obj, "snapshot-id", path)
    return AssertRefSnapshotId(required_str(obj, "ref", path), None if snapshot_id == NO_SNAPSHOT else snapshot_id)


def _assert_field_id(obj: _Obj, path: str) -> AssertLastAssignedFieldId:
    return AssertLastAssignedFieldId(required_int32(obj, "last-assigned-field-id", path))


def _assert_partition_id(obj: _Obj, path: str) -> AssertLastAssignedPartitionId:
    return AssertLastAssignedPartitionId(optional_int32(obj, "last-assigned-partition-id", path))


_TABLE: dict[str, Callable[[_Obj, str], TableRequirement]] = {
    "assert-create": lambda obj, path: AssertCreate(),
    "assert-table-uuid": lambda obj, path: AssertTableUuid(required_str(obj, "uuid", path)),
    "assert-ref-snapshot-id": _assert_ref,
    "assert-last-assigned-field-id": _assert_field_id,
    "assert-current-schema-id": lambda obj, path: AssertCurrentSchemaId(required_int32(obj, "current-schema-id", path)),
    "assert-last-assigned-partition-id": _assert_partition_id,
    "assert-default-spec-id": lambda obj, path: AssertDefaultSpecId(required_int32(obj, "default-spec-id", path)),
    "assert-default-sort-order-id": lambda obj, path: AssertDefaultSortOrderId(
        required_int32(obj, "default-sort-order-id", path)
    ),
}
_VIEW: dict[str, Callable[[_Obj, str], ViewRequirement]] = {
    "assert-view-uuid": lambda obj, path: AssertViewUuid(required_str(obj, "uuid", path)),
}


def _kind(obj: _Obj, path: str) -> str:
    if obj.get("type") is None:
        raise SpecError("Cannot parse update requirement. Missing field: type", path)
    return required_str(obj, "type", path).lower()


def parse_table_requirements(value: Json, path: str = "$.requirements") -> tuple[TableRequirement, ...]:
    """From decoded JSON (null counts as none). BadRequest for a type unknown for tables, SpecError for a bad form."""
    parsed = []
    for at, item in enumerate(as_list([] if value is None else value, path)):
        here = f"{path}[{at}]"
        obj = as_object(item, here)
        kind = _kind(obj, here)
        reader = _TABLE.get(kind)
        if reader is None:
            raise BadRequest(f"Unrecognized update requirement for a table: {kind} (at {here}.type)")
        parsed.append(reader(obj, here))
    return tuple(parsed)


def parse_view_requirements(value: Json, path: str = "$.requirements") -> tuple[ViewRequirement, ...]:
    """From decoded JSON (null counts as none). BadRequest for a type unknown for views, SpecError for a bad form."""
    parsed = []
    for at, item in enumerate(as_list([] if value is None else value, path)):
        here = f"{path}[{at}]"
        obj = as_object(item, here)
        kind = _kind(obj, here)
        reader = _VIEW.get(kind)
        if reader is None:
            raise BadRequest(f"Unrecognized update requirement for a view: {kind} (at {here}.type)")
        parsed.append(reader(obj, here))
    return tuple(parsed)
