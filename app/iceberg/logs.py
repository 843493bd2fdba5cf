"""The snapshot log and the metadata log (table spec: Table Metadata). Times are epoch milliseconds, oldest first."""

from __future__ import annotations

from itertools import islice

import msgspec

from app.iceberg.json.append_log import NO_TEXT, Entries, kebab, parse_array, sealed_text
from app.iceberg.json.codec import encode
from app.iceberg.json.typed import Int64


class SnapshotLogEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename=kebab):
    """When main came to which snapshot."""

    timestamp_ms: Int64
    snapshot_id: Int64
    body: msgspec.Raw = NO_TEXT

    def detached(self) -> SnapshotLogEntry:
        return msgspec.structs.replace(self, body=self.body.copy())


class MetadataLogEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename=kebab):
    """A previous metadata file and when it was current last."""

    timestamp_ms: Int64
    metadata_file: str
    body: msgspec.Raw = NO_TEXT

    def detached(self) -> MetadataLogEntry:
        return msgspec.structs.replace(self, body=self.body.copy())


class SnapshotLog(Entries[SnapshotLogEntry]):
    __slots__ = ()

    def add(self, timestamp_ms: int, snapshot_id: int) -> SnapshotLog:
        text = encode({"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id})
        return self.append(SnapshotLogEntry(timestamp_ms=timestamp_ms, snapshot_id=snapshot_id, body=msgspec.Raw(text)))


class MetadataLog(Entries[MetadataLogEntry]):
    __slots__ = ()

    def add(self, timestamp_ms: int, metadata_file: str) -> MetadataLog:
        text = encode({"timestamp-ms": timestamp_ms, "metadata-file": metadata_file})
        return self.append(
            MetadataLogEntry(timestamp_ms=timestamp_ms, metadata_file=metadata_file, body=msgspec.Raw(text))
        )

    def trim(self, limit: int) -> tuple[MetadataLog, tuple[MetadataLogEntry, ...]]:
        """At most the last `limit` entries, and the entries that fell out, oldest first."""
        surplus = len(self) - limit
        if surplus <= 0:
            return self, ()
        return self.after(surplus), tuple(islice(self, surplus))


def parse_snapshot_log(raw: msgspec.Raw, path: str) -> SnapshotLog:
    items = parse_array(raw, path, SnapshotLogEntry)
    return SnapshotLog(items, sealed_text(raw, items))


def parse_metadata_log(raw: msgspec.Raw, path: str) -> MetadataLog:
    # Few and long-lived entries: as views they would keep a large document in memory.
    return MetadataLog(parse_array(raw.copy(), path, MetadataLogEntry))
