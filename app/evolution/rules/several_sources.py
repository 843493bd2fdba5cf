"""The rule about transforms of several columns (ICE512)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.evolution.engine.change import Change
from app.evolution.engine.registry import RULES
from app.iceberg.partition import PartitionField
from app.iceberg.sort import SortField
from app.rules import Fault


@RULES.rule("ICE512", "transform-of-several-columns", spec="Partition Transforms")
def transform_of_several_columns(change: Change) -> Iterator[Fault]:
    """A partition spec or sort order is added with a transform of several columns.

    Checks
        A field of a spec or order that the commit adds has one source. Before format version 3, and with a transform
        that is made for one column (identity, truncate, year, month, day, hour), several are refused at any rate;
        void may have several too, and counts. What the table has already is left alone.
    Why it matters
        The format allows such fields from version 3 on and writes their columns as source-ids. But no released Java
        reader parses that: it looks for source-id and fails to load the table, so that Spark, Trino and Flink could
        neither read nor drop it.
    Example
        `bucket[4]` with source-ids [1, 2] is refused; with source-ids [1] it is the same as source-id 1, and accepted.
    What to do
        Take one column, or a partition field for each. If every reader of the table knows source-ids, lower the rule
        for the table.
    Spec
        Partition Transforms and Appendix C (partition and sort fields with source-ids), version 3.
    """
    previous, current = change.previous, change.current
    specs = set() if previous is None else {spec.spec_id for spec in previous.partition_specs}
    for spec in current.partition_specs:
        if spec.spec_id not in specs:
            yield from _of_several(f"partition spec {spec.spec_id}", spec.fields)
    orders = set() if previous is None else {order.order_id for order in previous.sort_orders}
    for order in current.sort_orders:
        if order.order_id not in orders:
            yield from _of_several(f"sort order {order.order_id}", order.fields)


def _of_several(what: str, fields: Iterable[PartitionField | SortField]) -> Iterator[Fault]:
    for part in fields:
        if len(part.source_ids) > 1:
            yield Fault(
                text=(
                    f"{what} has {part.transform} of the columns {', '.join(map(str, part.source_ids))}: the format "
                    "allows that, but Java engines cannot load a table with source-ids yet"
                ),
                fix="Use one column for each field, or lower the rule for the table if all readers know source-ids.",
                field_id=part.source_id,
                after=str(part),
            )
