"""Tables by their plain columns, largest first."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, and_, cast, func, or_, select
from sqlalchemy.sql.expression import ColumnElement

from app.ports import Standing
from app.store.expressions.params import Expression, param
from app.store.expressions.tabulars import COLUMNS, JOINED
from app.store.schema import namespace, tabular


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
_OF_NAMESPACE: Final[Any] = or_(
    namespace.c.path == param("path"),
    and_(namespace.c.path >= param("below_from"), namespace.c.path < param("below_to")),
)


def _largest(by: Standing, *where: Any) -> Expression:
    value = _VALUES[by]
    return (
        select(*COLUMNS)
        .select_from(JOINED)
        .where(
            tabular.c.kind == "table",
            or_(value < param("value"), and_(value == param("value"), tabular.c.tabular_id > param("id"))),
            *where,
        )
        .order_by(value.desc(), tabular.c.tabular_id)
        .limit(param("limit"))
    )


_IN_WAREHOUSE: Final = namespace.c.warehouse == param("warehouse")
LARGEST: Final = {
    f"{by}.{scope}": _largest(by, *where)
    for by in _VALUES
    for scope, where in (("all", ()), ("warehouse", (_IN_WAREHOUSE,)), ("namespace", (_IN_WAREHOUSE, _OF_NAMESPACE)))
}
