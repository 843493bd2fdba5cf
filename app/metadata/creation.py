"""A new table from a createTable request: ids assigned from scratch, reserved properties consumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from app.errors import SpecError, ValidationFailed
from app.iceberg.location import strip_trailing_slash
from app.iceberg.metadata_file import check_codec
from app.iceberg.partition import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    UnboundPartitionSpec,
    check_spec,
    check_version_of_sources,
)
from app.iceberg.schema import Schema, reassign_ids
from app.iceberg.schemas import Schemas
from app.iceberg.sort import UNSORTED, SortOrder, check_order
from app.iceberg.table import (
    DEFAULT_FORMAT_VERSION,
    ROW_LINEAGE_VERSION,
    TableMetadata,
    check_invariants,
)
from app.metadata.properties import PREVIOUS_VERSIONS_MAX, RESERVED, check_integer, integer
from app.metadata.schemas import check_width
from app.metadata.table_fields import check_format_version

NEW_TABLE_DEFAULTS: Final = {"write.parquet.compression-codec": "zstd"}

_FORMAT_VERSION: Final = "format-version"
_METRICS_COLUMN: Final = "write.metadata.metrics.column."
_COMMIT_INTEGERS: Final = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
)
_ENCRYPTION: Final = ("encryption.key-id", "encryption.data-key-length")
_FIRST_ORDER_ID: Final = 1


def new_table(
    schema: Schema,
    spec: UnboundPartitionSpec | None,
    order: SortOrder | None,
    location: str,
    properties: Mapping[str, str],
    now_ms: int,
    uuid: str,
    format_version: int | None = None,
) -> TableMetadata:
    """The first state of a table, `now_ms` in epoch milliseconds.

    Column ids count from 1, partition field ids from 1000, the sort order is 1 (0 when unsorted); sources are re-bound.
    The version is `format_version`, else the property `format-version`, else 2. ValidationFailed for what cannot be.
    """
    version = _format_version(properties) if format_version is None else format_version
    check_format_version(version)
    check_width(schema)
    fresh, new_ids = reassign_ids(schema)
    stored = {**NEW_TABLE_DEFAULTS, **{key: value for key, value in properties.items() if key not in RESERVED}}
    _check_properties(stored, fresh, version)
    bound_spec = _bound_spec(spec, new_ids)
    check_version_of_sources(bound_spec.fields, version)
    check_spec(bound_spec, fresh)
    bound_order = _bound_order(order, new_ids)
    check_version_of_sources(bound_order.fields, version)
    check_order(bound_order, fresh)
    metadata = TableMetadata(
        format_version=version,
        table_uuid=uuid,
        location=strip_trailing_slash(location),
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_id,
        schemas=Schemas().append(fresh),
        current_schema_id=fresh.schema_id,
        partition_specs=(bound_spec,),
        default_spec_id=bound_spec.spec_id,
        last_partition_id=bound_spec.highest_field_id,
        sort_orders=(bound_order,),
        default_sort_order_id=bound_order.order_id,
        properties=stored,
    )
    try:
        check_invariants(metadata)
    except SpecError as fault:
        raise ValidationFailed(fault.message) from fault
    return metadata


def _format_version(properties: Mapping[str, str]) -> int:
    text = properties.get(_FORMAT_VERSION)
    if text is None:
        return DEFAULT_FORMAT_VERSION
    version = integer(text)
    if version is None:
        raise ValidationFailed(f"Not a format version: {text!r}")
    return version


def _check_properties(properties: Mapping[str, str], schema: Schema, version: int) -> None:
    check_integer(properties, PREVIOUS_VERSIONS_MAX)
    check_codec(properties)
    for key in _COMMIT_INTEGERS:
        check_integer(properties, key)
        if (integer(properties.get(key)) or 0) < 0:
            raise ValidationFailed(f"Table property {key} must have non negative integer value")
    for key in properties:
        column = key.removeprefix(_METRICS_COLUMN)
        if column != key and schema.find_readable(column) is None:
            raise ValidationFailed(f"Invalid metrics config, could not find column {column} from table prop {key}")
    if version < ROW_LINEAGE_VERSION:
        used = sorted(key for key in _ENCRYPTION if key in properties)
        if used:
            raise ValidationFailed(f"Invalid properties for v{version}: {used}")


def _source(new_ids: Mapping[int, int], source_id: int, what: str) -> int:
    fresh = new_ids.get(source_id)
    if fresh is None:
        raise ValidationFailed(f"Cannot find source column for {what}: {source_id}")
    return fresh


def _bound_spec(spec: UnboundPartitionSpec | None, new_ids: Mapping[int, int]) -> PartitionSpec:
    if spec is None:
        return PartitionSpec(0)
    fields = []
    for field_id, part in enumerate(spec.fields, FIRST_PARTITION_FIELD_ID):
        if part.transform.is_unknown:
            raise ValidationFailed(f"Cannot add partition field {part.name}: unknown transform {part.transform}")
        sources = tuple(_source(new_ids, source_id, f"partition field {part.name}") for source_id in part.source_ids)
        fields.append(PartitionField(sources, field_id, part.name, part.transform, part.extra))
    return PartitionSpec(0, tuple(fields), spec.extra)


def _bound_order(order: SortOrder | None, new_ids: Mapping[int, int]) -> SortOrder:
    if order is None or order.is_unsorted:
        return UNSORTED
    for part in order.fields:
        if part.transform.is_unknown:
            raise ValidationFailed(f"Cannot add sort order: unknown transform {part.transform}")
    fields = tuple(
        msgspec.structs.replace(
            part, source_ids=tuple(_source(new_ids, source_id, "sort field") for source_id in part.source_ids)
        )
        for part in order.fields
    )
    return SortOrder(_FIRST_ORDER_ID, fields, order.extra)
