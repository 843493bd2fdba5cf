"""Rules about what engines and properties make of a legal change (ICE6xx). All but one, ICE607, warn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.errors import SpecError
from app.evolution.change import Change
from app.evolution.column_properties import COLUMN_LISTS, PER_COLUMN
from app.evolution.diff import Slot
from app.evolution.mapping import moved_names, names_by_id
from app.evolution.policy import misspelt
from app.evolution.promotion import promotable
from app.evolution.registry import RULES
from app.rules import Fault, Severity
from app.spec.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, parse_name_mapping
from app.spec.types import DateType, TimestampNsType, TimestamptzNsType


@RULES.rule("ICE601", "column-positions-shifted", spec="Schema Evolution", default=Severity.WARN)
def column_positions_shifted(change: Change) -> Iterator[Fault]:
    """Top-level columns change their positions, and some readers go by position.

    Checks
        Columns are only added at the end or dropped from the end.
    Why it matters
        Iceberg readers go by ID and are not affected. But a Hive Metastore compares columns one by one when it takes
        the new schema and refuses it (hive.metastore.disallow.incompatible.col.type.changes), and programs that read
        `SELECT *` by position get other columns.
    Example
        Moving a column first, adding one AFTER another, or dropping the second of three is reported.
    What to do
        Add at the end where positions matter; switch that metastore check off where a Hive Metastore is synchronised.
    Spec
        Schema Evolution allows reordering; columns are selected by field ID.
    """
    before = change.before
    if before is None or not change.takes_effect or not change.diff.deltas or not change.had_branch:
        return
    old, new = [f.field_id for f in before.fields], [f.field_id for f in change.after.fields]
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if at is not None:
        slot = change.after.fields[at]
        yield Fault(
            text=(
                f"position {at + 1} held column {before.fields[at].name} (field {old[at]}) and now holds {slot.name} "
                f"(field {slot.field_id}): readers that go by position see other columns"
            ),
            fix="Add new columns at the end and drop only the last one where readers go by position.",
            field_id=slot.field_id,
            path=slot.name,
            before=before.fields[at].name,
            after=slot.name,
        )


@RULES.rule("ICE602", "name-mapping-stale", spec="Column Projection", default=Severity.WARN)
def name_mapping_stale(change: Change) -> Iterator[Fault]:
    """The name mapping does not know a new column or a new name.

    Checks
        When the table has `schema.name-mapping.default`, each column that the change adds or brings back is in it by
        ID, and each renamed one also under its new name. A mapping that cannot be parsed is left alone: it is an
        opaque property, and nothing is refused because of it.
    Why it matters
        Files without field IDs (imported ones, add_files) find their columns through the mapping alone. A column that
        is not in it reads as null or as its default from such files, although they hold it.
    Example
        Adding `12: channel` while the mapping has IDs 1 to 11 is reported.
    What to do
        Set the property in the same commit; keep old names beside new ones. If no such files arrive any more, remove
        the property.
    Spec
        Column Projection: the mapping provides field IDs where a file has none.
    """
    if change.before is None or not change.takes_effect or not change.introduced:
        return
    mapping = _mapping(change.current.properties)
    if mapping is None:
        return
    known = names_by_id(mapping)
    used: set[str] = set().union(*known.values())
    for delta in change.introduced:
        slot = delta.after
        if slot is None or slot.role != "field" or not (delta.added or delta.renamed):
            continue
        names = known.get(slot.field_id)
        if names is not None and (delta.added or slot.field.name in names):
            continue
        what = "is not in" if names is None else f"has no name {slot.field.name} in"
        yield Fault(
            text=f"{slot.label} {what} {NAME_MAPPING_PROPERTY}, so files without field IDs cannot answer for it",
            fix=(
                "Use another name: this one is that of another field in the mapping, whose values such files hold."
                if slot.field.name in used and change.keeps_data
                else f"Add it to {NAME_MAPPING_PROPERTY} in the same commit, keeping old names."
            ),
            field_id=slot.field_id,
            path=slot.path,
            after=slot.field.name,
        )


@RULES.rule("ICE603", "property-names-missing-column", spec="Table Metadata Fields", default=Severity.WARN)
def property_names_missing_column(change: Change) -> Iterator[Fault]:
    """A table property names a column that the change drops or renames.

    Checks
        No `write.metadata.metrics.column.*`, `write.parquet.bloom-filter-*.column.*`,
        `write.parquet.stats-enabled.column.*` or `write.orc.bloom.filter.columns` names a column that was there
        before and is not any more.
    Why it matters
        Writers ignore the setting without a word: metrics or a bloom filter silently end, and queries get slower. A
        column that is added later under the old name inherits the setting.
    Example
        Renaming `name` to `full_name` while `write.metadata.metrics.column.name` is set is reported.
    What to do
        Set the property under the new name and remove the old one in the same commit.
    Spec
        Silent; properties are an opaque map.
    """
    if change.before is None or not change.takes_effect:
        return
    lost = _lost_names(change)
    if not lost:
        return
    for key, value in change.current.properties.items():
        column = next((key.removeprefix(prefix) for prefix in PER_COLUMN if key.startswith(prefix)), None)
        columns = [c.strip() for c in value.split(",")] if key in COLUMN_LISTS else [column]
        for name in columns:
            slot = lost.get(name) if name else None
            if slot is not None and change.after.find_readable(slot.path) is None:
                yield Fault(
                    text=f"property {key} names column {name} (field {slot.field_id}), which is gone under that name",
                    fix=f"Remove {key}, or set it for the column's new name, in the same commit.",
                    field_id=slot.field_id,
                    path=slot.path,
                    before=name,
                )


@RULES.rule("ICE604", "promotion-ahead-of-readers", spec="Schema Evolution", default=Severity.WARN)
def promotion_ahead_of_readers(change: Change) -> Iterator[Fault]:
    """A promotion is legal in format version 3, but readers lag behind.

    Checks
        No date that a branch holds is promoted to timestamp or timestamp_ns, where the format version allows it. A
        replacement leaves its branches no old files to read. A promotion of an unknown column is not reported: no
        file stores such a column, so every reader finds it missing and answers null.
    Why it matters
        Java's Parquet readers (up to 1.11) choose the decoder by the type in the file, PyIceberg (up to 0.12) and
        iceberg-rust (up to 0.10) refuse the pair of types. Reading an old file fails, and Java takes a 4-byte bound of
        a date for microseconds, so that scans may skip files that match.
    Example
        On v3, `4: d date` to timestamp is accepted and reported.
    What to do
        Test each reader of the table with an old file first; or add a timestamp column instead.
    Spec
        Schema Evolution, column "v3+ valid type promotions".
    """
    if change.before is None or not change.takes_effect:
        return
    for delta in change.introduced:
        before, after = delta.before, delta.after
        if before is None or after is None or not delta.retyped or not isinstance(before.type, DateType):
            continue
        if not promotable(before.type, after.type, change.format_version) or not _stored(change, before):
            continue
        yield Fault(
            text=(
                f"{after.label} goes from {before.type} to {after.type}, which Java readers, PyIceberg and "
                f"iceberg-rust cannot follow in old files yet"
            ),
            fix="Test each reader with a file from before the change, or add a new column instead.",
            field_id=after.field_id,
            path=after.path,
            before=str(before.type),
            after=str(after.type),
        )


@RULES.rule("ICE605", "default-ahead-of-readers", spec="Default values", default=Severity.WARN)
def default_ahead_of_readers(change: Change) -> Iterator[Fault]:
    """A default is legal in format version 3, but readers lag behind.

    Checks
        No nanosecond timestamp gets a default, and no required column is added that old rows fill from an
        initial-default.
    Why it matters
        PyIceberg (up to 0.12) cannot load a schema with a default on timestamp_ns or timestamptz_ns. And an engine
        that does not know initial-default returns null in a required column, or fails, on every old file.
    Example
        Adding `12: region required string` with both defaults is accepted and reported.
    What to do
        Make sure that every engine that reads the table honours initial-default; else add the column as optional with
        a write-default.
    Spec
        Default values; Appendix E, Version 3.
    """
    for delta in change.introduced:
        slot = delta.after
        if slot is None or slot.role != "field" or not change.takes_effect:
            continue
        brought = delta.before is None or (delta.before.initial_default, delta.before.write_default) != (
            slot.initial_default,
            slot.write_default,
        )
        given = [v for v in (slot.initial_default, slot.write_default) if v is not None]
        if not brought or not given:
            continue
        if isinstance(slot.type, (TimestampNsType, TimestamptzNsType)):
            why = f"has a default of type {slot.type}, and PyIceberg cannot load such a schema"
            fix = "Leave the default out if PyIceberg reads the table."
        elif delta.added and slot.required and slot.initial_default is not None and change.had_branch:
            why = "is required and old rows answer with its initial-default, which not every engine honours"
            fix = "Check every engine that reads the table, or add the column as optional with a write-default."
        else:
            continue
        yield Fault(text=f"{slot.label} {why}", fix=fix, field_id=slot.field_id, path=slot.path)


@RULES.rule("ICE606", "rule-property-without-effect", spec="Table Metadata Fields", default=Severity.WARN)
def rule_property_without_effect(change: Change) -> Iterator[Fault]:
    """A property is meant to raise a rule and names no rule or no severity.

    Checks
        Each property `icekeel.rule.<CODE>` that the commit sets names a rule that exists and `off`, `warn` or `error`.
    Why it matters
        Properties may hold anything, so a misspelt one is stored and does nothing: the table stays as unprotected as
        before, while its owner believes otherwise.
    Example
        `icekeel.rule.ICE7O2` = `error`, with the letter O, is accepted and reported; so is ICE702 = `eror`.
    What to do
        Correct the property; `icekeel rules` lists the codes.
    Spec
        Table Metadata Fields: properties control reading and writing and are otherwise opaque.
    """
    before = {} if change.previous is None else change.previous.properties
    if not change.takes_effect or before is change.current.properties:
        return
    for key, why in misspelt(change.current.properties).items():
        if before.get(key) != change.current.properties[key]:
            yield Fault(
                text=f"property {key} has no effect: {why}",
                fix="Correct the property; the command `icekeel rules` lists the codes.",
                path=key,
                before=before.get(key),
                after=change.current.properties[key],
            )


@RULES.rule("ICE607", "mapped-name-moved", spec="Column Projection")
def mapped_name_moved(change: Change) -> Iterator[Fault]:
    """The name mapping gives a name to another field than before, while the table has data.

    Checks
        No name in `schema.name-mapping.default`, at any depth, is mapped to a field that it was not mapped to before.
        A name that is new in the mapping must not be one that an earlier retained schema has for another column in the
        same place. Tables without snapshots are not looked at, nor is a mapping that comes to a table which has none.
    Why it matters
        Files without field IDs (imported ones, add_files) find their columns through the mapping alone. When a name
        moves, the values under it in old files appear as the other column: silently wrong, with no error anywhere.
        Client libraries move names on their own when a column takes a name that another one gave up.
    Example
        Column 2 was renamed from v to w and is mapped as v and w. Adding a new column v with the mapping `2: w, 3: v`
        is refused: old values of w would appear as v. So is dropping v and adding another v that takes over its name.
    What to do
        Use another name for the column, or keep the old name on the old field. If every data file has field IDs, unset
        `schema.name-mapping.default`, which nothing needs then, or lower this rule.
    Spec
        Column Projection: the mapping provides field IDs where a file has none.
    """
    previous = change.previous
    if previous is None or not change.takes_effect or change.evidence.files_without_ids is False:
        return
    if previous.properties.get(NAME_MAPPING_PROPERTY) == change.current.properties.get(NAME_MAPPING_PROPERTY):
        return
    before, after = _mapping(previous.properties), _mapping(change.current.properties)
    if before is None or after is None or not change.keeps_data:
        return
    earlier = (previous.schemas.get(schema_id) for schema_id in sorted(previous.schemas))
    for move in moved_names(before, after, (schema for schema in earlier if schema is not None)):
        known = move.field_id in change.after.by_id
        yield Fault(
            text=(
                f"name {move.name} in {NAME_MAPPING_PROPERTY} goes from {_label(change, move.former)} to "
                f"{_label(change, move.field_id)}: old files without field IDs hold values of the former under it, and "
                f"nothing shows that there are none"
            ),
            fix=(
                f"Use another name, keep {move.name} on field {move.former}, or unset {NAME_MAPPING_PROPERTY} if every "
                f"data file has field IDs."
            ),
            field_id=move.field_id,
            path=change.after.name_of(move.field_id) if known else move.name,
            before=f"field {move.former}",
            after=f"field {move.field_id}",
        )


def _mapping(properties: Mapping[str, str]) -> NameMapping | None:
    """None when the property is not set or cannot be parsed."""
    text = properties.get(NAME_MAPPING_PROPERTY)
    try:
        return None if text is None else parse_name_mapping(text)
    except SpecError:
        return None


def _label(change: Change, field_id: int) -> str:
    if field_id in change.after.by_id:
        return f"column {change.after.name_of(field_id)} (field {field_id})"
    for schema, _ in change.definitions(field_id):
        return f"the dropped column {schema.name_of(field_id)} (field {field_id})"
    return f"field {field_id}"


def _stored(change: Change, slot: Slot) -> bool:
    """Whether files that a branch is read from may hold the field as it was, those of this very commit included."""
    written = (arrival.schema.by_id.get(slot.field_id) for arrival in change.arrivals)
    return (change.had_branch and change.binds) or any(f is not None and f.field_type == slot.type for f in written)


def _lost_names(change: Change) -> dict[str, Slot]:
    """Columns by their former full names, children of renamed structs included, for what has that name no more."""
    before, after = change.before, change.after
    lost: dict[str, Slot] = {}
    if before is None or not any(d.dropped or d.renamed or d.reparented for d in change.diff.deltas.values()):
        return lost
    for field_id, field in before.by_id.items():
        name = before.name_of(field_id)
        if after.find(name) is None:
            lost[name] = Slot(field, before.parents[field_id], before.kind_of(field_id), name)
    return lost
