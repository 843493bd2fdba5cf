"""Updates of a table's properties, and the properties that the catalog itself obeys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from app.errors import ValidationFailed
from app.iceberg.json.codec import INT32_MAX, INT32_MIN
from app.iceberg.metadata_file import check_codec
from app.iceberg.update import RemoveProperties, SetProperties
from app.metadata.builder import TableMetadataBuilder

PREVIOUS_VERSIONS_MAX: Final = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT: Final = 100
GC_ENABLED: Final = "gc.enabled"
DELETE_AFTER_COMMIT: Final = "write.metadata.delete-after-commit.enabled"

RESERVED: Final = {
    "format-version": "upgrade-format-version",
    "uuid": "assign-uuid",
    "snapshot-count": "add-snapshot",
    "current-snapshot-id": "set-snapshot-ref",
    "current-snapshot-summary": "add-snapshot",
    "current-snapshot-timestamp-ms": "add-snapshot",
    "current-schema": "set-current-schema",
    "default-partition-spec": "set-default-spec",
    "default-sort-order": "set-default-sort-order",
}
"""Names of what metadata holds in other members, with the update that changes it. Creation reads or drops them."""

_INTEGER = re.compile(r"[+-]?[0-9]+")


def integer(text: str | None) -> int | None:
    """A 32-bit integer as Java reads it, or None."""
    if text is None or not _INTEGER.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if INT32_MIN <= number <= INT32_MAX else None


def check_integer(properties: Mapping[str, str], key: str) -> None:
    """ValidationFailed when the property is set to something that every later commit would stumble over."""
    if key in properties and integer(properties[key]) is None:
        raise ValidationFailed(f"Table property {key} must have integer value: {properties[key]!r}")


def set_properties(draft: TableMetadataBuilder, update: SetProperties) -> None:
    check_integer(update.updates, PREVIOUS_VERSIONS_MAX)
    check_codec(update.updates, draft.properties)
    updates = update.updates
    if draft.creating:
        updates = {key: value for key, value in updates.items() if key not in RESERVED}
    reserved = next((key for key in updates if key in RESERVED), None)
    if reserved is not None:
        raise ValidationFailed(
            f"Cannot set property {reserved}: the name is reserved for what the table's metadata itself holds. "
            f"Use the update {RESERVED[reserved]} instead"
        )
    if any(draft.properties.get(key) != value for key, value in updates.items()):
        draft.properties.update(updates)
        draft.record(update)


def remove_properties(draft: TableMetadataBuilder, update: RemoveProperties) -> None:
    """Absent keys are ignored."""
    known = [key for key in update.removals if draft.properties.pop(key, None) is not None]
    if known:
        draft.record(update)


def previous_versions_kept(properties: Mapping[str, str]) -> int:
    """How many entries the metadata log may have, at least one."""
    number = integer(properties.get(PREVIOUS_VERSIONS_MAX))
    return max(1, PREVIOUS_VERSIONS_MAX_DEFAULT if number is None else number)


def may_delete(properties: Mapping[str, str]) -> bool:
    """Whether files of the table may be deleted at all: `gc.enabled=false` says that others may need them."""
    return properties.get(GC_ENABLED, "true").lower() == "true"


def deletes_previous_versions(properties: Mapping[str, str]) -> bool:
    """Whether metadata files that fall out of the log are to be deleted."""
    return properties.get(DELETE_AFTER_COMMIT, "false").lower() == "true"
