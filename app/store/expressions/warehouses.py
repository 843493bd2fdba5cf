"""Warehouses."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, exists, insert, literal_column, select, update

from app.store.expressions.params import param
from app.store.schema import idempotency_key, namespace, policy_setting, warehouse

COLUMNS = (
    warehouse.c.name,
    warehouse.c.location,
    warehouse.c.allowed_locations,
    warehouse.c.properties,
    warehouse.c.storage,
    warehouse.c.secrets,
    warehouse.c.version,
)

ONE: Final = select(*COLUMNS).where(warehouse.c.name == param("name"))
ALL: Final = select(*COLUMNS).order_by(warehouse.c.name)

INSERT: Final = (
    insert(warehouse)
    .inline()
    .values(
        name=param("name"),
        location=param("location"),
        allowed_locations=param("allowed_locations"),
        properties=param("properties"),
        storage=param("storage"),
        secrets=param("secrets"),
        version=literal_column("1"),
        created_at_ms=param("now_ms"),
        updated_at_ms=param("now_ms"),
    )
)
REPLACE: Final = (
    update(warehouse)
    .where(warehouse.c.name == param("name"), warehouse.c.version == param("expected_version"))
    .values(
        location=param("location"),
        allowed_locations=param("allowed_locations"),
        properties=param("properties"),
        storage=param("storage"),
        secrets=param("secrets"),
        version=warehouse.c.version + literal_column("1"),
        updated_at_ms=param("now_ms"),
    )
)
HOLD: Final = (
    select(warehouse.c.name, exists().where(namespace.c.warehouse == param("name")))
    .where(warehouse.c.name == param("name"))
    .with_for_update()
)
DELETE: Final = delete(warehouse).where(warehouse.c.name == param("name"))
DELETE_KEYS: Final = delete(idempotency_key).where(idempotency_key.c.warehouse == param("name"))
DELETE_SETTINGS: Final = delete(policy_setting).where(policy_setting.c.warehouse == param("name"))
