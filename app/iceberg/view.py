"""View metadata (view spec). Parsing invents and repairs nothing; unknown members survive."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.errors import SpecError
from app.iceberg.json.chunked_text import joined
from app.iceberg.json.codec import (
    NO_EXTRA,
    Json,
    as_object,
    as_str_map,
    encode,
    extra_of,
    required_int32,
    required_int64,
    required_list,
    required_str,
)
from app.iceberg.json.document import Document
from app.iceberg.schema import Schema
from app.iceberg.schemas import Schemas, parse_schemas
from app.iceberg.view_version import (
    ViewRepresentation,
    ViewVersion,
    parse_view_version,
    view_version_from_json,
    view_version_to_json,
)

__all__ = [
    "SUPPORTED_VIEW_FORMAT_VERSION",
    "VersionLogEntry",
    "ViewMetadata",
    "ViewRepresentation",
    "ViewVersion",
    "parse_view_metadata",
    "render_view_metadata",
    "view_version_from_json",
    "view_version_to_json",
]

SUPPORTED_VIEW_FORMAT_VERSION = 1

_LOG_KEYS = frozenset({"timestamp-ms", "version-id"})
_KEYS = frozenset(
    {
        "view-uuid",
        "format-version",
        "location",
        "schemas",
        "current-version-id",
        "versions",
        "version-log",
        "properties",
    }
)


class VersionLogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """When which version became the current one (epoch milliseconds)."""

    timestamp_ms: int
    version_id: int
    extra: Mapping[str, Json] = NO_EXTRA


class ViewMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a view. The current version is always listed."""

    view_uuid: str
    format_version: int
    location: str
    schemas: Schemas
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[VersionLogEntry, ...]
    properties: Mapping[str, str]
    extra: Mapping[str, msgspec.Raw] = NO_EXTRA

    def version(self, version_id: int) -> ViewVersion | None:
        return next((item for item in self.versions if item.version_id == version_id), None)

    @property
    def current_version(self) -> ViewVersion:
        found = self.version(self.current_version_id)
        if found is None:
            raise SpecError(f"Cannot find current version {self.current_version_id} in view versions")
        return found

    @property
    def schema(self) -> Schema:
        """The schema of the current version; SpecError when it is not listed."""
        schema_id = self.current_version.schema_id
        found = self.schemas.get(schema_id)
        if found is None:
            raise SpecError(f"Cannot find current schema with id {schema_id} in schemas")
        return found


def _parse_log(values: list[Json], path: str) -> tuple[VersionLogEntry, ...]:
    entries = []
    for at, value in enumerate(values):
        here = f"{path}[{at}]"
        obj = as_object(value, here)
        entries.append(
            VersionLogEntry(
                timestamp_ms=required_int64(obj, "timestamp-ms", here),
                version_id=required_int32(obj, "version-id", here),
                extra=extra_of(obj, _LOG_KEYS),
            )
        )
    return tuple(entries)


def parse_view_metadata(data: bytes, path: str = "$") -> ViewMetadata:
    """A view from the JSON text of its metadata file. SpecError, with the JSON path, for what no reader could load."""
    document = Document(data, path)
    format_version = document.required("format-version", required_int32)
    if not 0 < format_version <= SUPPORTED_VIEW_FORMAT_VERSION:
        raise SpecError(f"Unsupported format version: {format_version}", f"{path}.format-version")
    versions = tuple(
        parse_view_version(item, f"{path}.versions[{at}]")
        for at, item in enumerate(document.required("versions", required_list))
    )
    if len({version.version_id for version in versions}) != len(versions):
        raise SpecError("Two view versions have the same version-id", f"{path}.versions")
    schemas = document.raw("schemas")
    if schemas is None:
        raise SpecError("Cannot parse missing field: schemas", path)
    metadata = ViewMetadata(
        view_uuid=document.required("view-uuid", required_str),
        format_version=format_version,
        location=document.required("location", required_str),
        schemas=parse_schemas(schemas, f"{path}.schemas"),
        current_version_id=document.required("current-version-id", required_int32),
        versions=versions,
        version_log=_parse_log(document.required("version-log", required_list), f"{path}.version-log"),
        properties=as_str_map(document.value("properties", {}), f"{path}.properties"),
        extra=document.extra(_KEYS),
    )
    if metadata.version(metadata.current_version_id) is None:
        raise SpecError(
            f"Cannot find current version {metadata.current_version_id} in view versions", f"{path}.current-version-id"
        )
    return metadata


def render_view_metadata(metadata: ViewMetadata) -> bytes:
    """The JSON text. `properties` only if there are any, as every writer does it."""
    head: dict[str, Json] = {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
    }
    if metadata.properties:
        head["properties"] = dict(metadata.properties)
    head["schemas"] = msgspec.Raw(joined(metadata.schemas.parts()))
    head["current-version-id"] = metadata.current_version_id
    head["versions"] = [view_version_to_json(version) for version in metadata.versions]
    head["version-log"] = [
        {"timestamp-ms": entry.timestamp_ms, "version-id": entry.version_id, **entry.extra}
        for entry in metadata.version_log
    ]
    return encode({**head, **metadata.extra})
