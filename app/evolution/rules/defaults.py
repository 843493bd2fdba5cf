"""Rules about initial-default and write-default (ICE303 to ICE310)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from app.errors import SpecError
from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import Conflict, slot_of
from app.evolution.engine.diff import Delta, Slot
from app.evolution.engine.registry import RULES
from app.evolution.rules.types import whence
from app.iceberg.types import (
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
    UnknownType,
    VariantType,
)
from app.iceberg.values import parse_value
from app.rules import Fault, Severity

DEFAULTS_SINCE: Final = 3
"""The format version from which fields may have defaults."""

_NULL_ONLY: Final = (UnknownType, VariantType, GeometryType, GeographyType)
_A: Final = {"initial-default": "an initial-default", "write-default": "a write-default"}
_SHOWN: Final = 60


@RULES.rule("ICE303", "initial-default-changed", spec="Default values")
def initial_default_changed(change: Change) -> Iterator[Fault]:
    """The initial-default of an existing field changes.

    Checks
        A field that keeps its ID keeps its initial-default, null and absent being the same. Values are compared, not
        their spelling; after a promotion float and double are compared as 32-bit floats.
    Why it matters
        The initial-default is what every file from before the column answers with. Changing it rewrites history
        without touching a file: yesterday's report gives other numbers today.
    Example
        "web" to "app", null to "x" and "x" to null are refused. Changing the write-default is free.
    What to do
        Change the write-default instead, which holds for rows written from now on. For another answer on old rows,
        update them.
    Spec
        Schema Evolution: the initial-default must be set when a field is added and cannot change.
    """
    for pair in change.pairs:
        if Conflict.DEFAULT_CHANGED in pair.conflicts and pair.before is not None and pair.after is not None:
            slot = pair.after
            old, new = _show(pair.before.initial_default), _show(slot.initial_default)
            yield Fault(
                text=(
                    f"{slot.label} cannot change its initial-default from {old} to {new}{whence(pair.against)}: rows "
                    f"from before the column would read differently"
                ),
                fix=change.way_out(f"Keep the initial-default {old} and set the write-default for new rows."),
                field_id=slot.field_id,
                path=slot.path,
                before=old,
                after=new,
            )


@RULES.rule("ICE304", "default-before-v3", spec="Default values", definition=True)
def default_before_v3(change: Change) -> Iterator[Fault]:
    """A field gets a default in a table whose format version has none.

    Checks
        A non-null initial-default or write-default is introduced only from format version 3 on. An upgrade earlier
        in the same commit counts; a default that was there before is left alone.
    Why it matters
        A reader of versions 1 and 2 may ignore the default: it then returns null where others return the value, even
        in a required column. PyIceberg writes defaults to v2 tables without asking.
    Example
        On a v2 table `12: region required string, initial-default "EU"` is refused.
    What to do
        Upgrade the table to v3 first, if every reader supports it; or add the column as optional without defaults.
    Spec
        Format Versioning, Version 3 (default values); Appendix E.
    """
    if change.format_version >= DEFAULTS_SINCE:
        return
    for delta, slot in _places(change):
        named = [_A[name] for name, value in _given(slot) if value is not None and _brought(delta, name)]
        if named:
            yield Fault(
                text=(
                    f"{slot.label} has {' and '.join(named)}, but defaults need format version {DEFAULTS_SINCE} and "
                    f"the table has {change.format_version}"
                ),
                fix=(
                    f"Upgrade the table to v{DEFAULTS_SINCE} first (set the property format-version to "
                    f"{DEFAULTS_SINCE}), or leave the defaults out and make the column optional."
                ),
                field_id=slot.field_id,
                path=slot.path,
                after=_show(slot.initial_default),
            )


@RULES.rule("ICE305", "default-on-null-only-type", spec="Default values", floor=True, definition=True)
def default_on_null_only_type(change: Change) -> Iterator[Fault]:
    """A column of type unknown, variant, geometry or geography has a default that is not null.

    Checks
        Both defaults of such a field are null or absent.
    Why it matters
        There is no agreed way to write a value of these types into the schema, and readers refuse to load the
        metadata.
    Example
        `12: shape geometry, initial-default "POINT (1 1)"` is refused; an explicit null is accepted.
    What to do
        Leave the default out.
    Spec
        Default values: columns of these types must default to null.
    """
    for delta, slot in _places(change):
        if not isinstance(slot.type, _NULL_ONLY):
            continue
        for name, value in _given(slot):
            if value is not None and _differs(delta, name):
                yield Fault(
                    text=f"{slot.label} has the {name} {_show(value)}, but columns of type {slot.type} default to null",
                    fix=f"Leave the {name} out.",
                    field_id=slot.field_id,
                    path=slot.path,
                    after=_show(value),
                )


@RULES.rule("ICE306", "default-of-wrong-type", spec="JSON single-value serialization", floor=True, definition=True)
def default_of_wrong_type(change: Change) -> Iterator[Fault]:
    """A default is no value of the column's type.

    Checks
        A default is written as the single-value JSON of the type: numbers in range and without quotes, decimals as
        strings with exactly the scale's digits and within the precision, ISO dates and times (timestamptz at offset
        zero), hex of the right length, UUIDs of 36 characters. A whole number for float or double is taken as meant.
    Why it matters
        Java readers parse defaults when they load the metadata; a default that does not parse makes the whole table
        unreadable. PyIceberg does not check them.
    Example
        For int: 34, not "34". For decimal(9, 2): "14.20", not "14.2". For timestamptz: "...+00:00", not "...-08:00".
    What to do
        Send the value in the form of the type.
    Spec
        Appendix D, JSON single-value serialization.
    """
    for delta, slot in _places(change):
        if isinstance(slot.type, (*_NULL_ONLY, ListType, MapType)):
            continue
        for name, value in _given(slot):
            if value is None or not _differs(delta, name):
                continue
            reason = _misfit(slot, value)
            if reason is not None:
                yield Fault(
                    text=f"{slot.label} has the {name} {_show(value)}, which is no value of {slot.type}: {reason}",
                    fix=f"Write the {name} as the single-value JSON of {slot.type}.",
                    field_id=slot.field_id,
                    path=slot.path,
                    before=str(slot.type),
                    after=_show(value),
                )


@RULES.rule("ICE307", "nested-default", spec="Default values", definition=True)
def nested_default(change: Change) -> Iterator[Fault]:
    """A struct, list or map has a default that is not null.

    Checks
        Both defaults of a struct, list or map are null or absent. Lowering the rule admits `{}` for structs and the
        JSON forms of lists and maps.
    Why it matters
        The spec allows these defaults, but no Java reader can load a schema that has one, and neither can PyIceberg:
        the table would be lost to Spark, Flink, Trino and Hive at once.
    Example
        `12: point struct<13: x int default 0>` with initial-default `{}` is refused; without it the column reads as
        null on old rows, and x as 0 wherever a point is present.
    What to do
        Leave the default of the struct out and set those of its fields. If none of the table's readers is affected,
        lower the rule for the table.
    Spec
        Default values: a nested struct may default to a struct with no field values.
    """
    for delta, slot in _places(change):
        if not isinstance(slot.type, (StructType, ListType, MapType)):
            continue
        for name, value in _given(slot):
            if value is not None and _differs(delta, name) and (value == {} or not isinstance(slot.type, StructType)):
                yield Fault(
                    text=f"{slot.label} has the {name} {_show(value)}, and Java readers cannot load a nested default",
                    fix=f"Leave the {name} of {slot.path} out and set defaults on primitive fields only.",
                    field_id=slot.field_id,
                    path=slot.path,
                    after=_show(value),
                )


@RULES.rule("ICE308", "struct-default-with-values", spec="Default values", floor=True, definition=True)
def struct_default_with_values(change: Change) -> Iterator[Fault]:
    """The default of a struct holds values for its fields.

    Checks
        A struct's default is null or the empty struct `{}`.
    Why it matters
        The values belong to the fields' own defaults. With two places to look, readers disagree about which holds.
    Example
        `12: point struct<13: x int>` with initial-default `{"13": 1}` is refused.
    What to do
        Set the default of each field on the field.
    Spec
        Default values: defaults for nested structs must not contain default values for the struct's fields.
    """
    for delta, slot in _places(change):
        if not isinstance(slot.type, StructType):
            continue
        for name, value in _given(slot):
            if isinstance(value, dict) and value and _differs(delta, name):
                yield Fault(
                    text=f"{slot.label} has the {name} {_show(value)}, but a struct's default holds no field values",
                    fix=f"Set the {name} of each field of {slot.path} on the field itself.",
                    field_id=slot.field_id,
                    path=slot.path,
                    after=_show(value),
                )


@RULES.rule("ICE309", "struct-default-incomplete", spec="Default values", floor=True, definition=True)
def struct_default_incomplete(change: Change) -> Iterator[Fault]:
    """A struct defaults to `{}` but one of its required fields has no default to fill it with.

    Checks
        Where a struct's default is `{}`, each of its required fields has the same kind of default, not null.
    Why it matters
        The effective default is built from the fields' own defaults. A required field without one leaves a hole that
        no reader can fill.
    Example
        `12: point struct<13: x required int>` with initial-default `{}` is refused until x has an initial-default.
    What to do
        Give the field a default, or make it optional.
    Spec
        Default values: the effective default sets each field's default in a new struct.
    """
    for delta, slot in _places(change):
        for name, value in _given(slot):
            if isinstance(slot.type, StructType) and value == {} and _differs(delta, name):
                for at, field in enumerate(slot.type.fields):
                    yield from _hole(slot, Slot(field, slot.field_id, "field", f"{slot.path}.{field.name}", at), name)
        owner = _old_owner(change, delta, slot)
        if owner is not None:
            for name, value in _given(owner):
                if value == {} and _opens(delta, name):
                    yield from _hole(owner, slot, name)


@RULES.rule("ICE310", "required-column-lost-write-default", spec="Default values", default=Severity.WARN)
def required_column_lost_write_default(change: Change) -> Iterator[Fault]:
    """The write-default of a required column goes back to null.

    Checks
        A required field that had a write-default keeps one.
    Why it matters
        The change is legal, and from now on every writer that does not supply the column must fail.
    Example
        `12: region required string, write-default "EU"` to no write-default is reported.
    What to do
        Keep a write-default, or make sure that every writer supplies the column.
    Spec
        Default values: if the write default for a required field is not set, the writer must fail.
    """
    for delta in change.introduced:
        before, after = delta.before, delta.after
        if before is None or after is None or not after.required or not change.takes_effect:
            continue
        if before.write_default is not None and after.write_default is None:
            yield Fault(
                text=f"{after.label} is required and loses its write-default {_show(before.write_default)}",
                fix="Make sure that every writer supplies the column, or keep a write-default.",
                field_id=after.field_id,
                path=after.path,
                before=_show(before.write_default),
                after="null",
            )


def _places(change: Change) -> Iterator[tuple[Delta, Slot]]:
    """Struct fields that are new or changed: only those carry defaults."""
    return ((d, d.after) for d in change.introduced if d.after is not None and d.after.role == "field")


def _given(slot: Slot) -> tuple[tuple[str, object], tuple[str, object]]:
    return ("initial-default", slot.initial_default), ("write-default", slot.write_default)


def _brought(delta: Delta, name: str) -> bool:
    """Whether the commit introduces this default."""
    before, after = delta.before, delta.after
    if before is None or after is None:
        return True
    old, new = dict(_given(before))[name], dict(_given(after))[name]
    return type(old) is not type(new) or old != new


def _differs(delta: Delta, name: str) -> bool:
    """Whether the default has to be looked at: it is introduced, or the column's type is another."""
    return _brought(delta, name) or delta.retyped


def _misfit(slot: Slot, value: object) -> str | None:
    if isinstance(slot.type, StructType):
        return None if isinstance(value, dict) else "a struct's default is null or {}"
    try:
        parse_value(slot.type, value)
    except SpecError as fault:
        return fault.reason
    return None


def _old_owner(change: Change, delta: Delta, slot: Slot) -> Slot | None:
    """The struct that a field is added to or changed in, if its own defaults are not new."""
    owner = change.diff.deltas.get(slot.parent) if slot.parent is not None else None
    if slot.parent is None or (owner is not None and owner.before is None):
        return None
    found = slot_of(change.after, slot.parent)
    return found if found is not None and isinstance(found.type, StructType) else None


def _opens(delta: Delta, name: str) -> bool:
    """Whether the change of this field alone can leave a hole in its struct's default."""
    before, after = delta.before, delta.after
    if before is None or after is None:
        return True
    return dict(_given(before))[name] is not None or not before.required


def _hole(struct: Slot, child: Slot, name: str) -> Iterator[Fault]:
    if child.required and dict(_given(child))[name] is None:
        yield Fault(
            text=f"{struct.label} has the {name} {{}}, but its required {child.label} has no {name} to fill it",
            fix=f"Set the {name} of {child.path}, or make it optional.",
            field_id=child.field_id,
            path=child.path,
            before="{}",
        )


def _show(value: object) -> str:
    """JSON on one line, cut when long: messages are printed by engines."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
