"""Rules about column names (ICE7xx)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.errors import ValidationFailed
from app.evolution.engine.change import Change
from app.evolution.engine.diff import Delta, Slot
from app.evolution.engine.registry import RULES
from app.iceberg.partition import PartitionSpec, check_partition_names
from app.iceberg.types import NestedField, StructType
from app.rules import Fault, Severity

METADATA_COLUMNS: Final = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Columns that engines add to every table."""


@RULES.rule("ICE701", "metadata-column-name", spec="Reserved Field IDs", definition=True)
def metadata_column_name(change: Change) -> Iterator[Fault]:
    """A column has the name of a metadata column.

    Checks
        No top-level column is newly called `_file`, `_pos`, `_deleted`, `_spec_id`, `_partition`, `_row_id` or
        `_last_updated_sequence_number`. Case counts, and nested fields are free.
    Why it matters
        Engines offer metadata columns under these names beside the user's. Spark refuses to read a table that has
        one of its own, and in v3 a `_row_id` column breaks row lineage for every writer.
    Example
        Adding `12: _row_id long`, or renaming a column to `_file`, is refused; `_ROW_ID` and `row_id` are not.
    What to do
        Choose another name.
    Spec
        Reserved Field IDs lists the columns; that only their IDs are reserved leaves the names open.
    """
    for _, slot in _named(change):
        if slot.parent is None and slot.field.name in METADATA_COLUMNS:
            yield Fault(
                text=f"{slot.label} has the name of a metadata column, so engines cannot tell the two apart",
                fix=f"Choose another name, for example {slot.field.name.lstrip('_')}.",
                field_id=slot.field_id,
                path=slot.path,
                after=slot.field.name,
            )


@RULES.rule("ICE702", "names-equal-but-for-case", spec="Schemas and Data Types", default=Severity.WARN, definition=True)
def names_equal_but_for_case(change: Change) -> Iterator[Fault]:
    """Two fields of one struct have names that differ only in upper and lower case.

    Checks
        The name of a field that is new or renamed differs from its siblings' by more than case.
    Why it matters
        Iceberg is case sensitive, but Spark SQL, Trino and Hive are not by default: they cannot name either column,
        and a query on one of them fails.
    Example
        Adding `title` beside `Title` is reported.
    What to do
        Choose another name. Raise the rule to error where such engines read the table.
    Spec
        Silent: columns are selected by ID, and names are labels.
    """
    folded: dict[int | None, dict[str, list[NestedField]]] = {}
    told: set[int] = set()
    for _, slot in _named(change):
        if slot.parent not in folded:
            folded[slot.parent] = _by_folded_name(change, slot.parent)
        namesakes = folded[slot.parent].get(slot.field.name.casefold(), [])
        others = [f for f in namesakes if f.field_id != slot.field_id and f.field_id not in told]
        if others:
            told.add(slot.field_id)
            yield Fault(
                text=(
                    f"{slot.label} differs from {others[0].name} (field {others[0].field_id}) only in case, and "
                    f"engines that ignore case can name neither"
                ),
                fix="Choose another name.",
                field_id=slot.field_id,
                path=slot.path,
                before=others[0].name,
                after=slot.field.name,
            )


@RULES.rule("ICE703", "empty-field-name", spec="Nested Types", definition=True)
def empty_field_name(change: Change) -> Iterator[Fault]:
    """A field has an empty name.

    Checks
        Every field that is new or renamed has a name of at least one character.
    Why it matters
        No SQL engine can name the column, and lookups in the Java library fail on the empty name.
    Example
        `12: "" string` is refused.
    What to do
        Give the field a name.
    Spec
        Nested Types: each field is named.
    """
    for _, slot in _named(change):
        if not slot.field.name:
            yield Fault(
                text=f"{slot.label} has an empty name, which no engine can select",
                fix="Give the field a name.",
                field_id=slot.field_id,
                path=slot.path,
                after="",
            )


@RULES.rule("ICE704", "partition-name-taken", spec="Partitioning", floor=True)
def partition_name_taken(change: Change) -> Iterator[Fault]:
    """A column has the name of a partition field that has another source.

    Checks
        No partition field, of any spec, has the name of a column that is not its source. Fields whose source is gone
        are exempt.
    Why it matters
        Partition fields and columns share one name space when a spec is bound to a schema. Readers bind every spec
        when they load the table; on a clash the table cannot be loaded at all.
    Example
        The spec has `d_day = day(4)`: adding a column `d_day` is refused. A partition field `d` that is identity of
        column `d` is fine.
    What to do
        Choose another name for the column, or rename the partition field first.
    Spec
        Silent; the reference implementation refuses to bind such a spec.
    """
    if not change.takes_effect:
        return
    for spec in change.current.partition_specs:
        for part in spec.fields:
            try:
                check_partition_names(PartitionSpec(spec.spec_id, (part,)), change.after)
            except ValidationFailed:
                column = change.after.find_readable(part.name)
                assert column is not None
                yield Fault(
                    text=(
                        f"column {part.name} (field {column.field_id}) has the name of the partition field "
                        f"{part.name}, which is {part.transform} of field {part.source_id} in spec {spec.spec_id}"
                    ),
                    fix=f"Choose another name than {part.name} for the column, or rename the partition field first.",
                    field_id=column.field_id,
                    path=part.name,
                    after=part.name,
                )


def _named(change: Change) -> Iterator[tuple[Delta, Slot]]:
    """Struct fields whose name the change brings: added, restored, renamed, or moved in from elsewhere."""
    for delta in change.introduced:
        slot = delta.after
        if slot is not None and slot.role == "field" and (delta.before is None or delta.renamed or delta.reparented):
            yield delta, slot


def _by_folded_name(change: Change, parent: int | None) -> dict[str, list[NestedField]]:
    if parent is None:
        fields = change.after.fields
    else:
        kind = change.after.by_id[parent].field_type
        fields = kind.fields if isinstance(kind, StructType) else ()
    out: dict[str, list[NestedField]] = {}
    for field in fields:
        out.setdefault(field.name.casefold(), []).append(field)
    return out
