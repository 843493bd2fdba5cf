"""The rule about partition specs that a table keeps for its older files (ICE511)."""

from __future__ import annotations

from collections.abc import Iterator

from app.errors import ValidationFailed
from app.evolution.change import Change
from app.evolution.registry import RULES
from app.rules import Fault
from app.spec.partition import PartitionField, PartitionSpec, check_retained_spec
from app.spec.schema import Schema


@RULES.rule("ICE511", "retained-spec-unfit", spec="Partition Evolution", floor=True)
def retained_spec_unfit(change: Change) -> Iterator[Fault]:
    """A partition spec that is kept for older files does not fit the current schema.

    Checks
        Every field of every spec beside the default one: where its source is in the current schema, that is
        primitive, of a type that the transform takes, and inside nothing but structs. Void fields and sources that are
        gone are exempt. What did not fit before the commit is left out. A table that never had a snapshot drops
        such a spec in the same commit, for good, so that nothing is left to refuse.
    Why it matters
        Java engines bind every listed spec, not only the default one, to the current schema when they load the table.
        A transform that does not take its source's type stops them: Spark, Trino and Flink can then neither read the
        table nor drop it.
    Example
        The table was made with `c date` and day(c), and has data. CREATE OR REPLACE with `c long` keeps ID and spec,
        so it is refused; with `c timestamp`, or with another name for the column, it is accepted.
    What to do
        Choose a type that the transform takes. Or drop the column first, in a commit of its own: one that is added
        after that has a new ID. Or expire the snapshots that use the spec and remove it (remove-partition-specs, in
        the same commit at the latest). Or drop the table and create it anew.
    Spec
        Partition Transforms, column "Source types". Java 1.1 to 1.11 binds retained specs with the type of their
        source alone on loading, and in full when a task unpacks the table (missing sources pass there since 1.10);
        before 1.1 it binds all of them in full. Sort orders beside the default one are not bound since 1.2.
    """
    if not change.takes_effect:
        return
    known = {} if change.previous is None else {spec.spec_id: spec for spec in change.previous.partition_specs}
    for spec in change.current.partition_specs:
        if spec.spec_id == change.current.default_spec_id:
            continue
        for part in spec.fields:
            why = unfit(part, change.after)
            if why is None:
                continue
            if change.before is not None and spec.spec_id in known and unfit(part, change.before) is not None:
                continue
            source = next(i for i in part.source_ids if i in change.after.by_id)
            name = change.after.name_of(source)
            yield Fault(
                text=(
                    f"partition spec {spec.spec_id}, kept for older files, has the field {part.name}, {part.transform} "
                    f"of column {name} (field {source}), which does not fit the schema: {why}; Java engines could "
                    f"neither load nor drop the table"
                ),
                fix=(
                    f"Choose a type that {part.transform} takes, drop column {name} in a commit of its own first, "
                    f"remove spec {spec.spec_id} in the same commit once no data file uses it "
                    f"(remove-partition-specs), or drop the table and create it anew."
                ),
                field_id=source,
                path=name,
                before=str(part),
                after=str(change.after.by_id[source].field_type),
                follows=part.source_ids,
            )


def unfit(part: PartitionField, schema: Schema) -> str | None:
    """Why a field of a retained spec cannot be bound to the schema; None when it can."""
    try:
        check_retained_spec(PartitionSpec(0, (part,)), schema)
    except ValidationFailed as fault:
        return fault.message
    return None
