"""Warehouses in SQL."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import delete, exists, insert, literal_column, select, update

from app.errors import AlreadyExists, NamespaceNotEmpty, NoSuchWarehouse, SwapLost
from app.ports import DropWarehouse, PutWarehouse, Warehouse
from app.store.json_text import decode_map, decode_strings, encode
from app.store.paths import checked_name
from app.store.program import Call, Outcome, Program, Row
from app.store.schema import idempotency_key, namespace, policy_setting, warehouse
from app.store.statements import Statement, param

COLUMNS = (
    warehouse.c.name,
    warehouse.c.location,
    warehouse.c.allowed_locations,
    warehouse.c.properties,
    warehouse.c.storage,
    warehouse.c.secrets,
    warehouse.c.version,
)
ONE: Final = Statement(select(*COLUMNS).where(warehouse.c.name == param("name")))
ALL: Final = Statement(select(*COLUMNS).order_by(warehouse.c.name))
_INSERT: Final = Statement(
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
_REPLACE: Final = Statement(
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
_HOLD: Final = Statement(
    select(warehouse.c.name, exists().where(namespace.c.warehouse == param("name")))
    .where(warehouse.c.name == param("name"))
    .with_for_update()
)
_DELETE: Final = Statement(delete(warehouse).where(warehouse.c.name == param("name")))
_DELETE_KEYS: Final = Statement(delete(idempotency_key).where(idempotency_key.c.warehouse == param("name")))
_DELETE_SETTINGS: Final = Statement(delete(policy_setting).where(policy_setting.c.warehouse == param("name")))


def warehouse_of(row: Row) -> Warehouse:
    name, location, allowed_locations, properties, storage, secrets, version = row
    return Warehouse(
        name=name,
        location=location,
        allowed_locations=decode_strings(allowed_locations),
        properties=decode_map(properties),
        storage=decode_map(storage),
        secrets=decode_map(secrets),
        version=version,
    )


def put(op: PutWarehouse) -> Program[None]:
    """Insert with version 1, or replace the expected version with the next one."""
    value = op.warehouse
    params = {
        "name": checked_name(value.name),
        "location": value.location,
        "allowed_locations": msgspec.json.encode(value.allowed_locations).decode(),
        "properties": encode(value.properties),
        "storage": encode(value.storage),
        "secrets": encode(value.secrets),
        "now_ms": op.now_ms,
    }
    if op.expected_version is None:
        taken = yield Call(ONE, {"name": value.name})
        if taken.rows:
            raise AlreadyExists(f"Warehouse already exists: {value.name}", warehouse=value.name)
        yield Call(_INSERT, params)
        return
    replaced: Outcome = yield Call(_REPLACE, {**params, "expected_version": op.expected_version})
    if not replaced.touched:
        raise SwapLost(f"Warehouse {value.name} is not at version {op.expected_version} any more")


def drop(op: DropWarehouse) -> Program[None]:
    """Remove an empty warehouse with its idempotency keys and rule settings; its journal stays."""
    held = yield Call(_HOLD, {"name": op.name})
    if not held.rows:
        raise NoSuchWarehouse.named(op.name)
    if held.rows[0][1]:
        raise NamespaceNotEmpty(f"Warehouse {op.name} is not empty. It contains namespaces", warehouse=op.name)
    yield Call(_DELETE, {"name": op.name})
    yield Call(_DELETE_KEYS, {"name": op.name})
    yield Call(_DELETE_SETTINGS, {"name": op.name})
