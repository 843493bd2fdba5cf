"""Folding the updates of one commit over a table (table spec: Table Metadata; REST protocol: TableUpdate).

Pure: time and the uuid of a new table are handed in. Whether the result may follow the base as an evolution of the
table is judged elsewhere; here it only becomes a document that every reader can load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from app.errors import SpecError, ValidationFailed
from app.iceberg import update as u
from app.iceberg.encryption import EncryptedKey
from app.iceberg.json.codec import NO_EXTRA
from app.iceberg.logs import MetadataLog
from app.iceberg.schema_counter import LAST_SPEC_ID, with_remembered
from app.iceberg.table import DEFAULT_FORMAT_VERSION, TableMetadata, check_invariants
from app.metadata import (
    partition_specs,
    properties,
    refs,
    schemas,
    snapshots,
    sort_orders,
    table_fields,
)
from app.metadata.builder import TableMetadataBuilder
from app.metadata.creation import new_table

__all__ = ["Applied", "apply", "new_table"]


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a fold.

    `effective` are the updates that changed something; with none, `changed` is False and `metadata` is the base.
    `expired_metadata_files` fell out of the metadata log and are to be deleted after the swap, if the table says so.
    """

    metadata: TableMetadata
    effective: tuple[u.TableUpdate, ...]
    expired_metadata_files: tuple[str, ...] = ()
    changed: bool


_APPLY: dict[type[Any], Callable[[TableMetadataBuilder, Any], None]] = {
    u.AssignUuid: table_fields.assign_uuid,
    u.UpgradeFormatVersion: table_fields.upgrade_format_version,
    u.SetLocation: table_fields.set_location,
    u.AddEncryptionKey: table_fields.add_encryption_key,
    u.RemoveEncryptionKey: table_fields.remove_encryption_key,
    u.AddSchema: schemas.add_schema,
    u.SetCurrentSchema: schemas.set_current_schema,
    u.RemoveSchemas: schemas.remove_schemas,
    u.AddPartitionSpec: partition_specs.add_spec,
    u.SetDefaultSpec: partition_specs.set_default_spec,
    u.RemovePartitionSpecs: partition_specs.remove_specs,
    u.AddSortOrder: sort_orders.add_order,
    u.SetDefaultSortOrder: sort_orders.set_default_order,
    u.AddSnapshot: snapshots.add_snapshot,
    u.RemoveSnapshots: snapshots.remove_snapshots,
    u.SetStatistics: snapshots.set_statistics,
    u.RemoveStatistics: snapshots.remove_statistics,
    u.SetPartitionStatistics: snapshots.set_partition_statistics,
    u.RemovePartitionStatistics: snapshots.remove_partition_statistics,
    u.SetSnapshotRef: refs.set_ref,
    u.RemoveSnapshotRef: refs.remove_ref,
    u.SetProperties: properties.set_properties,
    u.RemoveProperties: properties.remove_properties,
}


def apply(
    base: TableMetadata | None,
    base_location: str | None,
    updates: Iterable[u.TableUpdate],
    now_ms: int,
    fresh_uuid: str,
) -> Applied:
    """Apply `updates` in order to `base`, or to nothing when the commit creates the table.

    `base_location` is the metadata file of `base` (None: it never was one, so no log may name it), `now_ms` the time of
    the commit in epoch milliseconds, `fresh_uuid` the uuid of a table that gets none assigned. Raises ValidationFailed
    or SpecError for what may never be applied, CommitFailed for what was computed from a state that is no longer the
    present one.
    """
    listed = tuple(updates)
    draft = TableMetadataBuilder(base, _initial_format_version(listed) if base is None else DEFAULT_FORMAT_VERSION)
    for update in listed:
        _APPLY[type(update)](draft, update)
    if base is not None and not draft.effective:
        return Applied(metadata=base, effective=(), changed=False)
    if draft.table_uuid is None and (base is None or draft.format_version > 1):
        draft.table_uuid = fresh_uuid
    metadata, expired = _close(draft, base_location, now_ms)
    try:
        check_invariants(metadata, base)
    except SpecError as fault:
        raise ValidationFailed(fault.message) from fault
    return Applied(metadata=metadata, effective=tuple(draft.effective), expired_metadata_files=expired, changed=True)


def _initial_format_version(updates: tuple[u.TableUpdate, ...]) -> int:
    """A create commit starts at the version it names first, in an upgrade or in the property of that name."""
    for update in updates:
        if isinstance(update, u.UpgradeFormatVersion):
            table_fields.check_format_version(update.format_version)
            return update.format_version
    for update in updates:
        if isinstance(update, u.SetProperties) and "format-version" in update.updates:
            version = properties.integer(update.updates["format-version"])
            if version is None:
                raise ValidationFailed(f"Not a format version: {update.updates['format-version']!r}")
            table_fields.check_format_version(version)
            return version
    return DEFAULT_FORMAT_VERSION


def _close(
    draft: TableMetadataBuilder, base_location: str | None, now_ms: int
) -> tuple[TableMetadata, tuple[str, ...]]:
    """The finished document, and the metadata files that its log no longer names."""
    base = draft.base
    updated_ms = now_ms if base is None else max(base.last_updated_ms, now_ms)
    listed = draft.listed.remove(draft.removed_snapshot_ids) if draft.removed_snapshot_ids else draft.listed
    for snapshot in draft.added_snapshots.values():
        listed = listed.append(snapshot)
    table_fields.check_encryption_keys(draft, listed)
    metadata_log, expired = _metadata_log(draft, base_location)
    current_schema_id, default_spec_id, default_order_id, location = _settled_heads(draft)
    schema = draft.schemas.get(current_schema_id)
    if schema is not None:
        partition_specs.drop_unfit_specs(draft, schema, default_spec_id)
    metadata = TableMetadata(
        format_version=draft.format_version,
        table_uuid=draft.table_uuid,
        location=location,
        last_sequence_number=draft.last_sequence_number,
        last_updated_ms=updated_ms,
        last_column_id=draft.last_column_id,
        schemas=draft.schemas.settled(),
        current_schema_id=current_schema_id,
        partition_specs=draft.specs.items,
        default_spec_id=default_spec_id,
        last_partition_id=draft.last_partition_id,
        sort_orders=draft.orders.items,
        default_sort_order_id=default_order_id,
        properties=draft.properties,
        current_snapshot_id=draft.current_snapshot_id,
        snapshots=listed,
        snapshot_log=refs.settled_snapshot_log(draft, updated_ms),
        metadata_log=metadata_log,
        refs=draft.refs,
        statistics=tuple(file for files in draft.statistics.values() for file in files),
        partition_statistics=tuple(file for files in draft.partition_statistics.values() for file in files),
        next_row_id=draft.next_row_id,
        encryption_keys=_encryption_keys(draft),
        extra=_extra(draft),
    )
    return metadata, expired


def _encryption_keys(draft: TableMetadataBuilder) -> tuple[EncryptedKey, ...]:
    """Those of the base as they are while no update has changed them, though two have one id."""
    known = () if draft.base is None else draft.base.encryption_keys
    return known if {key.key_id: key for key in known} == draft.encryption_keys else (*draft.encryption_keys.values(),)


def _extra(draft: TableMetadataBuilder) -> Mapping[str, msgspec.Raw]:
    """The members that are not the spec's, with the highest schema id as soon as the list of schemas lacks it, and
    that of a spec which the table dropped on its own likewise."""
    extra = NO_EXTRA if draft.base is None else draft.base.extra
    if draft.remembered_spec_id >= 0:
        listed = max((spec.spec_id for spec in draft.specs), default=-1)
        extra = with_remembered(extra, draft.remembered_spec_id, listed, LAST_SPEC_ID)
    if not draft.removed_schema_ids and draft.remembered_schema_id < 0:
        return extra
    highest = max(draft.remembered_schema_id, *draft.removed_schema_ids, *draft.schemas.ids)
    return with_remembered(extra, highest, max(draft.schemas.ids, default=-1))


def _settled_heads(draft: TableMetadataBuilder) -> tuple[int, int, int, str]:
    """Current schema, default spec, default order and location. A new table must have been given each.

    On create the first schema, spec and order count as chosen, as the reference implementation has it.
    """
    schema_id = draft.current_schema_id if draft.current_schema_id is not None else _first(draft.schemas.ids)
    spec_id = draft.default_spec_id
    if spec_id is None:
        spec_id = _first(spec.spec_id for spec in draft.specs)
    order_id = draft.default_order_id
    if order_id is None:
        order_id = _first(order.order_id for order in draft.orders)
    if schema_id is None:
        raise ValidationFailed("Cannot create a table without a schema: the updates must add one")
    if spec_id is None:
        raise ValidationFailed("Cannot create a table without a partition spec: the updates must add one")
    if order_id is None:
        raise ValidationFailed("Cannot create a table without a sort order: the updates must add one")
    if draft.location is None:
        raise ValidationFailed("Cannot create a table without a location: the updates must set one")
    return schema_id, spec_id, order_id, draft.location


def _first(ids: Iterable[int]) -> int | None:
    return next(iter(ids), None)


def _metadata_log(draft: TableMetadataBuilder, base_location: str | None) -> tuple[MetadataLog, tuple[str, ...]]:
    if draft.base is None:
        return MetadataLog(), ()
    log = draft.base.metadata_log
    if base_location is not None:
        log = log.add(draft.base.last_updated_ms, base_location)
    log, dropped = log.trim(properties.previous_versions_kept(draft.properties))
    if not properties.deletes_previous_versions(draft.properties):
        return log, ()
    return log, tuple(entry.metadata_file for entry in dropped)
