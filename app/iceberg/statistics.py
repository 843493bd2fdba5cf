"""Table statistics and partition statistics files (table spec: Table Statistics, Partition Statistics)."""

from __future__ import annotations

import msgspec

from app.iceberg.json.append_log import NO_TEXT, kebab, parse_array
from app.iceberg.json.codec import Json, encode
from app.iceberg.json.typed import Int32, Int64, convert_typed, drop_nulls


class _Blob(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    type: str
    snapshot_id: Int64
    sequence_number: Int64
    fields: list[Int32]
    properties: dict[str, str] | None = None


class StatisticsFile(msgspec.Struct, frozen=True, kw_only=True, rename=kebab):
    """A Puffin file with statistics of one snapshot; `raw` is its whole entry as JSON text. Sizes are in bytes."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64
    file_footer_size_in_bytes: Int64
    blob_metadata: list[_Blob]
    body: msgspec.Raw = NO_TEXT

    @property
    def path(self) -> str:
        return self.statistics_path

    @property
    def raw(self) -> bytes:
        return bytes(self.body)


class PartitionStatisticsFile(msgspec.Struct, frozen=True, kw_only=True, rename=kebab):
    """A file with statistics per partition of one snapshot. Sizes are in bytes."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64
    body: msgspec.Raw = NO_TEXT

    @property
    def path(self) -> str:
        return self.statistics_path

    @property
    def raw(self) -> bytes:
        return bytes(self.body)


def statistics_from_json(value: Json, path: str) -> StatisticsFile:
    """What a client sends: members that are null are left out and the text is written anew."""
    cleaned = drop_nulls(value, path)
    return msgspec.structs.replace(convert_typed(cleaned, StatisticsFile, path), body=msgspec.Raw(encode(cleaned)))


def partition_statistics_from_json(value: Json, path: str) -> PartitionStatisticsFile:
    """What a client sends: members that are null are left out and the text is written anew."""
    cleaned = drop_nulls(value, path)
    parsed = convert_typed(cleaned, PartitionStatisticsFile, path)
    return msgspec.structs.replace(parsed, body=msgspec.Raw(encode(cleaned)))


def parse_statistics(raw: msgspec.Raw, path: str) -> tuple[StatisticsFile, ...]:
    """The `statistics` array of a stored document; texts stay as they are."""
    return tuple(parse_array(raw.copy(), path, StatisticsFile))


def parse_partition_statistics(raw: msgspec.Raw, path: str) -> tuple[PartitionStatisticsFile, ...]:
    """The `partition-statistics` array of a stored document; texts stay as they are."""
    return tuple(parse_array(raw.copy(), path, PartitionStatisticsFile))
