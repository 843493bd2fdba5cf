"""Tables by their plain columns, largest first: for people and for monitoring."""

from __future__ import annotations

from typing import Any, Final, get_args

from app.ports import Levels, Standing
from app.store.paths import SEPARATOR, below
from app.store.program import Params, Statement

_START: Final = 2**62


_LARGEST: Final = {
    (by, scope): Statement(f"standings.LARGEST.{by}.{scope}")
    for by in get_args(Standing)
    for scope in ("all", "warehouse", "namespace")
}


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
