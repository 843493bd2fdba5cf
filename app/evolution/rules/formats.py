"""Rules about definitions that are legal and that data files have no place for (ICE210, ICE404)."""

from __future__ import annotations

from collections.abc import Iterator

from app.evolution.engine.change import Change
from app.evolution.engine.registry import RULES
from app.iceberg.primitives import MAX_DECIMAL_PRECISION
from app.iceberg.types import DecimalType, FixedType, StructType, Type
from app.rules import Fault, Severity


@RULES.rule("ICE210", "type-without-storage", spec="Primitive Types", definition=True)
def type_without_storage(change: Change) -> Iterator[Fault]:
    """A type has no place in a data file: fixed[0], or a decimal with more digits after the point than digits.

    Checks
        A field, list element, map key or map value that the change adds or retypes is neither fixed[0] nor a decimal
        whose scale is above its precision.
    Why it matters
        The spec names no lower bound for a length and no upper bound for a scale, and the reference implementation
        loads both. But Parquet refuses to write a byte array of length 0, and Parquet, ORC and Avro all refuse such a
        decimal; Spark cannot even load the table. The first write fails, and the type can never be changed.
    Example
        `5: rate decimal(3, 9)` is refused, decimal(9, 9) is not.
    What to do
        Take a precision of at least the scale, up to 38; for bytes of varying length take binary.
    Spec
        Primitive Types: decimal(P,S) and fixed(L); Appendix A has no smaller form of either.
    """
    for delta in change.introduced:
        slot = delta.after
        if slot is None or (delta.before is not None and delta.before.type == slot.type):
            continue
        found = _unstorable(slot.type)
        if found is not None:
            why, instead = found
            yield Fault(
                text=f"{slot.label}: {slot.type} {why}",
                fix=f"Use {instead} instead.",
                field_id=slot.field_id,
                path=slot.path,
                before=None if delta.before is None else str(delta.before.type),
                after=str(slot.type),
            )


def _unstorable(kind: Type) -> tuple[str, str] | None:
    """What is wrong with the type, and what to take in its place."""
    if isinstance(kind, FixedType) and kind.length == 0:
        return "holds no byte, and Parquet cannot store it", "binary"
    if isinstance(kind, DecimalType) and kind.scale > kind.precision:
        why = "has more digits after the point than digits, and no file format can store it"
        fits = kind.scale <= MAX_DECIMAL_PRECISION
        return why, f"a precision of at least {kind.scale}" if fits else "a smaller scale"
    return None


@RULES.rule("ICE404", "struct-without-fields", spec="Schemas and Data Types", default=Severity.WARN)
def struct_without_fields(change: Change) -> Iterator[Fault]:
    """A struct comes into the schema without a field.

    Checks
        A struct that the change adds, as a column or inside another type, has a field. A table without columns is not
        reported: engines create one and add columns later. Taking the last field of a struct away is ICE403.
    Why it matters
        Parquet has no groups without columns. Until the struct gets a field, nothing can be written to the table, and
        the error comes from the writer, far from here.
    Example
        `9: addr struct<>` is accepted and reported; with `10: city` inside it is not.
    What to do
        Add the struct together with its first field.
    Spec
        Silent; Appendix A maps structs to Parquet groups, which cannot be empty.
    """
    if not change.takes_effect:
        return
    for delta in change.introduced:
        slot = delta.after
        if slot is None or not isinstance(slot.type, StructType) or slot.type.fields:
            continue
        if delta.before is None or not isinstance(delta.before.type, StructType):
            yield Fault(
                text=f"{slot.label} is a struct without fields, and Parquet cannot store one",
                fix="Add it together with its first field.",
                field_id=slot.field_id,
                path=slot.path,
                after=str(slot.type),
            )
