"""Waivers in SQL: permission for one commit to break one rule, consumed in the commit's own transaction."""

from __future__ import annotations

from typing import Final

from app.errors import AlreadyExists, NotFound, SwapLost
from app.ports import AddWaiver, RevokeWaiver, UseWaiver
from app.rules import Waiver
from app.store.program import Call, Program, Row, Statement

OF_TABLE: Final = Statement("waivers.OF_TABLE")
_ONE: Final = Statement("waivers.ONE")
_INSERT: Final = Statement("waivers.INSERT")
_USE: Final = Statement("waivers.USE")
_REVOKE: Final = Statement("waivers.REVOKE")
_FORGET: Final = Statement("waivers.FORGET")


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
