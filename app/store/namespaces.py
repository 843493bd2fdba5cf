"""Namespaces in SQL: levels, properties, and what a namespace holds."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, insert, literal_column, select, update
from sqlalchemy.sql.expression import ColumnElement

from app.errors import AlreadyExists, NamespaceNotEmpty, NoSuchNamespace, NoSuchWarehouse, dotted
from app.ports import CreateNamespace, DropNamespace, Namespace, UpdateNamespace
from app.store.json_text import decode_map, encode
from app.store.paths import levels_of, parent_of, path_of
from app.store.policies import forget_namespace
from app.store.program import Call, Program, Row
from app.store.schema import namespace, tabular, warehouse
from app.store.statements import Statement, param

_AT = (namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))
ONE: Final = Statement(
    select(namespace.c.namespace_id, namespace.c.warehouse, namespace.c.path, namespace.c.properties).where(*_AT)
)


def _children(under: ColumnElement[bool]) -> Statement:
    return Statement(
        select(namespace.c.path)
        .where(namespace.c.warehouse == param("warehouse"), under, namespace.c.path > param("after"))
        .order_by(namespace.c.path)
        .limit(param("limit"))
    )


# Two statements, because neither database uses an index for one comparison that matches null and text alike.
TOP_LEVEL: Final = _children(namespace.c.parent.is_(None))
CHILDREN: Final = _children(namespace.c.parent == param("parent"))
_OTHER = namespace.alias("other")
_BEFORE_CREATE: Final = Statement(
    select(
        select(namespace.c.namespace_id).where(*_AT).scalar_subquery(),
        select(_OTHER.c.namespace_id)
        .where(_OTHER.c.warehouse == param("warehouse"), _OTHER.c.path == param("parent"))
        .scalar_subquery(),
    ).where(warehouse.c.name == param("warehouse"))
)
_INSERT: Final = Statement(
    insert(namespace)
    .inline()
    .values(
        warehouse=param("warehouse"),
        path=param("path"),
        parent=param("parent"),
        properties=param("properties"),
        created_at_ms=param("now_ms"),
        updated_at_ms=param("now_ms"),
    )
)
_HOLD_PROPERTIES: Final = Statement(
    select(namespace.c.namespace_id, namespace.c.properties).where(*_AT).with_for_update(key_share=True)
)
_SET_PROPERTIES: Final = Statement(
    update(namespace)
    .where(namespace.c.namespace_id == param("id"))
    .values(properties=param("properties"), updated_at_ms=param("now_ms"))
)
# The row lock waits for creations in flight, which hold a key share on it: what they made is then seen below.
_HOLD: Final = Statement(select(namespace.c.namespace_id).where(*_AT).with_for_update())
_FIRST_TABULAR: Final = Statement(
    select(tabular.c.kind, tabular.c.name)
    .where(tabular.c.namespace_id == param("id"))
    .order_by(tabular.c.name)
    .limit(literal_column("1"))
)
_FIRST_CHILD: Final = Statement(
    select(namespace.c.path)
    .where(namespace.c.warehouse == param("warehouse"), namespace.c.parent == param("path"))
    .order_by(namespace.c.path)
    .limit(literal_column("1"))
)
_DELETE: Final = Statement(delete(namespace).where(namespace.c.namespace_id == param("id")))


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
