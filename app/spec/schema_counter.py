"""The highest schema ID and partition spec ID that a table ever gave out.

The table spec has no counter for either: they follow the highest one that is listed. Once that one is removed nothing
shows that it was there, so the table remembers its ID in a member of its own, which other readers skip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from app.spec.codec import encode
from app.spec.table_metadata import TableMetadata

LAST_SCHEMA_ID: Final = "icekeel.last-schema-id"
LAST_SPEC_ID: Final = "icekeel.last-spec-id"


def highest_schema_id(table: TableMetadata) -> int:
    """The highest ID that is listed, remembered, or named by a snapshot; -1 when there is none."""
    named = (snapshot.schema_id for snapshot in table.snapshots if snapshot.schema_id is not None)
    return max([*table.schemas.ids, remembered_schema_id(table.extra), *named], default=-1)


def remembered_schema_id(extra: Mapping[str, msgspec.Raw]) -> int:
    """The schema ID in the table's own member, -1 when it is absent or holds no ID."""
    return _remembered(extra, LAST_SCHEMA_ID)


def remembered_spec_id(extra: Mapping[str, msgspec.Raw]) -> int:
    """The partition spec ID in the table's own member, -1 when it is absent or holds no ID."""
    return _remembered(extra, LAST_SPEC_ID)


def _remembered(extra: Mapping[str, msgspec.Raw], member: str) -> int:
    text = extra.get(member)
    if text is None:
        return -1
    try:
        return msgspec.json.decode(text, type=int)
    except msgspec.DecodeError:
        return -1


def with_remembered(
    extra: Mapping[str, msgspec.Raw], highest: int, listed: int, member: str = LAST_SCHEMA_ID
) -> Mapping[str, msgspec.Raw]:
    """`extra` with the member when `highest` exceeds the highest `listed` ID, without it otherwise."""
    if highest > listed:
        return {**extra, member: msgspec.Raw(encode(highest))}
    if member not in extra:
        return extra
    return {key: text for key, text in extra.items() if key != member}
