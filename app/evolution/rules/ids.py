"""Rules about identity: field IDs, schema and spec IDs, and the counters behind them (ICE1xx)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.evolution.engine.change import Change
from app.evolution.engine.diff import describe
from app.evolution.engine.incomplete_history import unsettled
from app.evolution.engine.registry import RULES
from app.rules import Fault, Severity

HIGHEST_FIELD_ID: Final = 2147483447
"""Integer.MAX_VALUE - 200; everything above belongs to metadata columns."""

WIDE_GAP: Final = 1_000_000


@RULES.rule("ICE101", "reserved-field-id", spec="Reserved Field IDs", definition=True)
def reserved_field_id(change: Change) -> Iterator[Fault]:
    """A field takes an ID from the range that is reserved for metadata columns.

    Checks
        Every field that the change adds, at any depth, has an ID of at most 2147483447 (Integer.MAX_VALUE - 200).
    Why it matters
        Engines put `_file`, `_pos`, `_row_id` and other metadata columns into the same projection as user columns,
        under IDs of this range. A user column there answers for a metadata column, or the other way round. And the
        ID counter, once up there, can never come back down.
    Example
        Adding `9 -> 2147483448: note string` is refused; 2147483447 is the last legal ID.
    What to do
        Give the new field the table's last-column-id + 1, as every client library does.
    Spec
        Reserved Field IDs.
    """
    for delta in change.introduced:
        if delta.added and delta.field_id > HIGHEST_FIELD_ID:
            yield Fault(
                text=f"{delta.slot.label} takes an ID above {HIGHEST_FIELD_ID}, which is reserved for metadata columns",
                fix=f"Use the next free ID, {_next_id(change)}.",
                field_id=delta.field_id,
                path=delta.slot.path,
                after=describe(delta.slot),
            )


@RULES.rule("ICE102", "non-positive-field-id", spec="Schemas and Data Types", definition=True)
def non_positive_field_id(change: Change) -> Iterator[Fault]:
    """A field has an ID of zero or below.

    Checks
        Every field that the change adds, at any depth, has an ID of at least 1.
    Why it matters
        The counter last-column-id starts at 0 and only grows, so IDs are positive. Readers use 0 and negative numbers
        for "no ID"; such a column may be taken for one that a file does not have.
    Example
        `0: note string` and `-1: note string` are refused.
    What to do
        Give the new field the table's last-column-id + 1.
    Spec
        Silent on the lower end; the counter's definition under Table Metadata Fields implies it.
    """
    for delta in change.introduced:
        if delta.added and delta.field_id < 1:
            yield Fault(
                text=f"{delta.slot.label} has an ID that is not positive, which readers take for no ID at all",
                fix=f"Use the next free ID, {_next_id(change)}.",
                field_id=delta.field_id,
                path=delta.slot.path,
                after=describe(delta.slot),
            )


@RULES.rule("ICE103", "field-id-of-another-column", spec="Schema Evolution", definition=True)
def field_id_of_another_column(change: Change) -> Iterator[Fault]:
    """A new column takes the ID of a dropped column that was something else.

    Checks
        A field whose ID the current schema lacks, but an earlier retained schema has, is that earlier column: of the
        same type or a legal promotion of it, under the same parent, with the same initial-default. This holds even
        when no branch reaches the old data.
    Why it matters
        Files are read by ID alone. Old files still hold the dropped column under this ID, and a reader hands its
        values out as values of the new column: silently where the types happen to agree, with an error where not.
    Example
        Column 3 was `cc: string`. It was dropped; adding `3: visits int` is refused, bringing back `3: cc string` is
        not.
    What to do
        Use a fresh ID. To undo a drop, send the column with its former definition.
    Spec
        Schema Evolution: adding a new field assigns a new ID.
    """
    for pair in change.impostors:
        slot, earlier = pair.slot, pair.before
        assert earlier is not None
        yield Fault(
            text=(
                f"{slot.label} takes the ID of the dropped column {earlier.path}, which was {describe(earlier)} in "
                f"{pair.against} and is another one ({pair.conflicts[0].value}): old files would answer for it"
            ),
            fix=f"Use the next free ID, {_next_id(change)}; to bring the old column back, send its former definition.",
            field_id=slot.field_id,
            path=slot.path,
            before=describe(earlier),
            after=describe(slot),
        )


@RULES.rule("ICE104", "retired-field-id", spec="Schema Evolution", definition=True)
def retired_field_id(change: Change) -> Iterator[Fault]:
    """A new column takes an ID that the table gave out before, to a column that no retained schema remembers.

    Checks
        A field whose ID the current schema lacks is either above last-column-id or defined by a retained schema.
    Why it matters
        The counter says that the ID was given out: to a column whose schemas were removed since, or to a shredded
        part of a variant. Data files may hold values under it, and nothing says what they are.
    Example
        last-column-id is 11 and no schema has field 11: adding `11: note string` is refused, `12: note string` not.
    What to do
        Use a fresh ID. A client that sends this has an outdated view of the counter: refresh and try again.
    Spec
        Schema Evolution (adding a new field assigns a new ID); Table Metadata Fields, last-column-id.
    """
    for slot in change.unverifiable:
        last = 0 if change.previous is None else change.previous.last_column_id
        yield Fault(
            text=(
                f"{slot.label} takes a retired ID: the table gave out IDs up to {last}, and no retained schema tells "
                f"what {slot.field_id} was"
            ),
            fix=f"Refresh the table and use the next free ID, {_next_id(change)}.",
            field_id=slot.field_id,
            path=slot.path,
            after=describe(slot),
        )


@RULES.rule("ICE105", "required-column-restored", spec="Schema Evolution")
def required_column_restored(change: Change) -> Iterator[Fault]:
    """A dropped required column comes back although data was written without it.

    Checks
        A required field that comes back under its old ID: every branch head, and every retained snapshot behind it,
        was written under a schema that has the field. A snapshot that names no schema counts as written without.
        With both defaults set to values the field is no worse than a new one and passes.
    Why it matters
        Files written since the drop lack the column, and a required column that a file lacks has no value: readers
        fail.
    Example
        `3: cc required string` was dropped in schema 1 and snapshot 7 was written under schema 1. Sending the column
        again as required is refused, as optional it is accepted.
    What to do
        Bring it back as optional, or roll back to a snapshot from before the drop in the same commit.
    Spec
        Schema Evolution: field deletion cannot be rolled back unless the field was nullable or if the current
        snapshot has not changed.
    """
    for slot in change.unproven:
        yield Fault(
            text=(
                f"{slot.label} comes back as required, but files written since it was dropped lack it, or nothing "
                f"shows that there are none"
            ),
            fix=change.way_out(f"Bring {slot.path} back as optional."),
            field_id=slot.field_id,
            path=slot.path,
            after=describe(slot),
        )


@RULES.rule("ICE106", "schema-id-recycled", spec="Table Metadata Fields", floor=True)
def schema_id_recycled(change: Change) -> Iterator[Fault]:
    """A schema ID names another schema than before.

    Checks
        Every schema that both versions of the table have under one ID is the same text.
    Why it matters
        Snapshots name the schema they were written under by its ID. If the ID comes to mean another schema, time
        travel reads old data with columns and types that were never written.
    Example
        Removing schema 4 and adding a new schema as 4 in one commit is refused; it has to become 5.
    What to do
        Let the catalog choose the ID: send `schema-id` -1 or leave it out, and refer to it as -1.
    Spec
        Schema Evolution: a new schema is identified by a unique schema ID.
    """
    previous, current = change.previous, change.current
    if previous is None or previous.schemas is current.schemas:
        return
    for schema_id in previous.schemas:
        old, new = previous.schemas.text(schema_id), current.schemas.text(schema_id)
        if new is None or old is new or old == new:
            continue
        if previous.schemas.get(schema_id) != current.schemas.get(schema_id):
            yield Fault(
                text=f"schema ID {schema_id} would name another schema than the one that snapshots were written under",
                fix=f"Add the new schema under a new ID, {max(previous.schemas) + 1}.",
                before=str(schema_id),
                after=str(schema_id),
            )


@RULES.rule("ICE107", "partition-spec-id-recycled", spec="Partition Evolution", floor=True)
def partition_spec_id_recycled(change: Change) -> Iterator[Fault]:
    """A partition spec ID names another spec than before.

    Checks
        Every spec that both versions of the table have under one ID has the same fields.
    Why it matters
        Manifests name the spec of their partition tuples by its ID. If the ID comes to mean another spec, the tuples
        are decoded wrongly: files are pruned that hold matching rows.
    Example
        Removing spec 2 and adding a new spec as 2 in one commit is refused; it has to become 3.
    What to do
        Let the catalog choose the ID and refer to it as -1.
    Spec
        Partition Evolution: a new spec is identified by a unique spec ID.
    """
    if change.previous is None or change.previous.partition_specs is change.current.partition_specs:
        return
    before = {spec.spec_id: spec for spec in change.previous.partition_specs}
    for spec in change.current.partition_specs:
        old = before.get(spec.spec_id)
        if old is not None and old is not spec and old.fields != spec.fields:
            yield Fault(
                text=f"spec ID {spec.spec_id} would name another partition spec than the one that manifests name",
                fix=f"Add the new spec under a new ID, {max(before) + 1}.",
                before=str([str(field) for field in old.fields]),
                after=str([str(field) for field in spec.fields]),
            )


@RULES.rule("ICE108", "id-counter-went-back", spec="Table Metadata Fields", floor=True)
def id_counter_went_back(change: Change) -> Iterator[Fault]:
    """A counter of given-out IDs is lower than before, or lower than an ID in use.

    Checks
        last-column-id and last-partition-id never decrease, and last-column-id covers every field that the change
        adds.
    Why it matters
        The counters are what keeps IDs from being given out twice. A counter that goes back makes the next new
        column answer with the values of a dropped one.
    Example
        Dropping column 5 and setting last-column-id from 5 to 4 is refused.
    What to do
        Leave the counters to the catalog.
    Spec
        Table Metadata Fields: last-column-id and last-partition-id are the highest IDs ever assigned.
    """
    previous, current = change.previous, change.current
    if previous is not None:
        for name, old, new in (
            ("last-column-id", previous.last_column_id, current.last_column_id),
            ("last-partition-id", previous.last_partition_id, current.last_partition_id),
        ):
            if new < old:
                yield Fault(
                    text=f"{name} would go back from {old} to {new}, so that used IDs are given out again",
                    fix=f"Keep {name} at {old}.",
                    before=str(old),
                    after=str(new),
                )
    highest = max((delta.field_id for delta in change.introduced), default=0)
    if highest > current.last_column_id:
        yield Fault(
            text=f"last-column-id is {current.last_column_id} although field {highest} is in use",
            fix=f"Set last-column-id to {highest}.",
            field_id=highest,
            before=str(current.last_column_id),
            after=str(highest),
        )


@RULES.rule("ICE109", "restored-column-unverifiable", spec="Schema Evolution")
def restored_column_unverifiable(change: Change) -> Iterator[Fault]:
    """A dropped column comes back, and what files hold under its ID cannot be told any more.

    Checks
        When the history of a branch is not complete (snapshots expired, or name no schema), a field that comes back
        under its old ID is in a schema that one of the known snapshots was written under, or no schema is missing
        from the list that the table keeps. IDs of schemas are given out in order, so a missing ID is a removed schema.
    Why it matters
        Expiring snapshots removes metadata, not files that later snapshots still use. Was the column int, then long,
        then dropped, and are the snapshots and the schema of the long days gone, nothing is left that says so: files
        with longs are read as int, and scans fail or return other values.
    Example
        `a: int` (schema 0), `a: long` (1), dropped (2). The snapshots of schema 1 expire and remove-schemas takes
        schema 1 away: bringing `a: int` back from schema 0 is refused. As long as schema 1 is kept, `a: long` is not.
    What to do
        Add the column under a fresh ID, which has no past. Undo a drop before metadata clean-up takes the evidence
        away.
    Spec
        Schema Evolution: field deletion cannot be rolled back unless the field was nullable or if the current
        snapshot has not changed; adding a new field assigns a new ID.
    """
    for doubt in unsettled(change):
        slot = doubt.slot
        yield Fault(
            text=(
                f"{slot.label} comes back, but the history of branch {doubt.end.branch} is known only down to snapshot "
                f"{doubt.end.snapshot.snapshot_id} and {doubt.gap} removed since: nothing tells what files hold "
                f"under {slot.field_id}"
            ),
            fix=f"Add the column under a fresh ID, {_next_id(change)}.",
            field_id=slot.field_id,
            path=slot.path,
            after=describe(slot),
        )


@RULES.rule("ICE110", "id-far-ahead", spec="Table Metadata Fields", default=Severity.WARN)
def id_far_ahead(change: Change) -> Iterator[Fault]:
    """An ID leaves a gap of more than a million behind it.

    Checks
        last-column-id and last-partition-id grow by at most 1000000 in one commit. Gaps are legal and smaller ones are
        not reported.
    Why it matters
        The counters never come back down and end at 2147483447. A table whose counter is near the end can get no new
        columns, or no new partition fields, ever again. No client leaves such a gap on purpose.
    Example
        last-column-id is 11 and a column comes as 2000000000: accepted and reported.
    What to do
        Use the table's counter + 1. If the commit was a mistake, copy the table now, while little depends on it.
    Spec
        Table Metadata Fields: last-column-id and last-partition-id are the highest IDs ever assigned.
    """
    previous, current = change.previous, change.current
    if previous is None or not change.takes_effect:
        return
    for name, old, new in (
        ("last-column-id", previous.last_column_id, current.last_column_id),
        ("last-partition-id", previous.last_partition_id, current.last_partition_id),
    ):
        if new - old > WIDE_GAP and new <= HIGHEST_FIELD_ID:
            yield Fault(
                text=f"{name} jumps from {old} to {new} and never comes back; {HIGHEST_FIELD_ID - new} IDs are left",
                fix=f"Use the next free ID, {old + 1}.",
                before=str(old),
                after=str(new),
            )


@RULES.rule("ICE111", "dropped-column-under-new-name", spec="Schema Evolution", default=Severity.WARN)
def dropped_column_under_new_name(change: Change) -> Iterator[Fault]:
    """A dropped column comes back under a name that it never had.

    Checks
        A field that comes back under its old ID has a name that some retained schema gives it. Fields that other rules
        refuse are left out.
    Why it matters
        Files are read by ID: the values of the dropped column show up under the new name. That is meant when a drop is
        undone and the column renamed at once, and a surprise when a program reuses IDs for new columns.
    Example
        `3: cc string` was dropped; adding `3: note string` is accepted and reported, `3: cc string` is not.
    What to do
        Nothing, if it is the old column that shall return. Else give the new column a fresh ID.
    Spec
        Schema Evolution: a field is the same field as long as it has the same ID, whatever its name.
    """
    if not change.takes_effect or not change.had_branch or not change.restored or not change.binds:
        return
    foreign = {pair.slot.field_id for pair in change.impostors}
    for slot in change.restored:
        names = [earlier.field.name for _, earlier in change.definitions(slot.field_id)]
        if slot.role == "field" and names and slot.field.name not in names and slot.field_id not in foreign:
            yield Fault(
                text=(
                    f"{slot.label} takes the ID of the dropped column {names[0]} and shows its old values under a "
                    f"name that it never had"
                ),
                fix=f"Use the next free ID, {_next_id(change)}, unless the old column is to return.",
                field_id=slot.field_id,
                path=slot.path,
                before=names[0],
                after=slot.field.name,
            )


def _next_id(change: Change) -> int:
    """The ID that a correct client would use next."""
    if change.previous is not None:
        return change.previous.last_column_id + 1
    legal = [field_id for field_id in change.after.by_id if 0 < field_id <= HIGHEST_FIELD_ID]
    return max(legal, default=0) + 1
