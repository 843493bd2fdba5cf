"""Rules about required and optional (ICE301, ICE302)."""

from __future__ import annotations

from collections.abc import Iterator

from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import Conflict
from app.evolution.engine.diff import describe
from app.evolution.engine.registry import RULES
from app.evolution.rules.types import whence
from app.iceberg.types import StructType
from app.rules import Fault


@RULES.rule("ICE301", "optional-made-required", spec="Schema Evolution")
def optional_made_required(change: Change) -> Iterator[Fault]:
    """An optional field becomes required.

    Checks
        A field, list element or map value that keeps its ID and was optional stays optional. Taking back
        "required to optional" passes when nothing was written since and the whole history is retained.
    Why it matters
        Files may hold nulls, and metadata cannot prove that they do not. Readers of a required column leave null
        checks out: they fail, or return zeros. PyIceberg sends this change under allow_incompatible_changes.
    Example
        `2: name optional string` to required is refused even if no null is known; required to optional is accepted.
    What to do
        Keep the column optional and check for nulls in the writer. Or add a required column with defaults (v3) and
        fill it.
    Spec
        Schema Evolution: not in the list of changes that a struct may undergo.
    """
    for pair in change.pairs:
        if Conflict.MADE_REQUIRED not in pair.conflicts or pair.after is None:
            continue
        slot = pair.after
        yield Fault(
            text=f"{slot.label} cannot become required{whence(pair.against)}: stored files may hold nulls",
            fix=change.way_out("Keep it optional and refuse nulls in the writer, or fill a new required column."),
            field_id=slot.field_id,
            path=slot.path,
            before="optional",
            after="required",
        )


@RULES.rule("ICE302", "required-column-without-defaults", spec="Schema Evolution")
def required_column_without_defaults(change: Change) -> Iterator[Fault]:
    """A required field is added to a table with data without both defaults.

    Checks
        A required field that is added to the table or to a struct that existed (or comes back) has an initial-default
        and a write-default, both not null, as soon as any branch exists. Fields inside a struct that is new itself
        need none. A table that never had a snapshot, and a replacement, may add any column.
    Why it matters
        Existing files lack the column. Without an initial-default a reader has nothing to return for a value that
        may not be null, and fails; without a write-default a writer that does not know the column yet must fail.
    Example
        On v3, adding `12: region required string` is refused; with initial-default and write-default "EU" it is
        accepted. On v2 there are no defaults, so no required column can be added.
    What to do
        Add the column as optional; on v3, with a write-default that fills new rows. Or set both defaults.
    Spec
        Schema Evolution: when a required field is added, both defaults must be set to a non-null value.
    """
    absent = {p.slot.field_id for p in change.pairs if Conflict.REQUIRED_ABSENT in p.conflicts}
    for delta in change.introduced:
        slot = delta.after
        if slot is None or not delta.added or not slot.required or slot.role != "field":
            continue
        if delta.field_id in change.diff.restored or slot.in_key or change.before is None:
            continue
        if not change.in_old_struct(slot) and slot.parent not in change.diff.restored:
            continue
        missing = [
            name
            for name, value in (("initial-default", slot.initial_default), ("write-default", slot.write_default))
            if value is None
        ]
        if not missing or not (slot.field_id in absent or (change.in_old_struct(slot) and change.binds)):
            continue
        yield Fault(
            text=f"{slot.label} is required and has no {' and no '.join(missing)}, but the table has data without it",
            fix=change.way_out(_ways_to_add(change, isinstance(slot.type, StructType))),
            field_id=slot.field_id,
            path=slot.path,
            after=describe(slot),
        )


def _ways_to_add(change: Change, nested: bool) -> str:
    if nested:
        return "Add it as optional."
    if change.format_version < 3:
        return "Add it as optional, or upgrade the table to v3 first and set both defaults."
    return "Set both defaults, or add it as optional with a write-default."
