"""Updates of a table's single-valued members: uuid, format version, location, encryption keys."""

from __future__ import annotations

from app.commit.draft import TableDraft
from app.errors import ValidationFailed
from app.spec.location import strip_trailing_slash
from app.spec.table import SUPPORTED_FORMAT_VERSION
from app.spec.update import (
    AddEncryptionKey,
    AssignUuid,
    RemoveEncryptionKey,
    SetLocation,
    UpgradeFormatVersion,
)


def assign_uuid(draft: TableDraft, update: AssignUuid) -> None:
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


def upgrade_format_version(draft: TableDraft, update: UpgradeFormatVersion) -> None:
    """Nothing is rewritten: existing snapshots keep sequence number 0 (from v1) and have no row ids (before v3)."""
    version = update.format_version
    check_format_version(version)
    if version < draft.format_version:
        raise ValidationFailed(f"Cannot downgrade v{draft.format_version} table to v{version}")
    if version != draft.format_version:
        draft.format_version = version
        draft.record(update)


def set_location(draft: TableDraft, update: SetLocation) -> None:
    location = strip_trailing_slash(update.location)
    if not location:
        raise ValidationFailed("Table location must not be empty")
    if location != draft.location:
        draft.location = location
        draft.record(update)


def add_encryption_key(draft: TableDraft, update: AddEncryptionKey) -> None:
    """A key-id that is listed already keeps its key."""
    if update.encryption_key.key_id not in draft.encryption_keys:
        draft.encryption_keys[update.encryption_key.key_id] = update.encryption_key
        draft.record(update)


def remove_encryption_key(draft: TableDraft, update: RemoveEncryptionKey) -> None:
    if draft.encryption_keys.pop(update.key_id, None) is not None:
        draft.record(update)
