"""Nested types and fields as JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from msgspec import UNSET

from app.errors import SpecError
from app.iceberg.json.codec import decode, encode
from app.iceberg.types import (
    MAX_TYPE_DEPTH,
    DoubleType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    field_to_json,
    min_format_version,
    parse_type,
    type_to_json,
)
from tests.iceberg.strategies import JSON_VALUES, types

FIELD: dict[str, Any] = {"id": 1, "name": "a", "required": True, "type": "int"}
STRUCT: dict[str, Any] = {"type": "struct", "fields": [FIELD]}
LIST: dict[str, Any] = {"type": "list", "element-id": 3, "element": "string", "element-required": True}
MAP: dict[str, Any] = {
    "type": "map", "key-id": 4, "key": "string", "value-id": 5, "value": "double", "value-required": False
}  # fmt: skip


@given(types(3))
def test_every_type_reads_back(any_type: Type) -> None:
    """Writing a type as JSON text and parsing it gives an equal type, extra keys and defaults included."""
    again = parse_type(decode(encode(type_to_json(any_type))))
    assert again == any_type
    assert repr(again) == repr(any_type)


@given(JSON_VALUES)
def test_any_json_is_a_type_or_a_spec_error(json: Any) -> None:
    """The parser never fails in another way."""
    for document in (json, {"type": "struct", "fields": json}, {**LIST, "element": json}, {**FIELD, "type": json}):
        try:
            parse_type(document)
        except SpecError:
            continue


@pytest.mark.parametrize("json", [STRUCT, LIST, MAP])
def test_nested_types_keep_their_json_form(json: dict[str, Any]) -> None:
    """The examples of the spec are read and written unchanged."""
    assert type_to_json(parse_type(json)) == json


@pytest.mark.parametrize("json", [STRUCT, LIST, MAP, FIELD])
def test_every_member_of_a_nested_type_is_mandatory(json: dict[str, Any]) -> None:
    """Leaving one out, setting it to null or to another kind is refused with its name."""
    for key in json:
        if key == "type" and json is not FIELD:
            continue
        for broken in ({**json, key: None}, {k: v for k, v in json.items() if k != key}):
            with pytest.raises(SpecError, match=key):
                parse_type({"type": "struct", "fields": [broken]} if json is FIELD else broken)
        wrongs: tuple[Any, ...] = (1.5, "34", [], True)
        for wrong in wrongs:
            if type(wrong) is type(json[key]):
                continue
            with pytest.raises(SpecError):
                document = {**json, key: wrong}
                parse_type({"type": "struct", "fields": [document]} if json is FIELD else document)


def test_faults_name_their_path() -> None:
    """A fault deep inside is reported where it is."""
    deep = {**STRUCT, "fields": [FIELD, {**FIELD, "id": 2, "type": {**LIST, "element": "strng"}}]}
    with pytest.raises(SpecError) as caught:
        parse_type(deep, "$.schema")
    assert caught.value.path == "$.schema.fields[1].type.element"


@pytest.mark.parametrize("field_id", [2**31, -(2**31) - 1, 1.0, "1", True])
def test_field_ids_are_32_bit_integers(field_id: Any) -> None:
    """Other numbers and kinds are refused; which ids may be used is not judged here."""
    with pytest.raises(SpecError):
        parse_type({"type": "struct", "fields": [{**FIELD, "id": field_id}]})


@pytest.mark.parametrize("field_id", [0, -1, -(2**31), 2147483447, 2147483448, 2**31 - 1])
def test_negative_and_reserved_ids_are_read(field_id: int) -> None:
    """Tables that carry such ids must stay readable."""
    parsed = parse_type({"type": "struct", "fields": [{**FIELD, "id": field_id}]})
    assert isinstance(parsed, StructType)
    assert parsed.fields[0].field_id == field_id
    assert parsed.fields[0].required != parsed.fields[0].optional


def test_null_doc_and_defaults_count_as_absent() -> None:
    """Explicit nulls are read as none and never written (O-21)."""
    nulls = {**FIELD, "doc": None, "initial-default": None, "write-default": None}
    parsed = parse_type({"type": "struct", "fields": [nulls]})
    assert parsed == parse_type(STRUCT)
    assert type_to_json(parsed) == STRUCT


def test_a_bare_integer_default_of_a_float_type_gets_its_point() -> None:
    """The reference implementation refuses 1 where 1.0 is meant; ints elsewhere stay ints."""
    for kind in ("float", "double"):
        parsed = parse_type({"type": "struct", "fields": [{**FIELD, "type": kind, "initial-default": 1}]})
        assert encode(type_to_json(parsed)).endswith(b'"initial-default":1.0}]}')
    built = NestedField(1, "a", False, DoubleType(), write_default=3)
    assert encode(field_to_json(built)).endswith(b'"write-default":3.0}')
    integer = NestedField(1, "a", False, IntegerType(), initial_default=3)
    assert encode(field_to_json(integer)).endswith(b'"initial-default":3}')
    huge = NestedField(1, "a", False, DoubleType(), initial_default=10**400)
    assert field_to_json(huge)["initial-default"] == 10**400


def test_defaults_of_any_kind_are_kept() -> None:
    """Whether a default fits its type is a rule's business, not the parser's."""
    for value in ("x", False, 1, 1.5, {}, {"13": 1}, [], [None]):
        parsed = parse_type({"type": "struct", "fields": [{**FIELD, "initial-default": value}]})
        assert isinstance(parsed, StructType)
        assert parsed.fields[0].initial_default == value
        assert parsed.fields[0].has_initial_default
        assert not parsed.fields[0].has_write_default
        assert parsed.fields[0].write_default is UNSET


def test_nesting_is_limited_and_the_limit_is_usable() -> None:
    """A type at the limit is parsed, printed, compared and written; one level more is a SpecError."""
    json: Any = "int"
    for level in range(MAX_TYPE_DEPTH):
        json = (
            {"type": "struct", "fields": [{"id": level, "name": "a", "required": False, "type": json}]}
            if level % 2
            else {**LIST, "element": json, "element-id": level}
        )
    parsed = parse_type(json)
    assert parsed == parse_type(decode(encode(type_to_json(parsed))))
    assert len(str(parsed)) > MAX_TYPE_DEPTH
    with pytest.raises(SpecError, match="nested deeper"):
        parse_type({**LIST, "element": json})


def test_children_of_lists_and_maps_as_fields() -> None:
    """Elements, keys and values stand in for fields; map keys are required."""
    assert ListType(3, StringType(), False).element_field == NestedField(3, "element", False, StringType())
    both = MapType(4, StringType(), 5, IntegerType(), True)
    assert both.key_field == NestedField(4, "key", True, StringType())
    assert both.value_field == NestedField(5, "value", True, IntegerType())
    assert min_format_version(both) == 1


def test_types_print_readably() -> None:
    """Messages show nested types in one line."""
    parsed = parse_type({**STRUCT, "fields": [{**FIELD, "type": {**MAP, "value": LIST}}]})
    assert str(parsed) == "struct<1: a: required map<string, list<string>>>"
