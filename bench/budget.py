"""The budget: what each workload may cost, as a ratio to a calibration loop of the same run.

CPU microseconds differ from machine to machine and with its load; the ratio to a loop of the same interpreter moves
far less. `bench/budget.json` holds the last accepted ratios.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("budget.json")
TOLERANCE = 1.15

_DOCUMENT = {"columns": [{"id": n, "name": f"column_{n}", "required": False, "type": "long"} for n in range(40)]}


def calibration() -> float:
    """CPU microseconds of one turn of the loop: dicts, strings, JSON and a hash, the stuff of a request."""
    turns = 300
    best = []
    for _ in range(5):
        began = time.process_time_ns()
        for turn in range(turns):
            text = json.dumps(_DOCUMENT)
            found = json.loads(text)
            {entry["name"]: (entry["id"] + turn, entry["type"].upper()) for entry in found["columns"]}
        best.append((time.process_time_ns() - began) / turns / 1000)
    return statistics.median(best)


def accepted() -> dict[str, float]:
    """Workload -> last accepted ratio."""
    found: dict[str, float] = json.loads(FILE.read_text())["ratios"] if FILE.exists() else {}
    return found


def accept(ratios: dict[str, float], note: dict[str, Any]) -> None:
    """Make these ratios the accepted ones; workloads that were not run keep theirs."""
    merged = {**accepted(), **{name: round(ratio, 3) for name, ratio in ratios.items()}}
    FILE.write_text(json.dumps({"note": note, "ratios": dict(sorted(merged.items()))}, indent=2) + "\n")


def slower(ratios: dict[str, float]) -> list[tuple[str, float, float]]:
    """(workload, accepted ratio, ratio now) of what got slower by more than the tolerance."""
    known = accepted()
    return [
        (name, known[name], ratio)
        for name, ratio in ratios.items()
        if name in known and ratio > known[name] * TOLERANCE
    ]
