"""Snapshots, snapshot references, and the two logs (table spec: Snapshots, Snapshot References, Table Metadata).

A snapshot is kept as its JSON text plus the few values that commits and rules look at. Ids use the whole signed
64-bit range; timestamps are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, Self

import msgspec

from app.errors import SpecError
from app.iceberg.datetimes import check_epoch_ms
from app.iceberg.json.append_log import NO_TEXT, Entries, kebab, parse_array, sealed_text
from app.iceberg.json.chunked_text import joined
from app.iceberg.json.codec import decode, encode
from app.iceberg.json.typed import Int32, Int64, convert_typed, decode_typed, drop_nulls
from app.iceberg.logs import (
    MetadataLog,
    MetadataLogEntry,
    SnapshotLog,
    SnapshotLogEntry,
)
from app.iceberg.ref import (
    MAIN,
    NO_SNAPSHOT,
    SnapshotRef,
    parse_ref,
    ref_to_json,
    refuse_no_snapshot,
)

__all__ = [
    "MAIN",
    "NO_SNAPSHOT",
    "OPERATIONS",
    "Ancestry",
    "MetadataLog",
    "MetadataLogEntry",
    "Snapshot",
    "SnapshotLog",
    "SnapshotLogEntry",
    "SnapshotRef",
    "Snapshots",
    "parse_ref",
    "parse_snapshot",
    "parse_snapshots",
    "ref_to_json",
    "snapshot_from_json",
]


OPERATIONS: Final = ("append", "replace", "overwrite", "delete")
"""What the summary of a snapshot may say that was done."""

ASSUMED_OPERATION: Final = "overwrite"
"""What the reference implementation reads where a summary does not say: the one that promises readers nothing."""


class _Summary(msgspec.Struct, frozen=True, gc=False):
    operation: str | None = None


class Snapshot(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename=kebab):
    """One snapshot: index values, and `raw`, its JSON text. A parent that the text gives as -1 is none."""

    snapshot_id: Int64
    timestamp_ms: Int64
    parent_snapshot_id: Int64 | None = None
    sequence_number: Int64 = 0
    schema_id: Int32 | None = None
    first_row_id: Int64 | None = None
    added_rows: Int64 | None = None
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: _Summary | None = None
    key_id: str | None = None
    body: msgspec.Raw = NO_TEXT

    @property
    def raw(self) -> bytes:
        return bytes(self.body)

    @property
    def operation(self) -> str | None:
        return None if self.summary is None else self.summary.operation

    def to_json(self) -> dict[str, Any]:
        """The whole snapshot as decoded JSON, members this server does not know included."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded

    def detached(self) -> Snapshot:
        return msgspec.structs.replace(self, body=self.body.copy())

    def with_schema_id(self, schema_id: int) -> Snapshot:
        """The snapshot as it reads when the schema it was written with got the number `schema_id`."""
        return snapshot_from_json({**self.to_json(), "schema-id": schema_id}, "$")

    def with_operation(self) -> Snapshot:
        """The snapshot with a summary that names its operation: the assumed one where it names none."""
        if self.operation is not None:
            return self
        told = self.to_json()
        summary = {"operation": ASSUMED_OPERATION, **told.get("summary", {})}
        return snapshot_from_json({**told, "summary": summary}, "$")


class _Complete(msgspec.Struct, frozen=True):
    """What Java's reader also looks at in a snapshot, beyond the index."""

    summary: dict[str, str] | None = None


_SNAPSHOT = msgspec.json.Decoder(Snapshot)
_COMPLETE = msgspec.json.Decoder(list[_Complete])


def _check(snapshot: Snapshot, path: str) -> None:
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise SpecError("A snapshot needs manifest-list or manifests", path)
    if snapshot.first_row_id is not None:
        if snapshot.first_row_id < 0:
            raise SpecError(f"first-row-id cannot be negative: {snapshot.first_row_id}", f"{path}.first-row-id")
        if snapshot.added_rows is None:
            raise SpecError("added-rows is required when first-row-id is set", path)
    if snapshot.added_rows is not None and snapshot.added_rows < 0:
        raise SpecError(f"added-rows cannot be negative: {snapshot.added_rows}", f"{path}.added-rows")


def parse_snapshot(raw: bytes, path: str = "$", *, canonical: bool) -> Snapshot:
    """A snapshot from its JSON text; SpecError when no reader could load it.

    `canonical` is for what a client sends: members that are null are left out and the text is written anew. Without
    it the text is kept as it is, byte for byte.
    """
    if canonical:
        return snapshot_from_json(decode(raw, path), path)
    snapshot = decode_typed(_SNAPSHOT, raw, path)
    _check(snapshot, path)
    parent = None if snapshot.parent_snapshot_id == NO_SNAPSHOT else snapshot.parent_snapshot_id
    return msgspec.structs.replace(snapshot, parent_snapshot_id=parent, body=msgspec.Raw(raw))


def snapshot_from_json(value: object, path: str) -> Snapshot:
    """A snapshot from decoded JSON, as `parse_snapshot(canonical=True)`. A parent -1 is left out as well."""
    cleaned = drop_nulls(value, path)
    if isinstance(cleaned, dict) and _names_no_parent(cleaned):
        del cleaned["parent-snapshot-id"]
    snapshot = convert_typed(cleaned, Snapshot, path)
    convert_typed(cleaned, _Complete, path)
    _check(snapshot, path)
    return msgspec.structs.replace(snapshot, body=msgspec.Raw(encode(cleaned)))


def _names_no_parent(snapshot: dict[str, Any]) -> bool:
    parent = snapshot.get("parent-snapshot-id")
    return type(parent) is int and parent == NO_SNAPSHOT


class Ancestry:
    """A snapshot and those before it, newest first; `complete` tells whether it reaches a parentless one."""

    __slots__ = ("_snapshots", "_start")

    def __init__(self, snapshots: Snapshots, start: int) -> None:
        self._snapshots = snapshots
        self._start = start

    def __iter__(self) -> Iterator[Snapshot]:
        seen: set[int] = set()
        at: int | None = self._start
        while at is not None and at not in seen:
            snapshot = self._snapshots.find(at)
            if snapshot is None:
                return
            seen.add(at)
            yield snapshot
            at = snapshot.parent_snapshot_id

    @property
    def complete(self) -> bool:
        """False when a parent is not listed (expired, or the line runs in a circle)."""
        oldest = None
        for snapshot in self:
            oldest = snapshot
        return oldest is not None and oldest.parent_snapshot_id is None


class Snapshots(Entries[Snapshot]):
    """The listed snapshots in document order, found by id."""

    __slots__ = ()

    key_name = "snapshot_id"

    def get(self, snapshot_id: int) -> Snapshot | None:
        return self.find(snapshot_id)

    def __contains__(self, snapshot_id: object) -> bool:
        return isinstance(snapshot_id, int) and self.find(snapshot_id) is not None

    def remove(self, snapshot_ids: Collection[int]) -> Self:
        """Without these ids; unknown ids are ignored. Linear in the number of snapshots."""
        gone = snapshot_ids if isinstance(snapshot_ids, (set, frozenset)) else frozenset(snapshot_ids)
        return self.keep(lambda snapshot: snapshot.snapshot_id not in gone)

    def ancestry(self, snapshot_id: int) -> Ancestry:
        return Ancestry(self, snapshot_id)

    def verify(self, path: str) -> None:
        """Look at everything in every snapshot, as a Java reader does: summary values that are no strings, say.

        A snapshot with the ID that means none is refused too: it could be read, but no commit could name it.
        """
        decode_typed(_COMPLETE, joined(self.parts()), path)
        for at, snapshot in enumerate(self):
            refuse_no_snapshot(snapshot.snapshot_id, "snapshot-id", f"{path}[{at}].snapshot-id")
            check_epoch_ms(snapshot.timestamp_ms, f"{path}[{at}].timestamp-ms")


def parse_snapshots(raw: msgspec.Raw, path: str) -> Snapshots:
    """The `snapshots` array of a stored document; the texts stay as they are."""
    items = parse_array(raw, path, Snapshot)
    for at, snapshot in enumerate(items):
        if snapshot.manifest_list is None or snapshot.first_row_id is not None or snapshot.added_rows is not None:
            _check(snapshot, f"{path}[{at}]")
        if snapshot.parent_snapshot_id == NO_SNAPSHOT:
            msgspec.structs.force_setattr(snapshot, "parent_snapshot_id", None)
    snapshots = Snapshots(items, sealed_text(raw, items))
    if snapshots.has_duplicates:
        raise SpecError("Two snapshots have the same snapshot-id", path)
    return snapshots
