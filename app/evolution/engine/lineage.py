"""Which schemas the current schema must be able to read, from metadata alone.

Readers open every branch with the current schema, and a tag or a snapshot ID with the schema that its snapshot
names. So only branches bind a change. By induction the schema that was current before reads everything its branches
hold; the schemas that the branches' snapshots name tell when it need not be asked: after a replacement, an undo, or
a return to the time before a replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.iceberg.snapshot import Snapshot
from app.iceberg.table import TableMetadata


class Written(msgspec.Struct, frozen=True, gc=False):
    """A schema under which a snapshot in a branch's history was written, with the newest such snapshot."""

    schema_id: int
    snapshot_id: int
    branch: str


class Head(msgspec.Struct, frozen=True, gc=False):
    """Where a branch stands. `schema_id` is None when its snapshot names no retained schema."""

    branch: str
    snapshot_id: int
    schema_id: int | None


class Lineage(msgspec.Struct, frozen=True):
    """What the branches of a table still hold.

    `exempt`: nothing that was written before this schema is reachable from a branch, so the schema may be anything.
    `complete`: every branch's history is retained down to a parentless snapshot and each of its snapshots names a
    retained schema; then `written` is everything the current schema has to read.
    `rebased`: no branch shares a snapshot with any branch of the table before the commit.
    `older`: for a rebased table with an incomplete history, the retained schemas that its lost part may have been
    written under; None when metadata cannot tell.
    `blockers`: the branches that hold other schemas (or an unknown past) and so bind the change.
    """

    exempt: bool
    complete: bool
    rebased: bool
    heads: tuple[Head, ...]
    written: tuple[Written, ...]
    blockers: tuple[str, ...]
    older: tuple[int, ...] | None = None

    @property
    def binds_current(self) -> bool:
        """Whether the schema that was current before the commit must stay readable."""
        return not self.exempt and not (self.rebased and (self.complete or self.older is not None))


class LooseEnd(msgspec.Struct, frozen=True):
    """Where a branch's history becomes unknown, seen from its head.

    `snapshot` is the last one known: the first that names no retained schema, or the one whose parent is not listed.
    `schema_ids` are the retained schemas on the way, the snapshot's own included. Each of them was current when its
    snapshot was written and could read all that lies behind; so only a field that none of them has is in doubt.
    """

    branch: str
    snapshot: Snapshot
    schema_ids: frozenset[int]


class _Walk:
    """The retained histories of all branches, each snapshot visited once."""

    def __init__(self, table: TableMetadata) -> None:
        self.seen: dict[int, str] = {}
        self.written: dict[int, Written] = {}
        self.complete = True
        self.heads: list[Head] = []
        self.blockers: list[str] = []
        for name, ref in table.refs.items():
            if ref.is_branch:
                self._follow(table, name, ref.snapshot_id)

    def _follow(self, table: TableMetadata, branch: str, start: int) -> None:
        current = table.current_schema_id
        blocked = False
        last: Snapshot | None = None
        for snapshot in table.snapshots.ancestry(start):
            schema_id = retained_schema_id(table, snapshot)
            if last is None:
                self.heads.append(Head(branch, start, schema_id))
            last = snapshot
            joined = self.seen.get(snapshot.snapshot_id)
            if joined is not None:
                blocked = blocked or joined in self.blockers
                break
            self.seen[snapshot.snapshot_id] = branch
            blocked = blocked or schema_id != current
            if schema_id is None:
                self.complete = False
            elif schema_id not in self.written:
                self.written[schema_id] = Written(schema_id, snapshot.snapshot_id, branch)
        else:
            if last is None or last.parent_snapshot_id is not None:
                self.complete = False
                blocked = True
        if blocked:
            self.blockers.append(branch)


def lineage(previous: TableMetadata | None, current: TableMetadata) -> Lineage:
    """The obligations of `current`'s schema. Linear in the retained snapshots of the branches; each is seen once."""
    walk = _Walk(current)
    past = _Walk(previous) if previous is not None and branches_moved(previous, current) else None
    rebased = past is not None and past.seen.keys().isdisjoint(walk.seen.keys())
    older = None
    if rebased and past is not None and previous is not None and not walk.complete:
        older = _older_schemas(previous, past, walk)
    return Lineage(
        exempt=not walk.blockers,
        complete=walk.complete,
        rebased=rebased,
        heads=tuple(walk.heads),
        written=tuple(walk.written.values()),
        blockers=tuple(walk.blockers),
        older=older,
    )


def _older_schemas(previous: TableMetadata, past: _Walk, walk: _Walk) -> tuple[int, ...] | None:
    """The schemas that existed before the replacement which the branches now leave behind.

    Told by the server's numbering, which only grows: sure only when the history that is left is complete, all its
    schemas are younger than those of the history returned to, and every snapshot returned to names its schema.
    """
    if not past.complete or not walk.written or any(head.schema_id is None for head in walk.heads):
        return None
    replaced_at = min(past.written, default=previous.current_schema_id)
    if max(walk.written) >= replaced_at:
        return None
    return tuple(schema_id for schema_id in previous.schemas if schema_id < replaced_at)


def branches_moved(previous: TableMetadata | None, current: TableMetadata) -> bool:
    """Whether a branch came, went or points elsewhere. Creating the table is no move."""
    if previous is None or previous.refs is current.refs:
        return False
    return _branches(previous) != _branches(current)


def _branches(table: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in table.refs.items() if ref.is_branch}


def retained_schema_id(table: TableMetadata, snapshot: Snapshot) -> int | None:
    """The schema that the snapshot names, if the table still has it."""
    schema_id = snapshot.schema_id
    return schema_id if schema_id is not None and schema_id in table.schemas else None


def arrivals(previous: TableMetadata | None, current: TableMetadata) -> Iterator[tuple[str, Snapshot]]:
    """Snapshots that a branch's history holds and no branch's history held before, with that branch.

    A plain append costs one step, a rollback the steps between the two heads.
    """
    if previous is not None and recycles(previous, current):
        previous = None
    if previous is not None and previous.refs is current.refs:
        return
    before = {} if previous is None else _branches(previous)
    heads = frozenset(before.values())
    past = Reached(previous) if previous is not None else None
    seen: set[int] = set()
    for name, ref in current.refs.items():
        if not ref.is_branch or before.get(name) == ref.snapshot_id:
            continue
        for snapshot in current.snapshots.ancestry(ref.snapshot_id):
            if snapshot.snapshot_id in heads or snapshot.snapshot_id in seen:
                break
            if past is not None and snapshot.snapshot_id in past:
                break
            seen.add(snapshot.snapshot_id)
            yield name, snapshot


def newcomers(previous: TableMetadata | None, current: TableMetadata) -> Iterator[Snapshot]:
    """Snapshots that the earlier version does not list, or lists as something else. A plain append costs one step."""
    if previous is None:
        yield from current.snapshots
    elif previous.snapshots is not current.snapshots:
        for snapshot in current.snapshots.since(previous.snapshots):
            known = previous.snapshots.get(snapshot.snapshot_id)
            if known is not snapshot and known != snapshot:
                yield snapshot


def recycles(previous: TableMetadata, current: TableMetadata) -> bool:
    """Whether a snapshot ID names another snapshot than before: removed and added by one commit. Then IDs say nothing
    about what branches held."""
    return any(snapshot.snapshot_id in previous.snapshots for snapshot in newcomers(previous, current))


def builds_on_its_own(previous: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether a new snapshot plainly reads all that it takes over, told without a walk.

    It names no schema or no parent, or its parent names the same schema, or the parent is a branch's head and the
    schema is the one that branches were read with before.
    """
    parent_id, schema_id = snapshot.parent_snapshot_id, snapshot.schema_id
    if schema_id is None or parent_id is None:
        return True
    parent = previous.snapshots.get(parent_id)
    if parent is None:
        return False
    if parent.schema_id == schema_id:
        return True
    return schema_id == previous.current_schema_id and parent_id in _branches(previous).values()


def loose_ends(table: TableMetadata) -> Iterator[LooseEnd]:
    """The branches whose history is not known down to a parentless snapshot. Linear in the retained snapshots."""
    for name, ref in table.refs.items():
        if ref.is_branch:
            end = _loose_end(table, name, ref.snapshot_id, None)
            if end is not None:
                yield end


def strange_ends(previous: TableMetadata | None, current: TableMetadata) -> Iterator[LooseEnd]:
    """The branches that came to a history which becomes unknown before it meets one that some branch held already.

    What branches held before needs no second look. A listed snapshot that names no schema counts as written under the
    current one, as readers take it.
    """
    if previous is None:
        return
    recycled = recycles(previous, current)
    if previous.refs is current.refs and not recycled:
        return
    before = {} if recycled else _branches(previous)
    past = Reached(None if recycled else previous)
    for name, ref in current.refs.items():
        if ref.is_branch and before.get(name) != ref.snapshot_id:
            end = _loose_end(current, name, ref.snapshot_id, past)
            if end is not None:
                yield end


def _loose_end(table: TableMetadata, branch: str, start: int, past: Reached | None) -> LooseEnd | None:
    """Where the history from `start` becomes unknown; with `past`, only beyond what branches held before."""
    schema_ids: set[int] = set()
    last: Snapshot | None = None
    for snapshot in table.snapshots.ancestry(start):
        if past is not None and snapshot.snapshot_id in past:
            return None
        last = snapshot
        schema_id = retained_schema_id(table, snapshot)
        if schema_id is not None:
            schema_ids.add(schema_id)
        elif past is None:
            return LooseEnd(branch, snapshot, frozenset(schema_ids))
    if last is None or last.parent_snapshot_id is None:
        return None
    if past is not None and last.parent_snapshot_id in past:
        return None
    return LooseEnd(branch, last, frozenset(schema_ids))


class Reached:
    """The snapshots that a table's branches reach, looked up no further back than the answer needs."""

    def __init__(self, table: TableMetadata | None) -> None:
        self._table = table
        self._seen: set[int] = set()
        # It does not know this object: the two would be a cycle, which keeps whole documents until the next collection.
        self._unseen = _reached(table, self._seen)

    def __contains__(self, snapshot_id: int) -> bool:
        if snapshot_id in self._seen:
            return True
        if self._table is None or snapshot_id not in self._table.snapshots:
            return False
        return any(found == snapshot_id for found in self._unseen)


def _reached(table: TableMetadata | None, seen: set[int]) -> Iterator[int]:
    """The snapshots in the branches' histories that are not in `seen` yet; each is added when it comes."""
    if table is None:
        return
    for snapshot_id in _branches(table).values():
        for snapshot in table.snapshots.ancestry(snapshot_id):
            if snapshot.snapshot_id in seen:
                break
            seen.add(snapshot.snapshot_id)
            yield snapshot.snapshot_id
