"""Snapshot references: branches and tags (table spec: Snapshot References)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

import msgspec

from app.errors import SpecError
from app.spec.codec import (
    NO_EXTRA,
    Json,
    as_object,
    extra_of,
    optional_int32,
    optional_int64,
    required_int64,
    required_str,
)

MAIN = "main"

NO_SNAPSHOT: Final = -1
"""In place of a snapshot ID: none. Java reads it so everywhere, and therefore no snapshot can have it; all other
negative IDs are IDs like any."""

RefKind = Literal["branch", "tag"]

_KEYS = frozenset({"snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"})


class SnapshotRef(msgspec.Struct, frozen=True, kw_only=True):
    """A named pointer to a snapshot. Ages are in milliseconds; None means that the table's default holds."""

    snapshot_id: int
    kind: RefKind
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: Mapping[str, Json] = NO_EXTRA

    @property
    def is_branch(self) -> bool:
        return self.kind == "branch"

    def same(self, other: SnapshotRef) -> bool:
        """Equal in everything that a client can set."""
        return msgspec.structs.replace(self, extra=NO_EXTRA) == msgspec.structs.replace(other, extra=NO_EXTRA)


def parse_ref(value: Json, path: str = "$") -> SnapshotRef:
    """A reference from decoded JSON; SpecError for what no reader could load."""
    obj = as_object(value, path)
    kind = required_str(obj, "type", path).lower()
    if kind not in ("branch", "tag"):
        raise SpecError(f"Invalid snapshot ref type: {kind}", f"{path}.type")
    ref = SnapshotRef(
        snapshot_id=required_int64(obj, "snapshot-id", path),
        kind=cast(RefKind, kind),
        min_snapshots_to_keep=optional_int32(obj, "min-snapshots-to-keep", path),
        max_snapshot_age_ms=optional_int64(obj, "max-snapshot-age-ms", path),
        max_ref_age_ms=optional_int64(obj, "max-ref-age-ms", path),
        extra=extra_of(obj, _KEYS),
    )
    for key, number, tags_too in (
        ("min-snapshots-to-keep", ref.min_snapshots_to_keep, False),
        ("max-snapshot-age-ms", ref.max_snapshot_age_ms, False),
        ("max-ref-age-ms", ref.max_ref_age_ms, True),
    ):
        if number is None:
            continue
        if not (ref.is_branch or tags_too):
            raise SpecError(f"Tags do not support setting {key}", f"{path}.{key}")
        if number <= 0:
            raise SpecError(f"{key} must be greater than 0: {number}", f"{path}.{key}")
    return ref


def refuse_no_snapshot(snapshot_id: int, what: str, path: str) -> None:
    """SpecError for the ID that means none, in a place where a snapshot must be named."""
    if snapshot_id == NO_SNAPSHOT:
        raise SpecError(f"{what} cannot be {NO_SNAPSHOT}: readers take it for no snapshot. Use another ID", path)


def ref_to_json(ref: SnapshotRef) -> dict[str, Json]:
    members: dict[str, Json] = {
        "snapshot-id": ref.snapshot_id,
        "type": ref.kind,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "max-ref-age-ms": ref.max_ref_age_ms,
    }
    return {key: item for key, item in members.items() if item is not None} | dict(ref.extra)
