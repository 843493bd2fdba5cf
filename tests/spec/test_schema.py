"""Schemas, their index, and what cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema as Reference

from app.errors import SpecError
from app.spec.codec import decode, encode
from app.spec.schema import Schema, decode_schema, parse_schema, reassign_ids, schema_to_json
from app.spec.types import (
    MAX_TYPE_DEPTH,
    DateType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    UnknownType,
    field_to_json,
)
from tests.spec.strategies import JSON_VALUES, schemas


def req(field_id: int, name: str, field_type: Type) -> NestedField:
    return NestedField(field_id, name, True, field_type)


def opt(field_id: int, name: str, field_type: Type) -> NestedField:
    return NestedField(field_id, name, False, field_type)


NESTED = Schema(
    3,
    (
        req(1, "id", LongType()),
        opt(2, "tags", ListType(8, StringType(), False)),
        opt(3, "addr", StructType((opt(9, "city", StringType()), req(10, "zip", IntegerType())))),
        opt(4, "stops", ListType(11, StructType((req(12, "lat", LongType()),)), True)),
        opt(
            5,
            "props",
            MapType(13, StructType((req(14, "k", StringType()),)), 15, StructType((opt(16, "v", DateType()),)), False),
        ),
        opt(6, "grid", ListType(17, ListType(18, IntegerType(), False), False)),
    ),
    (1,),
)


def parse_schema_text(data: bytes, path: str = "$") -> Schema:
    """The slow way that `decode_schema` must agree with."""
    return parse_schema(decode(data, path), path)


def outcome(parse: Callable[[bytes, str], Schema], data: bytes) -> str:
    """What came out, schema or fault, as text that tells ints from floats."""
    try:
        return repr(parse(data, "$.s"))
    except SpecError as fault:
        return fault.message


@given(schemas())
def test_every_schema_reads_back(schema: Schema) -> None:
    """Writing a schema and parsing it, either way, gives an equal one with the same text."""
    data = encode(schema_to_json(schema))
    parsed, decoded = parse_schema(decode(data)), decode_schema(data)
    assert parsed == schema == decoded
    assert repr(parsed) == repr(schema) == repr(decoded)
    assert encode(schema_to_json(decoded)) == data


@given(st.binary(max_size=60) | JSON_VALUES.map(msgspec.json.encode))
def test_arbitrary_bytes_are_a_schema_or_a_spec_error(data: bytes) -> None:
    """The fast decoder never fails in another way, and always as the slow one does."""
    assert outcome(decode_schema, data) == outcome(parse_schema_text, data)


@given(st.data())
def test_the_fast_decoder_agrees_with_the_parser(data: st.DataObject) -> None:
    """Whatever members a field or schema gets, both ways give the same schema or the same fault."""
    names = ["id", "name", "required", "type", "doc", "initial-default", "write-default", "extra", "x", "field_id"]
    usual: list[Any] = [None, "int", "a", 1, 2**31, 1.0, True, {"type": "list"}, [], {}]
    values = st.sampled_from(usual) | JSON_VALUES
    good = {"id": 1, "name": "a", "required": True, "type": "double"}
    field = good | data.draw(st.dictionaries(st.sampled_from(names), values, max_size=3))
    schema = {"type": "struct", "fields": [field]} | data.draw(
        st.dictionaries(st.sampled_from(["schema-id", "identifier-field-ids", "y", "type"]), values, max_size=2)
    )
    text = encode(schema)
    if data.draw(st.booleans()):
        text = text.replace(b"-default", b"\\u002ddefault").replace(b'"extra"', b'"e\\u0078tra"')
    assert outcome(decode_schema, text) == outcome(parse_schema_text, text)


def test_a_flat_schema_is_read_at_once_or_with_care_alike() -> None:
    """Null members, float defaults and unknown keys come out the same from text and from decoded JSON."""
    text = (
        b'{"type":"struct","schema-id":null,"identifier-field-ids":null,"y":[1],"fields":['
        b'{"id":1,"name":"a","required":false,"type":"double","doc":null,"initial-default":1,"write-default":null},'
        b'{"id":2,"name":"b","required":false,"type":"decimal( 9,2)","x":{"z":null}}]}'
    )
    schema = decode_schema(text)
    assert schema == parse_schema(decode(text))
    assert encode(schema_to_json(schema)) == (
        b'{"type":"struct","schema-id":0,"fields":['
        b'{"id":1,"name":"a","required":false,"type":"double","initial-default":1.0},'
        b'{"id":2,"name":"b","required":false,"type":"decimal(9, 2)","x":{"z":null}}],"y":[1]}'
    )


def test_the_index_covers_every_depth() -> None:
    """Elements, keys and values are entries of their own, with parent, kind, position and full name."""
    expected = {
        1: ("id", None, "field", 0),
        2: ("tags", None, "field", 1),
        8: ("tags.element", 2, "element", 0),
        3: ("addr", None, "field", 2),
        9: ("addr.city", 3, "field", 0),
        10: ("addr.zip", 3, "field", 1),
        4: ("stops", None, "field", 3),
        11: ("stops.element", 4, "element", 0),
        12: ("stops.element.lat", 11, "field", 0),
        5: ("props", None, "field", 4),
        13: ("props.key", 5, "key", 0),
        14: ("props.key.k", 13, "field", 0),
        15: ("props.value", 5, "value", 1),
        16: ("props.value.v", 15, "field", 0),
        6: ("grid", None, "field", 5),
        17: ("grid.element", 6, "element", 0),
        18: ("grid.element.element", 17, "element", 0),
    }
    assert list(NESTED.by_id) == list(expected)
    for field_id, (name, parent, kind, position) in expected.items():
        assert NESTED.name_of(field_id) == name
        assert NESTED.parents[field_id] == parent
        assert NESTED.kind_of(field_id) == kind
        assert NESTED.positions[field_id] == position
        assert NESTED.find(name) == NESTED.by_id[field_id]
    assert NESTED.highest_id == 18
    assert [field.field_id for field in NESTED.ancestors(18)] == [17, 6]


def test_a_flat_schema_has_the_same_index() -> None:
    """The shortcut for schemas without nested types gives every part of the index."""
    flat = Schema(0, (opt(7, "b", LongType()), opt(3, "a.c", StringType())))
    nested = Schema(0, (*flat.fields, opt(9, "l", ListType(10, LongType(), False))))
    for field_id, position in ((7, 0), (3, 1)):
        for schema in (flat, nested):
            assert schema.by_id[field_id] is flat.fields[position]
            assert schema.name_of(field_id) == flat.fields[position].name
            assert schema.find(flat.fields[position].name) is flat.fields[position]
            assert schema.parents[field_id] is None
            assert schema.kind_of(field_id) == "field"
            assert schema.positions[field_id] == position
    assert list(flat.by_id) == [7, 3]
    assert flat.highest_id == 7


def test_plain_documents_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither nested types nor escapes in names, only defaults and unknown keys make the decoder go slowly."""
    plain = encode(schema_to_json(NESTED)).replace(b'"id","required"', b'"i\\u0064","required"')
    monkeypatch.setattr("app.spec.schema.parse_schema", lambda *_: pytest.fail("the slow way"))
    assert decode_schema(plain) == NESTED


def test_pyiceberg_reads_the_same_schema() -> None:
    """Names, ids and identifier fields are those that a client sees."""
    reference = Reference.model_validate_json(encode(schema_to_json(NESTED)))
    assert reference.schema_id == NESTED.schema_id
    assert reference.identifier_field_ids == [1]
    assert reference.highest_field_id == NESTED.highest_id
    for field_id in NESTED.by_id:
        assert reference.find_column_name(field_id) == NESTED.name_of(field_id)


def test_equal_schemas_have_equal_hashes() -> None:
    """Schemas can be kept in sets, extra keys or not."""
    twins = [Schema(1, NESTED.fields, (1,), {"x": [1]}) for _ in range(2)]
    assert len(set(twins)) == 1
    assert twins[0] != NESTED
    assert twins[0].with_id(1) is twins[0]
    assert twins[0].same_content(twins[0])


def test_columns_are_found_by_the_names_that_engines_show() -> None:
    """Above a struct, element and value may be left out of a name; key may not."""
    assert NESTED.find("stops.lat") is None
    found = {name: NESTED.find_readable(name) for name in ("stops.lat", "props.v", "props.k", "addr.city", "grid.x")}
    assert {name: field and field.field_id for name, field in found.items()} == {
        "stops.lat": 12, "props.v": 16, "props.k": None, "addr.city": 9, "grid.x": None
    }  # fmt: skip


def test_an_empty_schema_is_a_schema() -> None:
    """Views and staged tables may have no columns."""
    empty = parse_schema({"type": "struct", "fields": []})
    assert empty.highest_id == 0
    assert schema_to_json(empty) == {"type": "struct", "schema-id": 0, "fields": []}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((req(1, "a", LongType()), opt(1, "b", LongType())), "field id 1 is used by a and by b"),
        ((req(1, "a", LongType()), opt(2, "l", ListType(1, LongType(), False))), "field id 1"),
        ((opt(2, "m", MapType(3, LongType(), 3, LongType(), False)),), "field id 3 is used by m.key and by m.value"),
        ((req(1, "a", LongType()), req(2, "a", LongType())), "multiple fields for name a: 1 and 2"),
        ((req(1, "a.b", LongType()), opt(2, "a", StructType((req(3, "b", LongType()),)))), "name a.b: 1 and 3"),
        ((req(1, "l.element", LongType()), opt(2, "l", ListType(3, LongType(), False))), "name l.element"),
        ((req(1, "a", UnknownType()),), "a of type unknown must be optional"),
        ((opt(1, "l", ListType(2, UnknownType(), True)),), "l.element of type unknown must be optional"),
        ((opt(1, "m", MapType(2, LongType(), 3, UnknownType(), True)),), "m.value of type unknown must be optional"),
    ],
)
def test_what_the_reference_implementation_cannot_load_cannot_be_built(
    fields: tuple[NestedField, ...], message: str
) -> None:
    """Ids and full names are unique at all depths, unknown is optional; the parser reports the schema's path."""
    with pytest.raises(SpecError, match=message):
        Schema(0, fields)
    text = encode({"type": "struct", "fields": [field_to_json(field) for field in fields]})
    for parse in (decode_schema, parse_schema_text):
        with pytest.raises(SpecError, match=message) as caught:
            parse(text, "$.schemas[2]")
        assert caught.value.path == "$.schemas[2]"


def test_names_that_differ_by_case_are_different() -> None:
    """Iceberg names are case sensitive (O-09)."""
    schema = Schema(0, (req(1, "Title", StringType()), opt(2, "title", StringType()), opt(3, "tItLe", StringType())))
    assert schema.find("title") == schema.by_id[2]
    assert schema.find("TITLE") is None


@pytest.mark.parametrize(
    ("identifiers", "message"),
    [
        ((99,), "does not exist"),
        ((2,), "not a primitive"),
        ((9,), "not a required"),
        ((10,), "optional addr"),
        ((12,), "list or map"),
        ((14,), "list or map"),
        ((1, 7), "float or double"),
    ],
)
def test_identifier_fields_obey_the_spec(identifiers: tuple[int, ...], message: str) -> None:
    """They exist, are primitive, required, no float or double, and only under required structs."""
    fields = (*NESTED.fields, req(7, "score", DoubleType()))
    with pytest.raises(SpecError, match=message):
        Schema(0, fields, identifiers)


def test_identifier_fields_may_nest_in_required_structs() -> None:
    """A chain of required structs is fine; repeated ids count once."""
    inner = StructType((req(3, "c", StringType()),))
    schema = Schema(0, (req(1, "a", StructType((req(2, "b", inner),))),), (3, 3))
    assert schema.identifier_field_ids == (3,)
    assert schema_to_json(schema)["identifier-field-ids"] == [3]


def test_same_content_leaves_the_schema_id_out() -> None:
    """Fields in order with docs and defaults, and the set of identifier fields, decide."""
    a, b = req(1, "a", LongType()), req(2, "b", LongType())
    assert Schema(1, (a, b), (1, 2)).same_content(Schema(7, (a, b), (2, 1)))
    assert not Schema(1, (a, b)).same_content(Schema(1, (b, a)))
    assert not Schema(1, (a, b)).same_content(Schema(1, (a, b), (1,)))
    documented = msgspec.structs.replace(a, doc="x")
    assert not Schema(1, (a,)).same_content(Schema(1, (documented,)))
    defaulted = msgspec.structs.replace(a, write_default=3)
    assert not Schema(1, (a,)).same_content(Schema(1, (defaulted,)))


@settings(max_examples=20)
@given(schemas(), st.integers(0, 100))
def test_another_id_changes_nothing_else(schema: Schema, schema_id: int) -> None:
    """with_id keeps the content."""
    renamed = schema.with_id(schema_id)
    assert renamed.schema_id == schema_id
    assert renamed.same_content(schema)
    assert renamed == Schema(schema_id, schema.fields, schema.identifier_field_ids, schema.extra)


@pytest.mark.parametrize(
    "json",
    [
        [], "struct", {"fields": []}, {"type": "list", "fields": []}, {"type": "struct"},
        {"type": "struct", "fields": {}}, {"type": "struct", "fields": [[]]},
        {"type": "struct", "fields": [], "schema-id": "1"}, {"type": "struct", "fields": [], "schema-id": 2**31},
        {"type": "struct", "fields": [], "identifier-field-ids": [1.0]},
        {"type": "struct", "fields": [], "identifier-field-ids": 1},
    ],
)  # fmt: skip
def test_documents_that_are_no_schema_are_refused(json: Any) -> None:
    """Kinds and ranges hold for the schema's own members too."""
    with pytest.raises(SpecError):
        parse_schema(json)
    with pytest.raises(SpecError):
        decode_schema(encode(json))


def test_fresh_ids_follow_the_order_of_the_reference_implementation() -> None:
    """All fields of a struct first, then into each in order; key and value together; references follow (O-05)."""
    fresh, mapping = reassign_ids(NESTED)
    assert fresh.schema_id == 0
    assert fresh.identifier_field_ids == (1,)
    assert {NESTED.name_of(old): new for old, new in mapping.items()} == {
        "id": 1, "tags": 2, "addr": 3, "stops": 4, "props": 5, "grid": 6,
        "tags.element": 7,
        "addr.city": 8, "addr.zip": 9,
        "stops.element": 10, "stops.element.lat": 11,
        "props.key": 12, "props.value": 13, "props.key.k": 14, "props.value.v": 15,
        "grid.element": 16, "grid.element.element": 17,
    }  # fmt: skip


@settings(max_examples=50)
@given(schemas(), st.integers(1, 1000))
def test_fresh_ids_are_dense_and_change_nothing_else(schema: Schema, start: int) -> None:
    """Ids run from start without gaps; names, types, docs, defaults and extras stay."""
    fresh, mapping = reassign_ids(schema, start)
    assert sorted(fresh.by_id) == list(range(start, start + len(schema.by_id)))
    for old, new in mapping.items():
        before, after = schema.by_id[old], fresh.by_id[new]
        assert schema.name_of(old) == fresh.name_of(new)
        assert (before.required, before.doc, before.initial_default, before.write_default, before.extra) == (
            after.required, after.doc, after.initial_default, after.write_default, after.extra
        )  # fmt: skip
    back = {new: old for old, new in mapping.items()}
    assert [back[new] for new in fresh.identifier_field_ids] == list(schema.identifier_field_ids)


def test_the_deepest_schema_can_be_used() -> None:
    """At the limit of nesting, both parsers, the index, renumbering and writing work."""
    json: Any = "int"
    for level in range(MAX_TYPE_DEPTH, 0, -1):
        json = {"type": "struct", "fields": [{"id": level + 1, "name": "a", "required": False, "type": json}]}
    top = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": json}]}
    schema = decode_schema(encode(top))
    assert schema == parse_schema(top)
    assert schema.name_of(MAX_TYPE_DEPTH + 1).count(".") == MAX_TYPE_DEPTH
    assert reassign_ids(schema)[0].highest_id == MAX_TYPE_DEPTH + 1
    wrapped = {"type": "struct", "fields": [{"id": 998, "name": "b", "required": False, "type": json}]}
    deeper = {"type": "struct", "fields": [{"id": 999, "name": "a", "required": False, "type": wrapped}]}
    for parse in (decode_schema, parse_schema_text):
        with pytest.raises(SpecError, match="nested deeper"):
            parse(encode(deeper))


def test_full_names_have_a_limit_together() -> None:
    """A long name over many fields is a small document and a huge index: refused, with the way out."""
    children = tuple(NestedField(at, f"c{at}", False, StringType()) for at in range(2, 1_000))
    with pytest.raises(SpecError, match=r"more than 16777216 characters together. Shorten the names"):
        Schema(0, (NestedField(1, "x" * 100_000, False, StructType(children)),))
