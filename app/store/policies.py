"""Rule settings in SQL.

A setting belongs to a scope: a table, by its UUID, so that it follows a rename; or a namespace, by its path, so that it
reaches everything below. The empty path is the whole warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import delete, or_, select, update

from app.ports import Levels, PolicySetting, SetPolicy
from app.rules import Severity
from app.store.paths import SEPARATOR, levels_of, path_of
from app.store.program import Call, Program, Row
from app.store.schema import policy_setting
from app.store.statements import DialectInsert, Params, Statement, param

SCOPES: Final = 12
"""Scopes asked for in one statement; deeper namespaces take several."""

_KEY = (
    policy_setting.c.warehouse == param("warehouse"),
    policy_setting.c.scope == param("scope"),
    policy_setting.c.code == param("code"),
)
IN_SCOPES: Final = Statement(
    select(
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


_UPSERT: Final = Statement(_upsert)
_DELETE: Final = Statement(delete(policy_setting).where(*_KEY))
_DELETE_SCOPE: Final = Statement(delete(policy_setting).where(*_KEY[:2]))
_MOVE: Final = Statement(update(policy_setting).where(*_KEY[:2]).values(namespace_path=param("namespace_path")))


def _table_scope(table_uuid: str) -> str:
    return f"table:{table_uuid}"


def _namespace_scope(path: str) -> str:
    return f"namespace:{path}"


def _path(levels: Levels) -> str:
    return path_of(levels) if levels else ""


def scope_queries(warehouse: str, levels: Levels, table_uuid: str | None) -> Iterator[Params]:
    """Parameters of `IN_SCOPES` that together cover the table, its namespace and every namespace above it."""
    scopes = [_namespace_scope(SEPARATOR.join(levels[:depth])) for depth in range(len(levels) + 1)]
    if table_uuid is not None:
        scopes.append(_table_scope(table_uuid))
    for start in range(0, len(scopes), SCOPES):
        some = scopes[start : start + SCOPES]
        padded = some + [some[-1]] * (SCOPES - len(some))
        yield {"warehouse": warehouse, **{f"scope{i}": scope for i, scope in enumerate(padded)}}


def setting_of(row: Row) -> PolicySetting:
    warehouse, path, table_uuid, code, severity, set_by, set_at_ms = row
    return PolicySetting(
        warehouse=warehouse,
        namespace=levels_of(path),
        table_uuid=table_uuid,
        code=code,
        severity=Severity(severity),
        set_by=set_by,
        set_at_ms=set_at_ms,
    )


def nearest_last(settings: list[PolicySetting]) -> tuple[PolicySetting, ...]:
    """Warehouse first, then from the outermost namespace inwards, the table's own last; by code within one scope."""
    return tuple(sorted(settings, key=lambda s: (s.table_uuid is not None, len(s.namespace), s.code)))


def put(op: SetPolicy) -> Program[None]:
    path = _path(op.namespace)
    scope = _namespace_scope(path) if op.table_uuid is None else _table_scope(op.table_uuid)
    key = {"warehouse": op.warehouse, "scope": scope, "code": op.code}
    if op.severity is None:
        yield Call(_DELETE, key)
        return
    yield Call(
        _UPSERT,
        {
            **key,
            "namespace_path": path,
            "table_uuid": op.table_uuid,
            "severity": op.severity.value,
            "set_by": op.set_by,
            "now_ms": op.now_ms,
        },
    )


def forget_table(warehouse: str, table_uuid: str) -> Program[None]:
    yield Call(_DELETE_SCOPE, {"warehouse": warehouse, "scope": _table_scope(table_uuid)})


def forget_namespace(warehouse: str, path: str) -> Program[None]:
    """A namespace made later under the same name starts without settings."""
    yield Call(_DELETE_SCOPE, {"warehouse": warehouse, "scope": _namespace_scope(path)})


def move_table(warehouse: str, table_uuid: str, path: str) -> Program[None]:
    """Keep the namespace shown with a table's settings true after a rename."""
    yield Call(_MOVE, {"warehouse": warehouse, "scope": _table_scope(table_uuid), "namespace_path": path})
