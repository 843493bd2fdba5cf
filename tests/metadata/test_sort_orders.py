"""Adding and choosing sort orders."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import ValidationFailed
from tests.iceberg.documents import document, parsed
from tests.metadata.folding import fold, result, written

BASE = parsed(document())
LAST = {"action": "set-default-sort-order", "sort-order-id": -1}


def add_order(*source_ids: int, order_id: int | None = None, transform: str = "identity") -> dict[str, Any]:
    fields = [
        {"source-id": source_id, "transform": transform, "direction": "asc", "null-order": "nulls-last"}
        for source_id in source_ids
    ]
    return {"action": "add-sort-order", "sort-order": {"order-id": order_id, "fields": fields}}


def test_orders_count_from_1() -> None:
    """Whatever the client numbered; 0 is the unsorted order."""
    after = result(BASE, add_order(1, order_id=9), LAST, add_order(2, 1))
    assert ([order.order_id for order in after.sort_orders], after.default_sort_order_id) == ([0, 1, 2], 1)


def test_an_equal_order_is_found_again() -> None:
    """-1 then means it, and nothing is stored."""
    first = result(BASE, add_order(1), LAST)
    assert not fold(first, add_order(1, order_id=5), LAST).changed
    assert result(first, add_order(), LAST).default_sort_order_id == 0


def test_unsorted_gets_id_0_where_it_is_not_listed() -> None:
    """Also on a table that never had it."""
    sorted_only = parsed(
        document(
            sort_orders=[
                {
                    "order-id": 3,
                    "fields": [
                        {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}
                    ],
                }
            ],
            default_sort_order_id=3,
        )
    )
    after = result(sorted_only, add_order(), LAST)
    assert ([order.order_id for order in after.sort_orders], after.default_sort_order_id) == ([3, 0], 0)


@pytest.mark.parametrize("order", [add_order(9), add_order(2, transform="year"), add_order(2, transform="zorder")])
def test_an_order_must_fit_the_schema(order: dict[str, Any]) -> None:
    """Missing source, wrong type, unknown transform."""
    with pytest.raises(ValidationFailed):
        fold(BASE, order)


@pytest.mark.parametrize("order_id", [-1, 7])
def test_only_known_orders_can_be_the_default(order_id: int) -> None:
    """-1 without an added order and unknown ids are refused."""
    with pytest.raises(ValidationFailed):
        fold(BASE, LAST | {"sort-order-id": order_id})


def test_the_sent_id_resolves_within_the_request() -> None:
    """A client that trusts its own number gets the order it means."""
    assert result(BASE, add_order(1, order_id=9), LAST | {"sort-order-id": 9}).default_sort_order_id == 1


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("transform", ["bucket[4]", "void", "identity", "truncate[2]", "year", "zorder"])
def test_which_transforms_may_be_of_several_columns(version: int, transform: str) -> None:
    """The same as in partition specs."""
    part = {"source-ids": [1, 2], "transform": transform, "direction": "asc", "null-order": "nulls-first"}
    update = {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [part]}}
    base = parsed(document(version))
    if version == 3 and transform in ("bucket[4]", "void"):
        assert written(result(base, update))["sort-orders"][-1]["fields"][0]["source-ids"] == [1, 2]
        return
    with pytest.raises(ValidationFailed):
        fold(base, update)
