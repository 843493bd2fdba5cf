"""Carrying out operations on a schema under construction, and remembering what each of them meant.

A `Touch` is one thing that an operation was about: a column by ID and by those traits that the operation depends on.
An operation means the same on a later version of the table when all its touches are there again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET

from app.errors import ValidationFailed
from app.evolution.editing import declare
from app.evolution.editing import operations as o
from app.evolution.editing.schema_builder import Node, Path, SchemaBuilder, shown
from app.evolution.editing.schema_input import plain_field, plain_type
from app.evolution.editing.union import union
from app.iceberg.ref import MAIN
from app.iceberg.schema import Schema
from app.iceberg.table import TableMetadata
from app.iceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    field_to_json,
    settled_default,
    type_to_json,
)


class Touch(msgspec.Struct, frozen=True):
    """`field_id` is None for the table as a whole; `traits` is what had to hold of it."""

    operation: int
    field_id: int | None
    path: str
    traits: str


class Edited(msgspec.Struct, frozen=True):
    """The outcome of carrying operations out: the schema, what they touched, what a person should know."""

    schema: Schema
    touches: tuple[Touch, ...]
    notes: tuple[str, ...]


def edit(table: TableMetadata, operations: tuple[o.Operation, ...]) -> Edited:
    """The schema that the operations make of the table's current one. ValidationFailed for what has no meaning."""
    return _Editor(table).run(operations)


class _Editor:
    def __init__(self, table: TableMetadata) -> None:
        self._table = table
        self._sketch = SchemaBuilder(table.schema, table.last_column_id)
        self._touches: list[Touch] = []
        self._notes: list[str] = []
        self._at = 0
        self._identifiers = f"identifiers {sorted(table.schema.identifier_field_ids)}"
        self._given: Schema | None = None
        self._earlier: list[Schema] | None = None
        self._youngest: dict[int, list[Schema]] | None = None

    def run(self, operations: tuple[o.Operation, ...]) -> Edited:
        alone = [one for one in operations if isinstance(one, o.RollbackTo) or _by_ids(one)]
        if alone and len(operations) > 1:
            raise ValidationFailed(f"{o.describe(alone[0])} must be the only operation of its plan")
        for self._at, operation in enumerate(operations):
            try:
                self._apply(operation)
            except ValidationFailed as fault:
                raise ValidationFailed(f"Cannot {o.describe(operation)}: {fault.message}") from None
        schema = self._sketch.schema() if self._given is None else self._given
        return Edited(schema, tuple(self._touches), tuple(self._notes))

    def _apply(self, operation: o.Operation) -> None:
        match operation:
            case o.Add():
                self._add(operation)
            case o.Drop(path):
                node = self._sketch.find(path)
                self._touch(node, "everything", type_to_json(node.type()))
                self._sketch.drop(node)
            case o.Rename(path, name):
                node = self._sketch.find(path)
                self._touch(node, node.name)
                self._sketch.rename(node, name)
            case o.Move(path, position):
                node = self._sketch.find(path)
                self._touch(node)
                self._position(node, position)
            case o.Promote(path, kind):
                self._promote(path, kind)
            case o.Require(path, required):
                node = self._sketch.find(path)
                self._touch(node, node.required)
                node.required = required
            case o.SetDoc(path, doc):
                node = self._sketch.find(path)
                self._touch(node, node.doc)
                node.doc = doc
            case o.SetWriteDefault(path, value):
                node = self._sketch.find(path)
                self._touch(node, _kind(node), str(node.write_default))
                node.write_default = UNSET if value is None else value
            case o.SetIdentifierFields(paths):
                nodes = [self._sketch.find(path) for path in paths]
                self._touches.append(self._whole(self._identifiers))
                for node in nodes:
                    self._touch(node, node.required, _kind(node))
                self._sketch.identifiers = tuple(node.field_id for node in nodes)
            case o.UnionByName(wanted):
                for node in union(self._sketch, wanted.fields, self._table.format_version):
                    self._touch(node)
            case o.Declare():
                self._declare(operation)
            case o.Restore():
                self._restore(operation)
            case o.RollbackTo(snapshot_id, branch):
                self._rollback(snapshot_id, branch)
            case o.ReplaceAs():
                self._replace(operation)

    def _touch(self, node: Node, *traits: object) -> None:
        """Depend on a column: on its place, and on the given traits. What this plan itself adds is left aside."""
        if node.fresh:
            return
        parent = None if node.parent is None else node.parent.field_id
        self._touches.append(Touch(self._at, node.field_id, node.path, repr((parent, *traits))))

    def _whole(self, traits: str) -> Touch:
        return Touch(self._at, None, "", traits)

    def _add(self, operation: o.Add) -> None:
        parent, name = self._sketch.place(operation.path)
        if parent.parent is not None:
            self._touch(parent, "struct")
        kind = operation.type
        node = self._sketch.add(
            parent,
            NestedField(
                0,
                name,
                operation.required,
                kind,
                operation.doc,
                settled_default(kind, operation.initial_default),
                settled_default(kind, operation.write_default),
            ),
        )
        if operation.position is not None:
            self._position(node, operation.position)

    def _position(self, node: Node, position: o.Position) -> None:
        if position.sibling is None:
            self._sketch.move(node, "first", None)
            return
        sibling = self._sibling(node, position.sibling)
        self._touch(sibling)
        self._sketch.move(node, position.where, sibling)

    def _sibling(self, node: Node, path: Path) -> Node:
        """By its name alone, or by its full path."""
        found = self._sketch.look_up(path)
        if (found is None or found.parent is not node.parent) and node.parent is not None:
            beside = node.parent.child(shown(path))
            found = beside or found
        if found is None:
            raise ValidationFailed(f"No such column: {shown(path)}")
        if found.lost:
            raise ValidationFailed(f"Column {shown(path)} is dropped by an earlier operation of this plan")
        return found

    def _promote(self, path: Path, kind: Type) -> None:
        node = self._sketch.find(path)
        self._touch(node, _kind(node))
        self._sketch.retype(node, kind)

    def _declare(self, operation: o.Declare) -> None:
        wanted = operation.wanted
        self._touches.append(self._whole(f"the whole schema {content_of(self._table.schema)}"))
        if operation.match == "id":
            schema = wanted.schema()
            self._given = schema
            if wanted.identifier_names is not None:
                self._given = Schema(0, schema.fields, _ids(schema, wanted.identifier_names), schema.extra)
            return
        declare.declare(self._sketch, wanted.fields)
        if wanted.identifier_names is not None:
            self._sketch.identifiers = tuple(self._sketch.find(name).field_id for name in wanted.identifier_names)

    def _restore(self, operation: o.Restore) -> None:
        schema, field = self._dropped(operation)
        parent_id = schema.parents[field.field_id]
        parent = self._sketch.root if parent_id is None else self._sketch.by_id(parent_id)
        if parent is None:
            assert parent_id is not None
            name = schema.name_of(parent_id)
            raise ValidationFailed(f"{name} (field {parent_id}) is dropped too: restore that first")
        name = operation.name or field.name
        taken = [inner for inner in _ids_inside(field) if self._sketch.by_id(inner) is not None]
        if taken:
            raise ValidationFailed(f"field {taken[0]} is in use elsewhere in the schema")
        was_required = field.required
        field = msgspec.structs.replace(plain_field(field), name=name, required=operation.required)
        self._touches.append(
            Touch(self._at, field.field_id, name, f"retired under {parent_id} in schema {schema.schema_id}")
        )
        node = self._sketch.restore(parent, field)
        self._notes.append(
            f"field {field.field_id} comes back as {node.path} {node.type()}, as schema {schema.schema_id} had it"
            + (": it was required and comes back as optional" if was_required and not operation.required else "")
        )
        if operation.position is not None:
            self._position(node, operation.position)

    def _dropped(self, operation: o.Restore) -> tuple[Schema, NestedField]:
        """The youngest retained definition of the column that is asked for."""
        current = self._table.schema
        for schema in self._retained() if operation.field_id is None else self._holders(operation.field_id):
            if operation.field_id is not None:
                found = schema.by_id.get(operation.field_id)
            else:
                assert operation.path is not None
                found = schema.find_readable(shown(operation.path))
            if found is None or found.field_id in current.by_id or schema.kind_of(found.field_id) != "field":
                continue
            return schema, found
        what = f"field {operation.field_id}" if operation.path is None else f"column {shown(operation.path)}"
        if operation.field_id is not None and operation.field_id in current.by_id:
            raise ValidationFailed(f"{what} is not dropped: it is {current.name_of(operation.field_id)}")
        raise ValidationFailed(f"no retained schema has a dropped {what}")

    def _retained(self) -> list[Schema]:
        """All but the current schema, the youngest first."""
        if self._earlier is None:
            ids = sorted(self._table.schemas, reverse=True)
            schemas = (self._table.schemas.get(one) for one in ids if one != self._table.current_schema_id)
            self._earlier = [schema for schema in schemas if schema is not None]
        return self._earlier

    def _holders(self, field_id: int) -> Iterator[Schema]:
        """Retained schemas that have the field, the youngest first."""
        if self._youngest is None:
            self._youngest = {}
            for schema in self._retained():
                for known in schema.by_id:
                    self._youngest.setdefault(known, []).append(schema)
        return iter(self._youngest.get(field_id, ()))

    def _rollback(self, snapshot_id: int, branch: str) -> None:
        snapshot = self._table.snapshots.get(snapshot_id)
        ref = self._table.refs.get(branch)
        if snapshot is None:
            raise ValidationFailed(f"snapshot {snapshot_id} is not retained")
        if ref is None and branch != MAIN:
            names = ", ".join(sorted(name for name, known in self._table.refs.items() if known.is_branch)) or "none"
            raise ValidationFailed(f"no branch is called {branch} (branches: {names})")
        if ref is not None and not ref.is_branch:
            raise ValidationFailed(f"{branch} is a tag, and only branches go back")
        head = "nothing" if ref is None else ref.snapshot_id
        self._touches.append(self._whole(f"{branch} at {head} under {self._table.current_schema_id}"))
        if ref is None:
            self._notes.append(f"{branch} is gone, as after a replacement, and comes back at snapshot {snapshot_id}")
        schema = None if snapshot.schema_id is None else self._table.schemas.get(snapshot.schema_id)
        if schema is None:
            self._notes.append(f"snapshot {snapshot_id} names no retained schema: the current schema stays")
            return
        self._given = schema
        self._notes.append(f"{branch} goes back to snapshot {snapshot_id} and the schema to {schema.schema_id}")

    def _replace(self, operation: o.ReplaceAs) -> None:
        old = self._sketch.find(operation.path)
        if old.role != "field" or old.parent is None:
            raise ValidationFailed(f"{old.path} is no column of its own")
        if old.field_id in self._sketch.identifiers:
            raise ValidationFailed(f"column {old.path} is an identifier field: set the identifier fields without it")
        self._touch(old, old.name, _kind(old), old.required)
        name = old.name
        self._sketch.rename(old, operation.keep_as)
        if old.required:
            # From now on nobody writes the old column, so it cannot stay required.
            old.required = False
            self._notes.append(f"{operation.keep_as} becomes optional: nothing is written to it any more")
        doc = operation.doc if operation.doc is not None else old.doc
        fresh = self._sketch.add(old.parent, NestedField(0, name, False, plain_type(operation.type), doc))
        self._sketch.move(fresh, "before", old)
        self._notes.append(f"{fresh.path} is a new column: copy the values of {operation.keep_as} into it")


def _by_ids(operation: o.Operation) -> bool:
    return isinstance(operation, o.Declare) and operation.match == "id"


def _ids(schema: Schema, names: tuple[str, ...]) -> tuple[int, ...]:
    found = []
    for name in names:
        field = schema.find_readable(name)
        if field is None:
            raise ValidationFailed(f"No such column: {name}")
        found.append(field.field_id)
    return tuple(found)


def _kind(node: Node) -> str:
    """A node's own type, what is inside left aside."""
    return node.kind if node.primitive is None else str(node.primitive)


def content_of(schema: Schema) -> str:
    """A text that is equal for schemas of equal content."""
    return repr(([field_to_json(field) for field in schema.fields], sorted(schema.identifier_field_ids)))


def _ids_inside(field: NestedField) -> Iterator[int]:
    yield field.field_id
    yield from _type_ids(field.field_type)


def _type_ids(kind: Type) -> Iterator[int]:
    if isinstance(kind, StructType):
        for child in kind.fields:
            yield from _ids_inside(child)
    elif isinstance(kind, ListType):
        yield from _ids_inside(kind.element_field)
    elif isinstance(kind, MapType):
        yield from _ids_inside(kind.key_field)
        yield from _ids_inside(kind.value_field)


def missing(before: tuple[Touch, ...], after: tuple[Touch, ...]) -> tuple[Touch, ...]:
    """The touches that did not come again: what no longer means the same."""
    again: Mapping[Touch, None] = dict.fromkeys(after)
    return tuple(touch for touch in before if touch not in again)
