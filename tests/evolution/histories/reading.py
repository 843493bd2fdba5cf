"""What a reader makes of a file under a schema, held against the truth."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from app.errors import IcekeelError
from app.iceberg.json.codec import encode
from app.iceberg.partition import PartitionSpec
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.types import NestedField
from tests.evolution.histories.truth import BROKEN, DataFile, Published, expect, widened
from tests.projection.oracle.arrow import read_parquet
from tests.projection.oracle.bounds import decode_bounds
from tests.projection.parquet_files import Row, rows


class Violation(msgspec.Struct, frozen=True):
    """A file, or a place in it, that a schema does not read as it must. `field_id` is the nearest field known."""

    field_id: int
    reason: str


class Readings:
    """Reads real Parquet bytes, each file once per schema."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, bytes], list[tuple[NestedField, list[Row] | str]]] = {}
        self.count = 0

    def violations(self, file: DataFile, requested: Schema, defaults: Published) -> Iterator[Violation]:
        """Values and nulls first, then what planning makes of bounds and partition values."""
        expected = expect(file, requested, defaults)
        for column, found in self._columns(file, requested):
            if isinstance(found, str):
                yield Violation(column.field_id, f"file {file.number}: {found}")
                continue
            wrong: dict[int, tuple[Any, Any]] = {}
            for should, row in zip(expected, found, strict=True):
                for field_id, *sides in _differences(column.field_id, should[column.field_id], row[column.field_id]):
                    wrong.setdefault(field_id, (sides[0], sides[1]))
            for field_id, (right, read) in wrong.items():
                yield Violation(field_id, f"file {file.number} reads {read!r} instead of {right!r}")
        yield from _bounds(file, requested, expected)
        yield from _partition(file, requested)

    def _columns(self, file: DataFile, requested: Schema) -> list[tuple[NestedField, list[Row] | str]]:
        key = file.number, encode(schema_to_json(requested.with_id(0)))
        known = self._read.get(key)
        if known is None:
            self.count += 1
            known = self._read[key] = list(_read(file.data, requested))
        return known


def _read(data: io.BytesIO, requested: Schema) -> Iterator[tuple[NestedField, list[Row] | str]]:
    """All columns at once; one at a time where that fails, to learn which of them cannot be read."""
    try:
        table = rows(read_parquet(data, requested), requested)
    except IcekeelError:
        for column in requested.fields:
            single = Schema(0, (column,))
            try:
                yield column, rows(read_parquet(data, single), single)
            except IcekeelError as fault:
                yield column, fault.message
        return
    for column in requested.fields:
        yield column, table


def _differences(field_id: int, should: Any, found: Any) -> Iterator[tuple[int, Any, Any]]:
    """The deepest fields where two trees differ, with both sides."""
    if isinstance(should, dict) and isinstance(found, dict):
        for inner, item in should.items():
            yield from _differences(inner, item, found.get(inner, BROKEN))
    elif isinstance(should, list | tuple) and isinstance(found, list | tuple) and len(should) == len(found):
        for item, other in zip(should, found, strict=True):
            yield from _differences(field_id, item, other)
    elif should != found:
        yield field_id, should, found


def _bounds(file: DataFile, requested: Schema, expected: Sequence[Row]) -> Iterator[Violation]:
    """No bound may hide a row that is there."""
    lower = {field_id: low for field_id, (low, _) in file.bounds.items()}
    upper = {field_id: high for field_id, (_, high) in file.bounds.items()}
    decoded = decode_bounds(requested, lower, upper)
    for field_id in decoded.faults:
        yield Violation(field_id, f"bounds of file {file.number} cannot be decoded: {decoded.faults[field_id]}")
    for field_id, bounds in decoded.by_id.items():
        for row in expected:
            for value in _values_of(requested, field_id, row):
                if value is not None and value is not BROKEN and not bounds.lower <= value <= bounds.upper:
                    yield Violation(field_id, f"bounds {bounds} of file {file.number} hide {value!r}")
                    return


def _values_of(requested: Schema, field_id: int, row: Row) -> Iterator[Any]:
    """The values of a field that lies under structs only."""
    path = [field_id, *(ancestor.field_id for ancestor in requested.ancestors(field_id))][::-1]
    found: Any = row
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    yield found


def _partition(file: DataFile, requested: Schema) -> Iterator[Violation]:
    """A filter on the column, put through the transform, must find the file's partition."""
    for part in file.spec.fields:
        now, then = requested.by_id.get(part.source_id), file.written.by_id.get(part.source_id)
        if now is None or then is None:
            continue
        where = f"{part.transform} in spec {file.spec.spec_id}"
        if not part.transform.accepts(now.field_type):
            yield Violation(part.source_id, f"{where} does not take {now.field_type}")
            continue
        value = widened(then.field_type, file.rows[0][part.source_id], now.field_type)
        if value is BROKEN:
            continue
        found = part.transform.apply(now.field_type, value)
        if found != file.partition[part.field_id]:
            yield Violation(part.source_id, f"{where} looks for {found!r}, not for {file.partition[part.field_id]!r}")


def partition_of(spec: PartitionSpec, written: Schema, row: Row) -> dict[int, Any]:
    """The partition tuple of a row, by partition field id."""
    return {
        part.field_id: part.transform.apply(written.by_id[part.source_id].field_type, row[part.source_id])
        for part in spec.fields
    }
