"""Every rule has a complete manual page and twin fixtures, and the fixtures come out as they say."""

from __future__ import annotations

import re

import pytest

from app.errors import NotFound
from app.evolution.engine.registry import HEADINGS, RULES, catalogue, manual
from app.rules import Severity
from tests.evolution.tables import branch, evolve, field, judged, schema, snapshot, table
from tests.rules.fixtures import ROOT, expected, found, load, run

LIVE = [rule for rule in RULES if not rule.retired]
CODES = [rule.code for rule in LIVE]


@pytest.mark.parametrize("rule", LIVE, ids=CODES)
def test_manual_page_is_complete(rule) -> None:  # type: ignore[no-untyped-def]
    """The page opens with one sentence and has every heading once, in order, each with text under it."""
    lines = rule.manual.splitlines()
    assert re.fullmatch(r"[A-Z].+\.", lines[0]) and lines[1] == ""
    headings = [line for line in lines[2:] if line and not line.startswith(" ")]
    assert tuple(headings) == HEADINGS
    for heading in HEADINGS:
        body = lines[lines.index(heading) + 1]
        assert body.startswith("    ") and len(body.split()) >= 2
    assert all(len(line) <= 120 for line in lines)


@pytest.mark.parametrize("rule", LIVE, ids=CODES)
def test_code_and_slug_are_well_formed(rule) -> None:  # type: ignore[no-untyped-def]
    """A code is ICE and three digits; a slug states the fault in lower case and never the cure."""
    assert re.fullmatch(r"ICE[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.slug)
    assert rule.slug.split("-")[0] not in ("avoid", "use", "prefer", "no", "must", "check")
    assert rule.spec and rule.since
    assert not (rule.floor and rule.default is not Severity.ERROR)


@pytest.mark.parametrize("code", CODES)
def test_fires(code: str) -> None:
    """The firing fixture gives exactly the findings it lists, this rule's among them."""
    fixture = load(code, "fires")
    verdict = run(fixture)
    assert found(verdict) == expected(fixture), [f.message for f in verdict.findings]
    assert code in [f.code for f in verdict.findings]


@pytest.mark.parametrize("code", CODES)
def test_near_miss(code: str) -> None:
    """The near miss gives exactly the findings it lists, none of this rule."""
    fixture = load(code, "near_miss")
    verdict = run(fixture)
    assert found(verdict) == expected(fixture), [f.message for f in verdict.findings]
    assert code not in [f.code for f in verdict.findings]


@pytest.mark.parametrize("code", CODES)
def test_messages_are_one_line_and_name_the_fix(code: str) -> None:
    """An engine prints the message verbatim: one line that opens with code and slug and closes with the fix."""
    rule = RULES.get(code)
    assert rule is not None
    for finding in run(load(code, "fires")).findings:
        if finding.code == code:
            assert finding.message.startswith(f"{code} {rule.slug}: ")
            assert finding.message.endswith(f". {finding.fix}") and finding.fix.endswith(".")
            assert "\n" not in finding.message and ".. " not in finding.message
            assert finding.fix[0].isupper() and len(finding.message) < 600


@pytest.mark.parametrize("name", ["a\nb", "a\r\nX: 1", "\x00", "\u2028", "\x1b[31m", "n" * 50_000])
def test_messages_stay_one_short_line_whatever_names_hold(name: str) -> None:
    """Line breaks and control characters are written out, and a name as long as a document is cut."""
    before = schema(field(1, name, "long"))
    stored = table(before, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    for finding in judged(stored, evolve(field(1, name, "string"), field(2, f"{name}?", "int", True))).findings:
        assert finding.message.isprintable() and len(finding.message) < 3_000
        assert finding.message.endswith(f". {finding.fix}")


def test_no_fixture_without_a_rule() -> None:
    """Every folder of fixtures belongs to a registered rule."""
    assert {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(CODES)


def test_every_fixture_states_its_claim() -> None:
    """Each fixture says in a sentence what it shows."""
    for code in CODES:
        for which in ("fires", "near_miss"):
            assert load(code, which)["claim"].endswith("."), (code, which)


def _makes_a_schema_current(rule) -> bool:  # type: ignore[no-untyped-def]
    updates = load(rule.code, "fires").get("updates", [])
    return [update["action"] for update in updates] == ["add-schema", "set-current-schema"]


@pytest.mark.parametrize("code", [rule.code for rule in LIVE if rule.definition and _makes_a_schema_current(rule)])
def test_rules_about_definitions_hold_for_a_schema_that_is_only_added(code: str) -> None:
    """What a rule about definitions finds in a schema made current, it finds in one that is added and no more."""
    fixture = load(code, "fires")
    assert code in [finding.code for finding in run({**fixture, "updates": fixture["updates"][:1]}).findings]


def test_catalogue_lists_every_rule_in_order() -> None:
    """The catalogue has one plain entry per rule, by code."""
    entries = catalogue()
    assert [entry["code"] for entry in entries] == sorted(CODES)
    assert all({"code", "rule", "severity", "summary", "can-be-lowered", "spec"} <= entry.keys() for entry in entries)


def test_manual_takes_any_case_and_refuses_unknown_codes() -> None:
    """`explain ice202` works; an unknown code is not found."""
    assert manual("ice202").startswith("ICE202 decimal-scale-changed\n")
    with pytest.raises(NotFound):
        manual("ICE999")
