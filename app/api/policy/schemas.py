"""Bodies of policy and waivers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from app.api.rules.schemas import SeverityName
from app.api.shapes import Answered, Int64, OwnShape, Shape
from app.errors import BadRequest


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


class PolicyRequest(OwnShape):
    """A severity to set; null takes a setting back. `scope`: for this table (the default) or its namespace."""

    code: str
    severity: SeverityName | None
    scope: Literal["table", "namespace"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _said(cls, given: Any) -> Any:
        """Null means something here, so its absence is told with what it would mean."""
        if isinstance(given, dict) and "severity" not in given:
            raise BadRequest("Missing field: severity (null takes an earlier setting back)")
        return given


class WaiverRequest(OwnShape):
    """Permission for one commit to break one rule on this table."""

    code: str
    reason: str
    expires_in_seconds: Annotated[Int64, Field(json_schema_extra={"minimum": 1})] | None = None


class WaiverModel(Answered):
    """A waiver; times are epoch milliseconds."""

    waiver_id: str
    code: str
    reason: str
    granted_by: str
    granted_at_ms: Int64
    expires_at_ms: Int64
    used_at_ms: Int64 | None = None


class WaiverList(Answered):
    """Every waiver of this table, newest first."""

    waivers: list[WaiverModel]
