"""The path operations of check, plan, apply, history and the biography of a column."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app import errors
from app.api import deps
from app.api.rendering import count_commit, findings_headers
from app.api.responses import BODY, CHANGE, COMMIT, FINDINGS, fails, success
from app.api.route import StrictRoute
from app.api.schema_changes.schemas import (
    ApplyRequest,
    ApplyResult,
    CheckRequest,
    CheckResult,
    ColumnBiography,
    History,
    PlanRequest,
    PlanResult,
)
from app.api.shapes import check_identifier
from app.catalog import schema_changes, schema_history
from app.catalog.dry_run import DryRun, dry_run_json, plan_json
from app.catalog.metadata_cache import aside
from app.catalog.rebasing import SchemaChange
from app.catalog.schema_history import chapter_json, life_json
from app.edge.answer import Answer
from app.edge.raw_path import decode_segment
from app.errors import BadRequest
from app.evolution.editing.operations import declare, parse_operations
from app.evolution.editing.schema_input import is_given, wanted_schema
from app.evolution.engine.diff import Change
from app.iceberg.json import codec
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.update import parse_table_updates

NAMESPACE = "/icekeel/v1/{warehouse}/namespaces/{namespace}"
ONE = f"{NAMESPACE}/tables/{{table}}/evolution"

router = APIRouter(route_class=StrictRoute, tags=["Schema changes"])

_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable, errors.NotFound)
_INTEGER = re.compile(r"-?[0-9]{1,10}")
_AGO = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_EPOCH_MS = re.compile(r"[0-9]{10,15}")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_WHEN = "epoch milliseconds, ISO 8601 (`2026-11-01`), or an age such as `7d`"


async def _asked(
    catalog: deps.Catalog,
    since: Annotated[str | None, Query(description=f"Changes from then on: {_WHEN}.")] = None,
    until: Annotated[str | None, Query(description="Changes before then, written as in `since`.")] = None,
    by: Annotated[str | None, Query(description="Changes by this principal.")] = None,
    change: Annotated[
        Change | None, Query(description="Changes with an aspect of this kind, such as `dropped` or `renamed`.")
    ] = None,
    field_id: Annotated[
        deps.Whole | None, Query(alias="field-id", ge=-(2**31), lt=2**31, description="Changes of this field id.")
    ] = None,
    token: Annotated[
        str | None, Query(alias="pageToken", description="The `next-page-token` of the page before.")
    ] = None,
    limit: Annotated[
        deps.Whole, Query(ge=1, description="Most entries to return, at most 1000.")
    ] = schema_history.PAGE,
) -> tuple[schema_history.Query, str | None, int]:
    now_ms = catalog.clock.now_ms()
    query = schema_history.Query(
        since_ms=_moment(since, "since", now_ms),
        until_ms=_moment(until, "until", now_ms),
        by=by,
        change=change,
        field_id=field_id,
    )
    return query, token, limit


async def _field_id(
    field_id: Annotated[
        str, Path(description="Field id of a column, present or dropped.", json_schema_extra={"type": "integer"})
    ],
) -> int:
    text = decode_segment(field_id)
    if not _INTEGER.fullmatch(text):
        raise BadRequest(f"Invalid field id: {text!r} is not an integer")
    return codec.as_int32(int(text), "$.field-id")


FieldId = Annotated[int, Depends(_field_id)]
Asked = Annotated[tuple[schema_history.Query, str | None, int], Depends(_asked)]


@router.post(
    f"{ONE}/check",
    operation_id="checkSchemaChange",
    response_model=CheckResult,
    response_model_exclude_unset=True,
    responses={**success(200, "What the commit would meet if it came now."), **fails(*_SEEN, *BODY)},
)
async def check(
    request: Request,
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    body: CheckRequest,
) -> Answer:
    """Tell whether a schema change would be accepted, and what it would do. Nothing is changed.

    Takes the very body that an engine would commit, operations, or the schema to arrive at. The answer holds every
    finding, the difference by field id, the ids that would be given out, and what files of each retained schema will
    return for each new or changed column.
    """
    check_identifier(body.identifier, levels, name)
    raw = await request.json()
    given = [key for key in ("updates", "operations") if raw.get(key) is not None]
    if is_given(raw):
        given.append("schema")
    if len(given) != 1:
        raise BadRequest("Exactly one of updates, operations, schema, fields and arrow-ipc-schema is needed")
    if given == ["updates"]:
        requirements = await deps.parsed(
            request, parse_table_requirements, [] if body.requirements is None else body.requirements, "$.requirements"
        )
        updates = await deps.parsed(request, parse_table_updates, body.updates, "$.updates")
        return await _told(await schema_changes.check_commit(catalog, warehouse, levels, name, requirements, updates))
    if given == ["operations"]:
        operations = await deps.parsed(request, parse_operations, body.operations, "$.operations")
    else:
        operations = (declare(await deps.parsed(request, wanted_schema, raw, "$"), body.match),)
    return await _told(await schema_changes.check_operations(catalog, warehouse, levels, name, operations))


@router.post(
    f"{ONE}/plan",
    operation_id="planSchemaChange",
    response_model=PlanResult,
    response_model_exclude_unset=True,
    responses={
        **success(200, "The commit that the operations amount to, and what it would meet."),
        **fails(*_SEEN, errors.CommitFailed, *BODY),
    },
)
async def plan(
    request: Request,
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    body: PlanRequest,
) -> Answer:
    """Turn operations by column path into one commit, and check it. Nothing is changed.

    A name mapping and properties that name columns follow. The answer's requirements and updates can be committed by
    any client; `apply` does it with a rebase.
    """
    planned = await schema_changes.plan_change(catalog, warehouse, levels, name, await _change(request, body))
    weight = _weight(planned.dry_run)
    out = await aside(weight, plan_json, planned.plan, planned.dry_run)
    if planned.plan.required:
        out["clients-without-defaults"] = [
            {
                "client": one.client,
                "version": one.version,
                "honours-initial-default": one.honours,
                "last-seen-ms": one.last_seen_ms,
            }
            for one in planned.laggards
        ]
    return Answer(200, await aside(weight, codec.encode, out))


@router.post(
    f"{ONE}/apply",
    operation_id="applySchemaChange",
    response_model=ApplyResult,
    response_model_exclude_unset=True,
    responses={**success(200, "What was committed.", FINDINGS), **fails(*_SEEN, *COMMIT, *BODY, *CHANGE)},
)
async def apply(
    request: Request,
    response: Response,
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Writer,
    body: ApplyRequest,
) -> dict[str, Any]:
    """Plan and commit in one step.

    When the table has moved on, the operations are planned anew as long as they are still about the same columns, and
    the answer says so in `rebased`; else 409 tells what became of the columns, and by whom.
    """
    applied = await schema_changes.apply_change(
        catalog, caller, warehouse, levels, name, await _change(request, body, body.plan_hash)
    )
    count_commit(request, "table")
    findings = applied.committed.findings
    for header, value in findings_headers(findings):
        response.headers[header] = value
    return {
        "metadata-location": applied.committed.metadata_location,
        **applied.record,
        "findings": [finding.to_json() for finding in findings],
    }


@router.get(
    f"{ONE}/history",
    operation_id="tableSchemaHistory",
    response_model=History,
    response_model_exclude_unset=True,
    responses={**success(200, "Schema changes, newest first."), **fails(*_SEEN)},
)
async def table_history(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    asked: Asked,
) -> dict[str, Any]:
    """Show every schema change of a table: who, when, by which client, and what, by field id."""
    query, token, limit = asked
    return _chapters(
        await schema_history.table_chronicle(catalog, warehouse, levels, name, query, token=token, limit=limit)
    )


@router.get(
    f"{NAMESPACE}/evolution/history",
    operation_id="namespaceSchemaHistory",
    response_model=History,
    response_model_exclude_unset=True,
    responses={
        **success(200, "Schema changes of all its tables, newest first."),
        **fails(errors.NoSuchWarehouse, errors.NoSuchNamespace),
    },
)
async def namespace_history(
    catalog: deps.Catalog, warehouse: deps.WarehouseName, levels: deps.Levels, asked: Asked
) -> dict[str, Any]:
    """Show every schema change in a namespace and those below it, dropped tables included."""
    query, token, limit = asked
    return _chapters(
        await schema_history.namespace_chronicle(catalog, warehouse, levels, query, token=token, limit=limit)
    )


@router.get(
    f"{ONE}/columns/{{field_id}}",
    operation_id="columnBiography",
    response_model=ColumnBiography,
    response_model_exclude_unset=True,
    responses={**success(200, "The life of one field id."), **fails(*_SEEN)},
)
async def column(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    field_id: FieldId,
) -> dict[str, Any]:
    """Tell the life of one field id: its names, types, positions, when it was dropped, and what still carries it."""
    return life_json(await schema_history.column_life(catalog, warehouse, levels, name, field_id))


async def _told(run: DryRun) -> Answer:
    """Put into words and encoded aside: the answer to a large change is megabytes."""
    return Answer(200, await aside(_weight(run), lambda: codec.encode(dry_run_json(run))))


def _weight(run: DryRun) -> int:
    """Of putting it in words, as `aside` counts: some microseconds for each change and each reading of one."""
    change = run.change
    return 0 if change is None else len(change.deltas) * (1 + len(run.reads)) * 500


async def _change(request: Request, body: PlanRequest, plan_hash: str | None = None) -> SchemaChange:
    operations = await deps.parsed(request, parse_operations, body.operations, "$.operations")
    return SchemaChange(operations, body.base_schema_id, plan_hash, body.tag_before_drop)


def _chapters(found: schema_history.Chronicle) -> dict[str, Any]:
    out: dict[str, Any] = {"entries": [chapter_json(chapter) for chapter in found.chapters]}
    if found.next_token is not None:
        out["next-page-token"] = found.next_token
    return out


def _moment(text: str | None, name: str, now_ms: int) -> int | None:
    """Epoch milliseconds, a date or time of ISO 8601 (UTC where it names no zone), or an age such as `7d`."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    if _EPOCH_MS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(
            f"Invalid {name}: {text!r} is no time (epoch milliseconds, ISO 8601, or an age such as 7d)"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
