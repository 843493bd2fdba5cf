"""Whether the caller saw the present state: requirements of a commit against its base (REST protocol: requirements).

The wording is what the reference suites match.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import BadRequest, CommitFailed
from app.spec.requirement import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
    ViewRequirement,
)
from app.spec.table import TableMetadata
from app.spec.view import ViewMetadata


def is_create(requirements: Sequence[TableRequirement]) -> bool:
    """Whether the commit creates the table. BadRequest when `assert-create` comes with other requirements."""
    creating = [item for item in requirements if isinstance(item, AssertCreate)]
    if creating and len(creating) != len(requirements):
        raise BadRequest("Invalid create requirements: assert-create cannot be combined with other requirements")
    return bool(creating)


def check_table(requirements: Sequence[TableRequirement], base: TableMetadata | None) -> None:
    """All requirements, in order, against the state that the updates will meet (None: there is no table). CommitFailed
    at the first that fails."""
    if is_create(requirements):
        if base is not None:
            raise CommitFailed.requirement("table already exists")
        return
    for requirement in requirements:
        reason = _unmet(requirement, base)
        if reason is not None:
            raise CommitFailed.requirement(reason)


def _unmet(requirement: TableRequirement, base: TableMetadata | None) -> str | None:
    if base is None:
        # Counters of a table that does not exist contradict nothing; everything else does.
        counters = (AssertLastAssignedFieldId, AssertLastAssignedPartitionId)
        return None if isinstance(requirement, counters) else "table does not exist"
    match requirement:
        case AssertTableUuid(uuid):
            if base.table_uuid is None or uuid.lower() != base.table_uuid.lower():
                return f"UUID does not match: expected {base.table_uuid} != {uuid}"
        case AssertRefSnapshotId():
            return _unmet_ref(requirement, base)
        case AssertLastAssignedFieldId(sent):
            if sent != base.last_column_id:
                return f"last assigned field id changed: expected id {sent} != {base.last_column_id}"
        case AssertCurrentSchemaId(sent):
            if sent != base.current_schema_id:
                return f"current schema changed: expected id {sent} != {base.current_schema_id}"
        case AssertLastAssignedPartitionId(sent_or_none):
            if sent_or_none is not None and sent_or_none != base.last_partition_id:
                return f"last assigned partition id changed: expected id {sent_or_none} != {base.last_partition_id}"
        case AssertDefaultSpecId(sent):
            if sent != base.default_spec_id:
                return f"default partition spec changed: expected id {sent} != {base.default_spec_id}"
        case AssertDefaultSortOrderId(sent):
            if sent != base.default_sort_order_id:
                return f"default sort order changed: expected id {sent} != {base.default_sort_order_id}"
    return None


def _unmet_ref(requirement: AssertRefSnapshotId, base: TableMetadata) -> str | None:
    name, sent = requirement.ref, requirement.snapshot_id
    ref = base.refs.get(name)
    if ref is None:
        return None if sent is None else f"branch or tag {name} is missing, expected {sent}"
    if sent is None:
        return f"{ref.kind} {name} was created concurrently"
    if sent != ref.snapshot_id:
        return f"{ref.kind} {name} has changed: expected id {sent} != {ref.snapshot_id}"
    return None


def check_view(requirements: Sequence[ViewRequirement], base: ViewMetadata) -> None:
    """CommitFailed at the first requirement that fails."""
    for requirement in requirements:
        if requirement.uuid.lower() != base.view_uuid.lower():
            raise CommitFailed.requirement(f"view UUID does not match: expected {base.view_uuid} != {requirement.uuid}")
