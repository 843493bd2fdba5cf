"""Projections carried out on real Parquet files."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.iceberg.promotion import promote_value
from app.iceberg.schema import Schema
from app.iceberg.types import DecimalType, FixedType, Type, parse_type
from app.projection.projection import project
from tests.iceberg.strategies import VALUED_PRIMITIVES, values
from tests.projection.oracle.arrow import UnreadableFile, carry_out, constant, read_parquet
from tests.projection.oracle.arrow_types import arrow_type, file_schema
from tests.projection.parquet_files import Row, parquet, rows, trees
from tests.projection.shorthand import field, list_of, map_of, mapping, of, part, struct

U = UUID("00112233-4455-6677-8899-aabbccddeeff")


def read(file: io.BytesIO, schema: Schema, **more: Any) -> list[Row]:
    return rows(read_parquet(file, schema, **more), schema)


ALL = of(
    field(1, "b", "boolean"),
    field(2, "i", "int"),
    field(3, "l", "long"),
    field(4, "f", "float"),
    field(5, "d", "double"),
    field(6, "dec", "decimal(9, 2)"),
    field(7, "day", "date"),
    field(8, "t", "time"),
    field(9, "ts", "timestamp"),
    field(10, "tz", "timestamptz"),
    field(11, "ns", "timestamp_ns"),
    field(12, "nstz", "timestamptz_ns"),
    field(13, "s", "string"),
    field(14, "u", "uuid"),
    field(15, "x", "fixed[3]"),
    field(16, "bin", "binary"),
    field(17, "none", "unknown"),
    field(18, "geo", "geometry"),
    field(20, "st", struct(field(21, "p", "int", True), field(22, "q", list_of(23, "string")))),
    field(30, "li", list_of(31, struct(field(32, "y", "int")), True)),
    field(40, "m", map_of(41, "string", 42, map_of(43, "int", 44, "date"))),
)
FULL: Row = {
    1: True,
    2: -(2**31),
    3: 2**63 - 1,
    4: 0.5,
    5: 1e300,
    6: Decimal("-1234567.89"),
    7: -719162,
    8: 86_399_999_999,
    9: -1,
    10: 2**62,
    11: -(2**63),
    12: 2**63 - 1,
    13: "ü.\0",
    14: U,
    15: b"abc",
    16: b"",
    17: None,
    18: b"\x01",
    20: {21: 7, 22: ["a", None]},
    30: [{32: 1}, {32: None}],
    40: [("k", [(1, 2), (3, None)]), ("e", None)],
}
EMPTY: Row = dict.fromkeys(FULL)
HOLLOW: Row = {**EMPTY, 20: {21: 1, 22: None}, 30: [], 40: []}


def test_every_type_reads_as_written() -> None:
    """Nulls, empty lists and null lists at every depth, and the ends of the ranges."""
    written = [FULL, EMPTY, HOLLOW, FULL]
    assert read(parquet(ALL, written), ALL) == written


def test_a_slice_of_a_table_reads_as_a_slice() -> None:
    """Offsets of nested arrays count from where the slice begins."""
    written = [FULL, EMPTY, HOLLOW, FULL, HOLLOW]
    table = pq.read_table(parquet(ALL, written), coerce_int96_timestamp_unit="us")
    plan = project(file_schema(table.schema), ALL)
    for start, length in ((1, 3), (2, 0), (3, 2)):
        assert rows(carry_out(plan, ALL, table.slice(start, length)), ALL) == written[start : start + length]


def test_the_worked_example_of_the_spec() -> None:
    """measurement is c, name is b, and the new a is null although the file has a column called a."""
    file = of(field(1, "a", "int"), field(2, "b", "string"), field(3, "c", "double"))
    requested = of(field(3, "measurement", "double"), field(2, "name", "string"), field(4, "a", "int"))
    found = read_parquet(parquet(file, [{1: 1, 2: "x", 3: 0.5}]), requested)
    assert found.to_pydict() == {"measurement": [0.5], "name": ["x"], "a": [None]}


@pytest.mark.parametrize(
    ("given", "stored", "expected"),
    [(None, None, None), (None, {2: 3}, {2: 3, 3: 0}), ({}, None, {2: 0, 3: 0}), ({}, {3: -1}, {2: 0, 3: -1})],
)
def test_the_default_table_of_the_spec(given: Any, stored: Any, expected: Any) -> None:
    """point, x and y: missing or given, with and without a default of the struct."""
    fields = {2: field(2, "x", "int", initial=0), 3: field(3, "y", "int", initial=0)}
    requested = of(field(1, "point", struct(*fields.values()), **({} if given is None else {"initial": given})))
    if stored is None:
        file = parquet(of(field(9, "z", "int")), [{9: 1}])
    else:
        file = parquet(of(field(1, "point", struct(*(fields[i] for i in stored)))), [{1: stored}])
    assert read(file, requested) == [{1: expected}]


def test_a_null_struct_stays_null_whatever_its_children_default_to() -> None:
    """Only a present struct has children."""
    file = parquet(of(field(1, "p", struct(field(2, "x", "int")))), [{1: None}, {1: {2: 1}}])
    requested = of(field(1, "p", struct(field(3, "y", "int", True, initial=5))))
    assert read(file, requested) == [{1: None}, {1: {3: 5}}]


PROMOTIONS = [
    ("int", "long"),
    ("float", "double"),
    ("decimal(9, 2)", "decimal(38, 2)"),
    ("date", "timestamp"),
    ("date", "timestamp_ns"),
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_stored_values_widen_to_their_promoted_values(data: st.DataObject) -> None:
    """As a column, inside a struct, a list and a map."""
    stored, wanted = data.draw(st.sampled_from(PROMOTIONS))
    narrow, wide = parse_type(stored), parse_type(wanted)
    one = st.integers(-100_000, 100_000) if stored == "date" else values(narrow)
    given = data.draw(st.lists(st.none() | one, min_size=1, max_size=4))

    def schema(kind: str) -> Schema:
        return of(
            field(1, "a", kind),
            field(2, "s", struct(field(3, "b", kind))),
            field(4, "l", list_of(5, kind)),
            field(6, "m", map_of(7, "int", 8, kind)),
        )

    def row(value: Any) -> Row:
        return {1: value, 2: {3: value}, 4: [value], 6: [(1, value)]}

    expected = [None if value is None else promote_value(narrow, value, wide) for value in given]
    assert read(parquet(schema(stored), [row(value) for value in given]), schema(wanted)) == list(map(row, expected))


@pytest.mark.parametrize(("wanted", "day"), [("timestamp_ns", 106_752), ("timestamp", 106_751_992)])
def test_a_date_that_the_timestamp_cannot_hold_fails(wanted: str, day: int) -> None:
    """It is not wrapped around, and the message names the column."""
    file = parquet(of(field(1, "d", "date")), [{1: day - 1}, {1: day}])
    with pytest.raises(UnreadableFile, match=r"column d \(field 1\)"):
        read(file, of(field(1, "d", wanted)))


def test_unknown_becomes_null_of_any_type() -> None:
    """Whether the file stores nothing at all, as the spec has it, or a column of the null type."""
    requested = of(field(1, "a", "string"), field(2, "k", "int"))
    assert read(parquet(of(field(1, "a", "unknown"), field(2, "k", "int")), [{1: None, 2: 3}]), requested) == [
        {1: None, 2: 3}
    ]
    column = pa.field("a", pa.null(), metadata={b"PARQUET:field_id": b"1"})
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.nulls(2)], schema=pa.schema([column])), file)
    assert read(file, requested) == [{1: None, 2: None}] * 2


def test_nulls_in_a_required_column_fail() -> None:
    """At every depth; nulls of a child under a null parent are none."""
    optional = of(field(1, "s", struct(field(2, "x", "int"), field(3, "l", list_of(4, "int")))))
    requested = of(field(1, "s", struct(field(2, "x", "int", True), field(3, "l", list_of(4, "int", True)))))
    fine: list[Row] = [{1: None}, {1: {2: 1, 3: [1]}}, {1: {2: 1, 3: None}}]
    assert read(parquet(optional, fine), requested) == fine
    faulty: list[tuple[Row, str]] = [({1: {2: None, 3: []}}, "s.x"), ({1: {2: 1, 3: [None]}}, "s.l.element")]
    for bad, path in faulty:
        with pytest.raises(UnreadableFile, match=path):
            read(parquet(optional, [*fine, bad]), requested)


def test_what_nobody_sees_need_not_be_readable() -> None:
    """Arrow may keep elements under a null list or a null struct."""
    inner = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([None, 5], pa.int32()), mask=pa.array([True, False])
    )
    layout = pa.schema([pa.field("l", inner.type, metadata={b"PARQUET:field_id": b"1"})])
    field_type = pa.list_(pa.field("element", pa.int32(), metadata={b"PARQUET:field_id": b"2"}))
    data = pa.Table.from_arrays([inner.cast(field_type)], schema=pa.schema([layout.field(0).with_type(field_type)]))
    requested = of(field(1, "l", list_of(2, "long", True)))
    assert rows(carry_out(project(file_schema(data.schema), requested), requested, data), requested) == [
        {1: None},
        {1: [5]},
    ]


def test_all_faults_are_in_the_message() -> None:
    """One line that names every column."""
    file = parquet(of(field(1, "a", "string"), field(2, "b", "string")), [])
    with pytest.raises(UnreadableFile) as caught:
        read(file, of(field(1, "a", "int"), field(2, "b", "long")))
    assert "column a (field 1)" in caught.value.message and "column b (field 2)" in caught.value.message


def test_partition_values_and_defaults_fill_every_row() -> None:
    """Also of types that Arrow knows by other values."""
    requested = of(
        field(2, "region", "string"),
        field(3, "u", "uuid", initial=str(U)),
        field(4, "day", "date", initial="1970-01-02"),
        field(5, "at", "timestamptz", initial="1970-01-01T00:00:00.000001+00:00"),
        field(6, "amount", "decimal(9, 2)", True, initial="14.20"),
        field(7, "bytes", "fixed[2]", initial="00ff"),
        field(8, "pairs", map_of(9, "string", 10, "int"), initial={"keys": ["a"], "values": [1]}),
    )
    file = parquet(of(field(1, "a", "int")), [{1: 1}, {1: 2}])
    expected = {2: "EU", 3: U, 4: 1, 5: 1, 6: Decimal("14.20"), 7: b"\0\xff", 8: [("a", 1)]}
    assert read(file, requested, partition={2: part("string", "EU")}) == [expected, expected]


def test_files_without_ids_are_read_by_name() -> None:
    """Nested names included, several names for one column, a literal dot, and a name that the table does not know."""
    file = parquet(
        of(
            field(91, "record.id", "int"),
            field(92, "junk", "string"),
            field(93, "where", struct(field(94, "lat", "float"), field(95, "lon", "float"))),
            field(96, "tags", list_of(97, "string")),
        ),
        [{91: 1, 92: "x", 93: {94: 0.5, 95: 1.5}, 96: ["a"]}],
        ids=False,
    )
    names = mapping("""[
        {"field-id": 1, "names": ["id", "record.id"]}, {"names": ["junk"]},
        {"field-id": 3, "names": ["where"], "fields": [
            {"field-id": 4, "names": ["latitude", "lat"]}, {"field-id": 5, "names": []}]},
        {"field-id": 6, "names": ["tags"], "fields": [{"field-id": 7, "names": ["element"]}]}]""")
    requested = of(
        field(6, "labels", list_of(7, "string")),
        field(3, "location", struct(field(5, "longitude", "double"), field(4, "latitude", "double"))),
        field(1, "id", "long", True),
        field(2, "junk", "string", initial="none"),
    )
    assert read(file, requested, mapping=names) == [{6: ["a"], 3: {5: None, 4: 0.5}, 1: 1, 2: "none"}]


def test_files_with_neither_ids_nor_mapping_are_read_by_position() -> None:
    """The first column is field 1."""
    file = parquet(
        of(field(91, "x", "int"), field(92, "y", struct(field(93, "z", "int")))), [{91: 1, 92: {93: 2}}], ids=False
    )
    requested = of(field(2, "b", struct(field(5, "c", "long"))), field(1, "a", "int"), field(3, "n", "int"))
    assert read(file, requested) == [{2: {5: 2}, 1: 1, 3: None}]


def test_what_other_writers_store_is_read() -> None:
    """Narrow integers, other units, large, dictionary and fixed-size layouts, Spark's INT96."""
    columns = {
        1: pa.array([1, None], pa.int8()),
        2: pa.array([2**32 - 1, 0], pa.uint32()),
        3: pa.array(["a", "b"], pa.large_string()),
        4: pa.array(["a", None]).dictionary_encode(),
        5: pa.array([1000, None], pa.timestamp("ms")),
        6: pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        7: pa.array([[1], []], pa.large_list(pa.int32())),
        8: pa.array([U.bytes, None], pa.uuid()),
        9: pa.array([1000, None], pa.timestamp("us", "Europe/Oslo")),
    }
    layout = [(f"c{i}", column.type, i) for i, column in columns.items()]
    named = pa.schema(
        [
            pa.field(name, _with_element_id(kind, 10 + i), metadata={b"PARQUET:field_id": str(i).encode()})
            for name, kind, i in layout
        ]
    )
    table = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns.values(), named, strict=True)], schema=named)
    file = io.BytesIO()
    pq.write_table(table, file)
    requested = of(
        field(1, "a", "int"),
        field(2, "b", "long"),
        field(3, "c", "string"),
        field(4, "d", "string"),
        field(5, "e", "timestamp"),
        field(6, "f", list_of(16, "long")),
        field(7, "g", list_of(17, "int")),
        field(8, "h", "uuid"),
        field(9, "i", "timestamptz"),
    )
    assert read(file, requested) == [
        {1: 1, 2: 2**32 - 1, 3: "a", 4: "a", 5: 1_000_000, 6: [1, 2], 7: [1], 8: U, 9: 1000},
        {1: None, 2: 0, 3: "b", 4: None, 5: None, 6: None, 7: [], 8: None, 9: None},
    ]


def _with_element_id(kind: Any, element_id: int) -> Any:
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        element = pa.field("element", kind.value_type, metadata={b"PARQUET:field_id": str(element_id).encode()})
        return pa.large_list(element) if pa.types.is_large_list(kind) else pa.list_(element, kind.list_size)
    return kind


def test_int96_timestamps_are_read_in_microseconds() -> None:
    """Old Spark and Hive files store them so."""
    moment = datetime.datetime.fromisoformat("2017-11-16T01:02:03.456789")
    layout = pa.schema([pa.field("t", pa.timestamp("us"), metadata={b"PARQUET:field_id": b"1"})])
    file = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays([pa.array([moment])], schema=layout), file, use_deprecated_int96_timestamps=True
    )
    requested = of(field(1, "t", "timestamp"))
    assert read_parquet(file, requested).column("t").to_pylist() == [moment]


@pytest.mark.parametrize("names", [["a.b", "a"], ["", "x"], ["same", "same"]])
def test_names_in_the_file_do_not_matter(names: list[str]) -> None:
    """Not even names that Parquet libraries take for paths, and not even equal ones."""
    layout = pa.schema(
        [pa.field(n, pa.int32(), metadata={b"PARQUET:field_id": str(i).encode()}) for i, n in enumerate(names, 1)]
    )
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1], pa.int32()), pa.array([2], pa.int32())], schema=layout), file)
    assert read(file, of(field(2, "q", "int"))) == [{2: 2}]
    assert read(file, of(field(2, "q", "int"), field(1, "p", "long"))) == [{2: 2, 1: 1}]


def test_rows_count_even_where_no_file_column_is_needed() -> None:
    """All columns are constants, or none is requested at all."""
    file = parquet(of(field(1, "a", "int")), [{1: 1}, {1: 2}, {1: 3}])
    assert read(file, of(field(2, "b", "int", initial=7))) == [{2: 7}] * 3
    assert read_parquet(file, of()).num_columns == 0
    assert read(parquet(of(field(1, "a", "int")), []), of(field(1, "a", "long"))) == []


def test_structs_without_children_keep_their_nulls() -> None:
    """A struct whose fields are all dropped, or all new, is still null or not."""
    file = parquet(of(field(1, "s", struct(field(2, "x", "int")))), [{1: {2: 1}}, {1: None}])
    assert read(file, of(field(1, "s", struct()))) == [{1: {}}, {1: None}]
    assert read(file, of(field(1, "s", struct(field(9, "y", "int"))))) == [{1: {9: None}}, {1: None}]


def test_variants_are_their_two_parts() -> None:
    """Stored whole, they are handed on; anything in the parts is the engine's to decode."""
    parts = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())])
    layout = pa.schema([pa.field("v", parts, metadata={b"PARQUET:field_id": b"1"})])
    file = io.BytesIO()
    value = {"metadata": b"\x01\0\0", "value": b"\x0c\x01"}
    pq.write_table(pa.Table.from_arrays([pa.array([value, None], parts)], schema=layout), file)
    assert read_parquet(file, of(field(1, "v", "variant"))).to_pydict() == {"v": [value, None]}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_constants_are_their_canonical_values(data: st.DataObject) -> None:
    """Of every primitive type."""
    kind = data.draw(VALUED_PRIMITIVES.filter(_fits_arrow))
    value = data.draw(st.none() | values(kind))
    found = constant(kind, value, 2)
    assert found.type == arrow_type(kind)
    assert trees(found, kind) == [value, value]


def _fits_arrow(kind: Type) -> bool:
    return not (isinstance(kind, DecimalType) and kind.scale > kind.precision) and kind != FixedType(0)


def test_a_constant_that_arrow_cannot_hold_fails() -> None:
    """A scale above the precision is legal in Iceberg and unknown to Arrow; the message names the column."""
    requested = of(field(2, "tiny", "decimal(1, 2)", initial="0.05"))
    with pytest.raises(UnreadableFile, match=r"column tiny \(field 2\)"):
        read(parquet(of(field(1, "a", "int")), [{1: 1}]), requested)
