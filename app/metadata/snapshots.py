"""Updates of a table's snapshots and of the statistics that belong to them."""

from __future__ import annotations

from app.errors import CommitFailed, ValidationFailed
from app.iceberg.json.codec import INT64_MAX
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import ROW_LINEAGE_VERSION
from app.iceberg.update import (
    LAST_ADDED,
    AddSnapshot,
    RemovePartitionStatistics,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)
from app.metadata.builder import TableMetadataBuilder
from app.metadata.refs import drop_ref


def add_snapshot(draft: TableMetadataBuilder, update: AddSnapshot) -> None:
    """List the snapshot; sequence number and row ids advance the table's counters.

    CommitFailed for what a writer computed from a state that is no longer the present one: a refresh cures it.
    """
    snapshot = update.snapshot
    for what, present in (("schema", draft.schemas), ("partition spec", draft.specs), ("sort order", draft.orders)):
        if not present:
            raise ValidationFailed(f"Attempting to add a snapshot before a {what} is added")
    if draft.snapshot(snapshot.snapshot_id) is not None:
        raise ValidationFailed(f"Snapshot already exists for id: {snapshot.snapshot_id}")
    _check_parent(draft, snapshot)
    if draft.format_version > 1:
        snapshot = _complete(snapshot)
    snapshot = _with_assigned_schema(draft, snapshot)
    _check_spec_ids(draft)
    _advance_sequence_number(draft, snapshot)
    if draft.format_version >= ROW_LINEAGE_VERSION:
        _advance_row_id(draft, snapshot)
    draft.added_snapshots[snapshot.snapshot_id] = snapshot
    draft.record(AddSnapshot(snapshot))


def _stale(draft: TableMetadataBuilder, message: str) -> CommitFailed | ValidationFailed:
    """Stale on a table that others may have changed meanwhile, plainly wrong on one that is just being created."""
    return ValidationFailed(message) if draft.creating else CommitFailed(message)


def _complete(snapshot: Snapshot) -> Snapshot:
    """The snapshot as versions 2 and later want it: with an operation and by a manifest list, and nothing else."""
    if snapshot.manifests is not None or snapshot.manifest_list is None:
        raise ValidationFailed(
            f"Cannot add snapshot {snapshot.snapshot_id}: from format version 2 on it must name its manifests in a "
            "manifest-list; the member manifests is for version 1 only"
        )
    return snapshot.with_operation()


def _check_parent(draft: TableMetadataBuilder, snapshot: Snapshot) -> None:
    parent = snapshot.parent_snapshot_id
    if parent is not None and draft.snapshot(parent) is None:
        raise _stale(draft, f"Cannot add snapshot {snapshot.snapshot_id}: unknown parent snapshot {parent}")


def _with_assigned_schema(draft: TableMetadataBuilder, snapshot: Snapshot) -> Snapshot:
    """The snapshot naming its schema by the number that this commit gave it, where the writer had guessed another."""
    sent = snapshot.schema_id
    if sent is None:
        return snapshot
    assigned = draft.assigned_schema_ids.get(sent, sent)
    if sent == LAST_ADDED and draft.last_added_schema_id is not None:
        assigned = draft.last_added_schema_id
    if assigned not in draft.schemas:
        raise _stale(draft, f"Cannot add snapshot {snapshot.snapshot_id}: unknown schema {sent}")
    return snapshot if assigned == sent else snapshot.with_schema_id(assigned)


def _check_spec_ids(draft: TableMetadataBuilder) -> None:
    """Manifests hold the writer's own number of a new spec; under another number their data would be misread."""
    for sent, assigned in draft.assigned_spec_ids.items():
        raise _stale(
            draft,
            f"Cannot add snapshot: its files may name partition spec {sent}, which is numbered {assigned} in the table",
        )


def _advance_sequence_number(draft: TableMetadataBuilder, snapshot: Snapshot) -> None:
    number, last = snapshot.sequence_number, draft.last_sequence_number
    if number < 0:
        raise ValidationFailed(f"Cannot add snapshot with negative sequence number {number}")
    if draft.format_version == 1:
        if number != 0:
            raise ValidationFailed(f"Cannot add snapshot with sequence number {number}: it must be 0 in v1")
        return
    if number <= last and snapshot.parent_snapshot_id is not None:
        raise _stale(draft, f"Cannot add snapshot with sequence number {number} older than last sequence number {last}")
    draft.last_sequence_number = max(last, number)


def _advance_row_id(draft: TableMetadataBuilder, snapshot: Snapshot) -> None:
    first = snapshot.first_row_id
    if first is None:
        raise ValidationFailed("Cannot add a snapshot: first-row-id is null")
    if first < draft.next_row_id:
        raise _stale(
            draft,
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {draft.next_row_id}",
        )
    # From the snapshot's first id, not from the table's counter: after a gap the two differ, and ids must not recur.
    following = first + (snapshot.added_rows or 0)
    if following > INT64_MAX:
        raise ValidationFailed(f"Cannot add a snapshot: row ids would pass the 64-bit range ({following})")
    draft.next_row_id = following


def remove_snapshots(draft: TableMetadataBuilder, update: RemoveSnapshots) -> None:
    """Drop snapshots with their statistics and every ref that points to them. Unknown ids are ignored."""
    found = False
    for snapshot_id in update.snapshot_ids:
        if draft.added_snapshots.pop(snapshot_id, None) is None:
            if snapshot_id in draft.removed_snapshot_ids or snapshot_id not in draft.listed:
                continue
            draft.removed_snapshot_ids.add(snapshot_id)
        found = True
        draft.statistics.pop(snapshot_id, None)
        draft.partition_statistics.pop(snapshot_id, None)
        for name in draft.names_of(snapshot_id):
            drop_ref(draft, name)
    if found:
        draft.record(update)


def set_statistics(draft: TableMetadataBuilder, update: SetStatistics) -> None:
    file = update.statistics
    known = draft.statistics.get(file.snapshot_id, ())
    if [item.raw for item in known] != [file.raw]:
        draft.statistics[file.snapshot_id] = (file,)
        draft.record(update)


def remove_statistics(draft: TableMetadataBuilder, update: RemoveStatistics) -> None:
    if draft.statistics.pop(update.snapshot_id, None) is not None:
        draft.record(update)


def set_partition_statistics(draft: TableMetadataBuilder, update: SetPartitionStatistics) -> None:
    file = update.partition_statistics
    known = draft.partition_statistics.get(file.snapshot_id, ())
    if [item.raw for item in known] != [file.raw]:
        draft.partition_statistics[file.snapshot_id] = (file,)
        draft.record(update)


def remove_partition_statistics(draft: TableMetadataBuilder, update: RemovePartitionStatistics) -> None:
    if draft.partition_statistics.pop(update.snapshot_id, None) is not None:
        draft.record(update)
