"""Waivers."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, exists, insert, not_, select, update

from app.store.expressions.params import param
from app.store.schema import tabular, waiver

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

OF_TABLE: Final = (
    select(*_COLUMNS)
    .where(waiver.c.table_uuid == param("table_uuid"))
    .order_by(waiver.c.granted_at_ms, waiver.c.waiver_id)
)
ONE: Final = select(waiver.c.waiver_id).where(waiver.c.waiver_id == param("id"))
INSERT: Final = (
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
USE: Final = update(waiver).where(*_UNUSED).values(used_at_ms=param("now_ms"))
REVOKE: Final = delete(waiver).where(*_UNUSED)
FORGET: Final = delete(waiver).where(
    waiver.c.table_uuid == param("table_uuid"),
    not_(exists().where(tabular.c.uuid == param("table_uuid"))),
)
