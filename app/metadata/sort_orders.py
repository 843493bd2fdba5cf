"""Updates of a table's sort orders."""

from __future__ import annotations

import msgspec

from app.errors import ValidationFailed
from app.iceberg.json.codec import INT32_MAX
from app.iceberg.partition import check_version_of_sources
from app.iceberg.sort import UNSORTED, check_order
from app.iceberg.update import LAST_ADDED, AddSortOrder, SetDefaultSortOrder
from app.metadata.builder import TableMetadataBuilder

FIRST_ORDER_ID = 1


def add_order(draft: TableMetadataBuilder, update: AddSortOrder) -> None:
    """List the order, or resolve to the equal one that is listed already. The unsorted order is always 0."""
    sent = update.order
    schema = draft.bound_schema("sort order")
    known = draft.orders.same_as(sent)
    if known is not None:
        draft.last_added_order_id = known.order_id
    else:
        for part in sent.fields:
            if part.transform.is_unknown:
                raise ValidationFailed(f"Cannot add sort order: unknown transform {part.transform}")
        check_version_of_sources(sent.fields, draft.format_version)
        check_order(sent, schema)
        order_id = UNSORTED.order_id if sent.is_unsorted else _next_order_id(draft)
        draft.orders.append(msgspec.structs.replace(sent, order_id=order_id))
        draft.last_added_order_id = order_id
        draft.record(update)
    if sent.order_id > 0 and sent.order_id != draft.last_added_order_id:
        draft.assigned_order_ids[sent.order_id] = draft.last_added_order_id


def _next_order_id(draft: TableMetadataBuilder) -> int:
    following = draft.orders.highest_id + 1
    if following > INT32_MAX:
        raise ValidationFailed("Cannot add a sort order: no order-id is left")
    return max(following, FIRST_ORDER_ID)


def set_default_order(draft: TableMetadataBuilder, update: SetDefaultSortOrder) -> None:
    if update.sort_order_id == LAST_ADDED:
        if draft.last_added_order_id is None:
            raise ValidationFailed("Cannot set last added sort order: no sort order has been added")
        order_id = draft.last_added_order_id
    else:
        order_id = update.sort_order_id
        if order_id not in draft.orders:
            order_id = draft.assigned_order_ids.get(order_id, order_id)
    if order_id not in draft.orders:
        raise ValidationFailed(f"Cannot set default sort order to unknown sort order: {update.sort_order_id}")
    if order_id != draft.default_order_id:
        draft.default_order_id = order_id
        draft.record(update)
