"""Namespaces: reads, and what their programs check and change."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, insert, literal_column, select, update
from sqlalchemy.sql.expression import ColumnElement

from app.store.expressions.params import Expression, param
from app.store.schema import namespace, tabular, warehouse

_AT = (namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))

ONE: Final = select(namespace.c.namespace_id, namespace.c.warehouse, namespace.c.path, namespace.c.properties).where(
    *_AT
)


def _children(under: ColumnElement[bool]) -> Expression:
    return (
        select(namespace.c.path)
        .where(namespace.c.warehouse == param("warehouse"), under, namespace.c.path > param("after"))
        .order_by(namespace.c.path)
        .limit(param("limit"))
    )


# Two statements, because neither database uses an index for one comparison that matches null and text alike.
TOP_LEVEL: Final = _children(namespace.c.parent.is_(None))
CHILDREN: Final = _children(namespace.c.parent == param("parent"))

_OTHER = namespace.alias("other")

BEFORE_CREATE: Final = select(
    select(namespace.c.namespace_id).where(*_AT).scalar_subquery(),
    select(_OTHER.c.namespace_id)
    .where(_OTHER.c.warehouse == param("warehouse"), _OTHER.c.path == param("parent"))
    .scalar_subquery(),
).where(warehouse.c.name == param("warehouse"))
INSERT: Final = (
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
HOLD_PROPERTIES: Final = (
    select(namespace.c.namespace_id, namespace.c.properties).where(*_AT).with_for_update(key_share=True)
)
SET_PROPERTIES: Final = (
    update(namespace)
    .where(namespace.c.namespace_id == param("id"))
    .values(properties=param("properties"), updated_at_ms=param("now_ms"))
)
# The row lock waits for creations in flight, which hold a key share on it: what they made is then seen below.
HOLD: Final = select(namespace.c.namespace_id).where(*_AT).with_for_update()
FIRST_TABULAR: Final = (
    select(tabular.c.kind, tabular.c.name)
    .where(tabular.c.namespace_id == param("id"))
    .order_by(tabular.c.name)
    .limit(literal_column("1"))
)
FIRST_CHILD: Final = (
    select(namespace.c.path)
    .where(namespace.c.warehouse == param("warehouse"), namespace.c.parent == param("path"))
    .order_by(namespace.c.path)
    .limit(literal_column("1"))
)
DELETE: Final = delete(namespace).where(namespace.c.namespace_id == param("id"))
