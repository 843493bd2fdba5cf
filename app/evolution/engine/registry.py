"""The rules about a change of a table, by code, and their manual pages; `app.evolution.rules` registers them here."""

from __future__ import annotations

from typing import Final

from app.errors import NotFound
from app.evolution.engine.change import Change
from app.rules import Registry, Rule

RULES: Final = Registry[Change]()

HEADINGS: Final = ("Checks", "Why it matters", "Example", "What to do", "Spec")
"""Every manual page has these, each on a line of its own, in this order."""


def manual(code: str) -> str:
    """The manual page of a rule as plain text; the code in any letter case. Raises NotFound for an unknown code."""
    rule = RULES.get(code)
    if rule is None:
        raise NotFound(f"Unknown rule: {code}. The rules are listed by `icekeel rules`")
    head = f"{rule.code} {rule.slug}\n{'=' * (len(rule.code) + 1 + len(rule.slug))}\n"
    if rule.retired:
        return f"{head}Retired; see {rule.replaced_by}.\n\n{rule.manual.strip()}\n"
    held = "cannot be lowered or waived" if rule.floor else "can be lowered or waived"
    return f"{head}Severity: {rule.default.value} ({held}). Since {rule.since}.\n\n{rule.manual.strip()}\n"


def catalogue() -> list[dict[str, object]]:
    """Every rule in order of code, as plain values for a listing or a JSON answer."""
    return [entry(rule) for rule in RULES]


def entry(rule: Rule[Change]) -> dict[str, object]:
    """One rule as plain values, its manual page left out."""
    values: dict[str, object] = {
        "code": rule.code,
        "rule": rule.slug,
        "severity": rule.default.value,
        "summary": rule.summary,
        "can-be-lowered": not rule.floor,
        "spec": rule.spec,
        "since": rule.since,
        "retired": rule.retired,
    }
    if rule.replaced_by is not None:
        values["replaced-by"] = rule.replaced_by
    return values


def rule_page(code: str) -> dict[str, object]:
    """A rule with its manual page, in any letter case of `code`; NotFound."""
    rule = RULES.get(code)
    if rule is None:
        raise NotFound(f"No such rule: {code}")
    return {**entry(rule), "manual": rule.manual}
