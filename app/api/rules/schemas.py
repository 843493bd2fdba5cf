"""Bodies of the rule catalogue."""

from __future__ import annotations

from typing import Literal

from app.api.shapes import Shape

SeverityName = Literal["off", "warn", "error"]


class RuleModel(Shape):
    """A rule of the evolution engine, with its severity where no policy says otherwise."""

    code: str
    rule: str
    summary: str
    severity: SeverityName
    can_be_lowered: bool
    spec: str
    since: str
    retired: bool
    replaced_by: str | None = None


class RulePage(RuleModel):
    """A rule with its manual page."""

    manual: str


class RuleList(Shape):
    """Every rule, by code."""

    rules: list[RuleModel]
