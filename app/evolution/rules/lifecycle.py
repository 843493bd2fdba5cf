"""Rules about the life of a table: drops, versions, upgrades, replacements (ICE8xx). All of them warn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.evolution.engine.change import Change
from app.evolution.engine.diff import Slot
from app.evolution.engine.lineage import retained_schema_id
from app.evolution.engine.registry import RULES
from app.iceberg.types import NestedField
from app.rules import Fault, Severity

MANY_RETIRED_IDS: Final = 100
MANY_SCHEMAS: Final = 200


@RULES.rule("ICE801", "column-dropped-without-tag", spec="Snapshot References", default=Severity.WARN)
def column_dropped_without_tag(change: Change) -> Iterator[Fault]:
    """A column is dropped and no tag leads back to it.

    Checks
        When a column is dropped from a table with data, some tag points to a snapshot that was written under a schema
        with the column. A replacement is not looked at.
    Why it matters
        A drop touches no file, but it is the one change that takes data out of reach: adding the column again gives
        it a new ID and nulls. When snapshots from before the drop expire, nothing leads back any more.
    Example
        ALTER TABLE orders DROP COLUMN country, without a tag, is accepted and reported.
    What to do
        Tag a snapshot that has the column, for example ALTER TABLE orders CREATE TAG before_drop AS OF VERSION 17;
        a tag is read with the schema of its snapshot. Rename instead of drop and add when only the meaning changes.
    Spec
        Schema Evolution: deleting a field removes it from the current schema, and its ID is retired.
    """
    if change.before is None or not change.takes_effect or not change.had_branch:
        return
    dropped = [slot for slot in change.diff.dropped() if slot.role == "field" and _outermost(change, slot)]
    if not dropped or not change.binds:
        return
    kept = _tagged_ids(change, {slot.field_id for slot in dropped})
    for slot in dropped:
        if slot.field_id not in kept:
            yield Fault(
                text=f"{slot.label} is dropped and no tag leads to a snapshot that has it",
                fix=_way_back(change, slot.field_id),
                field_id=slot.field_id,
                path=slot.path,
                before=str(slot.type),
            )


@RULES.rule("ICE802", "many-retired-ids", spec="Table Metadata Fields", default=Severity.WARN)
def many_retired_ids(change: Change) -> Iterator[Fault]:
    """The table has given out many more field IDs than it has fields.

    Checks
        When a field is dropped: fewer than 100 IDs are retired, or fewer than the table has fields.
    Why it matters
        A counter far ahead of the fields tells of many drops. Each retired ID is data that still lies in files and
        that nobody can select; often a job drops and re-adds columns where it should rename them.
    Example
        last-column-id 260 and 40 fields left after a drop is reported.
    What to do
        Check that the drops were meant, and that nobody waits for the data. Rename instead of drop and add.
    Spec
        Table Metadata Fields: last-column-id is the highest ID ever assigned.
    """
    if change.before is None or not change.takes_effect or next(change.diff.dropped(), None) is None:
        return
    fields = len(change.after.by_id)
    retired = change.current.last_column_id - fields
    if retired >= max(MANY_RETIRED_IDS, fields):
        yield Fault(
            text=f"{retired} of {change.current.last_column_id} field IDs are retired and {fields} are in use",
            fix="Rename instead of drop and add, and check that nobody waits for dropped data.",
            before=str(change.current.last_column_id),
            after=str(fields),
        )


@RULES.rule("ICE803", "many-schema-versions", spec="Schemas and Data Types", default=Severity.WARN)
def many_schema_versions(change: Change) -> Iterator[Fault]:
    """The table keeps two hundred schemas or more.

    Checks
        When a schema is added, fewer than 200 are retained.
    Why it matters
        Every metadata file carries all of them, and every reader loads it. A table that changes its schema this often
        tells of a job that evolves in production.
    Example
        Adding the 200th schema is reported.
    What to do
        Collect changes into fewer commits, and expire snapshots with metadata clean-up, which removes schemas that no
        snapshot names.
    Spec
        Silent on a limit.
    """
    if change.previous is None or not change.takes_effect:
        return
    count = len(change.current.schemas)
    if count >= MANY_SCHEMAS and count > len(change.previous.schemas):
        yield Fault(
            text=f"the table keeps {count} schemas, and every metadata file carries all of them",
            fix="Collect changes into fewer commits and expire snapshots with metadata clean-up.",
            before=str(len(change.previous.schemas)),
            after=str(count),
        )


@RULES.rule("ICE804", "dormant-default-activated", spec="Default values", default=Severity.WARN)
def dormant_default_activated(change: Change) -> Iterator[Fault]:
    """An upgrade to format version 3 brings defaults to life that an older version held.

    Checks
        A table that is upgraded to version 3 or later has no initial-default from before.
    Why it matters
        Strict readers of version 2 ignored the default and returned null; from the upgrade on they return its value.
        The same rows read differently, and the default can no longer be changed.
    Example
        A v2 table into which PyIceberg wrote `12: region, initial-default "EU"` is upgraded.
    What to do
        Nothing, if "EU" is what old rows should say. Else add a new column instead.
    Spec
        Appendix E, Version 3: old readers default optional columns with null.
    """
    previous = change.previous
    if previous is None or not change.takes_effect or previous.format_version >= 3 or change.format_version < 3:
        return
    for field in previous.schema.by_id.values():
        if _default(field) is not None and field.field_id in change.after.by_id:
            path = change.after.name_of(field.field_id)
            yield Fault(
                text=f"column {path} (field {field.field_id}) has an initial-default that the upgrade brings to life",
                fix="Check that old rows should read as the default.",
                field_id=field.field_id,
                path=path,
                after=str(_default(field)),
            )


@RULES.rule("ICE805", "tag-without-schema", spec="Snapshots", default=Severity.WARN)
def tag_without_schema(change: Change) -> Iterator[Fault]:
    """A replacement leaves a tag behind whose snapshot names no schema.

    Checks
        When a schema is replaced by one that could not read the old files, every tag's snapshot names a retained
        schema.
    Why it matters
        A tag is read with the schema of its snapshot. Where the snapshot names none (old writers left it out), readers
        fall back to the current schema, and now that cannot read the files.
    Example
        CREATE OR REPLACE TABLE with other types, while tag v1 points to a snapshot of a version 1 writer.
    What to do
        Copy what the tag holds into a table of its own before the replacement.
    Spec
        Snapshots: schema-id is optional.
    """
    previous, current = change.previous, change.current
    if previous is None or change.before is None or change.before is change.after or not change.takes_effect:
        return
    tags = [(name, ref.snapshot_id) for name, ref in current.refs.items() if not ref.is_branch]
    if not tags or change.binds or not change.misread(change.before):
        return
    for name, snapshot_id in tags:
        snapshot = current.snapshots.get(snapshot_id)
        if snapshot is not None and retained_schema_id(current, snapshot) is None:
            yield Fault(
                text=f"tag {name} holds snapshot {snapshot_id}, which names no schema and reads with the new one",
                fix=f"Copy what tag {name} holds into a table of its own before the replacement.",
                before=str(snapshot_id),
            )


def _outermost(change: Change, slot: Slot) -> bool:
    """Whether the field's parent stays: a child of a dropped struct is not told of separately."""
    return slot.parent is None or slot.parent in change.after.by_id


def _way_back(change: Change, field_id: int) -> str:
    undo = "undo the drop by sending the column with its old ID."
    for ref in change.current.refs.values():
        snapshot = change.current.snapshots.get(ref.snapshot_id)
        schema_id = None if snapshot is None else retained_schema_id(change.current, snapshot)
        schema = None if schema_id is None else change.current.schemas.get(schema_id)
        if schema is not None and field_id in schema.by_id:
            return f"Tag snapshot {ref.snapshot_id}, which reads with the schema it was written under, or {undo}"
    return f"To return, {undo}"


def _tagged_ids(change: Change, wanted: set[int]) -> set[int]:
    """The wanted field IDs that some tag's schema has; schemas are parsed, youngest first, until all are found."""
    current = change.current
    schema_ids: set[int] = set()
    for ref in current.refs.values():
        if not ref.is_branch:
            snapshot = current.snapshots.get(ref.snapshot_id)
            schema_id = None if snapshot is None else retained_schema_id(current, snapshot)
            if schema_id is not None:
                schema_ids.add(schema_id)
    found: set[int] = set()
    for schema_id in sorted(schema_ids, reverse=True):
        schema = current.schemas.get(schema_id)
        if schema is not None:
            found |= wanted & schema.by_id.keys()
        if found == wanted:
            break
    return found


def _default(field: NestedField) -> object:
    return field.initial_default if field.has_initial_default else None
