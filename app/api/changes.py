"""Schema changes on request: may I, what would it be, do it, and what has been done."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.assessments import assessment_json, chapter_json, life_json, plan_json
from app.api.common import ALWAYS, BODY, CHANGE, COMMIT
from app.api.models import changes as models
from app.api.operations import Operations, Parameter, Returns
from app.api.rendering import findings_headers, json_answer
from app.catalog import chronicles, evolutions
from app.catalog.assessments import Assessment
from app.catalog.documents import aside
from app.catalog.rebasing import Wish
from app.errors import BadRequest
from app.evolution.operations import declare, parse_operations
from app.evolution.wanted import is_given, wanted_schema
from app.spec import codec
from app.spec.requirement import parse_table_requirements
from app.spec.update import parse_table_updates
from app.web.answer import Answer

routes = Operations("Schema changes", ALWAYS)
NAMESPACE = "/icekeel/v1/{warehouse}/namespaces/{namespace}"
ONE = f"{NAMESPACE}/tables/{{table}}/evolution"
_TABLE = (parameters.WAREHOUSE_PATH, parameters.NAMESPACE, parameters.TABLE)
_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable, errors.NotFound)
_HISTORY = (
    parameters.SINCE,
    parameters.UNTIL,
    parameters.BY,
    parameters.CHANGE_KIND,
    parameters.CHANGED_FIELD,
    Parameter("pageToken", "query", "The `next-page-token` of the page before."),
    parameters.LIMIT,
)
_AGO = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_INTEGER = re.compile(r"-?[0-9]{1,10}")
_EPOCH_MS = re.compile(r"[0-9]{10,15}")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


@routes.declare(
    "POST",
    f"{ONE}/check",
    "checkSchemaChange",
    parameters=_TABLE,
    body=models.CheckRequest,
    returns=[Returns(200, "What the commit would meet if it came now.", models.CheckResult)],
    fails=[*_SEEN, *BODY],
)
async def check(request: Request) -> Answer:
    """Tell whether a schema change would be accepted, and what it would do. Nothing is changed.

    Takes the very body that an engine would commit, operations, or the schema to arrive at. The answer holds every
    finding, the difference by field id, the ids that would be given out, and what files of each retained schema will
    return for each new or changed column.
    """
    ctx, (warehouse, levels, name) = reading.context(request), _table(request)
    body, raw = await reading.json_body(request)
    reading.check_identifier(body, levels, name)
    given = [key for key in ("updates", "operations") if body.get(key) is not None]
    if is_given(body):
        given.append("schema")
    if len(given) != 1:
        raise BadRequest("Exactly one of updates, operations, schema, fields and arrow-ipc-schema is needed")
    if given == ["updates"]:
        requirements = await reading.parsed(
            raw, parse_table_requirements, codec.optional(body, "requirements", []), "$.requirements"
        )
        updates = await reading.parsed(raw, parse_table_updates, body["updates"], "$.updates")
        return await _assessed(await evolutions.check_commit(ctx, warehouse, levels, name, requirements, updates))
    if given == ["operations"]:
        operations = await reading.parsed(raw, parse_operations, body["operations"], "$.operations")
    else:
        operations = (declare(await reading.parsed(raw, wanted_schema, body, "$"), codec.optional_str(body, "match")),)
    return await _assessed(await evolutions.check_operations(ctx, warehouse, levels, name, operations))


@routes.declare(
    "POST",
    f"{ONE}/plan",
    "planSchemaChange",
    parameters=_TABLE,
    body=models.PlanRequest,
    returns=[Returns(200, "The commit that the operations amount to, and what it would meet.", models.PlanResult)],
    fails=[*_SEEN, errors.CommitFailed, *BODY],
)
async def plan(request: Request) -> Answer:
    """Turn operations by column path into one commit, and check it. Nothing is changed.

    A name mapping and properties that name columns follow. The answer's requirements and updates can be committed by
    any client; `apply` does it with a rebase.
    """
    body, raw = await reading.own_body(request, models.PlanRequest)
    planned = await evolutions.plan_change(reading.context(request), *_table(request), await _wish(body, raw))
    out = await aside(_weight(planned.assessment), plan_json, planned.plan, planned.assessment)
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
    return json_answer(out)


@routes.declare(
    "POST",
    f"{ONE}/apply",
    "applySchemaChange",
    parameters=[*_TABLE, parameters.IDEMPOTENCY_KEY],
    body=models.ApplyRequest,
    returns=[Returns(200, "What was committed.", models.ApplyResult, [parameters.FINDINGS])],
    fails=[*_SEEN, *COMMIT, *BODY, *CHANGE],
)
async def apply(request: Request) -> Answer:
    """Plan and commit in one step.

    When the table has moved on, the operations are planned anew as long as they are still about the same columns, and
    the answer says so in `rebased`; else 409 tells what became of the columns, and by whom.
    """
    body, raw = await reading.own_body(request, models.ApplyRequest)
    wish = await _wish(body, raw, codec.optional_str(body, "plan-hash"))
    applied = await evolutions.apply_change(
        reading.context(request), reading.caller(request, raw), *_table(request), wish
    )
    reading.count(request, "commits", kind="table")
    findings = applied.committed.findings
    out = {
        "metadata-location": applied.committed.metadata_location,
        **applied.record,
        "findings": [finding.to_json() for finding in findings],
    }
    return json_answer(out, findings_headers(findings))


@routes.declare(
    "GET",
    f"{ONE}/history",
    "tableSchemaHistory",
    parameters=[*_TABLE, *_HISTORY],
    returns=[Returns(200, "Schema changes, newest first.", models.History)],
    fails=_SEEN,
)
async def table_history(request: Request) -> Answer:
    """Show every schema change of a table: who, when, by which client, and what, by field id."""
    token, limit, query = _history(request)
    return _chapters(
        await chronicles.table_chronicle(reading.context(request), *_table(request), query, token=token, limit=limit)
    )


@routes.declare(
    "GET",
    f"{NAMESPACE}/evolution/history",
    "namespaceSchemaHistory",
    parameters=[parameters.WAREHOUSE_PATH, parameters.NAMESPACE, *_HISTORY],
    returns=[Returns(200, "Schema changes of all its tables, newest first.", models.History)],
    fails=[errors.NoSuchWarehouse, errors.NoSuchNamespace],
)
async def namespace_history(request: Request) -> Answer:
    """Show every schema change in a namespace and those below it, dropped tables included."""
    token, limit, query = _history(request)
    return _chapters(
        await chronicles.namespace_chronicle(
            reading.context(request),
            reading.segment(request, "warehouse"),
            reading.levels(request),
            query,
            token=token,
            limit=limit,
        )
    )


@routes.declare(
    "GET",
    f"{ONE}/columns/{{field_id}}",
    "columnBiography",
    parameters=[*_TABLE, parameters.FIELD_ID],
    returns=[Returns(200, "The life of one field id.", models.ColumnBiography)],
    fails=_SEEN,
)
async def column(request: Request) -> Answer:
    """Tell the life of one field id: its names, types, positions, when it was dropped, and what still carries it."""
    field_id = _number(reading.segment(request, "field_id"), "field id")
    return json_answer(life_json(await chronicles.column_life(reading.context(request), *_table(request), field_id)))


async def _assessed(assessment: Assessment) -> Answer:
    return json_answer(await aside(_weight(assessment), assessment_json, assessment))


def _weight(assessment: Assessment) -> int:
    """Of putting it in words, as `aside` counts: some microseconds for each change and each reading of one."""
    change = assessment.change
    return 0 if change is None else len(change.deltas) * (1 + len(assessment.outlooks)) * 500


def _table(request: Request) -> tuple[str, tuple[str, ...], str]:
    return reading.segment(request, "warehouse"), reading.levels(request), reading.segment(request, "table")


async def _wish(body: reading.Body, raw: bytes, plan_hash: str | None = None) -> Wish:
    return Wish(
        await reading.parsed(raw, parse_operations, codec.required(body, "operations"), "$.operations"),
        codec.optional_int32(body, "base-schema-id"),
        plan_hash,
        codec.optional_bool(body, "tag-before-drop"),
    )


def _history(request: Request) -> tuple[str | None, int, chronicles.Query]:
    given = reading.query(request)
    now_ms = reading.context(request).clock.now_ms()
    limit, field_id = given.get("limit"), given.get("field-id")
    query = chronicles.Query(
        since_ms=_moment(given.get("since"), "since", now_ms),
        until_ms=_moment(given.get("until"), "until", now_ms),
        by=given.get("by"),
        change=given.get("change"),
        field_id=None if field_id is None else _number(field_id, "field-id"),
    )
    return given.get("pageToken"), chronicles.PAGE if limit is None else reading.positive(limit, "limit"), query


def _chapters(found: chronicles.Chronicle) -> Answer:
    out: dict[str, object] = {"entries": [chapter_json(chapter) for chapter in found.chapters]}
    if found.next_token is not None:
        out["next-page-token"] = found.next_token
    return json_answer(out)


def _number(text: str, name: str) -> int:
    if _INTEGER.fullmatch(text):
        return codec.as_int32(int(text), f"$.{name}")
    raise BadRequest(f"Invalid {name}: {text!r} is not an integer")


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
