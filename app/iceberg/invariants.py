"""What holds of every table metadata document that a reader can load (the reference implementation refuses others).

A commit may not produce, and a registration may not bring in, what violates these.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec import UNSET

from app.errors import BadRequest, SpecError
from app.iceberg.datetimes import check_epoch_ms
from app.iceberg.partition import (
    HasSources,
    check_partition_names,
    check_retained_spec,
    check_spec,
    check_version_of_sources,
)
from app.iceberg.ref import MAIN
from app.iceberg.sort import check_order
from app.iceberg.table_metadata import SUPPORTED_FORMAT_VERSION, TableMetadata
from app.iceberg.values import parse_value

CLOCK_SKEW_MS = 60_000
"""Log times may run backwards by this much: commits happen on machines with different clocks."""


def check_invariants(metadata: TableMetadata, base: TableMetadata | None = None, path: str = "$") -> None:
    """SpecError for what no reader could load. With a sound `base`, shared structure is not looked at again."""
    _check_heads(metadata, path)
    _check_snapshots(metadata, base, path)
    _check_refs(metadata, path)
    _check_logs(metadata, base, path)


def _check_heads(metadata: TableMetadata, path: str) -> None:
    version = metadata.format_version
    if not 1 <= version <= SUPPORTED_FORMAT_VERSION:
        raise SpecError(
            f"Unsupported format version: v{version} (supported: v{SUPPORTED_FORMAT_VERSION})", f"{path}.format-version"
        )
    if version > 1 and metadata.table_uuid is None:
        raise SpecError(f"UUID is required in format v{version}", path)
    if not metadata.location:
        raise SpecError(f"Table location is required in format v{version}", f"{path}.location")
    if version == 1 and metadata.last_sequence_number != 0:
        raise SpecError(f"Sequence number must be 0 in v1: {metadata.last_sequence_number}", path)
    if metadata.current_schema_id not in metadata.schemas:
        raise SpecError(f"Cannot find schema with current-schema-id={metadata.current_schema_id}", f"{path}.schemas")
    if not metadata.partition_specs:
        raise SpecError("Partition specs cannot be empty", f"{path}.partition-specs")
    if not metadata.sort_orders:
        raise SpecError("Sort orders cannot be empty", f"{path}.sort-orders")
    if len({spec.spec_id for spec in metadata.partition_specs}) != len(metadata.partition_specs):
        raise SpecError("Two partition specs have the same spec-id", f"{path}.partition-specs")
    if len({order.order_id for order in metadata.sort_orders}) != len(metadata.sort_orders):
        raise SpecError("Two sort orders have the same order-id", f"{path}.sort-orders")
    # Reading these raises when the document does not list them.
    _ = metadata.default_spec, metadata.default_sort_order


def _check_snapshots(metadata: TableMetadata, base: TableMetadata | None, path: str) -> None:
    last = metadata.last_sequence_number
    fresh = metadata.snapshots if base is None else metadata.snapshots.since(base.snapshots)
    for snapshot in fresh:
        if snapshot.sequence_number > last:
            raise SpecError(
                f"Invalid snapshot with sequence number {snapshot.sequence_number} "
                f"greater than last sequence number {last}",
                f"{path}.snapshots",
            )


def _check_refs(metadata: TableMetadata, path: str) -> None:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots:
            raise SpecError(
                f"Snapshot for reference {name} does not exist in the existing snapshots list: {ref.snapshot_id}",
                f"{path}.refs.{name}",
            )
    current, main = metadata.current_snapshot_id, metadata.refs.get(MAIN)
    if current is None:
        if main is not None:
            raise SpecError("Current snapshot is not set, but main branch exists", f"{path}.refs.{MAIN}")
        return
    if current not in metadata.snapshots:
        raise SpecError(f"Cannot find current version {current} in snapshots", f"{path}.current-snapshot-id")
    if main is not None and main.snapshot_id != current:
        raise SpecError(
            f"Current snapshot ID does not match main branch ({current} != {main.snapshot_id})",
            f"{path}.current-snapshot-id",
        )


def _check_logs(metadata: TableMetadata, base: TableMetadata | None, path: str) -> None:
    snapshot_times = metadata.snapshot_log if base is None else metadata.snapshot_log.since(base.snapshot_log)
    file_times = metadata.metadata_log if base is None else metadata.metadata_log.since(base.metadata_log)
    for key, times in (
        ("snapshot-log", [entry.timestamp_ms for entry in snapshot_times]),
        ("metadata-log", [entry.timestamp_ms for entry in file_times]),
    ):
        for earlier, later in pairwise(times):
            if later - earlier < -CLOCK_SKEW_MS:
                raise SpecError(f"Entries of {key} are not in order of time", f"{path}.{key}")
        if times and metadata.last_updated_ms - times[-1] < -CLOCK_SKEW_MS:
            raise SpecError(
                f"Invalid update timestamp {metadata.last_updated_ms}: before last {key} entry at {times[-1]}",
                f"{path}.last-updated-ms",
            )


def check_sources(metadata: TableMetadata, path: str = "$") -> None:
    """Whether only tables of version 3 have transforms of several columns. SpecError with the place."""
    placed: list[tuple[str, Iterable[HasSources]]] = [
        *((f"{path}.partition-specs[{at}]", spec.fields) for at, spec in enumerate(metadata.partition_specs)),
        *((f"{path}.sort-orders[{at}]", order.fields) for at, order in enumerate(metadata.sort_orders)),
    ]
    for place, fields in placed:
        try:
            check_version_of_sources(fields, metadata.format_version)
        except BadRequest as fault:
            raise SpecError(fault.message, place) from fault


def check_times(metadata: TableMetadata, path: str = "$") -> None:
    """Whether the times outside of snapshots are in the range that readers load. SpecError with the place."""
    check_epoch_ms(metadata.last_updated_ms, f"{path}.last-updated-ms")
    for at, entry in enumerate(metadata.snapshot_log):
        check_epoch_ms(entry.timestamp_ms, f"{path}.snapshot-log[{at}].timestamp-ms")
    for at, file in enumerate(metadata.metadata_log):
        check_epoch_ms(file.timestamp_ms, f"{path}.metadata-log[{at}].timestamp-ms")


def check_defaults(metadata: TableMetadata, path: str = "$") -> None:
    """Whether each default in each schema is a value of its column's type. SpecError with the schema's place.

    No part of reading: a table that came to be so must still load here, so that it can be cured.
    """
    for at, schema in enumerate(metadata.schemas.all()):
        for column in schema.by_id.values():
            for name, value in (("initial-default", column.initial_default), ("write-default", column.write_default)):
                if value is UNSET:
                    continue
                try:
                    parse_value(column.field_type, value)
                except SpecError as fault:
                    raise SpecError(
                        f"The {name} of column {schema.name_of(column.field_id)} (field {column.field_id}) is no value "
                        f"of its type {column.field_type}: {fault.reason}",
                        f"{path}.schemas[{at}]",
                    ) from fault


def check_references(metadata: TableMetadata, path: str = "$") -> None:
    """Whether partition specs and sort orders can be bound to the current schema, as every reader does on loading.

    The default ones must fit in full, of the others only the partition names are looked at. SpecError.
    """
    schema = metadata.schema
    for spec in metadata.partition_specs:
        try:
            if spec.spec_id == metadata.default_spec_id:
                check_spec(spec, schema)
            else:
                check_partition_names(spec, schema)
        except BadRequest as fault:
            raise SpecError(fault.message, f"{path}.partition-specs") from fault
    try:
        check_order(metadata.default_sort_order, schema)
    except BadRequest as fault:
        raise SpecError(fault.message, f"{path}.sort-orders") from fault


def check_retained_specs(metadata: TableMetadata, path: str = "$") -> None:
    """Whether the specs kept for older files can be bound as well. SpecError with the place of the first that cannot.

    No part of `check_references`: a table that came to be so must still load here, so that it can be cured.
    """
    for at, spec in enumerate(metadata.partition_specs):
        if spec.spec_id == metadata.default_spec_id:
            continue
        try:
            check_retained_spec(spec, metadata.schema)
        except BadRequest as fault:
            raise SpecError(
                f"Partition spec {spec.spec_id}, which is not the default one, does not fit the current schema: "
                f"{fault.message}. Java engines cannot load such a table",
                f"{path}.partition-specs[{at}]",
            ) from fault
