"""A schema under construction: operations by column path edit it, and it knows which column each path meant.

A path names a column as it was before the plan; a name that no column had then is that of one the plan adds or
renames. IDs are given out in the order of the reference implementations: a new column first, then what is inside it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import UNSET

from app.errors import ValidationFailed
from app.evolution.siblings import Siblings
from app.evolution.wanted import plain_type
from app.spec.schema import FieldKind, Schema
from app.spec.types import ListType, MapType, NestedField, StructType, Type, settled_default

Path = str | tuple[str, ...]

STRUCT: Final = "struct"
LIST: Final = "list"
MAP: Final = "map"
VALUE: Final = "value"


class Node:
    """One field ID of the sketch. `gone` marks a dropped field, which stays in place until the schema is built."""

    __slots__ = (
        "doc", "extra", "field_id", "first_name", "fresh", "gone", "initial_default", "inner", "kind", "name",
        "parent", "primitive", "required", "role", "type_extra", "write_default",
    )  # fmt: skip

    def __init__(self, field: NestedField, parent: Node | None, role: FieldKind, *, fresh: bool) -> None:
        self.field_id = field.field_id
        self.name = self.first_name = field.name
        self.parent = parent
        self.role: FieldKind = role
        self.required = field.required
        self.doc = field.doc
        self.initial_default: Any = field.initial_default
        self.write_default: Any = field.write_default
        self.extra = field.extra
        self.fresh = fresh
        self.gone = False
        self.adopt(field.field_type)

    def adopt(self, kind: Type) -> None:
        """Take over a type, IDs included."""
        self.primitive: Type | None = None
        self.type_extra = getattr(kind, "extra", {})
        children: list[Node] = []
        if isinstance(kind, StructType):
            self.kind = STRUCT
            children = [Node(child, self, "field", fresh=self.fresh) for child in kind.fields]
        elif isinstance(kind, ListType):
            self.kind = LIST
            children = [Node(kind.element_field, self, "element", fresh=self.fresh)]
        elif isinstance(kind, MapType):
            self.kind = MAP
            children = [
                Node(kind.key_field, self, "key", fresh=self.fresh),
                Node(kind.value_field, self, "value", fresh=self.fresh),
            ]
        else:
            self.kind = VALUE
            self.primitive = kind
        self.inner: Siblings[Node] = Siblings(children)

    @property
    def children(self) -> list[Node]:
        return self.inner.listed

    @property
    def live(self) -> list[Node]:
        return [child for child in self.children if not child.gone]

    @property
    def path(self) -> str:
        """The full dotted name as it is now."""
        return self.name if self.parent is None or self.parent.parent is None else f"{self.parent.path}.{self.name}"

    @property
    def first_path(self) -> str:
        """The full dotted name by which the plan's author knows it: without any rename of this plan."""
        if self.parent is None or self.parent.parent is None:
            return self.first_name
        return f"{self.parent.first_path}.{self.first_name}"

    @property
    def lost(self) -> bool:
        """Whether it, or what it is inside of, is dropped."""
        return self.gone or (self.parent is not None and self.parent.lost)

    def child(self, name: str) -> Node | None:
        return self.inner.find(name)

    def built(self) -> NestedField:
        return NestedField(
            self.field_id,
            self.name,
            self.required,
            self.type(),
            self.doc,
            settled_default(self.primitive, self.initial_default) if self.primitive else self.initial_default,
            settled_default(self.primitive, self.write_default) if self.primitive else self.write_default,
            self.extra,
        )

    def type(self) -> Type:
        if self.kind == STRUCT:
            return StructType(tuple(child.built() for child in self.live), self.type_extra)
        if self.kind == LIST:
            element = self.children[0]
            return ListType(element.field_id, element.type(), element.required, self.type_extra)
        if self.kind == MAP:
            key, value = self.children
            return MapType(key.field_id, key.type(), value.field_id, value.type(), value.required, self.type_extra)
        assert self.primitive is not None
        return self.primitive

    def walk(self) -> Iterator[Node]:
        """Itself and everything live under it, outer before inner."""
        yield self
        for child in self.live:
            yield from child.walk()


class Sketch:
    """Edits of one schema. Every method raises ValidationFailed for what has no meaning; what is merely illegal is
    for the rules to say."""

    def __init__(self, base: Schema, last_column_id: int) -> None:
        self.base = base
        self.root = Node(NestedField(0, "", True, StructType(base.fields)), None, "field", fresh=False)
        self.identifiers: tuple[int, ...] = base.identifier_field_ids
        self._fresh = count(max(last_column_id, base.highest_id) + 1)
        self._by_id = {node.field_id: node for node in self.root.walk()}
        # What this plan adds, by the names under which it does: a rename does not take them away.
        self._by_first_name: dict[str, OrderedDict[Node, None]] = {}

    # --- finding -----------------------------------------------------------------------------------------------

    def find(self, path: Path) -> Node:
        """The column of a path; ValidationFailed when there is none, or this plan drops it."""
        found = self.look_up(path)
        if found is None:
            raise ValidationFailed(f"No such column: {shown(path)}")
        if found.lost:
            raise ValidationFailed(f"Column {shown(path)} is dropped by an earlier operation of this plan")
        return found

    def look_up(self, path: Path) -> Node | None:
        """As `find`, dropped columns included; None when there is none."""
        name = shown(path)
        original = self.base.find_readable(name)
        if original is not None:
            return self._by_id.get(original.field_id)
        named = list(_named(self.root, name, 0))
        if named:
            return next((node for node in named if node.role == "field"), named[0])
        return next(iter(self._by_first_name.get(name, ())), None)

    def by_id(self, field_id: int) -> Node | None:
        """The live node of a field ID."""
        node = self._by_id.get(field_id)
        return None if node is None or node.lost else node

    def struct(self, path: Path) -> Node:
        """The struct that a path leads into: the column itself, its list elements or its map values."""
        if not path:
            return self.root
        node = self.find(path)
        if node.kind in (LIST, MAP):
            node = node.children[-1]
        if node.kind != STRUCT:
            raise ValidationFailed(f"Column {shown(path)} is no struct, nor a list or map of structs")
        return node

    def place(self, path: Path) -> tuple[Node, str]:
        """The struct that a new column belongs to, and the column's own name."""
        parts = tuple(path.split(".")) if isinstance(path, str) else path
        if not parts or not parts[-1]:
            raise ValidationFailed(f"Not the path of a column: {shown(path)!r}")
        return self.struct(parts[:-1]), parts[-1]

    # --- editing -----------------------------------------------------------------------------------------------

    def add(self, parent: Node, field: NestedField) -> Node:
        """Append a new column to a struct, with fresh IDs for itself and everything inside."""
        taken = parent.child(field.name)
        if taken is not None:
            raise ValidationFailed(f"Column {taken.path} already exists (field {taken.field_id})")
        own = next(self._fresh)
        kind = self._renumbered(plain_type(field.field_type))
        numbered = msgspec.structs.replace(field, field_id=own, field_type=kind)
        return self._append(parent, numbered, fresh=True)

    def restore(self, parent: Node, field: NestedField) -> Node:
        """Append a column under IDs that it had before."""
        taken = parent.child(field.name)
        if taken is not None:
            raise ValidationFailed(
                f"Column {taken.path} exists (field {taken.field_id}): restore the old one under another name"
            )
        return self._append(parent, field, fresh=False)

    def _append(self, parent: Node, field: NestedField, *, fresh: bool) -> Node:
        node = Node(field, parent, "field", fresh=fresh)
        parent.inner.append(node)
        self._know(node.walk())
        return node

    def _know(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._by_id[node.field_id] = node
            if node.fresh:
                self._by_first_name.setdefault(node.first_path, OrderedDict())[node] = None

    def _forget_names(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.fresh:
                known = self._by_first_name[node.first_path]
                del known[node]
                if not known:
                    del self._by_first_name[node.first_path]

    def drop(self, node: Node) -> None:
        if node.role != "field":
            raise ValidationFailed(f"Cannot drop the {node.role} of {node.parent.path if node.parent else ''}")
        self._forget_names(node.walk())
        if node.parent is not None:
            node.parent.inner.unnamed(node)
        node.gone = True

    def rename(self, node: Node, name: str) -> None:
        """Names are compared when the schema is built, so that two columns can swap theirs."""
        if node.role != "field":
            raise ValidationFailed(f"Cannot rename the {node.role} of {node.parent.path if node.parent else ''}")
        siblings = None if node.parent is None else node.parent.inner
        if siblings is not None:
            siblings.unnamed(node)
        node.name = name
        if siblings is not None:
            siblings.named(node)

    def retype(self, node: Node, kind: Type) -> None:
        """Another type; what is nested in it gets fresh IDs."""
        same_shape = node.kind == VALUE and not isinstance(kind, (StructType, ListType, MapType))
        if same_shape:
            node.primitive = kind
            return
        inside = list(node.walk())[1:]
        self._forget_names(inside)
        for inner in inside:
            self._by_id.pop(inner.field_id, None)
        node.adopt(self._renumbered(plain_type(kind)))
        self._know(node.walk())

    def move(self, node: Node, where: str, sibling: Node | None) -> None:
        """To the first place among its siblings, or just `before` or `after` one of them."""
        parent = node.parent
        if node.role != "field" or parent is None:
            raise ValidationFailed(f"Cannot move the {node.role} of {parent.path if parent else ''}")
        if sibling is None:
            parent.inner.move(node, parent.inner.first())
            return
        if sibling is node:
            raise ValidationFailed(f"Cannot move {node.path} {where} itself")
        if sibling.parent is not parent:
            raise ValidationFailed(f"Cannot move {node.path} {where} {sibling.path}: they are not in the same struct")
        parent.inner.move(node, sibling if where == "before" else parent.inner.following(sibling))

    def arrange(self, parent: Node, order: Sequence[Node]) -> None:
        """The live children in this order, dropped ones behind."""
        parent.inner.arrange([*order, *(child for child in parent.children if child.gone)])

    def _renumbered(self, kind: Type) -> Type:
        if isinstance(kind, StructType):
            ids = [next(self._fresh) for _ in kind.fields]
            return StructType(
                tuple(
                    msgspec.structs.replace(child, field_id=own, field_type=self._renumbered(child.field_type))
                    for own, child in zip(ids, kind.fields, strict=True)
                ),
                kind.extra,
            )
        if isinstance(kind, ListType):
            element_id = next(self._fresh)
            return ListType(element_id, self._renumbered(kind.element), kind.element_required, kind.extra)
        if isinstance(kind, MapType):
            key_id, value_id = next(self._fresh), next(self._fresh)
            key = self._renumbered(kind.key)
            return MapType(key_id, key, value_id, self._renumbered(kind.value), kind.value_required, kind.extra)
        return kind

    # --- the result --------------------------------------------------------------------------------------------

    def schema(self) -> Schema:
        """The schema as it is now, its own id unset (0). ValidationFailed or SpecError for one nobody could load."""
        for field_id in self.identifiers:
            node = self._by_id.get(field_id)
            if node is None or node.lost:
                name = self.base.name_of(field_id) if field_id in self.base.by_id else str(field_id)
                raise ValidationFailed(
                    f"Column {name} is an identifier field: set the identifier fields without it before it is dropped"
                )
        self._refuse_equal_names(self.root)
        return Schema(0, tuple(child.built() for child in self.root.live), self.identifiers, self.base.extra)

    def _refuse_equal_names(self, node: Node) -> None:
        seen: dict[str, Node] = {}
        for child in node.live:
            if child.role == "field" and child.name in seen:
                raise ValidationFailed(
                    f"Column {child.path} already exists (field {seen[child.name].field_id} and {child.field_id})"
                )
            seen[child.name] = child
            self._refuse_equal_names(child)


def _named(node: Node, name: str, at: int) -> Iterator[Node]:
    """What live nodes under `node` the dotted name from `at` on spells; a dot may be part of a name."""
    for length in node.inner.lengths():
        end = at + length
        if end > len(name) or name[end : end + 1] not in ("", "."):
            continue
        child = node.inner.find(name[at:end])
        if child is None:
            continue
        if end == len(name):
            yield child
        else:
            yield from _named(child, name, end + 1)


def shown(path: Path) -> str:
    """The full dotted name that a path spells."""
    return path if isinstance(path, str) else ".".join(path)


def no_default(value: Any) -> bool:
    return value is UNSET or value is None
