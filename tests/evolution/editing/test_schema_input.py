"""Schemas as people and programs write them."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema as TheirSchema
from pyiceberg.types import IntegerType, ListType, NestedField, StringType

from app.errors import BadRequest, SpecError
from app.evolution.editing.schema_input import is_given, renamed_from, wanted_schema, wanted_type
from tests.evolution.tables import field, list_of, schema


def test_the_three_forms_mean_the_same() -> None:
    """Iceberg's JSON, a list of fields, and an Arrow schema."""
    arrow = pa.schema([pa.field("a", pa.int64(), nullable=False)]).serialize().to_pybytes()
    forms: list[dict[str, Any]] = [
        {"schema": {"type": "struct", "fields": [{"name": "a", "type": "long", "required": True}]}},
        {"schema": [{"name": "a", "type": "long", "required": True}]},
        {"fields": [{"name": "a", "type": "long", "required": True}]},
        {"arrow-ipc-schema": base64.b64encode(arrow).decode()},
    ]
    found = [wanted_schema(form).fields for form in forms]
    assert all(one == found[0] for one in found)
    assert all(is_given(form) for form in forms) and not is_given({"updates": []})


def test_a_schema_that_pyiceberg_dumps_is_read_with_its_ids() -> None:
    """As a list of fields or as a whole."""
    theirs = TheirSchema(
        NestedField(1, "a", IntegerType(), required=True),
        NestedField(2, "l", ListType(3, StringType(), False), required=False),
    )
    listed = wanted_schema({"fields": [one.model_dump(mode="json", by_alias=True) for one in theirs.fields]})
    whole = wanted_schema({"schema": theirs.model_dump(mode="json", by_alias=True)})
    assert listed.numbered and whole.numbered
    assert list(listed.schema().by_id) == list(whole.schema().by_id) == [1, 2, 3]


@pytest.mark.parametrize(
    ("fields", "numbered"),
    [
        ([field(1, "a", "int")], True),
        ([{"name": "a", "type": "int"}], False),
        ([field(1, "a", list_of(2, "int"))], True),
        ([field(1, "a", {"type": "list", "element": "int"})], False),
        ([field(1, "a", {"type": "struct", "fields": [{"name": "x", "type": "int"}]})], False),
        ([field(1, "a", {"type": "map", "key-id": 2, "key": "int", "value": "int"})], False),
        ([], False),
    ],
)
def test_a_schema_counts_as_numbered_when_every_id_is_there(fields: list[Any], numbered: bool) -> None:
    """At every depth."""
    assert wanted_schema({"fields": fields}).numbered is numbered


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": schema(field(1, "a", "int")), "fields": []},
        {"arrow-ipc-schema": "no base64!"},
        {"arrow-ipc-schema": base64.b64encode(b"nonsense").decode()},
        {"schema": {"type": "list", "element": "int"}},
        {"fields": {"a": "int"}},
        {"fields": [{"name": "a"}]},
        {"fields": [{"name": "a", "type": "nonsense"}]},
        {"fields": [{"name": "a", "type": {"type": "list"}}]},
        {"fields": [3]},
        {"fields": [{"name": "a", "type": "int", "id": "one"}]},
    ],
)
def test_anything_else_is_a_bad_request(body: dict[str, Any]) -> None:
    """Two forms, none, or one that is malformed."""
    with pytest.raises(BadRequest):
        wanted_schema(body)


def test_a_former_name_is_a_string() -> None:
    """The hint is kept apart from the field."""
    (one,) = wanted_schema({"fields": [{"name": "a", "type": "int", "renamed-from": "b"}]}).fields
    assert renamed_from(one) == "b"
    (one,) = wanted_schema({"fields": [{"name": "a", "type": "int", "renamed-from": 7}]}).fields
    with pytest.raises(SpecError):
        renamed_from(one)


def test_placeholders_never_meet_real_ids() -> None:
    """They are below zero and all different."""
    made = wanted_type({"type": "map", "key": "int", "value": {"type": "list", "element": "int"}})
    assert str(made) == "map<int, list<int>>"
