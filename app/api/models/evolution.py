"""Bodies of our own API: rules, policy and waivers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from app.api.models.metadata import Int64, Shape

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

    manual: str = ""


class RuleList(Shape):
    """Every rule, by code."""

    rules: list[RuleModel]


class EffectiveRule(Shape):
    """How strictly a rule is held for one table, and why."""

    code: str
    rule: str
    severity: SeverityName
    default: SeverityName
    can_be_lowered: bool
    set_by_policy: SeverityName | None = None
    tightened_by_property: SeverityName | None = None


class PolicyModel(Shape):
    """Effective severities of every rule for one table."""

    rules: list[EffectiveRule]


class PolicyRequest(Shape):
    """A severity to set; null takes a setting back. `scope`: for this table (the default) or its namespace."""

    code: str
    severity: SeverityName | None
    scope: Literal["table", "namespace"] | None = None


class WaiverRequest(Shape):
    """Permission for one commit to break one rule on this table."""

    code: str
    reason: Annotated[str, Meta(min_length=1)]
    expires_in_seconds: Annotated[int, Meta(ge=1, le=2**53)] | None = None


class WaiverModel(Shape):
    """A waiver; times are epoch milliseconds."""

    waiver_id: str
    code: str
    reason: str
    granted_by: str
    granted_at_ms: Int64
    expires_at_ms: Int64
    used_at_ms: Int64 | None = None


class WaiverList(Shape):
    """Every waiver of this table, newest first."""

    waivers: list[WaiverModel]
