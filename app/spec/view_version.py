"""View versions and their representations (view spec: Versions, Representations). Times are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec

from app.errors import SpecError
from app.spec.codec import (
    NO_EXTRA,
    Json,
    as_object,
    as_str_list,
    as_str_map,
    encode,
    extra_of,
    optional_str,
    required,
    required_int32,
    required_int64,
    required_list,
    required_str,
)
from app.spec.typed import drop_nulls

SQL = "sql"

_VERSION_KEYS = frozenset(
    {
        "version-id",
        "timestamp-ms",
        "schema-id",
        "summary",
        "representations",
        "default-catalog",
        "default-namespace",
    }
)
_SQL_KEYS = frozenset({"type", "sql", "dialect"})


class ViewRepresentation(msgspec.Struct, frozen=True, kw_only=True):
    """One way to express the view. Of a type other than `sql` only the type is understood; the rest is in `extra`."""

    type: str
    sql: str | None = None
    dialect: str | None = None
    extra: Mapping[str, Json] = NO_EXTRA

    @property
    def is_sql(self) -> bool:
        return self.type.lower() == SQL


class ViewVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One definition of a view; never changed once it exists."""

    version_id: int
    timestamp_ms: int
    schema_id: int
    summary: Mapping[str, str]
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    extra: Mapping[str, Json] = NO_EXTRA

    @property
    def dialects(self) -> frozenset[str]:
        """SQL dialects in lower case."""
        return frozenset(item.dialect.lower() for item in self.representations if item.is_sql and item.dialect)

    @property
    def behaviour(self) -> Hashable:
        """Equal for versions that differ in version id and time of creation alone."""
        return (
            self.schema_id,
            frozenset(self.summary.items()),
            tuple((one.type, one.sql, one.dialect, _text(one.extra)) for one in self.representations),
            self.default_catalog,
            self.default_namespace,
            _text(self.extra),
        )

    def behaves_like(self, other: ViewVersion) -> bool:
        """Equal but for version id and time of creation."""
        return self.behaviour == other.behaviour


def _text(extra: Mapping[str, Json]) -> bytes:
    return encode(dict(sorted(extra.items()))) if extra else b""


def _parse_representation(value: Json, path: str) -> ViewRepresentation:
    obj = as_object(value, path)
    kind = required_str(obj, "type", path)
    if kind.lower() != SQL:
        return ViewRepresentation(type=kind, extra={key: item for key, item in obj.items() if key != "type"})
    return ViewRepresentation(
        type=kind,
        sql=required_str(obj, "sql", path),
        dialect=required_str(obj, "dialect", path),
        extra=extra_of(obj, _SQL_KEYS),
    )


def parse_view_version(value: Json, path: str = "$") -> ViewVersion:
    """A stored version from decoded JSON; SpecError for what no reader could load."""
    obj = as_object(value, path)
    listed = required_list(obj, "representations", path)
    return ViewVersion(
        version_id=required_int32(obj, "version-id", path),
        timestamp_ms=required_int64(obj, "timestamp-ms", path),
        schema_id=required_int32(obj, "schema-id", path),
        summary=as_str_map(required(obj, "summary", path), f"{path}.summary"),
        representations=tuple(
            _parse_representation(item, f"{path}.representations[{at}]") for at, item in enumerate(listed)
        ),
        default_namespace=as_str_list(required(obj, "default-namespace", path), f"{path}.default-namespace"),
        default_catalog=optional_str(obj, "default-catalog", path),
        extra=extra_of(obj, _VERSION_KEYS),
    )


def view_version_from_json(value: Json, path: str) -> ViewVersion:
    """What a client sends: nulls are dropped, and a representation must be SQL (readers know no other). There must be
    one: a view that says nothing in any dialect is nothing that an engine could expand."""
    version = parse_view_version(drop_nulls(value, path), path)
    if not version.representations:
        raise SpecError("Cannot create or replace a view without specifying a query", f"{path}.representations")
    for at, item in enumerate(version.representations):
        if not item.is_sql:
            raise SpecError(f"Unsupported view representation: {item.type}", f"{path}.representations[{at}].type")
    return version


def view_version_to_json(version: ViewVersion) -> dict[str, Json]:
    out: dict[str, Json] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
    }
    if version.default_catalog is not None:
        out["default-catalog"] = version.default_catalog
    out["default-namespace"] = list(version.default_namespace)
    out["representations"] = [_representation_to_json(item) for item in version.representations]
    out.update(version.extra)
    return out


def _representation_to_json(item: ViewRepresentation) -> dict[str, Json]:
    out: dict[str, Json] = {"type": item.type}
    if item.sql is not None:
        out["sql"] = item.sql
    if item.dialect is not None:
        out["dialect"] = item.dialect
    out.update(item.extra)
    return out
