"""Rule settings."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import delete, or_, select, update

from app.store.expressions.params import DialectInsert, param
from app.store.policies import SCOPES
from app.store.schema import policy_setting

_KEY = (
    policy_setting.c.warehouse == param("warehouse"),
    policy_setting.c.scope == param("scope"),
    policy_setting.c.code == param("code"),
)

IN_SCOPES: Final = select(
    policy_setting.c.warehouse,
    policy_setting.c.namespace_path,
    policy_setting.c.table_uuid,
    policy_setting.c.code,
    policy_setting.c.severity,
    policy_setting.c.set_by,
    policy_setting.c.set_at_ms,
).where(
    policy_setting.c.warehouse == param("warehouse"),
    or_(*(policy_setting.c.scope == param(f"scope{i}") for i in range(SCOPES))),
)


def _upsert(insert: DialectInsert) -> Any:
    statement = (
        insert(policy_setting)
        .inline()
        .values(
            warehouse=param("warehouse"),
            scope=param("scope"),
            code=param("code"),
            namespace_path=param("namespace_path"),
            table_uuid=param("table_uuid"),
            severity=param("severity"),
            set_by=param("set_by"),
            set_at_ms=param("now_ms"),
        )
    )
    changed = ("namespace_path", "severity", "set_by", "set_at_ms")
    return statement.on_conflict_do_update(
        index_elements=list(policy_setting.primary_key.columns),
        set_={name: statement.excluded[name] for name in changed},
    )


UPSERT: Final = _upsert
DELETE: Final = delete(policy_setting).where(*_KEY)
DELETE_SCOPE: Final = delete(policy_setting).where(*_KEY[:2])
MOVE: Final = update(policy_setting).where(*_KEY[:2]).values(namespace_path=param("namespace_path"))
