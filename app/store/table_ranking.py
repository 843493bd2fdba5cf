"""Tables by their plain columns, largest first: for people and for monitoring."""

from __future__ import annotations

from typing import Any, Final, get_args

from sqlalchemy import BigInteger, and_, cast, func, or_, select
from sqlalchemy.sql.expression import ColumnElement

from app.ports import Levels, Standing
from app.store.paths import SEPARATOR, below
from app.store.schema import namespace, tabular
from app.store.statements import Params, Statement, param
from app.store.tabulars import COLUMNS, JOINED

_START: Final = 2**62


def _wide(value: Any) -> ColumnElement[int]:
    """As 64 bits: the place of a first page lies above every value."""
    return cast(value, BigInteger)


_VALUES: Final[dict[Standing, ColumnElement[int]]] = {
    "last-column-id": _wide(tabular.c.last_column_id),
    "field-count": _wide(tabular.c.field_count),
    "retired-ids": _wide(tabular.c.last_column_id) - _wide(tabular.c.field_count),
    "schema-count": _wide(func.coalesce(tabular.c.schema_count, 0)),
    "schema-changed": func.coalesce(tabular.c.schema_changed_at_ms, 0),
}
_IN_WAREHOUSE: Final = namespace.c.warehouse == param("warehouse")
_OF_NAMESPACE: Final[Any] = or_(
    namespace.c.path == param("path"),
    and_(namespace.c.path >= param("below_from"), namespace.c.path < param("below_to")),
)
_SCOPES: Final[dict[str, tuple[Any, ...]]] = {
    "all": (),
    "warehouse": (_IN_WAREHOUSE,),
    "namespace": (_IN_WAREHOUSE, _OF_NAMESPACE),
}


def _largest(by: Standing, scope: str) -> Statement:
    value = _VALUES[by]
    return Statement(
        select(*COLUMNS)
        .select_from(JOINED)
        .where(
            tabular.c.kind == "table",
            or_(value < param("value"), and_(value == param("value"), tabular.c.tabular_id > param("id"))),
            *_SCOPES[scope],
        )
        .order_by(value.desc(), tabular.c.tabular_id)
        .limit(param("limit"))
    )


_LARGEST: Final = {(by, scope): _largest(by, scope) for by in get_args(Standing) for scope in _SCOPES}


def query(
    warehouse: str | None, levels: Levels | None, by: Standing, after: tuple[int, int] | None, limit: int
) -> tuple[Statement, Params]:
    """What to run for a page of tables, largest `by` first."""
    value, tabular_id = after or (_START, 0)
    params: dict[str, Any] = {"value": value, "id": tabular_id, "limit": limit}
    if warehouse is None:
        return _LARGEST[(by, "all")], params
    params["warehouse"] = warehouse
    if not levels:
        return _LARGEST[(by, "warehouse")], params
    path = SEPARATOR.join(levels)
    params["path"] = path
    params["below_from"], params["below_to"] = below(path)
    return _LARGEST[(by, "namespace")], params
