"""Partition specs, bound to ids and as clients request them (spec: Partitioning, Appendix C).

A spec that exists here can be loaded: names are set and unique within it. Whether it fits a schema is what
`check_spec` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from app.errors import SpecError, ValidationFailed
from app.iceberg.json.codec import (
    NO_EXTRA,
    Json,
    as_int32_list,
    as_list,
    as_object,
    extra_of,
    optional_int32,
    required,
    required_int32,
    required_str,
)
from app.iceberg.schema import Schema
from app.iceberg.transforms import Transform, parse_transform
from app.iceberg.types import StructType, is_primitive

FIRST_PARTITION_FIELD_ID: Final = 1000
HIGHEST_PARTITION_FIELD_ID: Final = 2147483447
"""Manifests hold partition fields beside reserved ones, so the end of the range is kept free as it is for columns."""

MULTIPLE_SOURCES_VERSION: Final = 3
"""The format version from which a transform may be of several columns (`source-ids`)."""

_SPEC_KEYS: Final = frozenset({"spec-id", "fields"})
_FIELD_KEYS: Final = frozenset({"source-id", "source-ids", "field-id", "name", "transform"})


class PartitionField(msgspec.Struct, frozen=True):
    """`source_ids` has one element, or several for a multi-argument transform (format version 3)."""

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform
    extra: Mapping[str, Any] = NO_EXTRA

    @property
    def source_id(self) -> int:
        """The first source."""
        return self.source_ids[0]

    def equivalent(self, other: PartitionField | UnboundPartitionField) -> bool:
        """Same sources, transform and name; the field id does not matter."""
        return _meaning(self) == _meaning(other)

    def __str__(self) -> str:
        return f"{self.field_id}: {self.name}: {self.transform}({', '.join(map(str, self.source_ids))})"


class UnboundPartitionField(msgspec.Struct, frozen=True):
    """A field as requested: the server assigns `field_id` when it is None."""

    source_ids: tuple[int, ...]
    field_id: int | None
    name: str
    transform: Transform
    extra: Mapping[str, Any] = NO_EXTRA

    @property
    def source_id(self) -> int:
        """The first source."""
        return self.source_ids[0]


def _check_names_unique(fields: Iterable[PartitionField | UnboundPartitionField]) -> None:
    seen: set[str] = set()
    for part in fields:
        if not part.name:
            raise SpecError("Cannot use empty partition name")
        if part.name in seen:
            raise SpecError(f"Cannot use partition name more than once: {part.name}")
        seen.add(part.name)


class PartitionSpec(msgspec.Struct, frozen=True):
    """Raises SpecError for an empty or repeated partition name."""

    spec_id: int
    fields: tuple[PartitionField, ...] = ()
    extra: Mapping[str, Any] = NO_EXTRA

    def __post_init__(self) -> None:
        _check_names_unique(self.fields)

    @property
    def is_unpartitioned(self) -> bool:
        """Also when every field is void: such a spec puts all files into one partition."""
        return all(part.transform.is_void for part in self.fields)

    @property
    def highest_field_id(self) -> int:
        """999 without fields."""
        return max((part.field_id for part in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)


class UnboundPartitionSpec(msgspec.Struct, frozen=True):
    """A spec as requested. Raises SpecError for an empty or repeated partition name."""

    spec_id: int | None = None
    fields: tuple[UnboundPartitionField, ...] = ()
    extra: Mapping[str, Any] = NO_EXTRA

    def __post_init__(self) -> None:
        _check_names_unique(self.fields)


UNPARTITIONED: Final = PartitionSpec(0)


def _meaning(part: PartitionField | UnboundPartitionField) -> tuple[tuple[int, ...], Transform, str]:
    return part.source_ids, part.transform, part.name


def meaning_of_spec(spec: PartitionSpec | UnboundPartitionSpec) -> tuple[object, ...]:
    """Equal for specs that are `compatible`; can be hashed."""
    return tuple(map(_meaning, spec.fields))


def compatible(one: PartitionSpec | UnboundPartitionSpec, other: PartitionSpec | UnboundPartitionSpec) -> bool:
    """Whether both partition alike: equal sources, transforms and names in order; ids do not matter."""
    return meaning_of_spec(one) == meaning_of_spec(other)


def parse_partition_spec(json: Json, path: str = "$") -> PartitionSpec:
    """A spec as stored. Field ids may be missing on all fields (old tables): then they count from 1000."""
    obj = as_object(json, path)
    spec_id = required_int32(obj, "spec-id", path)
    return parse_partition_fields(required(obj, "fields", path), spec_id, f"{path}.fields", extra_of(obj, _SPEC_KEYS))


def parse_partition_fields(
    json: Json, spec_id: int, path: str = "$", extra: Mapping[str, Any] = NO_EXTRA
) -> PartitionSpec:
    """A spec from its bare list of fields, as the `partition-spec` of format version 1 has it."""
    unbound = _parse_fields(json, path)
    missing = sum(part.field_id is None for part in unbound)
    if missing not in (0, len(unbound)):
        raise SpecError(f"Cannot parse spec with missing field IDs: {missing} missing of {len(unbound)} fields", path)
    fields = tuple(
        PartitionField(
            part.source_ids,
            FIRST_PARTITION_FIELD_ID + at if part.field_id is None else part.field_id,
            part.name,
            part.transform,
            part.extra,
        )
        for at, part in enumerate(unbound)
    )
    try:
        return PartitionSpec(spec_id, fields, extra)
    except SpecError as fault:
        raise SpecError(fault.reason, path) from None


def parse_unbound_partition_spec(json: Json, path: str = "$") -> UnboundPartitionSpec:
    """A spec as requested: spec id and field ids are optional."""
    obj = as_object(json, path)
    fields = _parse_fields(required(obj, "fields", path), f"{path}.fields")
    try:
        return UnboundPartitionSpec(optional_int32(obj, "spec-id", path), fields, extra_of(obj, _SPEC_KEYS))
    except SpecError as fault:
        raise SpecError(fault.reason, path) from None


def _parse_fields(json: Json, path: str) -> tuple[UnboundPartitionField, ...]:
    return tuple(_parse_field(item, f"{path}[{at}]") for at, item in enumerate(as_list(json, path)))


def _parse_field(json: Json, path: str) -> UnboundPartitionField:
    obj = as_object(json, path)
    return UnboundPartitionField(
        parse_source_ids(obj, path),
        optional_int32(obj, "field-id", path),
        required_str(obj, "name", path),
        parse_transform(required_str(obj, "transform", path), f"{path}.transform"),
        extra_of(obj, _FIELD_KEYS),
    )


def parse_source_ids(obj: Mapping[str, Json], path: str) -> tuple[int, ...]:
    """The sources of a partition or sort field: `source-id`, or `source-ids`, or both if they agree."""
    single = optional_int32(obj, "source-id", path)
    several = obj.get("source-ids")
    if several is None:
        if single is None:
            raise SpecError("Cannot parse missing field: source-id", path)
        return (single,)
    source_ids = as_int32_list(several, f"{path}.source-ids")
    if not source_ids:
        raise SpecError("Cannot parse an empty list of source ids", f"{path}.source-ids")
    if single is not None and source_ids != (single,):
        raise SpecError(f"source-id {single} and source-ids {list(source_ids)} contradict each other", path)
    return source_ids


def source_ids_to_json(source_ids: tuple[int, ...]) -> dict[str, Json]:
    """`source-id` for one source, else `source-ids`."""
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def partition_fields_to_json(
    fields: Iterable[PartitionField | UnboundPartitionField],
) -> list[dict[str, Json]]:
    """The bare list of fields; an unassigned field id is left out."""
    out = []
    for part in fields:
        item: dict[str, Json] = {"name": part.name, "transform": str(part.transform)}
        item.update(source_ids_to_json(part.source_ids))
        if part.field_id is not None:
            item["field-id"] = part.field_id
        item.update(part.extra)
        out.append(item)
    return out


def partition_spec_to_json(spec: PartitionSpec) -> dict[str, Json]:
    return {"spec-id": spec.spec_id, "fields": partition_fields_to_json(spec.fields), **spec.extra}


def unbound_partition_spec_to_json(spec: UnboundPartitionSpec) -> dict[str, Json]:
    """As `partition_spec_to_json`; an unassigned spec id is left out."""
    out: dict[str, Json] = {} if spec.spec_id is None else {"spec-id": spec.spec_id}
    out["fields"] = partition_fields_to_json(spec.fields)
    out.update(spec.extra)
    return out


def check_spec(spec: PartitionSpec | UnboundPartitionSpec, schema: Schema) -> None:
    """Whether `spec` may partition data of `schema`; void fields are exempt but for their names.

    Raises ValidationFailed: a source is missing, not primitive, not accepted by the transform or within a list or
    map; or a partition name is taken by another column (`check_partition_names`).
    """
    check_partition_names(spec, schema)
    for part in spec.fields:
        if part.transform.is_void:
            continue
        _check_count(part)
        for source_id in part.source_ids:
            _check_source(part, source_id, schema)


def check_retained_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Whether a spec that is kept for older files can be bound to `schema`: a source that is gone is no obstacle.

    One that is there must do as for `check_spec`: the reference implementation binds every listed spec to the current
    schema, the transform by its source's type, when it loads a table (1.1 and later; before, a missing source failed
    as well), and its workers check the rest when they unpack the table. Raises ValidationFailed.
    """
    for part in spec.fields:
        if part.transform.is_void:
            continue
        _check_count(part)
        for source_id in part.source_ids:
            if source_id in schema.by_id:
                _check_source(part, source_id, schema)


def _check_count(part: PartitionField | UnboundPartitionField) -> None:
    if len(part.source_ids) > 1 and not part.transform.takes_several:
        raise ValidationFailed(f"Transform {part.transform} of partition field {part.name} takes one source")


class HasSources(Protocol):
    """A partition or sort field."""

    @property
    def source_ids(self) -> tuple[int, ...]: ...
    @property
    def transform(self) -> Transform: ...


def check_version_of_sources(fields: Iterable[HasSources], format_version: int) -> None:
    """ValidationFailed for a transform of several columns before the format version that has them."""
    for part in fields if format_version < MULTIPLE_SOURCES_VERSION else ():
        if len(part.source_ids) > 1:
            raise ValidationFailed(
                f"Transform {part.transform} of several columns (source-ids {list(part.source_ids)}) needs format "
                f"version {MULTIPLE_SOURCES_VERSION}, and the table has {format_version}. Upgrade it first, or use one "
                "column"
            )


def _check_source(part: PartitionField | UnboundPartitionField, source_id: int, schema: Schema) -> None:
    source = schema.by_id.get(source_id)
    if source is None:
        raise ValidationFailed(
            f"Cannot find source column for partition field: {part.name}: {part.transform}({source_id})"
        )
    if not is_primitive(source.field_type):
        raise ValidationFailed(f"Cannot partition by non-primitive source field: {schema.name_of(source_id)}")
    if not part.transform.accepts(source.field_type):
        raise ValidationFailed(f"Invalid source type {source.field_type} for transform: {part.transform}")
    for ancestor in schema.ancestors(source_id):
        if not isinstance(ancestor.field_type, StructType):
            raise ValidationFailed(f"Invalid partition field parent: {schema.name_of(ancestor.field_id)}")


def check_partition_names(spec: PartitionSpec | UnboundPartitionSpec, schema: Schema) -> None:
    """A partition name may equal a column's name only if that column is its source.

    Fields whose sources are all gone are exempt: their spec is history. Raises ValidationFailed.
    """
    for part in spec.fields:
        column = schema.find_readable(part.name)
        if column is None or column.field_id in part.source_ids:
            continue
        if any(source_id in schema.by_id for source_id in part.source_ids):
            raise ValidationFailed(
                f"Cannot create partition field {part.name}: the name belongs to column {column.field_id}, "
                f"which is not its source"
            )
