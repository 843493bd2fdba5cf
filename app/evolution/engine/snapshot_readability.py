"""Whether each new snapshot can be read with the schema that it names.

A tag and a snapshot ID are read with the schema of their snapshot, for good: no later commit can mend it. A new
snapshot may hold every file of its ancestors, so its schema has to read what they were written under. An overwrite
that drops all of them cannot be told from metadata; one that means to start afresh has no parent.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import (
    Against,
    Pair,
    conflicts,
    misread,
    misread_fields,
    same_default,
    slot_of,
)
from app.evolution.engine.diff import Delta, Slot, diff, same_type
from app.evolution.engine.incomplete_history import Doubt, may_lie_behind
from app.evolution.engine.lineage import LooseEnd, Reached, newcomers, retained_schema_id
from app.evolution.engine.removed_schemas import born_after, gap, horizon
from app.iceberg.schema import Schema
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import TableMetadata


class UnreadableSnapshot(msgspec.Struct, frozen=True):
    """A new snapshot that takes over files which its own schema cannot read.

    `ancestor` is the newest one written under the schema that breaks, None where that part of the history is lost;
    `pairs` are the fields that break with it. Exactly one of `pairs` and `doubt` is set.
    `outdated`: the parent is on a branch and the schema is an older one that the current one can read: a writer that
    had not seen the present state. Written again under the current schema, the snapshot reads all.
    """

    snapshot: Snapshot
    schema: Schema
    outdated: bool
    ancestor: Snapshot | None = None
    pairs: tuple[Pair, ...] = ()
    doubt: Doubt | None = None


class _Line(msgspec.Struct, frozen=True):
    """The ancestors of a new snapshot, newest first, those that this very commit removes among them."""

    ancestors: tuple[Snapshot, ...]
    complete: bool

    def newest_by_schema(self) -> dict[int, Snapshot]:
        """The newest ancestor by the schema it names. Of one that names none nobody can tell what its files are."""
        found: dict[int, Snapshot] = {}
        for ancestor in self.ancestors:
            if ancestor.schema_id is not None:
                found.setdefault(ancestor.schema_id, ancestor)
        return found


def burdens(change: Change) -> Iterator[UnreadableSnapshot]:
    """One for each new snapshot that cannot be read with its own schema."""
    if not change.takes_effect:
        return
    held = Reached(change.previous)
    holding = Reached(change.current)
    for snapshot in newcomers(change.previous, change.current):
        schema = _own_schema(change.current, snapshot)
        if schema is None or snapshot.parent_snapshot_id is None:
            continue
        parent = _listed(change, snapshot.parent_snapshot_id)
        if parent is not None and parent.schema_id == snapshot.schema_id:
            continue  # what the parent's schema could not read is nothing new
        on_branch = snapshot.parent_snapshot_id in held
        if on_branch and change.previous is not None and snapshot.schema_id == change.previous.current_schema_id:
            continue  # branches were read with it before
        if snapshot.schema_id == change.current.current_schema_id and snapshot.parent_snapshot_id in holding:
            continue  # branches are read with it now, which other rules judge
        foreign = bool(change.misread(schema))
        if foreign and snapshot.snapshot_id in holding:
            continue  # refused for the branch's sake already
        outdated = on_branch and not foreign and snapshot.schema_id != change.current.current_schema_id
        found = _burden(change, snapshot, schema, parent, on_branch=on_branch, outdated=outdated)
        if found is not None:
            yield found


def _burden(
    change: Change, snapshot: Snapshot, schema: Schema, parent: Snapshot | None, *, on_branch: bool, outdated: bool
) -> UnreadableSnapshot | None:
    suspects = _suspects(change, schema) if on_branch else None
    if suspects == ():
        return None
    line = _line(change, snapshot)
    newest = line.newest_by_schema()
    if parent is None and change.previous is not None:
        # Added and removed by this very commit. What it was written on is on a branch, as far as anybody can tell.
        newest[change.previous.current_schema_id] = snapshot
    for schema_id, ancestor in newest.items():
        earlier = _schema(change, schema_id)
        if earlier is None:
            continue
        if suspects is None:
            pairs = misread(change.law, earlier, schema)
        else:
            pairs = misread_fields(change.law, earlier, schema, suspects)
        if on_branch:
            pairs = _worse_than_before(change, earlier, pairs)
        if pairs:
            cured = outdated and not misread(change.law, earlier, change.after)
            return UnreadableSnapshot(snapshot, schema, cured, None if ancestor is snapshot else ancestor, pairs)
    doubt = None if line.complete else _doubt(change, schema, line, frozenset(newest), on_branch=on_branch)
    return None if doubt is None else UnreadableSnapshot(snapshot, schema, outdated, doubt=doubt)


def _suspects(change: Change, schema: Schema) -> tuple[int, ...] | None:
    """The fields that readers of the branch had otherwise, or not at all: what the others break was broken before.

    None when they tell too little: inside a map key the place among siblings counts.
    """
    if change.previous is None:
        return None
    deltas = diff(change.previous.schema, schema).deltas
    if any(slot is not None and slot.in_key for delta in deltas.values() for slot in (delta.before, delta.after)):
        return None
    return tuple(field_id for field_id, delta in deltas.items() if _reads_otherwise(delta))


def _reads_otherwise(delta: Delta) -> bool:
    """Whether a field reads files differently from before: not if it only has another name or place."""
    old, new = delta.before, delta.after
    if old is None or new is None:
        return new is not None
    plain = same_type(old.type, new.type) and same_default(old, new) and not delta.reparented
    return not plain or old.required != new.required


def _worse_than_before(change: Change, earlier: Schema, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """The conflicts that readers of the branch did not have before: a table may have come with the others."""
    if not pairs or change.previous is None:
        return pairs
    before = {(p.slot.field_id, c) for p in misread(change.law, earlier, change.previous.schema) for c in p.conflicts}
    return tuple(p for p in pairs if not all((p.slot.field_id, c) in before for c in p.conflicts))


def _doubt(change: Change, schema: Schema, line: _Line, schema_ids: frozenset[int], *, on_branch: bool) -> Doubt | None:
    """A field of which the lost part of the history may hold files that the schema cannot read.

    A field that came after the last known ancestor, as far as anything tells, is in no file back there.
    """
    if not line.ancestors or not schema_ids:
        return None
    end = LooseEnd("", line.ancestors[-1], schema_ids)
    table = change.current if change.previous is None else change.previous
    youngest = horizon(table, end.snapshot)
    known = [found for found in (_schema(change, i) for i in schema_ids) if found is not None]
    for field_id in schema.by_id:
        slot = slot_of(schema, field_id)
        if slot is None or any(field_id in other.by_id for other in known) or born_after(table, field_id) >= youngest:
            continue
        if on_branch and change.previous is not None and _as_before(change, change.previous.schema, slot, schema):
            continue
        for other, earlier in change.definitions(field_id):
            found = conflicts(change.law, Delta(earlier, slot), other, schema)
            if found and may_lie_behind(change, other, end):
                return Doubt(slot, end, clash=Pair(earlier, slot, found, Against(other.schema_id)))
        missing = gap(table, field_id)
        if missing is not None:
            return Doubt(slot, end, gap=missing)
    return None


def _as_before(change: Change, before: Schema, slot: Slot, schema: Schema) -> bool:
    """Whether the field reads all that it reads in the schema which branches were read with before."""
    present = slot_of(before, slot.field_id)
    return present is not None and not conflicts(change.law, Delta(present, slot), before, schema)


def _line(change: Change, snapshot: Snapshot) -> _Line:
    ancestors: list[Snapshot] = []
    seen = {snapshot.snapshot_id}
    at = snapshot.parent_snapshot_id
    while at is not None and at not in seen:
        found = _listed(change, at)
        if found is None:
            return _Line(tuple(ancestors), complete=False)
        seen.add(at)
        ancestors.append(found)
        at = found.parent_snapshot_id
    return _Line(tuple(ancestors), complete=at is None)


def _listed(change: Change, snapshot_id: int) -> Snapshot | None:
    found = change.current.snapshots.get(snapshot_id)
    if found is None and change.previous is not None:
        return change.previous.snapshots.get(snapshot_id)
    return found


def _own_schema(table: TableMetadata, snapshot: Snapshot) -> Schema | None:
    schema_id = retained_schema_id(table, snapshot)
    return None if schema_id is None else table.schemas.get(schema_id)


def _schema(change: Change, schema_id: int) -> Schema | None:
    found = change.current.schemas.get(schema_id)
    if found is None and change.previous is not None:
        return change.previous.schemas.get(schema_id)
    return found
