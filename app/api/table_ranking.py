"""Tables by how their schemas have grown."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS
from app.api.models.table_ranking import StandingList
from app.api.operations import Operations, Parameter, Returns
from app.api.rendering import json_answer
from app.catalog import table_ranking
from app.edge.answer import Answer
from app.iceberg.names import SEPARATOR
from app.ports import Tabular

routes = Operations("Schema changes", ALWAYS)
SORT = Parameter(
    "sort",
    "query",
    "What to sort by, largest first.",
    {"type": "string", "enum": list(table_ranking.ORDERS), "default": table_ranking.ORDERS[0]},
)
BELOW = Parameter(
    "namespace", "query", "Only tables of this namespace and those below it; levels joined by 0x1F (`%1F`)."
)
TOKEN = Parameter("pageToken", "query", "The `next-page-token` of the page before.")


@routes.declare(
    "GET",
    "/icekeel/v1/{warehouse}/tables",
    "listTableStandings",
    parameters=[parameters.WAREHOUSE_PATH, SORT, BELOW, TOKEN, parameters.PAGE_SIZE],
    returns=[Returns(200, "Tables with the numbers of their schemas.", StandingList)],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace],
)
async def list_standings(request: Request) -> Answer:
    """List the tables of a warehouse by highest column id, fields, retired ids, schemas, or the last schema change."""
    given = reading.query(request)
    size = given.get("pageSize")
    found = await table_ranking.table_standings(
        reading.context(request),
        reading.segment(request, "warehouse"),
        given.get("sort", table_ranking.ORDERS[0]),
        levels=tuple(given["namespace"].split(SEPARATOR)) if given.get("namespace") else None,
        token=given.get("pageToken"),
        size=None if size is None else reading.positive(size, "pageSize"),
    )
    return json_answer({"tables": [_standing(row) for row in found.items], "next-page-token": found.next_token})


def _standing(row: Tabular) -> dict[str, object]:
    columns = row.columns
    out: dict[str, object] = {
        "namespace": row.namespace,
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
