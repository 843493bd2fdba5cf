"""Making a schema equal to a declared one, columns matched by name or by the former name that a declaration gives.

What the declaration says of a column holds: its type, whether it is required, its order among its siblings. A doc or
default that it leaves out stays as it is. A column that it does not name is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import ValidationFailed
from app.evolution.sketch import LIST, MAP, STRUCT, VALUE, Node, Sketch, no_default
from app.evolution.wanted import plain_field, plain_type, renamed_from
from app.spec.types import ListType, MapType, NestedField, StructType, Type


def declare(sketch: Sketch, fields: Sequence[NestedField]) -> None:
    """Edit the sketch. ValidationFailed for a declaration that matches one column twice or names one that is not
    there."""
    _struct(sketch, sketch.root, fields)


def _struct(sketch: Sketch, node: Node, fields: Sequence[NestedField]) -> None:
    matched = _matched(node, fields)
    kept = {known.field_id for known in matched if known is not None}
    for child in node.live:
        if child.field_id not in kept:
            sketch.drop(child)
    order = []
    for field, known in zip(fields, matched, strict=True):
        if known is None:
            order.append(sketch.add(node, plain_field(field)))
            continue
        if known.name != field.name:
            sketch.rename(known, field.name)
        _update(sketch, known, field)
        order.append(known)
    sketch.arrange(node, order)


def _matched(node: Node, fields: Sequence[NestedField]) -> list[Node | None]:
    """The column of each declared field. A former name counts only while the column still has it, so that a
    declaration can keep its `renamed-from` after the rename has happened."""
    names = {field.name for field in fields}
    found: list[Node | None] = []
    taken: set[Node] = set()
    for field in fields:
        former = renamed_from(field)
        known = node.child(field.name)
        if former is not None and former not in names and node.child(former) is not None:
            if known is not None:
                raise ValidationFailed(f"Cannot rename {former} to {field.name}: column {known.path} exists")
            known = node.child(former)
        elif former is not None and known is None:
            raise ValidationFailed(f"Column {field.name} is declared as renamed from {former}, and neither exists")
        if known is not None:
            if known in taken:
                raise ValidationFailed(f"Column {known.path} is declared twice")
            taken.add(known)
        found.append(known)
    return found


def _update(sketch: Sketch, node: Node, field: NestedField) -> None:
    node.required = field.required
    if field.doc is not None:
        node.doc = field.doc
    if not no_default(field.initial_default):
        node.initial_default = field.initial_default
    if not no_default(field.write_default):
        node.write_default = field.write_default
    _retype(sketch, node, field.field_type)


def _retype(sketch: Sketch, node: Node, wanted: Type) -> None:
    if isinstance(wanted, StructType) and node.kind == STRUCT:
        _struct(sketch, node, wanted.fields)
    elif isinstance(wanted, ListType) and node.kind == LIST:
        element = node.children[0]
        element.required = wanted.element_required
        _retype(sketch, element, wanted.element)
    elif isinstance(wanted, MapType) and node.kind == MAP:
        key, value = node.children
        value.required = wanted.value_required
        _retype(sketch, key, wanted.key)
        _retype(sketch, value, wanted.value)
    elif node.kind != VALUE or node.primitive != wanted:
        sketch.retype(node, plain_type(wanted))
