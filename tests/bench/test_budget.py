"""The budget tells what got slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import budget


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FILE", tmp_path / "budget.json")


def test_only_what_exceeds_the_tolerance_is_told() -> None:
    """More than 15 % above the accepted ratio is told with both ratios; less, and the unknown, is not."""
    budget.accept({"load": 2.0, "list": 10.0}, {})
    assert budget.slower({"load": 2.29, "list": 11.6, "new": 99.0}) == [("list", 10.0, 11.6)]


def test_accepting_some_workloads_keeps_the_others() -> None:
    """A run of a few workloads replaces their ratios alone."""
    budget.accept({"load": 2.0, "list": 10.0}, {})
    budget.accept({"load": 1.5}, {})
    assert budget.accepted() == {"load": 1.5, "list": 10.0}


def test_the_calibration_loop_costs_something_measurable() -> None:
    """A turn costs between ten microseconds and ten milliseconds of CPU on any machine that runs this."""
    assert 10 < budget.calibration() < 10_000
