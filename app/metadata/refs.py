"""Updates of a table's branches and tags, and the snapshot log that follows main."""

from __future__ import annotations

from app.errors import ValidationFailed
from app.iceberg.logs import SnapshotLog
from app.iceberg.ref import MAIN
from app.iceberg.update import RemoveSnapshotRef, SetSnapshotRef
from app.metadata.builder import MainMove, TableMetadataBuilder


def set_ref(draft: TableMetadataBuilder, update: SetSnapshotRef) -> None:
    name, ref = update.ref_name, update.ref
    known = draft.refs.get(name)
    if known is not None and known.same(ref):
        return
    snapshot = draft.snapshot(ref.snapshot_id)
    if snapshot is None:
        raise ValidationFailed(f"Cannot set {name} to unknown snapshot: {ref.snapshot_id}")
    if name == MAIN:
        if not ref.is_branch:
            raise ValidationFailed(f"Cannot set {MAIN} to a tag, it must be a branch")
        moved = draft.current_snapshot_id != ref.snapshot_id
        draft.current_snapshot_id = ref.snapshot_id
        if moved:
            added = ref.snapshot_id in draft.added_snapshots
            draft.main_moves.append(MainMove(ref.snapshot_id, snapshot.timestamp_ms if added else None))
    draft.put_ref(name, ref)
    draft.record(update)


def remove_ref(draft: TableMetadataBuilder, update: RemoveSnapshotRef) -> None:
    """Without main there is no current snapshot; the snapshot log stays."""
    unset = update.ref_name == MAIN and draft.current_snapshot_id is not None
    if drop_ref(draft, update.ref_name) or unset:
        draft.record(update)


def drop_ref(draft: TableMetadataBuilder, name: str) -> bool:
    """Remove the ref if it exists; True if it did."""
    if name == MAIN:
        draft.current_snapshot_id = None
    return draft.pop_ref(name)


def settled_snapshot_log(draft: TableMetadataBuilder, updated_ms: int) -> SnapshotLog:
    """The log as the commit leaves it; new entries lie between the last entry and `updated_ms` (epoch ms).

    Snapshots of this commit that main only passed through leave no trace. A removed snapshot takes the history before
    it along: with a gap the log would tell that another snapshot was current then.
    """
    log = SnapshotLog() if draft.base is None else draft.base.snapshot_log
    moves = [
        move for move in draft.main_moves if move.timestamp_ms is None or move.snapshot_id == draft.current_snapshot_id
    ]
    if draft.removed_snapshot_ids:
        lost = [at for at, move in enumerate(moves) if draft.snapshot(move.snapshot_id) is None]
        if lost:
            log, moves = SnapshotLog(), moves[lost[-1] + 1 :]
        else:
            log = _without_gaps(draft, log)
    for move in moves:
        timestamp_ms = updated_ms if move.timestamp_ms is None else min(move.timestamp_ms, updated_ms)
        if log.last is not None:
            timestamp_ms = max(timestamp_ms, log.last.timestamp_ms)
        log = log.add(timestamp_ms, move.snapshot_id)
    return log


def _without_gaps(draft: TableMetadataBuilder, log: SnapshotLog) -> SnapshotLog:
    """The log after its last entry that names an unlisted snapshot."""
    cut = 0
    for at, entry in enumerate(log, 1):
        if draft.snapshot(entry.snapshot_id) is None:
            cut = at
    return log.after(cut)
