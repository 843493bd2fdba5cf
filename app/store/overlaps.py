"""Which tables and views have files at, above or below a place, whatever warehouse they are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.errors import ValidationFailed, dotted
from app.store.paths import ancestors, descendants, levels_of
from app.store.program import Call, Program, Row, Statement

ANCESTORS: Final = 16
"""Locations asked for in one statement; deeper paths take several."""

AT_OR_ABOVE: Final = Statement("tabulars.AT_OR_ABOVE")
BELOW: Final = Statement("tabulars.BELOW")
ROOTS_AT_OR_ABOVE: Final = Statement("tabulars.ROOTS_AT_OR_ABOVE")
ROOTS_BELOW: Final = Statement("tabulars.ROOTS_BELOW")


def overlap_queries(
    key: str, besides: int | None, below_limit: int | None = None, *, with_roots: bool = True
) -> Iterator[Call]:
    """What finds every table and view of any warehouse with its location (or a root) at, above or below a canonical
    location, by index alone. `besides` is the id of one that does not count; `below_limit` bounds the rows below."""
    others = {"besides": besides or 0}
    keys = list(ancestors(key))
    for start in range(0, len(keys), ANCESTORS):
        some = keys[start : start + ANCESTORS]
        padded = some + [some[-1]] * (ANCESTORS - len(some))
        params = {**others, **{f"key{i}": each for i, each in enumerate(padded)}}
        yield Call(AT_OR_ABOVE, params)
        if with_roots:
            yield Call(ROOTS_AT_OR_ABOVE, params)
    below_from, below_to = descendants(key)
    below = {**others, "below_from": below_from, "below_to": below_to}
    yield Call(BELOW, {**below, "limit": below_limit})
    if with_roots:
        yield Call(ROOTS_BELOW, {**below, "limit": None})


def overlapping_names(rows: Iterable[Row]) -> tuple[str, ...]:
    """Who they are, as `warehouse.namespace.name`."""
    return tuple(sorted({dotted((warehouse, *levels_of(path)), name) for warehouse, path, name, _, _ in rows}))


def refuse_overlap(
    warehouse: str, place: str, key: str, besides: int | None = None, *, is_location: bool
) -> Program[None]:
    # One row below is enough to refuse. Roots may share a place with each other, since engines put a folder per table
    # below a shared data path; nothing may share a place with somebody's location.
    for call in overlap_queries(key, besides, below_limit=1, with_roots=is_location):
        found = yield call
        for home, path, name, kind, other_location in found.rows:
            whose = f"{kind} {dotted(levels_of(path), name)}"
            if home != warehouse:
                whose += f" of warehouse {home}"
            raise ValidationFailed(f"Location {place} overlaps {whose} at {other_location}", location=place)
