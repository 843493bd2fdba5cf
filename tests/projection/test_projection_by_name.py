"""Files without field ids: by the name mapping, or by position (table spec: Column Projection)."""

from __future__ import annotations

from app.iceberg.types import IntegerType, StringType
from app.projection.file_schema import FileField, FileSchema
from app.projection.projection import Answer, project
from tests.projection.shorthand import (
    answers,
    bare,
    field,
    list_of,
    map_of,
    mapping,
    of,
    plan,
    struct,
)

DEFAULT = Answer.INITIAL_DEFAULT


def test_one_id_anywhere_makes_a_file_one_with_ids() -> None:
    """The mapping is for files without any; here the column `b` has no ID and is never used."""
    inner = FileField("x", 5, "value", "int32", IntegerType())
    file = FileSchema(
        (
            FileField("s", None, "struct", "struct", None, (inner,)),
            FileField("b", None, "value", "string", StringType()),
        )
    )
    names = '[{"field-id": 2, "names": ["b"]}]'
    found = project(file, of(field(2, "b", "string")), mapping(names))
    assert (answers(found), found.matched_by) == ({2: "null"}, Answer.FIELD_ID)


def test_a_file_with_ids_ignores_the_mapping() -> None:
    """The mapping would take `a` for field 2; the file says that it is field 1."""
    file = of(field(1, "a", "int"))
    assert answers(plan(file, of(field(2, "a", "int")), '[{"field-id": 2, "names": ["a"]}]')) == {2: "null"}


def test_several_names_map_to_one_id() -> None:
    """Files of different age call the column differently."""
    names = '[{"field-id": 1, "names": ["id", "record_id"]}]'
    for name in ("id", "record_id"):
        found = plan(bare(of(field(7, "other", "int"), field(8, name, "int"))), of(field(1, "id", "int")), names)
        assert (answers(found), found.matched_by) == ({1: 1}, Answer.NAME_MAPPING)


def test_two_file_columns_that_map_to_one_id_are_a_fault() -> None:
    """Nothing says which of them is meant."""
    file = bare(of(field(7, "id", "int"), field(8, "record_id", "int")))
    assert plan(file, of(field(1, "id", "int")), '[{"field-id": 1, "names": ["id", "record_id"]}]').faults


def test_a_dot_in_a_mapped_name_is_part_of_the_name() -> None:
    """`a.b` is the column `a.b`, never child `b` of `a`."""
    child = '{"field-id": 3, "names": ["b"]}'
    names = f'[{{"field-id": 1, "names": ["a.b"]}}, {{"field-id": 2, "names": ["a"], "fields": [{child}]}}]'
    requested = of(field(1, "x", "int"), field(2, "y", struct(field(3, "z", "int"))))
    literal = bare(of(field(7, "a.b", "int")))
    assert answers(plan(literal, requested, names)) == {1: 0, 2: "null"}
    nested = bare(of(field(7, "a", struct(field(8, "b", "int")))))
    assert answers(plan(nested, requested, names)) == {1: "null", 2: 0, 3: 0}


def test_an_entry_without_names_is_a_column_that_files_lack() -> None:
    """It answers with the rules that are left."""
    names = '[{"field-id": 1, "names": []}]'
    assert answers(plan(bare(of(field(7, "a", "int"))), of(field(1, "a", "int", initial=3)), names)) == {
        1: (DEFAULT, 3)
    }


def test_an_entry_without_id_is_a_column_that_the_table_lacks() -> None:
    """The file column stays unused, its children included."""
    names = '[{"names": ["junk"], "fields": [{"field-id": 2, "names": ["x"]}]}, {"field-id": 1, "names": ["a"]}]'
    file = bare(of(field(7, "junk", struct(field(8, "x", "int"))), field(9, "a", "int")))
    assert answers(plan(file, of(field(1, "a", "int"), field(2, "x", "int")), names)) == {1: 1, 2: "null"}


def test_mappings_reach_into_lists_and_maps_under_their_fixed_names() -> None:
    """Children are called element, key and value whatever the file calls them."""
    names = """[
      {"field-id": 1, "names": ["l"], "fields": [{"field-id": 2, "names": ["element"], "fields": [
        {"field-id": 3, "names": ["x"]}]}]},
      {"field-id": 4, "names": ["m"], "fields": [
        {"field-id": 5, "names": ["key"]}, {"field-id": 6, "names": ["value"]}]}]"""
    leaf = FileField("x", None, "value", "int32", IntegerType())
    group = FileField("array", None, "struct", "struct", None, (leaf,))
    file = FileSchema(
        (
            FileField("l", None, "list", "list", None, (group,)),
            FileField("m", None, "map", "map", None, (leaf, leaf)),
        )
    )
    requested = of(field(1, "l", list_of(2, struct(field(3, "x", "long")))), field(4, "m", map_of(5, "int", 6, "int")))
    assert answers(project(file, requested, mapping(names))) == {1: 0, 2: 0, 3: 0, 4: 1, 5: 0, 6: 1}


def test_a_list_whose_element_is_not_mapped_is_missing() -> None:
    """Without an entry for the element nothing says that its values are the ones asked for."""
    file = bare(of(field(7, "l", list_of(8, "int"))))
    assert answers(plan(file, of(field(1, "l", list_of(2, "int"))), '[{"field-id": 1, "names": ["l"]}]')) == {1: "null"}


def test_names_that_no_entry_has_are_not_used() -> None:
    """Letter case counts."""
    names = '[{"field-id": 1, "names": ["ID"]}]'
    assert answers(plan(bare(of(field(7, "id", "int"))), of(field(1, "ID", "int")), names)) == {1: "null"}


def test_without_ids_and_mapping_columns_are_counted() -> None:
    """The n-th column answers for ID n; what is inside a column is matched by its place."""
    file = bare(of(field(8, "p", "int"), field(9, "q", struct(field(10, "r", "int"), field(11, "s", "string")))))
    requested = of(
        field(2, "q", struct(field(30, "r", "long"), field(31, "s", "string"), field(32, "new", "int"))),
        field(1, "p", "int"),
        field(3, "t", "int"),
    )
    found = plan(file, requested)
    assert answers(found) == {2: 1, 30: 0, 31: 1, 32: "null", 1: 0, 3: "null"}
    assert found.matched_by is Answer.POSITION


def test_counting_reaches_into_lists_and_maps() -> None:
    """Their elements need no IDs."""
    file = bare(
        of(field(8, "l", list_of(9, struct(field(10, "x", "int")))), field(11, "m", map_of(12, "int", 13, "int")))
    )
    requested = of(
        field(1, "l", list_of(20, struct(field(21, "x", "int")))), field(2, "m", map_of(22, "int", 23, "long"))
    )
    assert answers(plan(file, requested)) == {1: 0, 20: 0, 21: 0, 2: 1, 22: 0, 23: 1}
