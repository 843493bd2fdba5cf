"""The rule catalogue of the evolution engine."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS
from app.api.models.evolution import RuleList, RulePage
from app.api.operations import Operations, Returns
from app.api.rendering import json_answer
from app.edge.answer import Answer
from app.evolution.rules.registry import RULES, catalogue, entry

routes = Operations("Rules", ALWAYS)


@routes.declare(
    "GET",
    "/icekeel/v1/rules",
    "listRules",
    returns=[Returns(200, "Every rule, by code.", RuleList)],
)
async def list_rules(request: Request) -> Answer:
    """List every rule that commits are judged by."""
    return json_answer({"rules": catalogue()})


@routes.declare(
    "GET",
    "/icekeel/v1/rules/{code}",
    "explainRule",
    parameters=[parameters.CODE],
    returns=[Returns(200, "The rule and its manual page.", RulePage)],
    fails=[errors.NotFound],
)
async def explain_rule(request: Request) -> Answer:
    """Show the manual page of one rule."""
    return json_answer(rule_page(reading.segment(request, "code")))


def rule_page(code: str) -> dict[str, object]:
    """A rule with its manual page, in any letter case of `code`; NotFound."""
    rule = RULES.get(code)
    if rule is None:
        raise errors.NotFound(f"No such rule: {code}")
    return {**entry(rule), "manual": rule.manual}
