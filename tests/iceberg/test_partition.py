"""Partition specs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from app.errors import SpecError, ValidationFailed
from app.iceberg.json.codec import decode, encode
from app.iceberg.partition import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    check_partition_names,
    check_spec,
    compatible,
    parse_partition_fields,
    parse_partition_spec,
    parse_unbound_partition_spec,
    partition_fields_to_json,
    partition_spec_to_json,
    unbound_partition_spec_to_json,
)
from app.iceberg.schema import Schema, parse_schema
from app.iceberg.transforms import IDENTITY, VOID, bucket, parse_transform
from tests.iceberg.strategies import JSON_VALUES, partition_specs

SCHEMA = parse_schema(
    {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "ts", "required": False, "type": "timestamp"},
            {"id": 3, "name": "addr", "required": False, "type": {"type": "struct", "fields": [
                {"id": 4, "name": "geo", "required": False, "type": {"type": "struct", "fields": [
                    {"id": 5, "name": "city", "required": False, "type": "string"}]}}]}},
            {"id": 6, "name": "tags", "required": False, "type": {
                "type": "list", "element-id": 7, "element": "string", "element-required": False}},
            {"id": 8, "name": "props", "required": False, "type": {
                "type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "int",
                "value-required": False}},
            {"id": 11, "name": "v", "required": False, "type": "variant"},
        ],
    }
)  # fmt: skip


def part(source_id: int, name: str, transform: str = "identity", field_id: int = 1000) -> PartitionField:
    return PartitionField((source_id,), field_id, name, parse_transform(transform))


@given(partition_specs())
def test_every_spec_reads_back(spec: PartitionSpec) -> None:
    """Writing and parsing a spec gives an equal one, extra keys included, also as a request."""
    json = decode(encode(partition_spec_to_json(spec)))
    assert parse_partition_spec(json) == spec
    unbound = parse_unbound_partition_spec(json)
    assert unbound_partition_spec_to_json(unbound) == json
    assert compatible(unbound, spec)


@given(JSON_VALUES)
def test_any_json_is_a_spec_or_a_spec_error(json: Any) -> None:
    """The parsers never fail in another way."""
    for document in (json, {"spec-id": 1, "fields": json}, {"spec-id": 1, "fields": [json]}):
        for parse in (parse_partition_spec, parse_unbound_partition_spec):
            try:
                parse(document)
            except SpecError:
                continue


def test_the_example_of_the_spec() -> None:
    """Members are read and written as in Appendix C."""
    json = {
        "spec-id": 0,
        "fields": [
            {"source-id": 4, "field-id": 1000, "name": "ts_day", "transform": "day"},
            {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"},
        ],
    }
    spec = parse_partition_spec(json)
    assert spec.fields[1] == PartitionField((1,), 1001, "id_bucket", bucket(16))
    assert partition_spec_to_json(spec) == json
    assert spec.highest_field_id == 1001
    assert [field.source_id for field in spec.fields] == [4, 1]
    assert [field.source_id for field in parse_unbound_partition_spec(json).fields] == [4, 1]
    assert str(spec.fields[1]) == "1001: id_bucket: bucket[16](1)"


def test_field_ids_may_be_missing_on_all_fields() -> None:
    """Old specs count from 1000; a mixture is refused when stored, accepted when requested (O-14)."""
    bare = [{"source-id": 1, "name": "a", "transform": "identity"}, {"source-id": 2, "name": "b", "transform": "day"}]
    assert [field.field_id for field in parse_partition_fields(bare, 0).fields] == [1000, 1001]
    mixed = {"spec-id": 0, "fields": [{**bare[0], "field-id": 1005}, {**bare[1], "field-id": None}]}
    with pytest.raises(SpecError, match="missing field IDs: 1 missing of 2"):
        parse_partition_spec(mixed)
    assert [field.field_id for field in parse_unbound_partition_spec(mixed).fields] == [1005, None]
    written = unbound_partition_spec_to_json(parse_unbound_partition_spec({"fields": bare}))
    assert written == {"fields": [{k: item[k] for k in ("name", "transform", "source-id")} for item in bare]}


def test_several_sources() -> None:
    """source-ids is written for several sources only, and must not contradict source-id."""
    item = {"field-id": 1000, "name": "z", "transform": "zorder"}
    assert parse_partition_fields([{**item, "source-ids": [1, 2]}], 0).fields[0].source_ids == (1, 2)
    assert parse_partition_fields([{**item, "source-id": 1, "source-ids": [1]}], 0).fields[0].source_ids == (1,)
    both = parse_partition_fields([{**item, "source-ids": [1, 2]}], 0)
    assert partition_fields_to_json(both.fields)[0] == {**item, "source-ids": [1, 2]}
    one = parse_partition_fields([{**item, "source-ids": [3]}], 0)
    assert partition_fields_to_json(one.fields)[0] == {**item, "source-id": 3}
    wrongs: tuple[dict[str, Any], ...] = (
        {}, {"source-ids": []}, {"source-id": 1, "source-ids": [2]}, {"source-id": 1, "source-ids": [1, 2]}
    )  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(SpecError):
            parse_partition_fields([{**item, **wrong}], 0)


@pytest.mark.parametrize("names", [["", "b"], ["a", "a"]])
def test_partition_names_are_set_and_unique(names: list[str]) -> None:
    """Otherwise no reader could load the spec."""
    fields = [
        {"source-id": at, "field-id": 1000 + at, "name": name, "transform": "void"} for at, name in enumerate(names)
    ]
    for parse in (parse_partition_spec, parse_unbound_partition_spec):
        with pytest.raises(SpecError, match="partition name") as caught:
            parse({"spec-id": 1, "fields": fields}, "$.spec")
        assert caught.value.path.startswith("$.spec")


def test_compatible_specs() -> None:
    """Sources, transforms and names in order decide; ids do not."""
    one = PartitionSpec(0, (part(1, "a"), part(2, "b", "day", 1001)))
    assert compatible(one, PartitionSpec(5, (part(1, "a", field_id=1007), part(2, "b", "DAY", 1008))))
    for other in (
        (part(2, "b", "day"), part(1, "a")),
        (part(1, "a"),),
        (part(1, "a"), part(2, "b", "hour")),
        (part(1, "a"), part(2, "c", "day")),
        (part(1, "a"), part(3, "b", "day")),
    ):
        assert not compatible(one, PartitionSpec(0, other))
    assert one.fields[0].equivalent(part(1, "a", field_id=2000))


def test_unpartitioned_specs() -> None:
    """No fields, or only void ones, put everything into one partition."""
    assert UNPARTITIONED.is_unpartitioned
    assert UNPARTITIONED.highest_field_id == 999
    assert PartitionSpec(1, (PartitionField((1,), 1000, "a", VOID),)).is_unpartitioned
    assert not PartitionSpec(1, (part(1, "a"),)).is_unpartitioned


GOOD = [
    part(1, "id"), part(1, "id_bucket", "bucket[4]"), part(2, "ts_day", "day"), part(5, "addr.geo.city"),
    part(5, "city", "truncate[2]"), part(99, "gone", "void"), part(6, "tags", "void"), part(2, "z", "zorder"),
    part(99, "id", "void"),
]  # fmt: skip


@pytest.mark.parametrize("field", GOOD, ids=str)
def test_specs_that_fit_the_schema(field: PartitionField) -> None:
    """Sources in structs are fine; void fields need no source; a lost source frees the name."""
    check_spec(PartitionSpec(0, (field,)), SCHEMA)


BAD = [
    (part(99, "gone"), "Cannot find source column"), (part(3, "x"), "non-primitive"), (part(11, "x"), "non-primitive"),
    (part(1, "x", "day"), "Invalid source type long for transform: day"),
    (part(2, "x", "truncate[3]"), "Invalid source type timestamp"),
    (part(7, "x"), "parent: tags"), (part(9, "x"), "parent: props"), (part(10, "x", "bucket[2]"), "parent: props"),
    (part(2, "id", "day"), "belongs to column 1"), (part(2, "id", "void"), "belongs to column 1"),
    (PartitionField((1, 2), 1000, "x", IDENTITY), "takes one source"), (part(99, "gone", "zorder"), "Cannot find"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "message"), BAD, ids=str)
def test_specs_that_do_not_fit_the_schema(field: PartitionField, message: str) -> None:
    """Missing, nested, listed or unsuited sources and stolen names are refused (O-14)."""
    with pytest.raises(ValidationFailed, match=message):
        check_spec(PartitionSpec(0, (field,)), SCHEMA)


def test_partition_names_clash_with_columns_added_later() -> None:
    """A column may not take the name of a partition field of another source that still exists."""
    spec = PartitionSpec(0, (part(2, "ts_day", "day"),))
    source = {"id": 2, "name": "ts", "required": False, "type": "date"}
    column = {"id": 12, "name": "ts_day", "required": False, "type": "date"}
    later = parse_schema({"type": "struct", "fields": [source, column]})
    with pytest.raises(ValidationFailed):
        check_partition_names(spec, later)
    check_partition_names(spec, Schema(0, later.fields[1:]))
