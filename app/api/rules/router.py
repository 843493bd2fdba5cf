"""The path operations of the rule catalogue."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from app import errors
from app.api.responses import fails, success
from app.api.route import StrictRoute
from app.api.rules.schemas import RuleList, RulePage
from app.edge.raw_path import decode_segment
from app.evolution.engine.registry import catalogue, rule_page

router = APIRouter(route_class=StrictRoute, tags=["Rules"])


@router.get(
    "/icekeel/v1/rules",
    operation_id="listRules",
    response_model=RuleList,
    response_model_exclude_unset=True,
    responses={**success(200, "Every rule, by code."), **fails()},
)
async def list_rules() -> dict[str, Any]:
    """List every rule that commits are judged by."""
    return {"rules": catalogue()}


@router.get(
    "/icekeel/v1/rules/{code}",
    operation_id="explainRule",
    response_model=RulePage,
    response_model_exclude_unset=True,
    responses={**success(200, "The rule and its manual page."), **fails(errors.NotFound)},
)
async def explain_rule(
    code: Annotated[
        str,
        Path(description="Rule code, such as `ICE202`.", json_schema_extra={"pattern": "^[A-Za-z]+[0-9]+$"}),
    ],
) -> dict[str, Any]:
    """Show the manual page of one rule."""
    return rule_page(decode_segment(code))
