"""One random history from beginning to end."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

from app.evolution.engine.judge import judge
from tests.evolution.histories.acts import first_fields, step
from tests.evolution.histories.drawing import Draw
from tests.evolution.histories.refusals import Refusals
from tests.evolution.histories.world import Judge, World

STEPS: Final = 25


class Tally:
    """What a number of histories saw."""

    def __init__(self) -> None:
        self.histories = 0
        self.readings = 0
        self.refusals = Refusals()
        self.acts: Counter[str] = Counter()

    def __str__(self) -> str:
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.acts.items()))
        shown = self.refusals.shown
        rules = ", ".join(f"{code} {count} ({shown[code]})" for code, count in sorted(self.refusals.counted.items()))
        return f"{self.histories} histories, {self.readings} readings\nacts: {acts}\nrefusals (with a file): {rules}"


def run(draw: Draw, tally: Tally, steps: int = STEPS, judged: Judge = judge) -> World:
    """Raises Unsound or Unwarranted, with the story of the table."""
    version = draw.choice((1, 2, 2, 3, 3, 3))
    world = World(draw, first_fields(draw, version), version, tally.refusals, judged)
    for _ in range(steps):
        name, outcome = step(world)
        what = "skipped" if outcome is None else "accepted" if outcome.accepted else "refused"
        if outcome is not None and outcome.rejected is not None:
            what = "rejected"
        tally.acts[f"{name} {what}"] += 1
    tally.histories += 1
    tally.readings += world.readings.count
    return world


def run_seed(seed: int, tally: Tally, steps: int = STEPS, judged: Judge = judge) -> World:
    """The history of a seed; the same one as long as the drawing code stays the same."""
    return run(random.Random(seed), tally, steps, judged)
