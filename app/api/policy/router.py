"""The path operations of policy and waivers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app import errors
from app.api import deps
from app.api.policy.schemas import PolicyModel, PolicyRequest, WaiverList, WaiverModel, WaiverRequest
from app.api.responses import BODY, fails, success
from app.api.route import StrictRoute
from app.catalog import strictness
from app.catalog.context import Context
from app.edge.answer import Answer, no_content
from app.rules import Severity, Waiver

ONE = "/icekeel/v1/{warehouse}/namespaces/{namespace}/tables/{table}/evolution"

router = APIRouter(route_class=StrictRoute, tags=["Evolution"])

_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable)
_WAIVER_S = 24 * 3600


@router.get(
    f"{ONE}/policy",
    operation_id="loadPolicy",
    response_model=PolicyModel,
    response_model_exclude_unset=True,
    responses={
        **success(200, "How strictly every rule is held for the table's next commit."),
        **fails(*_SEEN, errors.NotFound),
    },
)
async def load_policy(
    catalog: deps.Catalog, warehouse: deps.WarehouseName, levels: deps.Levels, name: deps.TableName
) -> dict[str, Any]:
    """Show how strictly each rule is held for a table, and why."""
    return await _policy(catalog, warehouse, levels, name)


@router.put(
    f"{ONE}/policy",
    operation_id="setPolicy",
    response_model=PolicyModel,
    response_model_exclude_unset=True,
    responses={
        **success(200, "How strictly every rule is held now."),
        **fails(*_SEEN, errors.NoSuchNamespace, errors.NotFound, *BODY),
    },
)
async def set_policy(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Reader,
    body: PolicyRequest,
) -> dict[str, Any]:
    """Hold a rule more or less strictly for this table, or for every table of its namespace.

    A rule that keeps metadata readable cannot be lowered. A null severity takes an earlier setting back. Changes are
    journaled.
    """
    await strictness.set_policy(
        catalog,
        caller,
        warehouse,
        levels,
        None if body.scope == "namespace" else name,
        body.code,
        None if body.severity is None else Severity(body.severity),
    )
    return await _policy(catalog, warehouse, levels, name)


@router.get(
    f"{ONE}/waivers",
    operation_id="listWaivers",
    response_model=WaiverList,
    response_model_exclude_none=True,
    responses={**success(200, "Every waiver of the table, used and expired ones too."), **fails(*_SEEN)},
)
async def list_waivers(
    catalog: deps.Catalog, warehouse: deps.WarehouseName, levels: deps.Levels, name: deps.TableName
) -> WaiverList:
    """List the waivers of a table."""
    found = await strictness.list_waivers(catalog, warehouse, levels, name)
    newest_first = sorted(found, key=lambda waiver: (-waiver.granted_at_ms, waiver.waiver_id))
    return WaiverList(waivers=[_waiver(waiver) for waiver in newest_first])


@router.post(
    f"{ONE}/waivers",
    operation_id="grantWaiver",
    response_model=WaiverModel,
    response_model_exclude_none=True,
    responses={
        **success(200, "The waiver; the next commit that breaks the rule uses it up."),
        **fails(*_SEEN, errors.NotFound, *BODY),
    },
)
async def grant_waiver(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Reader,
    body: WaiverRequest,
) -> WaiverModel:
    """Let one commit to this table break one rule.

    Who grants it, why and until when is journaled, and so is its use. Without `expires-in-seconds` it lasts a day.
    """
    lifetime_s = _WAIVER_S if body.expires_in_seconds is None else body.expires_in_seconds
    waiver = await strictness.grant_waiver(
        catalog, caller, warehouse, levels, name, body.code, body.reason, lifetime_s * 1000
    )
    return _waiver(waiver)


@router.delete(
    f"{ONE}/waivers",
    operation_id="revokeWaiver",
    status_code=204,
    responses={**success(204, "It is taken back."), **fails(*_SEEN, errors.NotFound)},
)
async def revoke_waiver(
    catalog: deps.Catalog,
    warehouse: deps.WarehouseName,
    levels: deps.Levels,
    name: deps.TableName,
    caller: deps.Reader,
    waiver_id: Annotated[str, Query(alias="waiver-id", min_length=1, description="The waiver to take back.")],
) -> Answer:
    """Take an unused waiver back."""
    await strictness.revoke_waiver(catalog, caller, warehouse, levels, name, waiver_id)
    return no_content()


async def _policy(catalog: Context, warehouse: str, levels: tuple[str, ...], name: str) -> dict[str, Any]:
    held = await strictness.table_policy(catalog, warehouse, levels, name)
    return {"rules": [_effective(entry) for entry in held]}


def _effective(entry: strictness.Strictness) -> dict[str, Any]:
    rule, chosen = entry.rule, entry.settings[-1].severity if entry.settings else None
    out: dict[str, Any] = {
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


def _waiver(waiver: Waiver) -> WaiverModel:
    return WaiverModel(
        waiver_id=waiver.waiver_id,
        code=waiver.code,
        reason=waiver.reason,
        granted_by=waiver.granted_by,
        granted_at_ms=waiver.granted_at_ms,
        expires_at_ms=waiver.expires_at_ms,
        used_at_ms=waiver.used_at_ms,
    )
