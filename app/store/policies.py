"""Rule settings in SQL.

A setting belongs to a scope: a table, by its UUID, so that it follows a rename; or a namespace, by its path, so that it
reaches everything below. The empty path is the whole warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.ports import Levels, PolicySetting, SetPolicy
from app.rules import Severity
from app.store.paths import SEPARATOR, levels_of, path_of
from app.store.program import Call, Params, Program, Row, Statement

SCOPES: Final = 12
"""Scopes asked for in one statement; deeper namespaces take several."""
IN_SCOPES: Final = Statement("policies.IN_SCOPES")
_UPSERT: Final = Statement("policies.UPSERT")
_DELETE: Final = Statement("policies.DELETE")
_DELETE_SCOPE: Final = Statement("policies.DELETE_SCOPE")
_MOVE: Final = Statement("policies.MOVE")


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
