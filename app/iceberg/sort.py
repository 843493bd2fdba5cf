"""Sort orders (spec: Sorting, Appendix C). Order id 0 is the unsorted order and only that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec

from app.errors import SpecError, ValidationFailed
from app.iceberg.json.codec import (
    NO_EXTRA,
    Json,
    as_object,
    describe,
    encode,
    extra_of,
    optional_int32,
    required_list,
    required_str,
)
from app.iceberg.partition import parse_source_ids, source_ids_to_json
from app.iceberg.schema import Schema
from app.iceberg.transforms import Transform, parse_transform
from app.iceberg.types import is_primitive

Direction = Literal["asc", "desc"]
NullOrder = Literal["nulls-first", "nulls-last"]

_ORDER_KEYS: Final = frozenset({"order-id", "fields"})
_FIELD_KEYS: Final = frozenset({"source-id", "source-ids", "transform", "direction", "null-order"})


class SortField(msgspec.Struct, frozen=True):
    """`source_ids` has one element, or several for a multi-argument transform (format version 3)."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: Direction
    null_order: NullOrder
    extra: Mapping[str, Any] = NO_EXTRA

    @property
    def source_id(self) -> int:
        """The first source."""
        return self.source_ids[0]

    def __str__(self) -> str:
        return f"{self.transform}({', '.join(map(str, self.source_ids))}) {self.direction} {self.null_order}"


class SortOrder(msgspec.Struct, frozen=True):
    """Raises SpecError when order id 0 has fields or another id has none."""

    order_id: int
    fields: tuple[SortField, ...] = ()
    extra: Mapping[str, Any] = NO_EXTRA

    def __post_init__(self) -> None:
        if self.order_id == 0 and self.fields:
            raise SpecError("Sort order ID 0 is reserved for unsorted order")
        if self.order_id != 0 and not self.fields:
            raise SpecError("Unsorted order ID must be 0")

    @property
    def is_unsorted(self) -> bool:
        return not self.fields

    def same_fields(self, other: SortOrder) -> bool:
        """Whether both sort alike; ids of the orders aside."""
        return self.fields == other.fields


UNSORTED: Final = SortOrder(0)


def _extra_text(extra: Mapping[str, Any]) -> bytes:
    return encode(dict(sorted(extra.items()))) if extra else b""


def meaning_of_order(order: SortOrder) -> tuple[object, ...]:
    """Equal for orders that sort alike; can be hashed. SpecError for members that no document can hold."""
    return tuple(
        (part.source_ids, part.transform, part.direction, part.null_order, _extra_text(part.extra))
        for part in order.fields
    )


def parse_sort_order(json: Json, path: str = "$") -> SortOrder:
    """A sort order as requested. A missing `order-id` (it is the server's) becomes 1, or 0 without fields."""
    obj = as_object(json, path)
    items = required_list(obj, "fields", path)
    fields = tuple(_parse_field(item, f"{path}.fields[{at}]") for at, item in enumerate(items))
    order_id = optional_int32(obj, "order-id", path)
    if order_id is None:
        order_id = 1 if fields else 0
    try:
        return SortOrder(order_id, fields, extra_of(obj, _ORDER_KEYS))
    except SpecError as fault:
        raise SpecError(fault.reason, path) from None


def _parse_field(json: Json, path: str) -> SortField:
    obj = as_object(json, path)
    direction = required_str(obj, "direction", path).lower()
    if direction not in ("asc", "desc"):
        raise SpecError(f"Invalid sort direction: {describe(direction)}", f"{path}.direction")
    null_order = required_str(obj, "null-order", path).lower()
    if null_order not in ("nulls-first", "nulls-last"):
        raise SpecError(f"Unexpected null order: {describe(null_order)}", f"{path}.null-order")
    return SortField(
        parse_source_ids(obj, path),
        parse_transform(required_str(obj, "transform", path), f"{path}.transform"),
        cast(Direction, direction),
        cast(NullOrder, null_order),
        extra_of(obj, _FIELD_KEYS),
    )


def sort_order_to_json(order: SortOrder) -> dict[str, Json]:
    fields = [
        {
            "transform": str(part.transform),
            **source_ids_to_json(part.source_ids),
            "direction": part.direction,
            "null-order": part.null_order,
            **part.extra,
        }
        for part in order.fields
    ]
    return {"order-id": order.order_id, "fields": fields, **order.extra}


def check_order(order: SortOrder, schema: Schema) -> None:
    """Whether data of `schema` can be sorted so. A source within a list or map is tolerated, as everywhere else.

    Raises ValidationFailed: a source is missing, not primitive or not accepted by the transform.
    """
    for part in order.fields:
        if len(part.source_ids) > 1 and not part.transform.takes_several:
            raise ValidationFailed(f"Transform {part.transform} of a sort field takes one source")
        for source_id in part.source_ids:
            source = schema.by_id.get(source_id)
            if source is None:
                raise ValidationFailed(f"Cannot find source column for sort field: {part.transform}({source_id})")
            if not is_primitive(source.field_type):
                raise ValidationFailed(f"Cannot sort by non-primitive source field: {schema.name_of(source_id)}")
            if not part.transform.accepts(source.field_type):
                raise ValidationFailed(f"Invalid source type {source.field_type} for transform: {part.transform}")
