"""Waivers in SQL: permission for one commit to break one rule, consumed in the commit's own transaction."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, exists, insert, not_, select, update

from app.errors import AlreadyExists, NotFound, SwapLost
from app.ports import AddWaiver, RevokeWaiver, UseWaiver
from app.rules import Waiver
from app.store.program import Call, Program, Row
from app.store.schema import tabular, waiver
from app.store.statements import Statement, param

_COLUMNS = (
    waiver.c.waiver_id,
    waiver.c.table_uuid,
    waiver.c.code,
    waiver.c.reason,
    waiver.c.granted_by,
    waiver.c.granted_at_ms,
    waiver.c.expires_at_ms,
    waiver.c.used_at_ms,
)
_UNUSED = (waiver.c.waiver_id == param("id"), waiver.c.used_at_ms.is_(None))
OF_TABLE: Final = Statement(
    select(*_COLUMNS)
    .where(waiver.c.table_uuid == param("table_uuid"))
    .order_by(waiver.c.granted_at_ms, waiver.c.waiver_id)
)
_ONE: Final = Statement(select(waiver.c.waiver_id).where(waiver.c.waiver_id == param("id")))
_INSERT: Final = Statement(
    insert(waiver)
    .inline()
    .values(
        waiver_id=param("id"),
        table_uuid=param("table_uuid"),
        code=param("code"),
        reason=param("reason"),
        granted_by=param("granted_by"),
        granted_at_ms=param("granted_at_ms"),
        expires_at_ms=param("expires_at_ms"),
        used_at_ms=param("used_at_ms"),
    )
)
_USE: Final = Statement(update(waiver).where(*_UNUSED).values(used_at_ms=param("now_ms")))
_REVOKE: Final = Statement(delete(waiver).where(*_UNUSED))
_FORGET: Final = Statement(
    delete(waiver).where(
        waiver.c.table_uuid == param("table_uuid"),
        not_(exists().where(tabular.c.uuid == param("table_uuid"))),
    )
)


def waiver_of(row: Row) -> Waiver:
    waiver_id, table_uuid, code, reason, granted_by, granted_at_ms, expires_at_ms, used_at_ms = row
    return Waiver(
        waiver_id=waiver_id,
        table_uuid=table_uuid,
        code=code,
        reason=reason,
        granted_by=granted_by,
        granted_at_ms=granted_at_ms,
        expires_at_ms=expires_at_ms,
        used_at_ms=used_at_ms,
    )


def add(op: AddWaiver) -> Program[None]:
    value = op.waiver
    taken = yield Call(_ONE, {"id": value.waiver_id})
    if taken.rows:
        raise AlreadyExists(f"Waiver already exists: {value.waiver_id}")
    yield Call(
        _INSERT,
        {
            "id": value.waiver_id,
            "table_uuid": value.table_uuid,
            "code": value.code,
            "reason": value.reason,
            "granted_by": value.granted_by,
            "granted_at_ms": value.granted_at_ms,
            "expires_at_ms": value.expires_at_ms,
            "used_at_ms": value.used_at_ms,
        },
    )


def revoke(op: RevokeWaiver) -> Program[None]:
    """Remove an unused waiver; a used one is history and stays."""
    revoked = yield Call(_REVOKE, {"id": op.waiver_id})
    if not revoked.touched:
        raise NotFound(f"Waiver does not exist or is already used: {op.waiver_id}")


def use(op: UseWaiver) -> Program[None]:
    used = yield Call(_USE, {"id": op.waiver_id, "now_ms": op.now_ms})
    if not used.touched:
        raise SwapLost(f"Waiver {op.waiver_id} was used or revoked meanwhile")


def forget_table(table_uuid: str) -> Program[None]:
    """Drop the waivers of a table that no warehouse holds any more."""
    yield Call(_FORGET, {"table_uuid": table_uuid})
