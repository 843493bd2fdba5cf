"""Updates of a table's single-valued members: uuid, format version, location, encryption keys."""

from __future__ import annotations

from collections.abc import Iterable

from app.errors import ValidationFailed
from app.iceberg.location import strip_trailing_slash
from app.iceberg.snapshot import Snapshot
from app.iceberg.table import SUPPORTED_FORMAT_VERSION
from app.iceberg.update import (
    AddEncryptionKey,
    AssignUuid,
    RemoveEncryptionKey,
    SetLocation,
    UpgradeFormatVersion,
)
from app.metadata.builder import TableMetadataBuilder


def assign_uuid(draft: TableMetadataBuilder, update: AssignUuid) -> None:
    """A table keeps its uuid for life: writers and caches recognise it by that."""
    if draft.table_uuid is not None and draft.table_uuid.lower() == update.uuid.lower():
        return
    if draft.table_uuid is not None and not draft.creating:
        raise ValidationFailed(f"Cannot reassign uuid of an existing table: {draft.table_uuid} to {update.uuid}")
    draft.table_uuid = update.uuid
    draft.record(update)


def check_format_version(version: int) -> None:
    """ValidationFailed for a version that this server does not write."""
    if version > SUPPORTED_FORMAT_VERSION:
        raise ValidationFailed(
            f"Cannot upgrade table to unsupported format version: v{version} "
            f"(supported: v1 to v{SUPPORTED_FORMAT_VERSION})"
        )
    if version < 1:
        raise ValidationFailed(f"Invalid format version: v{version} (supported: v1 to v{SUPPORTED_FORMAT_VERSION})")


def upgrade_format_version(draft: TableMetadataBuilder, update: UpgradeFormatVersion) -> None:
    """Nothing is rewritten: existing snapshots keep sequence number 0 (from v1) and have no row ids (before v3)."""
    version = update.format_version
    check_format_version(version)
    if version < draft.format_version:
        raise ValidationFailed(f"Cannot downgrade v{draft.format_version} table to v{version}")
    if version != draft.format_version:
        draft.format_version = version
        draft.record(update)


def set_location(draft: TableMetadataBuilder, update: SetLocation) -> None:
    location = strip_trailing_slash(update.location)
    if not location:
        raise ValidationFailed("Table location must not be empty")
    if location != draft.location:
        draft.location = location
        draft.record(update)


def add_encryption_key(draft: TableMetadataBuilder, update: AddEncryptionKey) -> None:
    """A key-id that is listed already keeps its key."""
    if update.encryption_key.key_id not in draft.encryption_keys:
        draft.encryption_keys[update.encryption_key.key_id] = update.encryption_key
        draft.record(update)


def remove_encryption_key(draft: TableMetadataBuilder, update: RemoveEncryptionKey) -> None:
    """Whether something still needs the key is judged when all updates are applied (`check_encryption_keys`)."""
    if draft.encryption_keys.pop(update.key_id, None) is not None:
        draft.removed_key_ids.add(update.key_id)
        draft.record(update)


def check_encryption_keys(draft: TableMetadataBuilder, retained: Iterable[Snapshot]) -> None:
    """ValidationFailed when a snapshot that this commit adds names a key that is not there, or a key that it removes is
    still needed by one of the `retained` snapshots or by another key: what they encrypt could never be read again."""
    for snapshot in draft.added_snapshots.values():
        if snapshot.key_id is not None and snapshot.key_id not in draft.encryption_keys:
            raise ValidationFailed(
                f"Cannot add snapshot {snapshot.snapshot_id}: it names encryption key {snapshot.key_id!r}, which the "
                "table does not have. Add the key in the same commit (add-encryption-key)"
            )
    gone = draft.removed_key_ids - draft.encryption_keys.keys()
    if not gone:
        return
    for snapshot in retained:
        if snapshot.key_id in gone:
            raise ValidationFailed(
                f"Cannot remove encryption key {snapshot.key_id!r}: snapshot {snapshot.snapshot_id} is encrypted with "
                "it. Remove the snapshot first, or in the same commit"
            )
    for key in draft.encryption_keys.values():
        if key.encrypted_by_id in gone:
            raise ValidationFailed(
                f"Cannot remove encryption key {key.encrypted_by_id!r}: key {key.key_id!r} is encrypted by it. "
                "Remove that key in the same commit, or add it again encrypted by another one"
            )
