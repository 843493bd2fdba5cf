"""What happens to a table, one act at a time.

Each act makes one commit and says whether it is legal by construction. Those that are not may turn out legal: then the
reader has the word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.evolution.histories.drawing import any_field, chance
from tests.evolution.histories.ref_acts import (
    branches_off,
    drops_a_ref,
    expires,
    points_a_branch_anywhere,
    removes_anything,
    repartitions,
    rolls_back,
    rolls_back_with_its_schema,
    tags,
)
from tests.evolution.histories.schema_acts import (
    evolves,
    evolves_wildly,
    goes_back_to_a_schema,
    goes_back_to_names,
    undoes,
    upgrades,
)
from tests.evolution.histories.staged_writes import evolves_and_writes, stages, stages_late, writes_anything
from tests.evolution.histories.world import Outcome, World
from tests.evolution.histories.writes import (
    appends,
    appends_late,
    appends_without_schema_id,
    replaces,
    replaces_amid_branches,
    replaces_and_points_back,
)
from tests.evolution.tables import Json

Act = Callable[[World], Outcome | None]

ACTS: Sequence[tuple[int, Act]] = (
    (20, evolves),
    (16, evolves_wildly),
    (20, appends),
    (3, appends_late),
    (1, appends_without_schema_id),
    (2, upgrades),
    (4, undoes),
    (3, goes_back_to_a_schema),
    (3, goes_back_to_names),
    (3, branches_off),
    (2, tags),
    (3, drops_a_ref),
    (3, rolls_back),
    (3, points_a_branch_anywhere),
    (3, rolls_back_with_its_schema),
    (4, expires),
    (3, removes_anything),
    (6, repartitions),
    (4, replaces),
    (1, replaces_amid_branches),
    (1, replaces_and_points_back),
    (4, stages),
    (2, stages_late),
    (8, writes_anything),
    (3, evolves_and_writes),
)


def step(world: World) -> tuple[str, Outcome | None]:
    """One random act."""
    total = sum(weight for weight, _ in ACTS)
    at = world.draw.randrange(total)
    for weight, act in ACTS:
        at -= weight
        if at < 0:
            return act.__name__, act(world)
    raise AssertionError


def first_fields(draw: Any, version: int) -> list[Json]:
    """The columns of a new table; the first is the anchor."""
    ids = iter(range(1, 1000))
    names = iter(range(1, 1000))
    anchor = {"id": next(ids), "name": "anchor", "required": chance(draw, 50), "type": "int"}
    fields = [any_field(draw, version, lambda: next(ids), lambda: f"a{next(names)}") for _ in range(draw.randint(1, 4))]
    return [anchor, *fields]
