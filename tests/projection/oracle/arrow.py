"""Carrying out a projection on Arrow data that was read from a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from app.errors import IcekeelError
from app.iceberg.name_mapping import NameMapping
from app.iceberg.schema import Schema
from app.iceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    UuidType,
)
from app.projection.projection import (
    Column,
    Constant,
    PartitionValue,
    Projected,
    Projection,
    project,
)
from tests.projection.oracle.arrow_types import arrow_schema, arrow_type, file_schema

_NO_PARTITION: Final[Mapping[int, PartitionValue]] = {}


class UnreadableFile(IcekeelError):
    """A data file cannot be read under the requested schema."""


def read_parquet(
    source: Any,
    requested: Schema,
    mapping: NameMapping | None = None,
    partition: Mapping[int, PartitionValue] = _NO_PARTITION,
) -> Any:
    """The rows of a Parquet file (anything that pyarrow opens) as a table of the requested schema.

    Reads the top-level columns that the projection needs. Raises UnreadableFile as `carry_out` does.
    """
    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    projection = project(file_schema(file.schema_arrow), requested, mapping, partition)
    names = [field.name for field in file.schema_arrow]
    if _selectable(names):
        wanted = [names[at] for at in projection.positions]
        places = {at: place for place, at in enumerate(projection.positions)}
        return _table(projection, requested, file.read(columns=wanted), places)
    return _table(projection, requested, file.read(), {at: at for at in range(len(names))})


def _selectable(names: list[str]) -> bool:
    """Whether names identify columns: Parquet takes a dot for a path, and a file may repeat a name."""
    return len(set(names)) == len(names) and not any("." in name or not name for name in names)


def carry_out(projection: Projection, requested: Schema, data: Any) -> Any:
    """A table of the requested schema from a table or record batch that holds all top-level columns of the file.

    Raises UnreadableFile for the faults of the projection, for a null in a required column, and for a value that the
    requested type cannot hold (a date outside the range of timestamps).
    """
    return _table(projection, requested, data, {at: at for at in range(data.num_columns)})


def _table(projection: Projection, requested: Schema, data: Any, places: Mapping[int, int]) -> Any:
    faults = projection.faults
    if faults:
        raise UnreadableFile("; ".join(_told(fault.field, fault.path, fault.reason) for fault in faults))
    target = arrow_schema(requested)
    batches = data.to_batches() if isinstance(data, pa.Table) else [data]
    out = []
    for batch in batches:
        columns = {at: batch.column(place) for at, place in places.items()}
        arrays = [_array(plan, columns, batch.num_rows, None, plan.field.name) for plan in projection.fields]
        out.append(pa.RecordBatch.from_arrays(arrays, schema=target) if arrays else batch.select([]))
    return pa.Table.from_batches(out, target)


def _told(field: NestedField, path: str, reason: str) -> str:
    return f"Cannot read column {path} (field {field.field_id}): {reason}"


def _array(plan: Projected, siblings: Mapping[int, Any], length: int, visible: Any, path: str) -> Any:
    """The values of one field. `visible` marks the rows in which the parent is not null; None for all."""
    if isinstance(plan, Constant):
        try:
            return constant(plan.field.field_type, plan.value, length)
        except pa.ArrowInvalid as fault:
            raise UnreadableFile(_told(plan.field, path, f"Arrow cannot hold its constant: {fault}")) from fault
    assert isinstance(plan, Column)
    values = _values(plan, _unwrapped(siblings[plan.position]), visible, path)
    if plan.field.required and values.null_count:
        seen = values.is_null() if visible is None else pc.and_(values.is_null(), visible)
        if pc.any(seen).as_py():
            raise UnreadableFile(_told(plan.field, path, "it is required and the file holds nulls"))
    return values


def _values(plan: Column, stored: Any, visible: Any, path: str) -> Any:
    target = arrow_type(plan.field.field_type)
    if isinstance(plan.stored, UnknownType):
        return pa.nulls(len(stored), target)
    match plan.field.field_type:
        case StructType():
            return _struct(plan, stored, target, visible, path)
        case ListType():
            return _list(plan, stored, target, visible, path)
        case MapType():
            return _map(plan, stored, target, visible, path)
    try:
        return stored if stored.type == target else stored.cast(target)
    except pa.ArrowInvalid as fault:
        raise UnreadableFile(_told(plan.field, path, f"a value does not fit: {fault}")) from fault


def _unwrapped(stored: Any) -> Any:
    """Without dictionary encoding and extension types."""
    while True:
        if isinstance(stored, pa.DictionaryArray):
            stored = stored.dictionary_decode()
        elif isinstance(stored, pa.ExtensionArray):
            stored = stored.storage
        else:
            return stored


def _struct(plan: Column, stored: Any, target: Any, visible: Any, path: str) -> Any:
    siblings = {at: stored.field(at) for at in range(stored.type.num_fields)}
    shown = _shown(stored, visible)
    children = [_array(child, siblings, len(stored), shown, f"{path}.{child.field.name}") for child in plan.children]
    # Not StructArray.from_arrays: it cannot tell the length of a struct without fields.
    validity = stored.is_valid().buffers()[1] if stored.null_count else None
    return pa.Array.from_buffers(target, len(stored), [validity], children=children)


def _list(plan: Column, stored: Any, target: Any, visible: Any, path: str) -> Any:
    if not (pat.is_list(stored.type) or pat.is_large_list(stored.type)):
        stored = stored.cast(pa.list_(stored.type.value_field))
    stored = _without_hidden(stored, _shown(stored, visible))
    offsets, values = _trimmed(stored.offsets, stored.values)
    (child,) = plan.children
    elements = _array(child, {0: values}, len(values), None, f"{path}.element")
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), elements, type=target, mask=_mask(stored))


def _map(plan: Column, stored: Any, target: Any, visible: Any, path: str) -> Any:
    stored = _without_hidden(stored, _shown(stored, visible))
    offsets, keys = _trimmed(stored.offsets, stored.keys)
    _, items = _trimmed(stored.offsets, stored.items)
    pair = {0: keys, 1: items}
    keys, items = (_array(child, pair, len(keys), None, f"{path}.{child.field.name}") for child in plan.children)
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(stored))


def _shown(stored: Any, visible: Any) -> Any:
    """The rows in which neither the value nor anything around it is null; None for all."""
    if not stored.null_count:
        return visible
    return stored.is_valid() if visible is None else pc.and_(stored.is_valid(), visible)


def _without_hidden(stored: Any, shown: Any) -> Any:
    """Lists or maps that have no elements where nobody sees them: those need not be readable."""
    if shown is None:
        return stored
    offsets = stored.offsets
    lengths = pc.subtract(offsets.slice(1), offsets.slice(0, len(stored)))
    if not pc.any(pc.and_(pc.invert(shown), pc.greater(lengths, 0))).as_py():
        return stored
    rows = pa.array(range(len(stored)), pa.int64())
    return stored.take(pc.if_else(shown, rows, None))


def _trimmed(offsets: Any, values: Any) -> tuple[Any, Any]:
    """Offsets from zero, and only the values that they cover: arrays may be slices of longer ones."""
    if not len(offsets):
        return pa.array([0], offsets.type), values.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
    return pc.subtract(offsets, offsets[0]), values.slice(first, last - first)


def _mask(stored: Any) -> Any:
    return stored.is_null() if stored.null_count else None


def constant(wanted: Type, value: Any, length: int) -> Any:
    """An array that holds a canonical value (`app.iceberg.values`) in every row.

    Raises pyarrow.ArrowInvalid for what Arrow cannot hold: decimals with a scale above their precision.
    """
    target = arrow_type(wanted)
    if value is None:
        return pa.nulls(length, target)
    return pa.repeat(pa.scalar(arrow_value(wanted, value), target), length)


def arrow_value(wanted: Type, value: Any) -> Any:
    """A canonical value as pyarrow takes it for the type's Arrow form."""
    if value is None:
        return None
    match wanted:
        case StructType(fields=fields):
            pairs = zip(fields, value, strict=True)
            return {field.name: arrow_value(field.field_type, item) for field, item in pairs}
        case ListType(element=element):
            return [arrow_value(element, item) for item in value]
        case MapType(key=key_type, value=item_type):
            return [(arrow_value(key_type, key), arrow_value(item_type, item)) for key, item in value]
        case UuidType():
            return value.bytes
    return value
