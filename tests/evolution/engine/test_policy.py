"""The effective policy: properties only tighten, the API decides, floors hold."""

from __future__ import annotations

import pytest

from app.evolution.engine.policy import effective, misspelt, policy_from
from app.evolution.engine.registry import RULES
from app.rules import Policy, Severity


def severity(policy: Policy, code: str) -> Severity:
    rule = RULES.get(code)
    assert rule is not None
    return policy.severity(rule)


def test_properties_raise() -> None:
    """A table or namespace property makes a warning an error; the stricter of the two holds."""
    policy = policy_from({"icekeel.rule.ICE702": "error"}, [{"icekeel.rule.ice601": "ERROR"}])
    assert severity(policy, "ICE702") is Severity.ERROR
    assert severity(policy, "ICE601") is Severity.ERROR
    both = policy_from({"icekeel.rule.ICE702": "warn"}, [{"icekeel.rule.ICE702": "error"}])
    assert severity(both, "ICE702") is Severity.ERROR


def test_properties_never_lower() -> None:
    """A property below the rule's level has no effect, nor one below what the API set."""
    assert severity(policy_from({"icekeel.rule.ICE201": "off"}, ()), "ICE201") is Severity.ERROR
    lowered = policy_from({"icekeel.rule.ICE201": "off"}, (), [("ICE201", Severity.WARN)])
    assert severity(lowered, "ICE201") is Severity.WARN
    raised_again = policy_from({"icekeel.rule.ICE201": "error"}, (), [("ICE201", Severity.WARN)])
    assert severity(raised_again, "ICE201") is Severity.ERROR


def test_the_nearest_setting_of_the_api_holds() -> None:
    """Settings come nearest last; None takes back what a wider scope set."""
    assert severity(policy_from({}, (), [("ICE201", "off"), ("ICE201", "warn")]), "ICE201") is Severity.WARN
    assert severity(policy_from({}, (), [("ICE201", "off"), ("ICE201", None)]), "ICE201") is Severity.ERROR


def test_a_floor_ignores_lowering() -> None:
    """A rule that keeps metadata readable stays an error, whoever asks."""
    assert severity(policy_from({}, (), [("ICE501", "off")]), "ICE501") is Severity.ERROR


@pytest.mark.parametrize(
    "properties", [{"icekeel.rule.ICE999": "error"}, {"icekeel.rule.ICE702": "loud"}, {"icekeel.rule.": "error"}]
)
def test_unknown_codes_and_values_are_left_out(properties: dict[str, str]) -> None:
    """Properties are opaque: what is not understood changes nothing."""
    assert policy_from(properties, [properties]) == policy_from({}, ())


def test_effective_values_are_shown_with_their_reason() -> None:
    """Every live rule is listed with what holds and who set it."""
    policy = policy_from({"icekeel.rule.ICE702": "error"}, (), [("ICE201", "warn")])
    rows = {row["code"]: row for row in effective(policy)}
    assert len(rows) == len([rule for rule in RULES if not rule.retired])
    assert rows["ICE702"] == {
        "code": "ICE702",
        "rule": "names-equal-but-for-case",
        "default": "warn",
        "effective": "error",
        "can-be-lowered": True,
        "set-by-property": "error",
    }
    assert (rows["ICE201"]["effective"], rows["ICE201"]["set-by-api"]) == ("warn", "warn")
    assert rows["ICE501"]["can-be-lowered"] is False


def test_misspelt_rules_are_told_apart_from_properties_of_others() -> None:
    """An unknown code, an empty one and an unknown severity; what sets a rule is fine, even below its level."""
    found = misspelt(
        {
            "icekeel.rule.ICE999": "error",
            "icekeel.rule.": "error",
            "ICEKEEL.rule.ICE702": "eror",
            "icekeel.rule.ice201": "Off",
            "icekeel.rules": "x",
            "owner": "me",
        }
    )
    assert set(found) == {"icekeel.rule.ICE999", "icekeel.rule.", "ICEKEEL.rule.ICE702"}
    assert "off, warn, error" in found["ICEKEEL.rule.ICE702"]
