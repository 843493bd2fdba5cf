"""Rules about new snapshots and the schema they name (ICE509, ICE510)."""

from __future__ import annotations

from collections.abc import Iterator

from app.evolution.change import Change
from app.evolution.heritage import Burden, burdens
from app.evolution.registry import RULES
from app.rules import Fault


@RULES.rule("ICE509", "snapshot-schema-outdated", spec="Snapshots", conflict=True)
def snapshot_schema_outdated(change: Change) -> Iterator[Fault]:
    """A writer that began under an older schema adds to a snapshot that this schema cannot read.

    Checks
        A new snapshot whose parent is on a branch, and whose schema is not the current one: that schema can read what
        every retained ancestor was written under. Columns that were added or dropped meanwhile are no obstacle, a
        type that was widened is. Conflicts that the table's current schema had before are left out, and a snapshot
        that names no schema passes. The answer is 409: a refresh and a new attempt cure it.
    Why it matters
        A tag and a snapshot ID are read with the schema that the snapshot names, for good. Here it says int where
        files of the parent hold longs: time travel to the snapshot fails or returns other values.
    Example
        Column 1 was int in schema 0 and is long in schema 1; snapshot 7 was written under schema 1. Adding snapshot 8
        with parent 7 and schema-id 0 is refused, with schema-id 1 it is accepted.
    What to do
        Refresh the table and commit again under the current schema. Java, PyIceberg, iceberg-rust and DuckDB take
        schema and parent from the same version of the table and never get here. iceberg-go keeps the schema of its
        first attempt when it tries again on a new parent: run the operation again as a whole.
    Spec
        Snapshots: schema-id is the ID of the table's current schema when the snapshot was created.
    """
    for burden in burdens(change):
        if burden.outdated:
            current = change.current.current_schema_id
            yield _fault(burden, f"Refresh the table and write again under the current schema {current}.")


@RULES.rule("ICE510", "snapshot-unreadable-by-its-schema", spec="Snapshots")
def snapshot_unreadable_by_its_schema(change: Change) -> Iterator[Fault]:
    """A new snapshot takes over files that the schema it names cannot read.

    Checks
        A new snapshot with a parent, whether a branch, a tag or nothing leads to it: its schema can read what every
        ancestor was written under, those included that the same commit removes. Where the history behind is not
        complete, that holds for other retained schemas too, as far as their columns were there before; and such a
        column passes only if no schema is missing from the list. Left out are a parent that names the same schema, and
        the schema that branches are read with where the parent is on one: other rules judge a change of that.
    Why it matters
        A tag and a snapshot ID are read with the schema that the snapshot names, for good. No later commit can mend a
        snapshot that names the wrong one.
    Example
        Column 1 was long and is string since CREATE OR REPLACE TABLE. Adding a snapshot with the new schema whose
        parent is a snapshot from before is refused, without a parent it is accepted. A summary that tells of an
        overwrite changes nothing: it does not prove that all older files are gone.
    What to do
        Write the snapshot under a schema that reads its parent's files, or without a parent if it holds none of them.
    Spec
        Snapshots: schema-id is the ID of the table's current schema when the snapshot was created.
    """
    for burden in burdens(change):
        if not burden.outdated:
            yield _fault(burden, "Write it under a schema that reads its parent's files, or without a parent.")


def _fault(burden: Burden, fix: str) -> Fault:
    snapshot, own = burden.snapshot, burden.schema.schema_id
    head = f"snapshot {snapshot.snapshot_id} names schema {own}, which cannot read"
    if burden.doubt is not None:
        slot, end, clash = burden.doubt.slot, burden.doubt.end, burden.doubt.clash
        behind = f"{head} what may lie behind snapshot {end.snapshot.snapshot_id}, the last one known of its history: "
        if clash is None:
            text = f"{behind}{burden.doubt.gap} removed since: nothing tells what {slot.label} was there"
            written = None
        else:
            text = f"{behind}{slot.label} in {clash.against} ({clash.conflicts[0].value})"
            written = clash.against.schema_id
    else:
        first = burden.pairs[0]
        slot, written = first.slot, first.against.schema_id
        more = f" and {len(burden.pairs) - 1} more" if len(burden.pairs) > 1 else ""
        whose = f"snapshot {burden.ancestor.snapshot_id}" if burden.ancestor is not None else "the branches"
        text = (
            f"{head} what it takes over from {whose}, written under schema {written}: {slot.label} "
            f"({first.conflicts[0].value}){more}"
        )
    return Fault(
        text=text,
        fix=fix,
        field_id=slot.field_id,
        path=slot.path,
        before=None if written is None else str(written),
        after=str(own),
        follows=tuple(pair.slot.field_id for pair in burden.pairs),
    )
