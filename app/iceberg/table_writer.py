"""Writing table metadata as JSON, member by member as the reference implementation does (table spec: Appendix C, F)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.iceberg.json.chunked_text import Chunk, Piece, Text, cut, joined
from app.iceberg.json.codec import encode
from app.iceberg.partition import partition_fields_to_json, partition_spec_to_json
from app.iceberg.ref import ref_to_json
from app.iceberg.snapshot import Snapshots
from app.iceberg.sort import sort_order_to_json
from app.iceberg.table_metadata import KNOWN_KEYS, ROW_LINEAGE_VERSION, TableMetadata

_Parts = list[Piece | Chunk]

# Enough to find a chunk's place in a document; what is found is compared in full.
_NEEDLE_BYTES = 512


def _name(key: str) -> bytes:
    return b"," + encode(key) + b":"


_NAMES = {key: _name(key) for key in KNOWN_KEYS}


def compose_table_metadata(metadata: TableMetadata, large: int = 0) -> bytes | Text:
    """The JSON text; from `large` bytes on in the chunks that other versions of the table have too.

    It costs what was changed, unless the histories were read from a file with white space between their entries.
    """
    parts = _parts(metadata, metadata.snapshots)
    return Text.composed(parts) if sum(map(len, parts)) >= large else joined(parts)


def render_table_metadata(metadata: TableMetadata) -> bytes:
    """The JSON text."""
    return joined(_parts(metadata, metadata.snapshots))


def render_refs_only(metadata: TableMetadata) -> bytes:
    """The JSON text with only those snapshots that a ref points to; everything else stays."""
    wanted = {ref.snapshot_id for ref in metadata.refs.values()}
    found = (snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in wanted)
    return joined(_parts(metadata, Snapshots(found)))


def stored_text(metadata: TableMetadata, data: bytes) -> Text:
    """`data`, the document that `metadata` was parsed from, cut so that the next version shares its long parts."""
    chunks: list[Chunk] = []
    view, done = memoryview(data), 0
    for run in (metadata.schemas.parts(), metadata.snapshots.parts(), metadata.snapshot_log.parts()):
        for chunk in run:
            if not isinstance(chunk, Chunk):
                continue
            at = data.find(chunk.body[:_NEEDLE_BYTES], done)
            # Equal text is as good as the very place: what counts is that the chunks spell the document.
            if at < 0 or not data.startswith(chunk.body, at):
                break
            chunks += (*cut(view[done:at]), chunk)
            done = at + len(chunk)
    return Text([*chunks, *cut(view[done:])])


def _list(bodies: Iterable[msgspec.Raw]) -> Piece:
    return b"[" + b",".join([memoryview(body) for body in bodies]) + b"]"


def _parts(metadata: TableMetadata, snapshots: Snapshots) -> _Parts:
    version = metadata.format_version
    members: dict[str, _Parts] = {"format-version": [encode(version)]}
    if metadata.table_uuid is not None:
        members["table-uuid"] = [encode(metadata.table_uuid)]
    members["location"] = [encode(metadata.location)]
    if version > 1:
        members["last-sequence-number"] = [encode(metadata.last_sequence_number)]
    members["last-updated-ms"] = [encode(metadata.last_updated_ms)]
    members["last-column-id"] = [encode(metadata.last_column_id)]
    current_schema = metadata.schemas.text(metadata.current_schema_id)
    if version == 1 and current_schema is not None:
        # Readers from before schema and spec lists look here.
        members["schema"] = [current_schema]
        members["partition-spec"] = [encode(partition_fields_to_json(metadata.default_spec.fields))]
    members["current-schema-id"] = [encode(metadata.current_schema_id)]
    members["schemas"] = metadata.schemas.parts()
    members["default-spec-id"] = [encode(metadata.default_spec_id)]
    members["partition-specs"] = [encode([partition_spec_to_json(spec) for spec in metadata.partition_specs])]
    members["last-partition-id"] = [encode(metadata.last_partition_id)]
    members["default-sort-order-id"] = [encode(metadata.default_sort_order_id)]
    members["sort-orders"] = [encode([sort_order_to_json(order) for order in metadata.sort_orders])]
    members["properties"] = [encode(dict(metadata.properties))]
    # Older Java readers fail without the member, newer ones on -1.
    none = -1 if version < ROW_LINEAGE_VERSION else None
    current = metadata.current_snapshot_id
    members["current-snapshot-id"] = [encode(none if current is None else current)]
    if version >= ROW_LINEAGE_VERSION:
        members["next-row-id"] = [encode(metadata.next_row_id)]
    if metadata.encryption_keys:
        members["encryption-keys"] = [_list(key.body for key in metadata.encryption_keys)]
    members["refs"] = [encode({name: ref_to_json(ref) for name, ref in metadata.refs.items()})]
    members["snapshots"] = snapshots.parts()
    members["statistics"] = [_list(item.body for item in metadata.statistics)]
    members["partition-statistics"] = [_list(item.body for item in metadata.partition_statistics)]
    members["snapshot-log"] = metadata.snapshot_log.parts()
    members["metadata-log"] = metadata.metadata_log.parts()
    for key, text in metadata.extra.items():
        members[key] = [memoryview(text)]
    parts: _Parts = []
    for key, texts in members.items():
        parts.append(_NAMES.get(key) or _name(key))
        parts += texts
    parts[0] = b"{" + encode("format-version") + b":"
    parts.append(b"}")
    return parts
