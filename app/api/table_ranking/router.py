"""The path operation of the table ranking."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app import errors
from app.api import deps
from app.api.responses import fails, success
from app.api.route import StrictRoute
from app.api.table_ranking.schemas import StandingList
from app.catalog import table_ranking
from app.iceberg.names import SEPARATOR
from app.ports import Standing, Tabular

router = APIRouter(route_class=StrictRoute, tags=["Schema changes"])


@router.get(
    "/icekeel/v1/{warehouse}/tables",
    operation_id="listTableStandings",
    response_model=StandingList,
    response_model_exclude_unset=True,
    responses={
        **success(200, "Tables with the numbers of their schemas."),
        **fails(errors.NoSuchWarehouse, errors.NoSuchNamespace),
    },
)
async def list_standings(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    page: deps.Page,
    sort: Annotated[Standing, Query(description="What to sort by, largest first.")] = table_ranking.ORDERS[0],
    namespace: Annotated[
        str | None,
        Query(description="Only tables of this namespace and those below it; levels joined by 0x1F (`%1F`)."),
    ] = None,
) -> dict[str, Any]:
    """List the tables of a warehouse by highest column id, fields, retired ids, schemas, or the last schema change."""
    found = await table_ranking.table_standings(
        catalog,
        warehouse,
        sort,
        levels=tuple(namespace.split(SEPARATOR)) if namespace else None,
        token=page.token,
        size=page.size,
    )
    return {"tables": [_standing(row) for row in found.items], "next-page-token": found.next_token}


def _standing(row: Tabular) -> dict[str, Any]:
    columns = row.columns
    out: dict[str, Any] = {
        "namespace": list(row.namespace),
        "name": row.name,
        "table-uuid": row.uuid,
        "format-version": columns.format_version,
        "last-column-id": columns.last_column_id,
        "field-count": columns.field_count,
        "retired-ids": columns.retired_ids,
        "current-schema-id": columns.current_schema_id,
    }
    if columns.schema_count is not None:
        out["schema-count"] = columns.schema_count
    if columns.schema_changed_at_ms is not None:
        out["schema-changed-at-ms"] = columns.schema_changed_at_ms
    out["updated-at-ms"] = row.updated_at_ms
    return out
