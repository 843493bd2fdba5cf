"""The strictness that holds for one table, put together from properties, the policy API and waivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from app.evolution.engine.registry import RULES
from app.rules import Policy, Severity, Waiver

PROPERTY_PREFIX: Final = "icekeel.rule."
"""`icekeel.rule.<CODE>` = `warn` or `error` on a table or namespace. Any writer may set a property, so it only
tightens: a value below the rule's level has no effect."""


def policy_from(
    properties_of_table: Mapping[str, str],
    properties_of_namespaces: Iterable[Mapping[str, str]],
    settings: Iterable[tuple[str, Severity | str | None]] = (),
    waivers: Iterable[Waiver] = (),
) -> Policy:
    """The effective policy.

    `properties_of_namespaces` are those of the table's namespace and all above it; the strictest value holds.
    `settings` are (code, severity) pairs of the policy API, the nearest scope last; None takes an earlier one back.
    Unknown codes and severities are left out: properties are opaque, and a server may be older than a setting.
    """
    chosen: dict[str, Severity] = {}
    for code, value in settings:
        severity = parse_severity(value)
        if value is None:
            chosen.pop(code.upper(), None)
        elif severity is not None:
            chosen[code.upper()] = severity
    tightened: dict[str, Severity] = {}
    for properties in (*properties_of_namespaces, properties_of_table):
        for code, severity in tightenings(properties).items():
            tightened[code] = severity.stricter(tightened.get(code, Severity.OFF))
    return Policy(set_by_api=chosen, tightened=tightened, waivers=tuple(waivers))


def tightenings(properties: Mapping[str, str]) -> dict[str, Severity]:
    """The rule severities that properties ask for, by code."""
    out: dict[str, Severity] = {}
    for key, value in properties.items():
        if not key.lower().startswith(PROPERTY_PREFIX):
            continue
        rule, severity = RULES.get(key[len(PROPERTY_PREFIX) :]), parse_severity(value)
        if rule is not None and severity is not None:
            out[rule.code] = severity.stricter(out.get(rule.code, Severity.OFF))
    return out


def asks_for_rules(properties: Mapping[str, str]) -> bool:
    """Whether any property is meant to set a rule, well formed or not."""
    return any(key.lower().startswith(PROPERTY_PREFIX) for key in properties)


def misspelt(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are meant to set a rule and set none, each with what is wrong with it."""
    out: dict[str, str] = {}
    for key, value in properties.items():
        if not key.lower().startswith(PROPERTY_PREFIX):
            continue
        code = key[len(PROPERTY_PREFIX) :]
        rule = RULES.get(code)
        if rule is None:
            out[key] = f"there is no rule {code!r}"
        elif rule.retired:
            out[key] = f"rule {rule.code} is retired, see {rule.replaced_by}"
        elif parse_severity(value) is None:
            out[key] = f"{value!r} is none of {', '.join(Severity)}"
    return out


def parse_severity(value: Severity | str | None) -> Severity | None:
    """A severity in any letter case; None for anything else."""
    if value is None:
        return None
    try:
        return Severity(value.strip().lower())
    except ValueError:
        return None


def effective(policy: Policy) -> list[dict[str, object]]:
    """What holds for each rule and why, in order of code: for the policy API and the CLI."""
    rows: list[dict[str, object]] = []
    for rule in RULES:
        if rule.retired:
            continue
        row: dict[str, object] = {
            "code": rule.code,
            "rule": rule.slug,
            "default": rule.default.value,
            "effective": policy.severity(rule).value,
            "can-be-lowered": not rule.floor,
        }
        if rule.code in policy.set_by_api:
            row["set-by-api"] = policy.set_by_api[rule.code].value
        if rule.code in policy.tightened:
            row["set-by-property"] = policy.tightened[rule.code].value
        rows.append(row)
    return rows
