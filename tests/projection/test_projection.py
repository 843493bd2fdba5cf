"""Which rule answers for each requested field (table spec: Column Projection)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from app.iceberg.partition import parse_partition_spec
from app.iceberg.schema import Schema
from app.iceberg.types import IntegerType, LongType, parse_type
from app.projection.file_schema import FileField, FileSchema
from app.projection.projection import (
    Answer,
    Column,
    Constant,
    PartitionValue,
    identity_values,
    project,
)
from tests.projection.shorthand import (
    answers,
    bare,
    field,
    list_of,
    map_of,
    of,
    part,
    plan,
    struct,
)

DEFAULT = Answer.INITIAL_DEFAULT


def test_the_worked_example_of_the_spec() -> None:
    """Columns are selected by ID in requested order, whatever they are called; what the file lacks is null."""
    file = of(field(1, "a", "int"), field(2, "b", "string"), field(3, "c", "double"))
    requested = of(field(3, "measurement", "double"), field(2, "name", "string"), field(4, "a", "int"))
    found = plan(file, requested)
    assert list(answers(found).items()) == [(3, 2), (2, 1), (4, "null")]
    assert found.positions == (1, 2)


def test_a_column_dropped_and_added_again_does_not_answer_with_the_old_data() -> None:
    """country was field 4 and is field 11 now: old files hold 4, nobody asks for it, and 11 is null."""
    file = of(field(1, "order_id", "long", True), field(4, "country", "string"))
    requested = of(field(1, "order_id", "long", True), field(11, "country", "string"))
    assert answers(plan(file, requested)) == {1: 0, 11: "null"}


def test_an_id_brought_back_answers_with_the_old_data() -> None:
    """Undoing the drop asks for field 4 again, and the files still have it."""
    file = of(field(1, "order_id", "long", True), field(4, "country", "string"))
    assert answers(plan(file, of(field(4, "land", "string")))) == {4: 1}


def test_a_partition_value_comes_before_the_initial_default() -> None:
    """Rule one of the spec goes before rule three."""
    file, requested = of(field(1, "a", "int")), of(field(2, "region", "string", initial="EU"))
    assert answers(plan(file, requested, f2=part("string", "US"))) == {2: (Answer.PARTITION, "US")}
    assert answers(plan(file, requested)) == {2: (DEFAULT, "EU")}


def test_a_file_column_comes_before_the_partition_value() -> None:
    """The rules are about IDs that the file lacks."""
    file = of(field(2, "region", "string"))
    assert answers(plan(file, file, f2=part("string", "US"))) == {2: 0}


def test_a_partition_value_comes_before_the_name_mapping() -> None:
    """A file without IDs lacks every ID, so rule one goes before rule two."""
    file = bare(of(field(1, "a", "int"), field(2, "region", "string")))
    names = '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["region"]}]'
    requested = of(field(1, "a", "int"), field(2, "region", "string"))
    assert answers(plan(file, requested, names, f2=part("string", "US"))) == {1: 0, 2: (Answer.PARTITION, "US")}


def test_a_null_partition_value_is_a_value() -> None:
    """The manifest says that the column is null in this file, which the initial-default must not cover up."""
    requested = of(field(2, "region", "string", initial="EU"))
    assert answers(plan(of(field(1, "a", "int")), requested, f2=part("string", None))) == {2: (Answer.PARTITION, None)}
    faults = plan(of(field(1, "a", "int")), of(field(2, "r", "string", True)), f2=part("string", None)).faults
    assert [fault.reason for fault in faults] == ["it is required and its partition value is null"]


def test_a_partition_value_is_promoted() -> None:
    """A value written as int or date answers for a column that is long or timestamp now."""
    requested = of(field(2, "n", "long"), field(3, "t", "timestamp"))
    found = plan(of(field(1, "a", "int")), requested, f2=part("int", 7), f3=part("date", 1))
    assert answers(found) == {2: (Answer.PARTITION, 7), 3: (Answer.PARTITION, 86_400_000_000)}


def test_a_partition_value_of_another_type_is_a_fault() -> None:
    """A string cannot answer for an int."""
    (fault,) = plan(of(field(1, "a", "int")), of(field(2, "n", "int")), f2=part("string", "x")).faults
    assert fault.path == "n"
    assert "partition value does not fit" in fault.reason


def test_identity_values_of_a_partition_tuple() -> None:
    """Only identity fields tell a column's value; a field that the tuple lacks tells nothing."""
    spec = parse_partition_spec(
        {
            "spec-id": 0,
            "fields": [
                {"source-id": 1, "field-id": 1000, "name": "a", "transform": "identity"},
                {"source-id": 2, "field-id": 1001, "name": "b_bucket", "transform": "bucket[4]"},
                {"source-id": 3, "field-id": 1002, "name": "c", "transform": "identity"},
                {"source-id": 9, "field-id": 1003, "name": "gone", "transform": "identity"},
            ],
        }
    )
    schema = of(field(1, "a", "int"), field(2, "b", "int"), field(3, "c", "int"))
    found = identity_values(spec, {1000: 7, 1001: 3, 1003: 1}, schema)
    assert found == {1: PartitionValue(IntegerType(), 7)}


def test_a_required_column_that_nothing_answers_for_is_a_fault() -> None:
    """Neither null nor a guess may stand in for it."""
    (fault,) = plan(of(field(1, "a", "int")), of(field(2, "region", "string", True))).faults
    assert (fault.field.field_id, fault.path) == (2, "region")
    assert "required" in fault.reason


def test_all_faults_are_told() -> None:
    """Not only the first one."""
    file = of(field(1, "a", "int"), field(2, "s", struct(field(3, "x", "string"))))
    requested = of(field(1, "a", "string"), field(2, "s", struct(field(3, "x", "long"), field(4, "y", "int", True))))
    assert [fault.path for fault in plan(file, requested).faults] == ["a", "s.x", "s.y"]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("int", "long"),
        ("float", "double"),
        ("decimal(9, 2)", "decimal(18, 2)"),
        ("date", "timestamp"),
        ("date", "timestamp_ns"),
    ],
)
def test_promotions_are_carried_by_the_plan(stored: str, wanted: str) -> None:
    """The plan names the stored type, from which values are widened."""
    found = plan(of(field(1, "a", stored)), of(field(1, "a", wanted))).find(1)
    assert isinstance(found, Column)
    assert (found.promoted, found.stored) == (True, parse_type(stored))


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("long", "int"),
        ("double", "float"),
        ("decimal(9, 2)", "decimal(12, 4)"),
        ("decimal(9, 2)", "decimal(8, 2)"),
        ("int", "decimal(9, 0)"),
        ("int", "double"),
        ("long", "string"),
        ("string", "binary"),
        ("binary", "string"),
        ("date", "timestamptz"),
        ("date", "timestamptz_ns"),
        ("timestamp", "timestamp_ns"),
        ("timestamp", "timestamptz"),
        ("timestamp", "date"),
        ("fixed[4]", "fixed[8]"),
        ("fixed[16]", "binary"),
        ("geometry(OGC:CRS84)", "geometry(EPSG:3857)"),
    ],
)
def test_any_other_type_change_is_a_fault(stored: str, wanted: str) -> None:
    """Values are never reinterpreted, and least of all silently."""
    (fault,) = plan(of(field(1, "a", stored)), of(field(1, "a", wanted))).faults
    assert stored in fault.reason


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("int", struct(field(2, "x", "int"))),
        (struct(field(2, "x", "int")), "int"),
        (struct(field(2, "x", "int")), list_of(2, "int")),
        (list_of(2, "int"), map_of(2, "int", 3, "int")),
        (struct(field(2, "metadata", "string")), "variant"),
    ],
)
def test_another_shape_is_a_fault(stored: object, wanted: object) -> None:
    """A struct is no list, and neither is a value."""
    (fault,) = plan(of(field(1, "a", stored)), of(field(1, "a", wanted))).faults
    assert "cannot be read as" in fault.reason


def test_unknown_columns_are_null_whatever_the_file_holds() -> None:
    """Columns of type unknown are not stored; a physical column under the ID is ignored."""
    assert answers(plan(of(field(1, "a", "string")), of(field(1, "a", "unknown")))) == {1: "null"}


@pytest.mark.parametrize("wanted", ["string", "timestamptz_ns", "geometry", struct(field(2, "x", "int", True))])
def test_unknown_becomes_any_type_with_nothing_but_nulls(wanted: object) -> None:
    """A writer under unknown stored nothing, so the column is null after promotion."""
    assert answers(plan(of(field(1, "a", "unknown")), of(field(1, "a", wanted)))) == {1: "null"}
    null_typed = FileSchema((FileField("a", 1, "value", "null", parse_type("unknown")),))
    found = project(null_typed, of(field(1, "a", wanted))).find(1)
    assert isinstance(found, Column)
    assert found.stored == parse_type("unknown")


def _point(default: Any, x: int = 0, y: int = 0) -> Schema:
    given: dict[str, Any] = {} if default is None else {"initial": default}
    return of(field(1, "point", struct(field(2, "x", "int", initial=x), field(3, "y", "int", initial=y)), **given))


def test_a_missing_struct_without_default_is_null() -> None:
    """Row one of the spec's table: the defaults of x and y do not matter."""
    assert answers(plan(of(field(9, "z", "int")), _point(None))) == {1: "null"}


def test_a_missing_child_takes_its_own_default_where_the_struct_has_none() -> None:
    """Row two of the spec's table: {x: 3} reads as {x: 3, y: 0}."""
    file = of(field(1, "point", struct(field(2, "x", "int"))))
    assert answers(plan(file, _point(None))) == {1: 0, 2: 0, 3: (DEFAULT, 0)}


def test_a_missing_struct_with_a_default_is_built_from_its_children() -> None:
    """Row three of the spec's table: {} stands for {x: 0, y: 0}."""
    assert answers(plan(of(field(9, "z", "int")), _point({}, 4, 5))) == {1: (DEFAULT, (4, 5))}


def test_a_missing_child_takes_its_own_default_where_the_struct_has_one() -> None:
    """Row four of the spec's table: {y: -1} reads as {x: 0, y: -1}."""
    file = of(field(1, "point", struct(field(3, "y", "int"))))
    assert answers(plan(file, _point({}))) == {1: 0, 2: (DEFAULT, 0), 3: 0}


def test_partition_values_come_before_defaults_inside_a_default_struct() -> None:
    """The rules hold for each field of the struct that is built."""
    found = plan(of(field(9, "z", "int")), _point({}, 4, 5), f3=part("int", 8))
    assert answers(found) == {1: (DEFAULT, (4, 8))}


def test_a_hole_in_a_default_struct_is_a_fault() -> None:
    """A required child without default cannot be built."""
    requested = of(field(1, "point", struct(field(2, "x", "int", True)), initial={}))
    (fault,) = plan(of(field(9, "z", "int")), requested).faults
    assert "required" in fault.reason


def test_a_default_that_is_no_value_is_a_fault() -> None:
    """It is not read as null."""
    (fault,) = plan(of(field(9, "z", "int")), of(field(1, "n", "int", initial="34"))).faults
    assert "initial-default does not hold" in fault.reason


def test_defaults_are_values_of_their_type() -> None:
    """A decimal default is a decimal, a date default a number of days."""
    requested = of(field(1, "amount", "decimal(9, 2)", initial="14.20"), field(2, "day", "date", initial="1970-01-02"))
    assert answers(plan(of(field(9, "z", "int")), requested)) == {1: (DEFAULT, Decimal("14.20")), 2: (DEFAULT, 1)}


def test_structs_in_lists_and_maps_evolve_like_any_struct() -> None:
    """Children of elements and values are found by ID, widened, defaulted, reordered."""
    item = struct(field(4, "sku", "string"), field(5, "qty", "int"))
    wanted = struct(field(5, "amount", "long"), field(9, "unit", "string", initial="kg"), field(4, "sku", "string"))
    file = of(
        field(1, "items", list_of(3, item)), field(2, "by_day", map_of(6, "int", 7, struct(field(8, "n", "int"))))
    )
    requested = of(
        field(2, "by_day", map_of(6, "int", 7, struct(field(10, "m", "int"), field(8, "n", "long")))),
        field(1, "items", list_of(3, wanted)),
    )
    assert answers(plan(file, requested)) == {
        2: 1,
        6: 0,
        7: 1,
        10: "null",
        8: 0,
        1: 0,
        3: 0,
        5: 1,
        9: (DEFAULT, "kg"),
        4: 0,
    }


def test_elements_are_widened() -> None:
    """A list of int reads as a list of long, a map of int to float as one of int to double."""
    file = of(field(1, "l", list_of(2, "int")), field(3, "m", map_of(4, "int", 5, "float")))
    requested = of(field(1, "l", list_of(2, "long")), field(3, "m", map_of(4, "int", 5, "double")))
    found = plan(file, requested)
    assert [c.stored for c in found.walk() if isinstance(c, Column) and c.promoted] == [
        IntegerType(),
        parse_type("float"),
    ]


def test_a_list_with_another_element_id_is_another_list() -> None:
    """Its elements are not what was asked for, so the column counts as missing."""
    file = of(field(1, "tags", list_of(2, "string")))
    assert answers(plan(file, of(field(1, "tags", list_of(9, "string"))))) == {1: "null"}
    assert plan(file, of(field(1, "tags", list_of(9, "string"), True))).faults


def test_a_field_under_another_parent_is_not_found() -> None:
    """IDs are looked up where the requested schema has them, not anywhere in the file."""
    file = of(field(1, "addr", struct(field(2, "city", "string"))))
    assert answers(plan(file, of(field(2, "city", "string")))) == {2: "null"}


def test_two_file_columns_with_one_id_are_a_fault() -> None:
    """Nothing says which of them is meant."""
    column = FileField("a", 1, "value", "int32", IntegerType())
    twins = FileSchema((column, FileField("b", 1, "value", "int32", IntegerType())))
    (fault,) = project(twins, of(field(1, "a", "int"))).faults
    assert "'a' and 'b'" in fault.reason


def test_a_stored_type_that_iceberg_lacks_is_a_fault_only_if_requested() -> None:
    """A file may hold more than the table knows."""
    file = FileSchema((FileField("a", 1, "value", "uint64"), FileField("b", 2, "value", "int32", IntegerType())))
    assert not project(file, of(field(2, "b", "int"))).faults
    assert "uint64" in project(file, of(field(1, "a", "long"))).faults[0].reason


def test_plans_can_be_asked_for_one_field() -> None:
    """The plan of a field inside a constant is the constant's."""
    found = plan(of(field(9, "z", "int")), _point({}, 4, 5))
    assert isinstance(found.find(1), Constant)
    assert found.find(2) is None


def test_variants_stored_as_two_parts_are_read() -> None:
    """Shredded ones are told apart: they would have to be put together first."""
    parts = (FileField("metadata", None, "value", "binary"), FileField("value", None, "value", "binary"))
    requested = of(field(1, "v", "variant"))
    whole = FileSchema((FileField("v", 1, "struct", "struct", None, parts),))
    assert answers(project(whole, requested)) == {1: 0}
    shredded = (*parts, FileField("typed_value", None, "value", "int32", LongType()))
    (fault,) = project(FileSchema((FileField("v", 1, "struct", "struct", None, shredded),)), requested).faults
    assert "shredded" in fault.reason


def test_sixteen_plain_bytes_are_a_uuid() -> None:
    """Writers that lack the annotation store them so."""
    assert answers(plan(of(field(1, "u", "fixed[16]")), of(field(1, "u", "uuid")))) == {1: 0}
    assert plan(of(field(1, "u", "fixed[15]")), of(field(1, "u", "uuid"))).faults


def test_a_date_is_no_other_number_of_days() -> None:
    """int and date are stored alike and mean different things."""
    assert plan(of(field(1, "d", "int")), of(field(1, "d", "date"))).faults
    assert isinstance(plan(of(field(1, "d", "date")), of(field(1, "d", "date"))).find(1), Column)
