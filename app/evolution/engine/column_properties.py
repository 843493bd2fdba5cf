"""Table properties that name columns, and how they follow a column that is renamed or dropped.

Properties are an opaque map to the catalog; these are the ones that writers of the reference implementation look up by
full column name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.iceberg.schema import Schema

PER_COLUMN: Final = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.stats-enabled.column.",
)
"""Prefixes of properties whose last part is the full name of a column."""

COLUMN_LISTS: Final = ("write.orc.bloom.filter.columns",)
"""Properties whose value lists full column names, separated by commas."""


def followed(properties: Mapping[str, str], before: Schema, after: Schema) -> tuple[dict[str, str], tuple[str, ...]]:
    """What to set and what to remove so that every setting stays with its column; nothing for a dropped column.

    A setting that is there under the new name already wins, unless it is that of a column that gives the name up.
    """
    moved = _moved(before, after)
    updates: dict[str, str] = {}
    removals: list[str] = []
    if not moved:
        return updates, ()
    for key, value in properties.items():
        prefix = next((prefix for prefix in PER_COLUMN if key.startswith(prefix)), None)
        if prefix is not None:
            name = key.removeprefix(prefix)
            if name in moved:
                removals.append(key)
                target = moved[name]
                if target is not None and (prefix + target not in properties or target in moved):
                    updates[prefix + target] = value
        elif key in COLUMN_LISTS:
            names = [name.strip() for name in value.split(",")]
            kept = [target for name in names if (target := moved.get(name, name)) is not None]
            if kept == names:
                continue
            if kept:
                updates[key] = ",".join(dict.fromkeys(kept))
            else:
                removals.append(key)
    # Two columns that swap names also swap their settings: what is set again is not removed.
    return updates, tuple(key for key in removals if key not in updates)


def _moved(before: Schema, after: Schema) -> dict[str, str | None]:
    """Former full names to present ones, None for dropped columns, for every name that is not its column's any more."""
    out: dict[str, str | None] = {}
    for field_id in before.by_id:
        name = before.name_of(field_id)
        now = after.name_of(field_id) if field_id in after.by_id else None
        if now != name:
            out[name] = now
    return out
