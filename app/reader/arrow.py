"""Carrying out a projection on Arrow data that was read from a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from app.errors import UnreadableFile
from app.reader.arrow_types import arrow_schema, arrow_type, file_schema, plain_type
from app.reader.projection import Answer, Column, Constant, PartitionValue, Projected, Projection, Unreadable, project
from app.spec.name_mapping import NameMapping
from app.spec.schema import Schema
from app.spec.types import ListType, MapType, NestedField, StructType, Type, UnknownType, UuidType

_NO_PARTITION: Final[Mapping[int, PartitionValue]] = {}


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
        arrays = [_array(plan, columns, batch.num_rows, 0, plan.field.name) for plan in projection.fields]
        rows = pa.StructArray.from_arrays(arrays, fields=list(target)) if arrays else None
        out.append(pa.RecordBatch.from_struct_array(rows) if rows is not None else batch.select([]))
    return pa.Table.from_batches(out, target)


def _told(field: NestedField, path: str, reason: str) -> str:
    return f"Cannot read column {path} (field {field.field_id}): {reason}"


def _array(plan: Projected, siblings: Mapping[int, Any], length: int, hidden: int, path: str) -> Any:
    """The values of one field. `hidden` counts the rows whose parent is null, where its own nulls do not matter."""
    if isinstance(plan, Constant):
        return constant(plan.field.field_type, plan.value, length)
    assert isinstance(plan, Column)
    stored = siblings[plan.position]
    values = _values(plan, _unwrapped(stored), path)
    if plan.field.required and values.null_count > hidden:
        raise UnreadableFile(_told(plan.field, path, "it is required and the file holds nulls"))
    return values


def _values(plan: Column, stored: Any, path: str) -> Any:
    target = arrow_type(plan.field.field_type)
    match plan.field.field_type:
        case _ if plan.stored is not None and isinstance(plan.stored, UnknownType):
            return pa.nulls(len(stored), target)
        case StructType():
            return _struct(plan, stored, target, path)
        case ListType():
            return _list(plan, stored, target, path)
        case MapType():
            return _map(plan, stored, target, path)
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


def _struct(plan: Column, stored: Any, target: Any, path: str) -> Any:
    nulls = stored.null_count
    # flatten() hands the struct's nulls down, so that a child's own nulls can be told by counting.
    siblings = dict(enumerate(stored.flatten()))
    children = [
        _array(child, siblings, len(stored), nulls, f"{path}.{child.field.name}") for child in plan.children
    ]
    mask = stored.is_null() if nulls else None
    if not children:
        return pa.nulls(len(stored), target) if nulls == len(stored) else pa.array(
            [None if null else {} for null in stored.is_null().to_pylist()], target
        )
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _list(plan: Column, stored: Any, target: Any, path: str) -> Any:
    if not (pat.is_list(stored.type) or pat.is_large_list(stored.type)):
        stored = stored.cast(pa.list_(stored.type.value_field))
    offsets, values = _trimmed(stored.offsets, stored.values)
    (child,) = plan.children
    elements = _array(child, {0: values}, len(values), 0, f"{path}.element")
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), elements, type=target, mask=_mask(stored))


def _map(plan: Column, stored: Any, target: Any, path: str) -> Any:
    offsets, keys = _trimmed(stored.offsets, stored.keys)
    _, items = _trimmed(stored.offsets, stored.items)
    key, value = plan.children
    new_keys = _array(key, {0: keys}, len(keys), 0, f"{path}.key")
    new_items = _array(value, {1: items, 0: items}, len(items), 0, f"{path}.value")
    return pa.MapArray.from_arrays(offsets, new_keys, new_items, type=target, mask=_mask(stored))
