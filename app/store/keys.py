"""Idempotency keys in SQL. A key is one per warehouse, compared without regard to case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import delete, select

from app.errors import KeyAlreadyUsed
from app.ports import KeyRecord, OutcomeKind, RecordKey
from app.store.program import Call, Program, Row
from app.store.schema import idempotency_key
from app.store.statements import DialectInsert, Params, Statement, param

# The column keeps these integers: databases of every release hold them.
_STORED: Final[Mapping[OutcomeKind, int]] = {"done": 200, "refused": 400}

ONE: Final = Statement(
    select(
        idempotency_key.c.key,
        idempotency_key.c.warehouse,
        idempotency_key.c.fingerprint,
        idempotency_key.c.status,
        idempotency_key.c.outcome,
        idempotency_key.c.created_at_ms,
        idempotency_key.c.expires_at_ms,
    ).where(
        idempotency_key.c.warehouse == param("warehouse"),
        idempotency_key.c.key == param("key"),
        idempotency_key.c.expires_at_ms > param("now_ms"),
    )
)
record_values: Final = {
    "warehouse": param("warehouse"),
    "key": param("key"),
    "fingerprint": param("fingerprint"),
    "status": param("status"),
    "outcome": param("outcome"),
    "created_at_ms": param("created_at_ms"),
    "expires_at_ms": param("expires_at_ms"),
}


def over_expired(statement: Any) -> Any:
    """The INSERT of a record, or the overwriting of one that had expired when this one was made."""
    changed = ("fingerprint", "status", "outcome", "created_at_ms", "expires_at_ms")
    return statement.on_conflict_do_update(
        index_elements=list(idempotency_key.primary_key.columns),
        set_={name: statement.excluded[name] for name in changed},
        where=idempotency_key.c.expires_at_ms <= statement.excluded.created_at_ms,
    )


def _record(insert: DialectInsert) -> Any:
    return over_expired(insert(idempotency_key).inline().values(**record_values))


_RECORD: Final = Statement(_record)
_EXPIRE: Final = Statement(delete(idempotency_key).where(idempotency_key.c.expires_at_ms <= param("now_ms")))


def key_of(row: Row) -> KeyRecord:
    key, warehouse, fingerprint, status, outcome, created_at_ms, expires_at_ms = row
    return KeyRecord(
        key=key,
        warehouse=warehouse,
        fingerprint=fingerprint,
        kind="done" if status == _STORED["done"] else "refused",
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
        "status": _STORED[value.kind],
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
