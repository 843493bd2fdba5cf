"""Namespaces in SQL: levels, properties, and what a namespace holds."""

from __future__ import annotations

from typing import Final

from app.errors import AlreadyExists, NamespaceNotEmpty, NoSuchNamespace, NoSuchWarehouse, dotted
from app.ports import CreateNamespace, DropNamespace, Namespace, UpdateNamespace
from app.store.json_text import decode_map, encode
from app.store.paths import levels_of, parent_of, path_of
from app.store.policies import forget_namespace
from app.store.program import Call, Program, Row, Statement

ONE: Final = Statement("namespaces.ONE")
TOP_LEVEL: Final = Statement("namespaces.TOP_LEVEL")
CHILDREN: Final = Statement("namespaces.CHILDREN")
_BEFORE_CREATE: Final = Statement("namespaces.BEFORE_CREATE")
_INSERT: Final = Statement("namespaces.INSERT")
_HOLD_PROPERTIES: Final = Statement("namespaces.HOLD_PROPERTIES")
_SET_PROPERTIES: Final = Statement("namespaces.SET_PROPERTIES")
_HOLD: Final = Statement("namespaces.HOLD")
_FIRST_TABULAR: Final = Statement("namespaces.FIRST_TABULAR")
_FIRST_CHILD: Final = Statement("namespaces.FIRST_CHILD")
_DELETE: Final = Statement("namespaces.DELETE")


def namespace_of(row: Row) -> Namespace:
    namespace_id, name, path, properties = row
    return Namespace(
        namespace_id=namespace_id, warehouse=name, levels=levels_of(path), properties=decode_map(properties)
    )


def create(op: CreateNamespace) -> Program[None]:
    path = path_of(op.levels)
    parent = parent_of(path)
    found = yield Call(_BEFORE_CREATE, {"warehouse": op.warehouse, "path": path, "parent": parent})
    if not found.rows:
        raise NoSuchWarehouse.named(op.warehouse)
    taken, parent_id = found.rows[0]
    if taken is not None:
        raise AlreadyExists.namespace(op.levels)
    if parent is not None and parent_id is None:
        raise NoSuchNamespace.named(op.levels[:-1])
    yield Call(
        _INSERT,
        {
            "warehouse": op.warehouse,
            "path": path,
            "parent": parent,
            "properties": encode(op.properties),
            "now_ms": op.now_ms,
        },
    )


def update_properties(op: UpdateNamespace) -> Program[None]:
    held = yield Call(_HOLD_PROPERTIES, {"warehouse": op.warehouse, "path": path_of(op.levels)})
    if not held.rows:
        raise NoSuchNamespace.named(op.levels)
    namespace_id, text = held.rows[0]
    properties = decode_map(text)
    for key in op.removals:
        properties.pop(key, None)
    properties.update(op.updates)
    yield Call(_SET_PROPERTIES, {"id": namespace_id, "properties": encode(properties), "now_ms": op.now_ms})


def drop(op: DropNamespace) -> Program[None]:
    path = path_of(op.levels)
    held = yield Call(_HOLD, {"warehouse": op.warehouse, "path": path})
    if not held.rows:
        raise NoSuchNamespace.named(op.levels)
    namespace_id = held.rows[0][0]
    tabulars = yield Call(_FIRST_TABULAR, {"id": namespace_id})
    if tabulars.rows:
        kind, name = tabulars.rows[0]
        raise NamespaceNotEmpty.named(op.levels, f"{kind} {name}")
    children = yield Call(_FIRST_CHILD, {"warehouse": op.warehouse, "path": path})
    if children.rows:
        raise NamespaceNotEmpty.named(op.levels, f"namespace {dotted(levels_of(children.rows[0][0]))}")
    yield Call(_DELETE, {"id": namespace_id})
    yield from forget_namespace(op.warehouse, path)
