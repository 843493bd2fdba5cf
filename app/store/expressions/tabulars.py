"""Tables and views: look-ups, listings, the swap, and the life of a row."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, insert, literal_column, or_, select, update

from app.store.expressions.params import param
from app.store.overlaps import ANCESTORS
from app.store.schema import namespace, tabular, tabular_root

COLUMNS = (
    tabular.c.tabular_id,
    tabular.c.warehouse,
    namespace.c.path,
    tabular.c.name,
    tabular.c.kind,
    tabular.c.uuid,
    tabular.c.location,
    tabular.c.metadata_location,
    tabular.c.version,
    tabular.c.format_version,
    tabular.c.last_column_id,
    tabular.c.current_schema_id,
    tabular.c.field_count,
    tabular.c.created_at_ms,
    tabular.c.updated_at_ms,
    tabular.c.schema_count,
    tabular.c.schema_changed_at_ms,
    namespace.c.properties,
)
JOINED = tabular.join(namespace, tabular.c.namespace_id == namespace.c.namespace_id)
_NAMESPACE_ID = (
    select(namespace.c.namespace_id)
    .where(namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))
    .scalar_subquery()
)

BY_NAME: Final = (
    select(*COLUMNS)
    .select_from(JOINED)
    .where(
        namespace.c.warehouse == param("warehouse"),
        namespace.c.path == param("path"),
        tabular.c.name == param("name"),
    )
)
POINTER: Final = (
    select(tabular.c.tabular_id, tabular.c.kind, tabular.c.uuid, tabular.c.metadata_location)
    .select_from(JOINED)
    .where(
        namespace.c.warehouse == param("warehouse"),
        namespace.c.path == param("path"),
        tabular.c.name == param("name"),
    )
)
BY_ID: Final = select(*COLUMNS).select_from(JOINED).where(tabular.c.tabular_id == param("id"))

# The namespace is a scalar subquery, not a join: either planner then walks the index in name order up to the limit.
NAMES: Final = (
    select(tabular.c.name)
    .where(tabular.c.namespace_id == _NAMESPACE_ID, tabular.c.kind == param("kind"), tabular.c.name > param("after"))
    .order_by(tabular.c.name)
    .limit(param("limit"))
)

_PATH = select(namespace.c.path).where(namespace.c.namespace_id == tabular.c.namespace_id).scalar_subquery()
_OVERLAP = (tabular.c.warehouse, _PATH, tabular.c.name, tabular.c.kind, tabular.c.location)
_OTHERS = tabular.c.tabular_id != param("besides")
AT_OR_ABOVE: Final = select(*_OVERLAP).where(
    _OTHERS,
    or_(*(tabular.c.location_key == param(f"key{i}") for i in range(ANCESTORS))),
)
BELOW: Final = (
    select(*_OVERLAP)
    .where(
        _OTHERS,
        tabular.c.location_key >= param("below_from"),
        tabular.c.location_key < param("below_to"),
    )
    .order_by(tabular.c.location_key)
    .limit(param("limit"))
)

_ROOT_OVERLAP = (tabular.c.warehouse, _PATH, tabular.c.name, tabular.c.kind, tabular_root.c.root)
_OTHERS_ROOTS = tabular_root.c.tabular_id != param("besides")
_ROOTED = tabular_root.join(tabular, tabular_root.c.tabular_id == tabular.c.tabular_id)
ROOTS_AT_OR_ABOVE: Final = (
    select(*_ROOT_OVERLAP)
    .select_from(_ROOTED)
    .where(
        _OTHERS_ROOTS,
        or_(*(tabular_root.c.root_key == param(f"key{i}") for i in range(ANCESTORS))),
    )
)
ROOTS_BELOW: Final = (
    select(*_ROOT_OVERLAP)
    .select_from(_ROOTED)
    .where(
        _OTHERS_ROOTS,
        tabular_root.c.root_key >= param("below_from"),
        tabular_root.c.root_key < param("below_to"),
    )
    .order_by(tabular_root.c.root_key)
    .limit(param("limit"))
)
ROOTS_OF: Final = select(tabular_root.c.root_key).where(tabular_root.c.tabular_id == param("id"))
ADD_ROOT: Final = insert(tabular_root).from_select(
    ["tabular_id", "warehouse", "root_key", "root"],
    select(tabular.c.tabular_id, tabular.c.warehouse, param("root_key"), param("root")).where(
        tabular.c.uuid == param("uuid"), tabular.c.warehouse == param("warehouse")
    ),
)
FORGET_ROOTS: Final = delete(tabular_root).where(tabular_root.c.tabular_id == param("id"))

_taken = tabular.alias("taken")
_same_uuid = tabular.alias("same_uuid")

TARGET: Final = select(
    namespace.c.namespace_id,
    select(_taken.c.kind)
    .where(_taken.c.namespace_id == namespace.c.namespace_id, _taken.c.name == param("name"))
    .scalar_subquery(),
    select(_same_uuid.c.name)
    .where(
        # Clients write them in either case.
        or_(*(_same_uuid.c.uuid == param(name) for name in ("uuid", "uuid_lower", "uuid_upper"))),
        _same_uuid.c.warehouse == param("warehouse"),
    )
    .limit(literal_column("1"))
    .scalar_subquery(),
).where(namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))
INSERT: Final = (
    insert(tabular)
    .inline()
    .values(
        warehouse=param("warehouse"),
        namespace_id=param("namespace_id"),
        name=param("name"),
        kind=param("kind"),
        uuid=param("uuid"),
        location=param("location"),
        location_key=param("location_key"),
        metadata_location=param("metadata_location"),
        version=literal_column("1"),
        format_version=param("format_version"),
        last_column_id=param("last_column_id"),
        current_schema_id=param("current_schema_id"),
        field_count=param("field_count"),
        schema_count=param("schema_count"),
        schema_changed_at_ms=param("schema_changed_at_ms"),
        created_at_ms=param("now_ms"),
        updated_at_ms=param("now_ms"),
    )
)
_MOVED = {
    "metadata_location": param("metadata_location"),
    "version": tabular.c.version + literal_column("1"),
    "format_version": param("format_version"),
    "last_column_id": param("last_column_id"),
    "current_schema_id": param("current_schema_id"),
    "field_count": param("field_count"),
    "schema_count": param("schema_count"),
    "schema_changed_at_ms": param("schema_changed_at_ms"),
    "updated_at_ms": param("now_ms"),
}
_EXPECTED = (tabular.c.tabular_id == param("id"), tabular.c.metadata_location == param("expected"))

SWAP: Final = (
    update(tabular)
    .where(*_EXPECTED, tabular.c.uuid == param("uuid"), tabular.c.location == param("location"))
    .values(**_MOVED)
)
"""The swap of a commit that keeps UUID and location: one statement, one indexed row, no indexed column changed."""

SWAP_ELSEWHERE: Final = (
    update(tabular)
    .where(*_EXPECTED)
    .values(**_MOVED, uuid=param("uuid"), location=param("location"), location_key=param("location_key"))
)
HOLD: Final = (
    select(tabular.c.warehouse, tabular.c.uuid, tabular.c.location_key, tabular.c.location)
    .where(*_EXPECTED)
    .with_for_update()
)
UUID_HOLDER: Final = select(tabular.c.tabular_id, tabular.c.name).where(
    tabular.c.uuid == param("uuid"), tabular.c.warehouse == param("warehouse")
)
DELETE: Final = delete(tabular).where(*_EXPECTED)
SOURCE: Final = (
    select(tabular.c.tabular_id, tabular.c.uuid)
    .where(tabular.c.namespace_id == _NAMESPACE_ID, tabular.c.name == param("name"), tabular.c.kind == param("kind"))
    .with_for_update(key_share=True)
)
RENAME: Final = (
    update(tabular)
    .where(tabular.c.tabular_id == param("id"))
    .values(namespace_id=param("namespace_id"), name=param("name"), updated_at_ms=param("now_ms"))
)


IDENTITY: Final = select(tabular.c.warehouse, tabular.c.uuid).where(*_EXPECTED).with_for_update()
