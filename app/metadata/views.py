"""New views, and folding updates over a view (view spec; REST protocol: ViewUpdate).

Pure: time and the uuid of a new view are handed in. Column ids of views are the client's; nothing is reassigned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import msgspec

from app.errors import IllegalArgument, ValidationFailed
from app.iceberg import update as u
from app.iceberg.json.codec import INT32_MAX
from app.iceberg.location import strip_trailing_slash
from app.iceberg.metadata_file import check_codec
from app.iceberg.schema import Schema
from app.iceberg.schemas import GrowingSchemas, Schemas
from app.iceberg.view import (
    SUPPORTED_VIEW_FORMAT_VERSION,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)
from app.metadata.properties import integer

HISTORY_SIZE: Final = "version.history.num-entries"
HISTORY_SIZE_DEFAULT: Final = 10
DROP_DIALECT_ALLOWED: Final = "replace.drop-dialect.allowed"

_FIRST_VERSION_ID: Final = 1


class AppliedView(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a fold; without effective updates `changed` is False and `metadata` is the base."""

    metadata: ViewMetadata
    effective: tuple[u.ViewUpdate, ...]
    changed: bool


class _Draft:
    """Mutable state of one fold."""

    def __init__(self, base: ViewMetadata) -> None:
        self.base = base
        self.location = base.location
        self.properties = dict(base.properties)
        self.schemas = GrowingSchemas(base.schemas)
        self.versions = {version.version_id: version for version in base.versions}
        self.highest_version_id = max(self.versions, default=0)
        # The first version that behaves so.
        self.behaviours: dict[Hashable, int] = {}
        for version in base.versions:
            self.behaviours.setdefault(version.behaviour, version.version_id)
        self.current_version_id = base.current_version_id
        self.added_version_ids: set[int] = set()
        self.last_added_schema_id: int | None = None
        self.last_added_version_id: int | None = None
        self.assigned_schema_ids: dict[int, int] = {}
        self.effective: list[u.ViewUpdate] = []


def new_view(
    schema: Schema,
    version: ViewVersion,
    location: str,
    properties: Mapping[str, str],
    now_ms: int,
    uuid: str,
) -> ViewMetadata:
    """The first state of a view. Version 1 and schema 0, whatever the client numbered; times in epoch milliseconds.

    IllegalArgument for two queries in one dialect, ValidationFailed for what else cannot be.
    """
    _check_dialects(version)
    check_codec(properties)
    _check_history_size(properties)
    location = strip_trailing_slash(location)
    if not location:
        raise ValidationFailed("View location must not be empty")
    first = msgspec.structs.replace(version, version_id=_FIRST_VERSION_ID, schema_id=0)
    return ViewMetadata(
        view_uuid=uuid,
        format_version=SUPPORTED_VIEW_FORMAT_VERSION,
        location=location,
        schemas=Schemas().append(schema.with_id(0)),
        current_version_id=first.version_id,
        versions=(first,),
        version_log=(VersionLogEntry(timestamp_ms=min(first.timestamp_ms, now_ms), version_id=first.version_id),),
        properties=dict(properties),
    )


def _assign_uuid(draft: _Draft, update: u.AssignUuid) -> None:
    if update.uuid.lower() != draft.base.view_uuid.lower():
        raise ValidationFailed(f"Cannot reassign uuid: {draft.base.view_uuid} to {update.uuid}")


def _upgrade(draft: _Draft, update: u.UpgradeFormatVersion) -> None:
    version = update.format_version
    if version < draft.base.format_version:
        raise ValidationFailed(f"Cannot downgrade v{draft.base.format_version} view to v{version}")
    if version > SUPPORTED_VIEW_FORMAT_VERSION:
        raise ValidationFailed(f"Unsupported view format version: {version}")


def _add_schema(draft: _Draft, update: u.AddSchema) -> None:
    """List the schema, or resolve to the equal one that is listed already."""
    known = draft.schemas.same_as(update.schema)
    if known is None:
        named = max((version.schema_id for version in draft.base.versions), default=-1)
        known = max(draft.schemas.highest_id, named) + 1
        if known > INT32_MAX:
            raise ValidationFailed("Cannot add a schema: no schema-id is left")
        draft.schemas.append(update.schema.with_id(known))
        draft.effective.append(update)
    draft.last_added_schema_id = known
    # 0 is what clients send that do not number schemas at all.
    if update.sent_id and update.sent_id != known:
        draft.assigned_schema_ids[update.sent_id] = known


def _set_location(draft: _Draft, update: u.SetLocation) -> None:
    location = strip_trailing_slash(update.location)
    if not location:
        raise ValidationFailed("View location must not be empty")
    if location != draft.location:
        draft.location = location
        draft.effective.append(update)


def _set_properties(draft: _Draft, update: u.SetProperties) -> None:
    check_codec(update.updates, draft.properties)
    _check_history_size(update.updates)
    if any(draft.properties.get(key) != value for key, value in update.updates.items()):
        draft.properties.update(update.updates)
        draft.effective.append(update)


def _remove_properties(draft: _Draft, update: u.RemoveProperties) -> None:
    if [key for key in update.removals if draft.properties.pop(key, None) is not None]:
        draft.effective.append(update)


def _add_version(draft: _Draft, update: u.AddViewVersion) -> None:
    """List the version, or resolve to one that behaves the same; its number is the server's when taken."""
    version = msgspec.structs.replace(update.view_version, schema_id=_schema_of(draft, update.view_version))
    known = draft.behaviours.get(version.behaviour)
    if known is not None:
        draft.last_added_version_id = known
        return
    _check_dialects(version)
    highest = draft.highest_version_id
    if version.version_id <= highest:
        if highest == INT32_MAX:
            raise ValidationFailed("Cannot add a view version: no version-id is left")
        version = msgspec.structs.replace(version, version_id=highest + 1)
    draft.versions[version.version_id] = version
    draft.behaviours[version.behaviour] = draft.highest_version_id = version.version_id
    draft.added_version_ids.add(version.version_id)
    draft.last_added_version_id = version.version_id
    draft.effective.append(u.AddViewVersion(version))


def _schema_of(draft: _Draft, version: ViewVersion) -> int:
    sent = version.schema_id
    if sent == u.LAST_ADDED:
        if draft.last_added_schema_id is None:
            raise ValidationFailed("Cannot set last added schema: no schema has been added")
        return draft.last_added_schema_id
    schema_id = draft.assigned_schema_ids.get(sent, sent)
    if schema_id not in draft.schemas:
        raise ValidationFailed(f"Cannot add version with unknown schema: {sent}")
    return schema_id


def _set_current_version(draft: _Draft, update: u.SetCurrentViewVersion) -> None:
    version_id = update.view_version_id
    if version_id == u.LAST_ADDED:
        if draft.last_added_version_id is None:
            raise ValidationFailed("Cannot set last version id: no current version id has been set")
        version_id = draft.last_added_version_id
    if version_id not in draft.versions:
        raise ValidationFailed(f"Cannot set current version to unknown version: {version_id}")
    if version_id != draft.current_version_id:
        draft.current_version_id = version_id
        draft.effective.append(update)


_APPLY: dict[type[Any], Callable[[_Draft, Any], None]] = {
    u.AssignUuid: _assign_uuid,
    u.UpgradeFormatVersion: _upgrade,
    u.AddSchema: _add_schema,
    u.SetLocation: _set_location,
    u.SetProperties: _set_properties,
    u.RemoveProperties: _remove_properties,
    u.AddViewVersion: _add_version,
    u.SetCurrentViewVersion: _set_current_version,
}


def apply(base: ViewMetadata, updates: Iterable[u.ViewUpdate], now_ms: int) -> AppliedView:
    """Apply `updates` in order to `base`; `now_ms` is the time of the commit in epoch milliseconds.

    IllegalArgument for two queries in one dialect, ValidationFailed for whatever else may not be applied.
    """
    draft = _Draft(base)
    for update in updates:
        _APPLY[type(update)](draft, update)
    if not draft.effective:
        return AppliedView(metadata=base, effective=(), changed=False)
    _check_dropped_dialects(draft)
    log = _version_log(draft, now_ms)
    kept = _kept_versions(draft)
    if len(kept) != len(draft.versions):
        log = _without_gaps(log, kept)
    metadata = msgspec.structs.replace(
        base,
        location=draft.location,
        properties=draft.properties,
        schemas=draft.schemas.settled(),
        versions=tuple(version for version in draft.versions.values() if version.version_id in kept),
        current_version_id=draft.current_version_id,
        version_log=log,
    )
    return AppliedView(metadata=metadata, effective=tuple(draft.effective), changed=True)


def _version_log(draft: _Draft, now_ms: int) -> tuple[VersionLogEntry, ...]:
    """One more entry if the current version is another one now; times rise and do not pass `now_ms`.

    A version of this commit is logged with its own time, one that comes back with the time of the commit.
    """
    log, current = draft.base.version_log, draft.current_version_id
    if current == draft.base.current_version_id:
        return log
    created_ms = draft.versions[current].timestamp_ms if current in draft.added_version_ids else now_ms
    timestamp_ms = min(created_ms, now_ms)
    if log:
        timestamp_ms = max(timestamp_ms, log[-1].timestamp_ms)
    return (*log, VersionLogEntry(timestamp_ms=timestamp_ms, version_id=current))


def _kept_versions(draft: _Draft) -> set[int]:
    """Versions within the history size, newest ids first; those of this commit and the current one always stay."""
    kept = {*draft.added_version_ids, draft.current_version_id}
    size = max(len(kept), _history_size(draft.properties))
    for version_id in sorted(draft.versions, reverse=True):
        if len(kept) >= size:
            break
        kept.add(version_id)
    return kept


def _without_gaps(log: tuple[VersionLogEntry, ...], kept: set[int]) -> tuple[VersionLogEntry, ...]:
    cut = max((at for at, entry in enumerate(log, 1) if entry.version_id not in kept), default=0)
    return log[cut:]


def _check_dialects(version: ViewVersion) -> None:
    seen: set[str] = set()
    for item in version.representations:
        dialect = (item.dialect or "").lower()
        if item.is_sql and dialect in seen:
            raise IllegalArgument(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        seen.add(dialect)


def _check_dropped_dialects(draft: _Draft) -> None:
    if draft.properties.get(DROP_DIALECT_ALLOWED, "false").lower() == "true":
        return
    before = draft.base.current_version.dialects
    after = draft.versions[draft.current_version_id].dialects
    if not before <= after:
        raise ValidationFailed(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false): "
            f"previous dialects {sorted(before)}, new dialects {sorted(after)}"
        )


def _check_history_size(properties: Mapping[str, str]) -> None:
    if HISTORY_SIZE not in properties:
        return
    size = integer(properties[HISTORY_SIZE])
    if size is None or size <= 0:
        raise ValidationFailed(f"{HISTORY_SIZE} must be positive but was {properties[HISTORY_SIZE]}")


def _history_size(properties: Mapping[str, str]) -> int:
    size = integer(properties.get(HISTORY_SIZE))
    return HISTORY_SIZE_DEFAULT if size is None or size <= 0 else size
