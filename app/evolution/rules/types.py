"""Rules about types and their promotion (ICE2xx)."""

from __future__ import annotations

from collections.abc import Iterator

from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import Against, Conflict, Pair
from app.evolution.engine.diff import Slot
from app.evolution.engine.promotion import (
    LATE_PROMOTIONS,
    changes_output,
    outgrows,
    promotable,
    wider_type,
)
from app.evolution.engine.registry import RULES
from app.iceberg.types import (
    DateType,
    DecimalType,
    ListType,
    MapType,
    StructType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UnknownType,
    VariantType,
    min_format_version,
)
from app.rules import Fault, Severity


@RULES.rule("ICE201", "type-not-promotable", spec="Schema Evolution")
def type_not_promotable(change: Change) -> Iterator[Fault]:
    """A primitive type changes to one that stored values and bounds cannot be read as.

    Checks
        A field, list element or map value that keeps its ID changes its primitive type only along the promotions of
        the spec: int to long, float to double, decimal to higher precision, and from format version 3 on date to
        timestamp or timestamp_ns and unknown to anything. Taking back a promotion passes when nothing was written
        since and the whole history is retained.
    Why it matters
        Old files keep their physical type, and manifests keep bounds as bytes without a type. A reader that meets an
        int where a string is declared fails; one that decodes old bounds as the new type skips files that match.
        date cannot become timestamptz because nothing says in which zone its midnight is.
    Example
        `1: id long` to string is refused, as are long to int, double to float, string to binary, timestamp to
        timestamptz.
    What to do
        Take the wider type that the message names if there is one. Otherwise add a column of the new type, fill it
        from the old one and drop that when nobody reads it any more.
    Spec
        Schema Evolution, table of valid primitive type promotions.
    """
    for pair in _broken(change, Conflict.RETYPED):
        old, new = _ends(pair)
        if promotable(old.type, new.type, LATE_PROMOTIONS) or _rescaled(old.type, new.type):
            continue
        yield _retyped(pair, _why(old.type, new.type, change.format_version), change.way_out(_other_type(change, old)))


@RULES.rule("ICE202", "decimal-scale-changed", spec="Schema Evolution")
def decimal_scale_changed(change: Change) -> Iterator[Fault]:
    """A decimal changes its scale.

    Checks
        A decimal that keeps its field ID keeps its scale.
    Why it matters
        Files and bounds store the unscaled integer alone. 1250 at scale 2 is 12.50, at scale 4 it is 0.1250: with
        the scale changed, stored values change meaning. PyIceberg lets this change through, because its check
        compares the old scale with itself.
    Example
        decimal(9, 2) to decimal(12, 4) is refused, decimal(9, 2) to decimal(12, 2) is a legal promotion.
    What to do
        Raise the precision only, or add a new column with the new scale and copy the values.
    Spec
        Schema Evolution: decimal(P, S) widens in precision only.
    """
    for pair in _broken(change, Conflict.RETYPED):
        old, new = _ends(pair)
        if isinstance(old.type, DecimalType) and isinstance(new.type, DecimalType) and _rescaled(old.type, new.type):
            digits = max(new.type.precision, old.type.precision)
            widen = (
                f"Widen the precision only (decimal({digits}, {old.type.scale})), or add"
                if digits > old.type.precision
                else "Add"
            )
            yield _retyped(
                pair,
                "stored values would change meaning",
                change.way_out(f"{widen} a new column and copy the values."),
            )


@RULES.rule("ICE203", "promotion-before-v3", spec="Schema Evolution")
def promotion_before_v3(change: Change) -> Iterator[Fault]:
    """A promotion that format version 3 brought is used on an older table.

    Checks
        date to timestamp or timestamp_ns, and unknown to another type, only from format version 3 on. An upgrade
        earlier in the same commit counts.
    Why it matters
        Readers of versions 1 and 2 know neither that a 4-byte bound of a timestamp column is a day, nor that the
        column's old files hold days. They prune wrongly or fail.
    Example
        On a v2 table `4: d date` to timestamp is refused; after upgrade-format-version 3 it is accepted.
    What to do
        Upgrade the table to format version 3 first, if every reader supports it; or add a new column.
    Spec
        Schema Evolution, column "v1, v2 valid type promotions".
    """
    for pair in _broken(change, Conflict.RETYPED):
        old, new = _ends(pair)
        if promotable(old.type, new.type, LATE_PROMOTIONS):
            yield _retyped(
                pair,
                f"this promotion needs format version {LATE_PROMOTIONS} and the table has {change.format_version}",
                change.way_out(
                    f"Upgrade the table to v{LATE_PROMOTIONS} first (set the property format-version to "
                    f"{LATE_PROMOTIONS}), or add a new column."
                ),
            )


@RULES.rule("ICE204", "type-shape-changed", spec="Schema Evolution")
def type_shape_changed(change: Change) -> Iterator[Fault]:
    """A field changes between primitive, variant, struct, list and map.

    Checks
        A field that keeps its ID stays what it is. Only unknown may become anything, from format version 3 on.
    Why it matters
        The file stores one kind of thing under the ID and the reader is asked for another; no rule reconciles them.
        This holds for a struct with a single field and its primitive, too.
    Example
        `2: name string` to `struct<12: first string>` is refused, and so is list to struct.
    What to do
        Add a new column of the new shape, fill it from the old one, and drop the old one.
    Spec
        Schema Evolution: evolving primitive types to structs is not allowed, nor a single-field struct to a
        primitive.
    """
    for pair in _broken(change, Conflict.RESHAPED):
        yield _retyped(
            pair,
            "what files store under this ID is of another shape",
            change.way_out("Add a new column of the new type and copy the values."),
        )


@RULES.rule("ICE205", "map-key-changed", spec="Nested Types")
def map_key_changed(change: Change) -> Iterator[Fault]:
    """A map key, or a field inside one, changes.

    Checks
        The key of a map that keeps its key ID keeps its type, and a struct used as key keeps its fields: none added,
        dropped, renamed, moved or retyped. Comments may change.
    Why it matters
        Keys are compared and hashed as wholes. A key with one more field equals none of the stored keys, so lookups
        miss and merged maps hold every key twice. Client libraries refuse the change for the same reason.
    Example
        `map<int, string>` to `map<long, string>` is refused, and so is adding a field to a struct key.
    What to do
        Add a new map column with the new key type and copy the entries.
    Spec
        Silent; the reference implementation refuses to add, drop or update fields in map keys.
    """
    for pair in _broken(change, Conflict.KEY_CHANGED):
        slot = pair.slot
        yield Fault(
            text=f"{slot.label} is part of a map key, which cannot change: stored keys would no longer be equal",
            fix=change.way_out("Keep the key; for another key type add a new map column and copy the entries."),
            field_id=slot.field_id,
            path=slot.path,
            before=_text(pair.before),
            after=_text(pair.after),
        )


@RULES.rule("ICE206", "promotion-changes-partition-values", spec="Schema Evolution")
def promotion_changes_partition_values(change: Change) -> Iterator[Fault]:
    """A promotion changes what a partition transform of the column yields.

    Checks
        A date that is the source of an identity or bucket partition field, in any spec of the table, is not promoted
        to timestamp or timestamp_ns. Under year, month and day the values stay, and so do they for every other
        promotion.
    Why it matters
        Partition values of existing files are not rewritten. A bucket of a day is not the bucket of its midnight, and
        an identity value holds a day number where a timestamp is expected. Queries would look in the wrong
        partitions and miss rows, without an error.
    Example
        2017-11-16 is in bucket 10 of 16 as a date and in bucket 6 as a timestamp.
    What to do
        Add a new timestamp column. Or move to another spec, rewrite the files under it, remove the old spec, and
        promote then.
    Spec
        Schema Evolution: no promotion of a partition source if the transform would produce a different value.
    """
    for pair in _broken(change, Conflict.PARTITIONED):
        old, new = _ends(pair)
        for part in change.law.partitioned.get(new.field_id, ()):
            if changes_output(part.field.transform, old.type, new.type):
                yield _retyped(
                    pair,
                    f"{part.field.transform} in partition spec {part.spec_id} would give stored values other "
                    f"partitions",
                    change.way_out(
                        f"Add a new column; or replace spec {part.spec_id}, rewrite its files and remove it, then "
                        f"promote."
                    ),
                )
                break


@RULES.rule("ICE207", "promoted-type-unfit-for-partition", spec="Partition Transforms")
def promoted_type_unfit_for_partition(change: Change) -> Iterator[Fault]:
    """A column is promoted to a type that the transform of a partition field does not take.

    Checks
        Every partition transform, in any spec, that takes the old type of a promoted column also takes the new one.
    Why it matters
        The spec remains in the table and files under it remain listed. A transform without a meaning for its source
        cannot be bound any more: planning fails, or the files of that spec are never pruned.
    Example
        An unknown column under identity is promoted to geometry, which identity does not take.
    What to do
        Promote to a type that the transform takes, or remove the spec when no file uses it.
    Spec
        Partition Transforms, column "Source types".
    """
    for pair in _broken(change, Conflict.OUTGROWN):
        old, new = _ends(pair)
        for part in change.law.partitioned.get(new.field_id, ()):
            if outgrows(part.field.transform, old.type, new.type):
                yield _retyped(
                    pair,
                    f"{part.field.transform} in partition spec {part.spec_id} does not take {new.type}",
                    change.way_out(
                        f"Choose a type that {part.field.transform} takes, or remove spec {part.spec_id} when no file "
                        f"uses it."
                    ),
                )
                break


@RULES.rule("ICE208", "promotion-changes-sort-values", spec="Sorting", default=Severity.WARN)
def promotion_changes_sort_values(change: Change) -> Iterator[Fault]:
    """A promotion changes the order in which a sort order puts rows.

    Checks
        A date that a sort order of the table sorts by bucket is not promoted to timestamp or timestamp_ns.
    Why it matters
        Files name the order they were written in. After the promotion the bucket of a stored value is another one,
        so files claim an order that they do not have; an engine that relies on it for a merge join goes wrong. Most
        engines do not rely on it, hence a warning.
    Example
        Order 1 is `bucket[16](4) asc`; promoting date 4 to timestamp is reported.
    What to do
        Add a new sort order and make it the default before the promotion, or rewrite the files after it.
    Spec
        Silent on promotion; Sorting says that files are associated with a sort order by its ID.
    """
    if not change.kept_orders:
        return
    for delta in change.diff.deltas.values():
        if delta.before is None or delta.after is None or not delta.retyped:
            continue
        for order in change.kept_orders:
            for field in order.fields:
                changed = field.transform.kind == "bucket" and changes_output(
                    field.transform, delta.before.type, delta.after.type
                )
                if changed and delta.field_id in field.source_ids and change.had_branch:
                    yield Fault(
                        text=(
                            f"{delta.after.label} goes from {delta.before.type} to {delta.after.type} although sort "
                            f"order {order.order_id} sorts by {field.transform}: files claim an order they no longer "
                            f"have"
                        ),
                        fix="Set another default sort order, and rewrite files where an engine relies on their order.",
                        field_id=delta.field_id,
                        path=delta.after.path,
                        before=str(delta.before.type),
                        after=str(delta.after.type),
                    )


@RULES.rule("ICE209", "type-before-its-version", spec="Primitive Types", floor=True, definition=True)
def type_before_its_version(change: Change) -> Iterator[Fault]:
    """A type is used in a table whose format version does not have it.

    Checks
        timestamp_ns, timestamptz_ns, unknown, variant, geometry and geography only from format version 3 on, at any
        depth. An upgrade earlier in the same commit counts.
    Why it matters
        A reader of versions 1 and 2 does not know the type and cannot load the table's metadata at all: not this
        column, and no other.
    Example
        `12: payload variant` on a v2 table is refused; after upgrade-format-version 3 it is accepted.
    What to do
        Upgrade the table to format version 3 first, if every reader supports it; or use a type of version 2.
    Spec
        Primitive Types, column "Added by version"; Semi-structured Types.
    """
    for delta in change.introduced:
        slot = delta.slot
        needed = min_format_version(slot.type)
        if isinstance(slot.type, (StructType, ListType, MapType)) or needed <= change.format_version:
            continue
        if delta.before is not None and delta.before.type == slot.type:
            continue
        yield Fault(
            text=(
                f"{slot.label}: {slot.type} is not supported until v{needed} and the table has format version "
                f"{change.format_version}"
            ),
            fix=f"Upgrade the table to v{needed} first (set the property format-version to {needed}).",
            field_id=slot.field_id,
            path=slot.path,
            before=_text(delta.before),
            after=str(slot.type),
        )


def _broken(change: Change, conflict: Conflict) -> Iterator[Pair]:
    return (pair for pair in change.pairs if conflict in pair.conflicts)


def _ends(pair: Pair) -> tuple[Slot, Slot]:
    assert pair.before is not None and pair.after is not None
    return pair.before, pair.after


def _text(slot: Slot | None) -> str | None:
    return None if slot is None else str(slot.type)


def _rescaled(old: Type, new: Type) -> bool:
    return isinstance(old, DecimalType) and isinstance(new, DecimalType) and old.scale != new.scale


def _retyped(pair: Pair, why: str, fix: str) -> Fault:
    old, new = _ends(pair)
    return Fault(
        text=f"{new.label} cannot go from {old.type} to {new.type}{whence(pair.against)}: {why}",
        fix=fix,
        field_id=new.field_id,
        path=new.path,
        before=str(old.type),
        after=str(new.type),
    )


def whence(against: Against) -> str:
    """Where an obligation comes from, when it is not the schema that was current just before."""
    return "" if against.branch is None else f", since {against}"


def _why(old: Type, new: Type, format_version: int) -> str:
    if isinstance(old, DateType) and isinstance(new, (TimestamptzType, TimestamptzNsType)):
        return "a date does not say in which zone its midnight is"
    if promotable(new, old, format_version):
        return "stored values may not fit into the narrower type"
    if isinstance(new, (UnknownType, VariantType)):
        return "stored values would be lost or unreadable"
    return "stored values and bounds cannot be read as the new type"


def _other_type(change: Change, old: Slot) -> str:
    wider = wider_type(old.type, change.format_version)
    if isinstance(old.type, DateType) and old.field_id in change.law.partitioned:
        wider = None
    copy = "add a new column and copy the values."
    return f"Promote to {wider}, or {copy}" if wider is not None else f"Keep {old.type}, or {copy}"
