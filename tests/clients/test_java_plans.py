"""Plans against the reference implementation: the same operations on the same random schemas, the same result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.errors import IcekeelError
from tests.clients.test_rck import Outcome, maven
from tests.evolution.tables import table
from tests.evolution.test_planning_oracle import normal, operations, our_schema, tables

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

Json = dict[str, Any]
CASES = 1000


def cases() -> list[Json]:
    """Random tables with operations on them."""
    drawn: list[Json] = []

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        base, made = data.draw(tables())
        wanted = data.draw(operations(made))
        drawn.append({"schema": made, "last-column-id": base.last_column_id, "operations": wanted})

    draw()
    return drawn


def test_a_plan_is_what_java_makes_of_the_same_operations(tmp_path: Path) -> None:
    """IDs, order, nesting and docs; what Java refuses (it takes fewer sequences) is left aside."""
    given_cases = cases()
    file = tmp_path / "plans.json"
    file.write_text(json.dumps(given_cases))
    outcome = Outcome(maven(tmp_path, "**/PlannedTests.class", f"-Drck.plans={file}"))
    assert outcome.failed == {}
    answers = json.loads(Path(f"{file}.out").read_text())
    compared = 0
    for one, theirs in zip(given_cases, answers, strict=True):
        if theirs is None:
            continue
        base = table(one["schema"], last_column_id=one["last-column-id"])
        try:
            ours = our_schema(base, one["operations"])
        except IcekeelError as fault:
            raise AssertionError(f"{one}: {fault.message}") from fault
        assert ours == normal({**theirs, "schema-id": 0}), one
        compared += 1
    assert compared > len(given_cases) / 2
