"""The journal, newest entry first."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import insert, or_, select
from sqlalchemy.sql.expression import ColumnElement

from app.store.expressions.params import Expression, param
from app.store.schema import journal


def _newest_first(*where: ColumnElement[bool]) -> Expression:
    return (
        select(journal.c.entry_id, journal.c.payload)
        .where(journal.c.entry_id < param("before_id"), *where)
        .order_by(journal.c.entry_id.desc())
        .limit(param("limit"))
    )


_OF_TABLE = journal.c.table_uuid == param("table_uuid")
_OF_WAREHOUSE = journal.c.warehouse == param("warehouse")
_OF_NAMESPACE: Any = or_(
    journal.c.namespace_path == param("path"),
    (journal.c.namespace_path >= param("below_from")) & (journal.c.namespace_path < param("below_to")),
)

# One statement for each combination of what is asked for.
NEWEST: Final = {
    "all": _newest_first(),
    "table": _newest_first(_OF_TABLE),
    "warehouse": _newest_first(_OF_WAREHOUSE),
    "namespace": _newest_first(_OF_NAMESPACE),
    "table+warehouse": _newest_first(_OF_TABLE, _OF_WAREHOUSE),
    "table+namespace": _newest_first(_OF_TABLE, _OF_NAMESPACE),
    "warehouse+namespace": _newest_first(_OF_WAREHOUSE, _OF_NAMESPACE),
    "table+warehouse+namespace": _newest_first(_OF_TABLE, _OF_WAREHOUSE, _OF_NAMESPACE),
}
INSERT: Final = (
    insert(journal)
    .inline()
    .values(
        at_ms=param("at_ms"),
        warehouse=param("warehouse"),
        namespace_path=param("path"),
        table_uuid=param("table_uuid"),
        payload=param("payload"),
    )
)
