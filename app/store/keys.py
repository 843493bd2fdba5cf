"""Idempotency keys in SQL. A key is one per warehouse, compared without regard to case."""

from __future__ import annotations

from typing import Final

from app.errors import KeyAlreadyUsed
from app.ports import KeyRecord, RecordKey
from app.store.program import Call, Params, Program, Row, Statement

ONE: Final = Statement("keys.ONE")
_RECORD: Final = Statement("keys.RECORD")
_EXPIRE: Final = Statement("keys.EXPIRE")


def key_of(row: Row) -> KeyRecord:
    key, warehouse, fingerprint, status, outcome, created_at_ms, expires_at_ms = row
    return KeyRecord(
        key=key,
        warehouse=warehouse,
        fingerprint=fingerprint,
        status=status,
        outcome=outcome,
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
    )


def stored_key(key: str) -> str:
    return key.lower()


def record_params(op: RecordKey) -> Params:
    value = op.record
    return {
        "warehouse": value.warehouse,
        "key": stored_key(value.key),
        "fingerprint": value.fingerprint,
        "status": value.status,
        "outcome": value.outcome,
        "created_at_ms": value.created_at_ms,
        "expires_at_ms": value.expires_at_ms,
    }


def record(op: RecordKey) -> Program[None]:
    """Insert, or overwrite a record that had expired when this one was made."""
    stored = yield Call(_RECORD, record_params(op))
    if not stored.touched:
        raise KeyAlreadyUsed(f"Idempotency key was used by a concurrent request: {op.record.key}")


def expire(now_ms: int) -> Program[int]:
    expired = yield Call(_EXPIRE, {"now_ms": now_ms})
    return expired.touched
