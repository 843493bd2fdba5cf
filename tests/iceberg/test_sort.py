"""Sort orders."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from app.errors import SpecError, ValidationFailed
from app.iceberg.json.codec import decode, encode
from app.iceberg.sort import (
    UNSORTED,
    SortField,
    SortOrder,
    check_order,
    parse_sort_order,
    sort_order_to_json,
)
from app.iceberg.transforms import IDENTITY, bucket, parse_transform
from tests.iceberg.strategies import JSON_VALUES, sort_orders
from tests.iceberg.test_partition import SCHEMA

FIELD: dict[str, Any] = {
    "transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"
}  # fmt: skip


@given(sort_orders())
def test_every_order_reads_back(order: SortOrder) -> None:
    """Writing and parsing an order gives an equal one, extra keys included."""
    assert parse_sort_order(decode(encode(sort_order_to_json(order)))) == order


@given(JSON_VALUES)
def test_any_json_is_an_order_or_a_spec_error(json: Any) -> None:
    """The parser never fails in another way."""
    for document in (json, {"order-id": 1, "fields": json}, {"order-id": 1, "fields": [json]}, {**FIELD, "x": json}):
        try:
            parse_sort_order(document)
        except SpecError:
            continue


def test_the_example_of_the_spec() -> None:
    """Members are read and written as in Appendix C."""
    json = {"order-id": 1, "fields": [FIELD]}
    order = parse_sort_order(json)
    assert order.fields == (SortField((3,), bucket(4), "desc", "nulls-last"),)
    assert sort_order_to_json(order) == json
    assert order.fields[0].source_id == 3
    assert str(order.fields[0]) == "bucket[4](3) desc nulls-last"
    assert not order.is_unsorted


def test_order_zero_is_the_unsorted_order_and_only_that() -> None:
    """Id 0 with fields and another id without are refused (O-14)."""
    with pytest.raises(SpecError, match="reserved") as caught:
        parse_sort_order({"order-id": 0, "fields": [FIELD]}, "$.write-order")
    assert caught.value.path == "$.write-order"
    with pytest.raises(SpecError, match="must be 0"):
        parse_sort_order({"order-id": 3, "fields": []})
    assert parse_sort_order({"order-id": 0, "fields": []}) == UNSORTED
    assert UNSORTED.is_unsorted


def test_the_order_id_is_the_servers() -> None:
    """A request may leave it out."""
    assert parse_sort_order({"fields": [FIELD]}).order_id == 1
    assert parse_sort_order({"fields": [], "order-id": None}).order_id == 0


def test_directions_are_read_in_any_letter_case() -> None:
    """They are written in lower case."""
    order = parse_sort_order({"order-id": 1, "fields": [{**FIELD, "direction": "DESC", "null-order": "Nulls-Last"}]})
    assert sort_order_to_json(order)["fields"] == [FIELD]


@pytest.mark.parametrize(
    "change", [{"direction": "up"}, {"null-order": "first"}, {"transform": None}, {"source-id": None}, {"direction": 1}]
)
def test_faulty_fields_are_refused(change: dict[str, Any]) -> None:
    """Every member of a sort field is mandatory and of its kind; the path leads to the field."""
    with pytest.raises(SpecError) as caught:
        parse_sort_order({"order-id": 1, "fields": [{**FIELD, **change}]})
    assert caught.value.path.startswith("$.fields[0]")


def test_same_fields_leaves_ids_out() -> None:
    """Two orders that sort alike are the same."""
    one = parse_sort_order({"order-id": 1, "fields": [FIELD]})
    assert one.same_fields(parse_sort_order({"order-id": 9, "fields": [FIELD]}))
    assert not one.same_fields(parse_sort_order({"order-id": 1, "fields": [{**FIELD, "direction": "asc"}]}))
    assert not one.same_fields(UNSORTED)


def sorted_by(source_id: int, transform: str) -> SortOrder:
    return SortOrder(1, (SortField((source_id,), parse_transform(transform), "asc", "nulls-first"),))


@pytest.mark.parametrize(("source_id", "transform"), [(1, "identity"), (5, "bucket[3]"), (2, "hour"), (7, "identity")])
def test_orders_that_fit_the_schema(source_id: int, transform: str) -> None:
    """Sources may nest, in lists too, as the reference implementation allows."""
    check_order(sorted_by(source_id, transform), SCHEMA)
    check_order(UNSORTED, SCHEMA)


@pytest.mark.parametrize(
    ("source_id", "transform", "message"),
    [
        (99, "identity", "Cannot find source column"),
        (3, "identity", "non-primitive"),
        (11, "identity", "non-primitive"),
        (1, "year", "Invalid source type long"),
    ],
)
def test_orders_that_do_not_fit_the_schema(source_id: int, transform: str, message: str) -> None:
    """Missing, nested or unsuited sources are refused."""
    with pytest.raises(ValidationFailed, match=message):
        check_order(sorted_by(source_id, transform), SCHEMA)


def test_known_transforms_take_one_source() -> None:
    """Several sources need a transform of several arguments."""
    with pytest.raises(ValidationFailed, match="one source"):
        check_order(SortOrder(1, (SortField((1, 2), IDENTITY, "asc", "nulls-first"),)), SCHEMA)
