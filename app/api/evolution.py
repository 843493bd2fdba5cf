"""How strictly the rules are held for a table, and one-shot exceptions."""

from __future__ import annotations

from typing import get_args

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY
from app.api.models import evolution as models
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.catalog import strictness
from app.catalog.context import Context
from app.edge.answer import Answer, no_content
from app.errors import BadRequest
from app.iceberg.json import codec
from app.rules import Severity, Waiver

routes = Operations("Evolution", ALWAYS)
ONE = "/icekeel/v1/{warehouse}/namespaces/{namespace}/tables/{table}/evolution"
_TABLE = (parameters.WAREHOUSE_PATH, parameters.NAMESPACE, parameters.TABLE)
_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable)
_SCOPES = ("table", "namespace")
_WAIVER_S = 24 * 3600


@routes.declare(
    "GET",
    f"{ONE}/policy",
    "loadPolicy",
    parameters=_TABLE,
    returns=[Returns(200, "How strictly every rule is held for the table's next commit.", models.PolicyModel)],
    fails=[*_SEEN, errors.NotFound],
)
async def load_policy(request: Request) -> Answer:
    """Show how strictly each rule is held for a table, and why."""
    return await _policy(reading.context(request), *_table(request))


@routes.declare(
    "PUT",
    f"{ONE}/policy",
    "setPolicy",
    parameters=_TABLE,
    body=models.PolicyRequest,
    returns=[Returns(200, "How strictly every rule is held now.", models.PolicyModel)],
    fails=[*_SEEN, errors.NoSuchNamespace, errors.NotFound, *BODY],
)
async def set_policy(request: Request) -> Answer:
    """Hold a rule more or less strictly for this table, or for every table of its namespace.

    A rule that keeps metadata readable cannot be lowered. A null severity takes an earlier setting back. Changes are
    journaled.
    """
    ctx, (warehouse, levels, name) = reading.context(request), _table(request)
    body, raw = await reading.own_body(request, models.PolicyRequest)
    scope = codec.optional_str(body, "scope") or "table"
    if scope not in _SCOPES:
        raise BadRequest(f"Invalid scope: {scope} (use {' or '.join(_SCOPES)})")
    if "severity" not in body:
        raise BadRequest("Missing field: severity (null takes an earlier setting back)")
    await strictness.set_policy(
        ctx,
        reading.caller(request, raw),
        warehouse,
        levels,
        name if scope == "table" else None,
        codec.required_str(body, "code"),
        _severity(body["severity"]),
    )
    return await _policy(ctx, warehouse, levels, name)


@routes.declare(
    "GET",
    f"{ONE}/waivers",
    "listWaivers",
    parameters=_TABLE,
    returns=[Returns(200, "Every waiver of the table, used and expired ones too.", models.WaiverList)],
    fails=_SEEN,
)
async def list_waivers(request: Request) -> Answer:
    """List the waivers of a table."""
    found = await strictness.list_waivers(reading.context(request), *_table(request))
    newest_first = sorted(found, key=lambda waiver: (-waiver.granted_at_ms, waiver.waiver_id))
    return json_answer({"waivers": [_waiver(waiver) for waiver in newest_first]})


@routes.declare(
    "POST",
    f"{ONE}/waivers",
    "grantWaiver",
    parameters=_TABLE,
    body=models.WaiverRequest,
    returns=[Returns(200, "The waiver; the next commit that breaks the rule uses it up.", models.WaiverModel)],
    fails=[*_SEEN, errors.NotFound, *BODY],
)
async def grant_waiver(request: Request) -> Answer:
    """Let one commit to this table break one rule.

    Who grants it, why and until when is journaled, and so is its use. Without `expires-in-seconds` it lasts a day.
    """
    body, raw = await reading.own_body(request, models.WaiverRequest)
    lifetime_s = codec.optional_int64(body, "expires-in-seconds")
    waiver = await strictness.grant_waiver(
        reading.context(request),
        reading.caller(request, raw),
        *_table(request),
        codec.required_str(body, "code"),
        codec.required_str(body, "reason"),
        (_WAIVER_S if lifetime_s is None else lifetime_s) * 1000,
    )
    return json_answer(_waiver(waiver))


@routes.declare(
    "DELETE",
    f"{ONE}/waivers",
    "revokeWaiver",
    parameters=[*_TABLE, parameters.WAIVER_ID],
    returns=[Returns(204, "It is taken back.")],
    fails=[*_SEEN, errors.NotFound],
)
async def revoke_waiver(request: Request) -> Answer:
    """Take an unused waiver back."""
    waiver_id = reading.query(request).get("waiver-id")
    if not waiver_id:
        raise BadRequest("Missing query parameter: waiver-id")
    await strictness.revoke_waiver(reading.context(request), reading.caller(request), *_table(request), waiver_id)
    return no_content()


def _table(request: Request) -> tuple[str, tuple[str, ...], str]:
    return reading.segment(request, "warehouse"), reading.levels(request), reading.segment(request, "table")


async def _policy(ctx: Context, warehouse: str, levels: tuple[str, ...], name: str) -> Answer:
    held = await strictness.table_policy(ctx, warehouse, levels, name)
    return json_answer({"rules": [_effective(entry) for entry in held]})


def _effective(entry: strictness.Strictness) -> dict[str, object]:
    rule, chosen = entry.rule, entry.settings[-1].severity if entry.settings else None
    out: dict[str, object] = {
        "code": rule.code,
        "rule": rule.slug,
        "severity": entry.severity.value,
        "default": rule.default.value,
        "can-be-lowered": not rule.floor,
    }
    if chosen is not None:
        out["set-by-policy"] = chosen.value
    untightened = rule.default if chosen is None else rule.default.stricter(chosen) if rule.floor else chosen
    if entry.severity is not untightened:
        out["tightened-by-property"] = entry.severity.value
    return out


def _severity(value: codec.Json) -> Severity | None:
    if value is None:
        return None
    text = codec.as_str(value, "$.severity")
    if text not in get_args(models.SeverityName):
        raise BadRequest(f"Invalid severity: {text!r} (use off, warn or error)")
    return Severity(text)


def _waiver(waiver: Waiver) -> dict[str, object]:
    out: dict[str, object] = {
        "waiver-id": waiver.waiver_id,
        "code": waiver.code,
        "reason": waiver.reason,
        "granted-by": waiver.granted_by,
        "granted-at-ms": waiver.granted_at_ms,
        "expires-at-ms": waiver.expires_at_ms,
    }
    if waiver.used_at_ms is not None:
        out["used-at-ms"] = waiver.used_at_ms
    return out
