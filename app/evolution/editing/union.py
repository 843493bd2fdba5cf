"""Making a schema hold at least what another one has: matched by name, only ever adding and widening.

Columns are numbered as the reference implementations number them: what a nested struct lacks comes before what the
struct around it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from app.errors import ValidationFailed
from app.evolution.editing.schema_builder import LIST, MAP, STRUCT, VALUE, Node, SchemaBuilder
from app.evolution.engine.promotion import promotable
from app.iceberg.types import ListType, MapType, NestedField, StructType, Type


def union(sketch: SchemaBuilder, fields: Sequence[NestedField], format_version: int) -> Iterator[Node]:
    """Edit the sketch; yields every column of it that a wanted one was matched with.

    New columns come as optional, whatever is asked for: old rows have no value for them. ValidationFailed where both
    sides have a column that neither type can be read as the other.
    """
    return _struct(sketch, sketch.root, fields, format_version)


def _struct(sketch: SchemaBuilder, node: Node, fields: Sequence[NestedField], version: int) -> Iterator[Node]:
    matched = [(field, node.child(field.name)) for field in fields]
    for field, known in matched:
        if known is not None:
            yield from _inside(sketch, known, field.field_type, version)
    for field, known in matched:
        if known is None:
            sketch.add(node, msgspec.structs.replace(field, required=False))
        else:
            _update(sketch, known, field, version)
            yield known


def _inside(sketch: SchemaBuilder, node: Node, wanted: Type, version: int) -> Iterator[Node]:
    if isinstance(wanted, StructType):
        _expect(node, STRUCT, wanted)
        yield from _struct(sketch, node, wanted.fields, version)
    elif isinstance(wanted, ListType):
        _expect(node, LIST, wanted)
        yield from _inside(sketch, node.children[0], wanted.element, version)
        _update(sketch, node.children[0], wanted.element_field, version)
    elif isinstance(wanted, MapType):
        _expect(node, MAP, wanted)
        key, value = node.children
        yield from _inside(sketch, key, wanted.key, version)
        yield from _inside(sketch, value, wanted.value, version)
        _update(sketch, key, wanted.key_field, version)
        _update(sketch, value, wanted.value_field, version)
    else:
        _expect(node, VALUE, wanted)


def _expect(node: Node, kind: str, wanted: Type) -> None:
    if node.kind != kind:
        raise ValidationFailed(f"Cannot unite column {node.path} of type {node.type()} with {wanted}")


def _update(sketch: SchemaBuilder, node: Node, wanted: NestedField, version: int) -> None:
    if node.required and not wanted.required:
        node.required = False
    kind = wanted.field_type
    if node.kind == VALUE and node.primitive != kind:
        assert node.primitive is not None
        if promotable(node.primitive, kind, version):
            sketch.retype(node, kind)
        elif not promotable(kind, node.primitive, version):
            raise ValidationFailed(f"Cannot unite column {node.path} of type {node.primitive} with {kind}")
    if wanted.doc is not None:
        node.doc = wanted.doc
