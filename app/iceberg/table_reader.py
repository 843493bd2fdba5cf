"""Reading table metadata from JSON, the legacy forms of format version 1 included (table spec: Appendix C, F).

Nothing is invented or repaired, and nothing is refused that the reference implementation loads.
"""

from __future__ import annotations

import msgspec

from app.errors import SpecError
from app.iceberg.encryption import parse_encryption_keys
from app.iceberg.invariants import (
    check_defaults,
    check_invariants,
    check_references,
    check_retained_specs,
    check_sources,
    check_times,
)
from app.iceberg.json.codec import (
    Json,
    as_list,
    as_object,
    as_str_map,
    required_int32,
    required_int64,
    required_str,
)
from app.iceberg.json.document import Document
from app.iceberg.location import strip_trailing_slash
from app.iceberg.logs import (
    MetadataLog,
    SnapshotLog,
    parse_metadata_log,
    parse_snapshot_log,
)
from app.iceberg.partition import (
    FIRST_PARTITION_FIELD_ID,
    PartitionSpec,
    parse_partition_fields,
    parse_partition_spec,
)
from app.iceberg.ref import MAIN, NO_SNAPSHOT, SnapshotRef, parse_ref
from app.iceberg.schemas import Schemas, parse_schemas, single_schema
from app.iceberg.snapshot import Snapshots, parse_snapshots
from app.iceberg.sort import UNSORTED, SortOrder, parse_sort_order
from app.iceberg.statistics import parse_partition_statistics, parse_statistics
from app.iceberg.table_metadata import (
    KNOWN_KEYS,
    ROW_LINEAGE_VERSION,
    SUPPORTED_FORMAT_VERSION,
    TableMetadata,
)
from app.iceberg.values import check_uuid


def parse_table_metadata(data: bytes, path: str = "$") -> TableMetadata:
    """A table from the JSON text of its metadata file; SpecError with the JSON path of what no reader could load.

    Schemas other than the current one and the summaries of snapshots stay text: `verify_table_metadata` looks at
    them too.
    """
    document = Document(data, path)
    version = document.required("format-version", required_int32)
    if not 1 <= version <= SUPPORTED_FORMAT_VERSION:
        raise SpecError(
            f"Cannot read unsupported format version {version} (supported: 1 to {SUPPORTED_FORMAT_VERSION})",
            f"{path}.format-version",
        )
    schemas, current_schema_id = _schemas(document, version)
    specs, default_spec_id = _specs(document, version)
    orders, default_order_id = _orders(document, version)
    current_snapshot_id = document.optional("current-snapshot-id", required_int64)
    if current_snapshot_id == NO_SNAPSHOT:
        current_snapshot_id = None
    metadata = TableMetadata(
        format_version=version,
        table_uuid=document.optional("table-uuid", required_str),
        location=strip_trailing_slash(document.required("location", required_str)),
        last_sequence_number=document.required("last-sequence-number", required_int64) if version > 1 else 0,
        last_updated_ms=document.required("last-updated-ms", required_int64),
        last_column_id=document.required("last-column-id", required_int32),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(document, version, specs),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=as_str_map(document.value("properties", {}), f"{path}.properties"),
        current_snapshot_id=current_snapshot_id,
        snapshots=_snapshots(document),
        snapshot_log=_snapshot_log(document),
        metadata_log=_metadata_log(document),
        refs=_refs(document, current_snapshot_id),
        statistics=() if (raw := document.raw("statistics")) is None else parse_statistics(raw, f"{path}.statistics"),
        partition_statistics=()
        if (raw := document.raw("partition-statistics")) is None
        else parse_partition_statistics(raw, f"{path}.partition-statistics"),
        next_row_id=document.required("next-row-id", required_int64) if version >= ROW_LINEAGE_VERSION else 0,
        encryption_keys=()
        if (raw := document.raw("encryption-keys")) is None
        else parse_encryption_keys(raw, f"{path}.encryption-keys"),
        extra=document.extra(KNOWN_KEYS),
    )
    check_invariants(metadata, path=path)
    check_references(metadata, path)
    return metadata


def verify_table_metadata(metadata: TableMetadata, path: str = "$") -> None:
    """Look at what parsing left alone: every schema with its defaults, retained spec and snapshot summary, the uuid
    and the times. For documents from outside. SpecError with the place."""
    if metadata.table_uuid is not None:
        check_uuid(metadata.table_uuid, f"{path}.table-uuid")
    check_defaults(metadata, path)
    check_sources(metadata, path)
    check_retained_specs(metadata, path)
    check_times(metadata, path)
    metadata.snapshots.verify(f"{path}.snapshots")


def _must_exist(document: Document, key: str, version: int) -> SpecError:
    return SpecError(f"{key} must exist in format v{version}", document.path)


def _schemas(document: Document, version: int) -> tuple[Schemas, int]:
    listed = document.raw("schemas")
    if listed is not None:
        current = document.required("current-schema-id", required_int32)
        schemas = parse_schemas(listed, f"{document.path}.schemas")
        if current not in schemas:
            raise SpecError(f"Cannot find schema with current-schema-id={current}", f"{document.path}.schemas")
        return schemas, current
    if version > 1:
        raise _must_exist(document, "schemas", version)
    single = document.raw("schema")
    if single is None:
        raise SpecError("Cannot parse missing field: schema", document.path)
    schemas = single_schema(single, f"{document.path}.schema")
    return schemas, schemas.ids[0]


def _specs(document: Document, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    listed, path = document.value("partition-specs"), f"{document.path}.partition-specs"
    if listed is not None:
        default = document.required("default-spec-id", required_int32)
        return tuple(
            parse_partition_spec(item, f"{path}[{at}]") for at, item in enumerate(as_list(listed, path))
        ), default
    if version > 1:
        raise _must_exist(document, "partition-specs", version)
    fields = document.value("partition-spec")
    if fields is None:
        raise SpecError("Cannot parse missing field: partition-spec", document.path)
    return (parse_partition_fields(fields, 0, f"{document.path}.partition-spec"),), 0


def _last_partition_id(document: Document, version: int, specs: tuple[PartitionSpec, ...]) -> int:
    stored = document.optional("last-partition-id", required_int32)
    if stored is not None:
        return stored
    if version > 1:
        raise _must_exist(document, "last-partition-id", version)
    return max((spec.highest_field_id for spec in specs), default=FIRST_PARTITION_FIELD_ID - 1)


def _orders(document: Document, version: int) -> tuple[tuple[SortOrder, ...], int]:
    listed, path = document.value("sort-orders"), f"{document.path}.sort-orders"
    if listed is not None:
        default = document.required("default-sort-order-id", required_int32)
        return tuple(_order(item, f"{path}[{at}]") for at, item in enumerate(as_list(listed, path))), default
    if version > 1:
        raise _must_exist(document, "sort-orders", version)
    return (UNSORTED,), UNSORTED.order_id


def _order(json: Json, path: str) -> SortOrder:
    """An order as stored: only one that is requested may leave its id to the server."""
    required_int32(as_object(json, path), "order-id", path)
    return parse_sort_order(json, path)


def _refs(document: Document, current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    listed = document.value("refs")
    if listed is None:
        # Versions 1 and 2 have no refs: what is current is main.
        if current_snapshot_id is None:
            return {}
        return {MAIN: SnapshotRef(snapshot_id=current_snapshot_id, kind="branch")}
    path = f"{document.path}.refs"
    return {name: parse_ref(item, f"{path}.{name}") for name, item in as_object(listed, path).items()}


def _snapshots(document: Document) -> Snapshots:
    raw: msgspec.Raw | None = document.raw("snapshots")
    return Snapshots() if raw is None else parse_snapshots(raw, f"{document.path}.snapshots")


def _snapshot_log(document: Document) -> SnapshotLog:
    raw = document.raw("snapshot-log")
    return SnapshotLog() if raw is None else parse_snapshot_log(raw, f"{document.path}.snapshot-log")


def _metadata_log(document: Document) -> MetadataLog:
    raw = document.raw("metadata-log")
    return MetadataLog() if raw is None else parse_metadata_log(raw, f"{document.path}.metadata-log")
