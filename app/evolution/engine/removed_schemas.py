"""What the retained schemas leave open about a field: the schemas that were removed since.

Schema IDs are given out in order, so an ID that is missing below the highest one was a schema that is gone. Data files
may have been written under it as long as their snapshots are not all known.
"""

from __future__ import annotations

from typing import Final

import msgspec

from app.iceberg.schema_counter import highest_schema_id
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import TableMetadata

_NONE: Final = -1


class Gap(msgspec.Struct, frozen=True, gc=False):
    """Consecutive IDs of schemas that are gone, both ends included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"schema {self.first}" if self.first == self.last else f"schemas {self.first} to {self.last}"


def born_after(table: TableMetadata, field_id: int) -> int:
    """The youngest retained schema that is older than the field, -1 when there is none.

    Field IDs are given out in order too: a schema that lacks the field and has no ID as high was there before it.
    """
    found = _NONE
    for schema_id in sorted(table.schemas):
        schema = table.schemas.get(schema_id)
        if schema is None or schema.highest_id >= field_id:
            break
        found = schema_id
    return found


def horizon(table: TableMetadata, snapshot: Snapshot) -> int:
    """The youngest schema that surely existed when the snapshot was written, -1 when nothing tells.

    Its own schema says little: a change that is taken back makes an old schema current again. But other snapshots from
    before it may name younger ones.
    """
    when = (snapshot.sequence_number, snapshot.timestamp_ms)
    named = (
        other.schema_id
        for other in (*table.snapshots, snapshot)
        if other.schema_id is not None and (other.sequence_number, other.timestamp_ms) <= when
    )
    return max(named, default=_NONE)


def gap(table: TableMetadata, field_id: int) -> Gap | None:
    """The first gap among the schemas that may have had the field. Parses only the schemas older than it."""
    expected = born_after(table, field_id) + 1
    for schema_id in sorted(table.schemas):
        if schema_id < expected:
            continue
        if schema_id > expected:
            return Gap(expected, schema_id - 1)
        expected = schema_id + 1
    highest = highest_schema_id(table)
    return Gap(expected, highest) if expected <= highest else None
