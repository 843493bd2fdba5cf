"""A whole Iceberg table on local disk (metadata file, manifest list, manifest, Parquet files) for other readers.

The metadata is our own writer's; manifests are PyIceberg's, which writes those of format version 2 only. They are
legal in a version 3 table as well.
"""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pyarrow.parquet as pq
from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.typedef import Record

from app.iceberg.schema import Schema, schema_to_json

SNAPSHOT_ID = 7


class StoredFile(msgspec.Struct, frozen=True):
    """Parquet bytes and the file's partition tuple."""

    data: io.BytesIO
    partition: tuple[Any, ...] = ()


def write_lake(
    folder: Path,
    current: Schema,
    files: Sequence[StoredFile],
    *,
    version: int = 2,
    spec: Sequence[Mapping[str, Any]] = (),
    properties: Mapping[str, str] | None = None,
) -> Path:
    """The metadata file of a table with one snapshot that holds the files."""
    (folder / "metadata").mkdir(parents=True)
    (folder / "data").mkdir()
    manifest_list = folder / "metadata" / "snap-7.avro"
    schema = current.with_id(0)
    document: dict[str, Any] = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": schema.highest_id,
        "schemas": [schema_to_json(schema)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": list(spec)}],
        "default-spec-id": 0,
        "last-partition-id": 999 + len(spec),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": dict(properties or {}),
        "current-snapshot-id": SNAPSHOT_ID,
        "snapshots": [
            {
                "snapshot-id": SNAPSHOT_ID,
                "sequence-number": 1,
                "timestamp-ms": 1_700_000_000_000,
                "schema-id": 0,
                "manifest-list": str(manifest_list),
                "summary": {"operation": "append"},
            }
        ],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}},
    }
    if version == 3:
        document["next-row-id"] = 0
        document["snapshots"][0].update({"first-row-id": 0, "added-rows": 0})
    location = folder / "metadata" / "v1.metadata.json"
    location.write_text(json.dumps(document))
    (folder / "metadata" / "version-hint.text").write_text("1")
    _write_manifests(folder, manifest_list, document, files)
    return location


def _write_manifests(folder: Path, manifest_list: Path, document: dict[str, Any], files: Sequence[StoredFile]) -> None:
    plain = {**document, "schemas": [_without_defaults(schema) for schema in document["schemas"]]}
    metadata = TableMetadataUtil.parse_obj(plain)
    disk = load_file_io(location=str(folder))
    output = disk.new_output(str(folder / "metadata" / "manifest-7.avro"))
    with write_manifest(2, metadata.specs()[0], metadata.schema(), output, SNAPSHOT_ID, "deflate") as writer:
        for at, stored in enumerate(files):
            path = folder / "data" / f"{at}.parquet"
            path.write_bytes(stored.data.getvalue())
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=str(path),
                file_format=FileFormat.PARQUET,
                partition=Record(*stored.partition),
                record_count=pq.read_metadata(path).num_rows,
                file_size_in_bytes=path.stat().st_size,
                column_sizes={},
                value_counts={},
                null_value_counts={},
                nan_value_counts={},
                lower_bounds={},
                upper_bounds={},
                key_metadata=None,
                split_offsets=[4],
                equality_ids=None,
                sort_order_id=0,
            )
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=SNAPSHOT_ID,
                    sequence_number=1,
                    file_sequence_number=1,
                    data_file=file,
                )
            )
    manifest = writer.to_manifest_file()
    with write_manifest_list(2, disk.new_output(str(manifest_list)), SNAPSHOT_ID, None, 1, "deflate") as listing:
        listing.add_manifests([manifest])


def _without_defaults(schema: Any) -> Any:
    """PyIceberg cannot load every default; manifests do not need them."""
    if isinstance(schema, list):
        return [_without_defaults(item) for item in schema]
    if isinstance(schema, dict):
        hidden = ("initial-default", "write-default")
        return {key: _without_defaults(value) for key, value in schema.items() if key not in hidden}
    return schema


def plain(value: Any) -> Any:
    """Python values that do not tell which of several Arrow types they came from."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case UUID():
            return str(value)
        case bytes() if len(value) == 16:
            return str(UUID(bytes=value))
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC)
    return value
