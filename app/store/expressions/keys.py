"""Idempotency keys."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import delete, select

from app.store.expressions.params import DialectInsert, param
from app.store.schema import idempotency_key

ONE: Final = select(
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


RECORD: Final = _record
EXPIRE: Final = delete(idempotency_key).where(idempotency_key.c.expires_at_ms <= param("now_ms"))
