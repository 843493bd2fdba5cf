"""The twin fixtures of the rules: `<CODE>/fires.json` and `<CODE>/near_miss.json`.

A fixture is a stored table, what is done to it, and every finding that this must give. `table` has `schemas` (wire
form), and of `version`, `last-column-id`, `current`, `snapshots` ([id, schema-id, parent-id]), `branches`, `tags`,
`specs`, `default-spec`, `orders`, `default-order` and `properties` what differs from an empty v2 table. What is done
is `updates` (wire form), or `current`, a second table, where no update could do it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.iceberg.table import TableMetadata
from app.rules import Policy, Severity, Verdict
from tests.evolution.tables import NOW, branch, commit, snapshot, table, tag

ROOT = Path(__file__).parent


def load(code: str, which: str) -> dict[str, Any]:
    """The fixture `fires` or `near_miss` of a rule; FileNotFoundError when the rule has none."""
    fixture: dict[str, Any] = json.loads((ROOT / code / f"{which}.json").read_text())
    return fixture


def run(fixture: dict[str, Any]) -> Verdict:
    previous = _table(fixture["table"]) if fixture["table"] is not None else None
    current = commit(previous, fixture["updates"]) if "updates" in fixture else _table(fixture["current"])
    used = fixture.get("specs-in-use")
    policy = Policy(set_by_api={code: Severity(level) for code, level in fixture.get("policy", {}).items()})
    return judge(previous, current, Evidence(specs_in_use=None if used is None else frozenset(used)), policy, NOW)


def _table(given: dict[str, Any]) -> TableMetadata:
    refs = {name: branch(at) for name, at in given.get("branches", {}).items()}
    refs |= {name: tag(at) for name, at in given.get("tags", {}).items()}
    return table(
        *given["schemas"],
        current=given.get("current"),
        version=given.get("version", 2),
        last_column_id=given.get("last-column-id"),
        snapshots=[snapshot(at, schema_id, parent) for at, schema_id, parent in given.get("snapshots", [])],
        refs=refs,
        specs=given.get("specs"),
        default_spec=given.get("default-spec", 0),
        orders=given.get("orders"),
        default_order=given.get("default-order", 0),
        properties=given.get("properties"),
    )


def expected(fixture: dict[str, Any]) -> list[tuple[str, str, int | None, str | None]]:
    return [(f["code"], f["severity"], f.get("field-id"), f.get("path")) for f in fixture["findings"]]


def found(verdict: Verdict) -> list[tuple[str, str, int | None, str | None]]:
    return [(f.code, f.severity.value, f.field_id, f.path) for f in verdict.findings]
