"""Rules about what refers to columns, schemas and specs: partition and sort fields, refs, snapshots (ICE5xx)."""

from __future__ import annotations

from collections.abc import Iterator

from app.errors import ValidationFailed
from app.evolution.change import Arrival, Change
from app.evolution.doubts import Doubt, strange
from app.evolution.lineage import retained_schema_id
from app.evolution.reading import Pair
from app.evolution.registry import RULES
from app.evolution.retained import unfit
from app.rules import Fault, Severity
from app.spec.partition import PartitionSpec, check_partition_names, check_spec
from app.spec.sort import SortOrder, check_order


@RULES.rule("ICE501", "default-spec-unfit", spec="Partitioning", floor=True)
def default_spec_unfit(change: Change) -> Iterator[Fault]:
    """The default partition spec does not fit the current schema.

    Checks
        Every field of the default spec has a source in the current schema that is primitive, of a type that the
        transform takes, and inside nothing but structs. Void fields are exempt. Only the state at the end of the
        commit counts: the same commit may set another default spec.
    Why it matters
        Every reader binds the default spec to the current schema when it loads the table. If that fails, the table
        cannot be loaded at all.
    Example
        Dropping column 4 while the default spec is day(4) is refused; accepted together with add-spec without it and
        set-default-spec -1. A historical spec may lose its source.
    What to do
        Replace the partition field first: ALTER TABLE ... DROP PARTITION FIELD.
    Spec
        Partitioning: source columns must be primitive and may be nested in structs only.
    """
    if not change.takes_effect:
        return
    spec = change.current.default_spec
    for part in spec.fields:
        single = PartitionSpec(spec.spec_id, (part,))
        try:
            check_partition_names(single, change.after)
        except ValidationFailed:
            continue
        try:
            check_spec(single, change.after)
        except ValidationFailed as fault:
            yield Fault(
                text=(
                    f"partition field {part.name} of the default spec {spec.spec_id}, {part.transform} of "
                    f"{_sources(change, part.source_ids)}, does not fit the schema: {fault.message}"
                ),
                fix="Set a default spec without this field in the same commit (add-spec, set-default-spec -1).",
                field_id=part.source_id,
                path=part.name,
                before=str(part),
                follows=_retyped(change, part.source_ids),
            )


@RULES.rule("ICE502", "default-order-unfit", spec="Sorting", floor=True)
def default_order_unfit(change: Change) -> Iterator[Fault]:
    """The default sort order does not fit the current schema.

    Checks
        Every field of the default sort order has a source in the current schema that is primitive and of a type that
        the transform takes. Only the state at the end of the commit counts.
    Why it matters
        Every reader binds the default sort order to the current schema when it loads the table. If that fails, the
        table cannot be loaded at all.
    Example
        Dropping column 3 while the default order is asc(3) is refused; accepted together with a new default order.
    What to do
        Set another order first: ALTER TABLE ... WRITE UNORDERED.
    Spec
        Sorting: each sort field has a source column from the table's schema.
    """
    if not change.takes_effect:
        return
    order = change.current.default_sort_order
    for part in order.fields:
        try:
            check_order(SortOrder(order.order_id, (part,)), change.after)
        except ValidationFailed as fault:
            yield Fault(
                text=(
                    f"the default sort order {order.order_id}, {part.transform} of "
                    f"{_sources(change, part.source_ids)}, does not fit the schema: {fault.message}"
                ),
                fix="Set a default sort order without this field in the same commit (add-sort-order).",
                field_id=part.source_id,
                before=str(part),
                follows=_retyped(change, part.source_ids),
            )


@RULES.rule("ICE503", "branch-at-unreadable-snapshot", spec="Schemas and Data Types")
def branch_at_unreadable_snapshot(change: Change) -> Iterator[Fault]:
    """A branch comes to a snapshot that the current schema cannot read.

    Checks
        Every snapshot that a branch newly reaches (a new one, or an old one by rollback, fast-forward or a new
        branch) was written under a schema that the table's current schema, as the commit leaves it, can read.
        Where the history behind it is not complete and was on no branch before, the same holds for every retained
        schema that files behind it may be written under; and a column dropped before it passes only if no schema is
        missing from the list. Tags may point anywhere; a snapshot that names no schema passes.
    Why it matters
        Branches are read with the current schema. After CREATE OR REPLACE the same field IDs may have other types;
        rolling main back to a snapshot from before makes every query on it fail or return wrong values.
    Example
        Column 1 was long and is string since a replacement. Setting main to a snapshot from before is refused alone,
        and accepted together with set-current-schema back to that snapshot's schema.
    What to do
        Set the snapshot's schema current in the same commit (Icekeel's rollback-to operation does both), or read the
        snapshot by its ID or through a tag.
    Spec
        Schema Evolution and Column Projection; that branches are read with the current schema is what the reference
        implementation does.
    """
    for arrival in change.arrivals:
        broken = change.misread(arrival.schema)
        if broken:
            yield _unreadable(change, arrival, broken)
    told: set[str] = set()
    for doubt in strange(change):
        if doubt.end.branch not in told:
            told.add(doubt.end.branch)
            yield _doubtful(change, doubt)


def _doubtful(change: Change, doubt: Doubt) -> Fault:
    end, slot, clash = doubt.end, doubt.slot, doubt.clash
    if clash is not None:
        why = f"may be written under {clash.against}, which the current schema cannot read: {slot.label} "
        why += f"({clash.conflicts[0].value})"
    else:
        why = f"may be written under {doubt.gap}, removed since: nothing tells what {slot.label} was there"
    schema_id = retained_schema_id(change.current, end.snapshot)
    written = "under no known schema" if schema_id is None else f"under schema {schema_id}"
    tag = "read the snapshot by its ID or through a tag."
    if schema_id is None:
        fix = f"{tag[0].upper()}{tag[1:]}"
    else:
        fix = f"Set the current schema back to {schema_id} in the same commit (rollback-to does both), or {tag}"
    return Fault(
        text=(
            f"branch {end.branch} comes to a history of which snapshot {end.snapshot.snapshot_id}, written {written}, "
            f"is the last one known, and what was written before {why}"
        ),
        fix=fix,
        field_id=slot.field_id,
        path=slot.path,
        before=None if schema_id is None else str(schema_id),
        after=str(change.after.schema_id),
    )


def _unreadable(change: Change, arrival: Arrival, broken: tuple[Pair, ...]) -> Fault:
    first = broken[0]
    more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    written = arrival.schema.schema_id
    what = (
        f"branch {arrival.branch} comes to snapshot {arrival.snapshot.snapshot_id}, written under schema {written}"
        if arrival.snapshot is not None
        else f"branch {arrival.branch} goes back to a history whose expired part may be written under schema {written}"
    )
    return Fault(
        text=(
            f"{what}, which the current schema {change.after.schema_id} cannot read: {first.slot.label} "
            f"({first.conflicts[0].value}){more}"
        ),
        fix=_way_to_read(change, arrival),
        field_id=first.slot.field_id,
        path=first.slot.path,
        before=str(written),
        after=str(change.after.schema_id),
        follows=tuple(pair.slot.field_id for pair in broken),
    )


def _way_to_read(change: Change, arrival: Arrival) -> str:
    previous, current = change.previous, change.current
    new = previous is None or (arrival.snapshot is not None and arrival.snapshot.snapshot_id not in previous.snapshots)
    if new:
        return f"Refresh the table and write again under the current schema {change.after.schema_id}."
    ref = current.refs.get(arrival.branch)
    head = None if ref is None else current.snapshots.get(ref.snapshot_id)
    schema_id = None if head is None else retained_schema_id(current, head)
    tag = "a tag of the snapshot: tags are read with their own schema."
    if schema_id is None or schema_id == change.after.schema_id:
        return f"Make {tag}"
    return f"Set the current schema back to {schema_id} in the same commit (rollback-to does both), or make {tag}"


@RULES.rule("ICE504", "schema-removed-while-used", spec="Snapshots", floor=True)
def schema_removed_while_used(change: Change) -> Iterator[Fault]:
    """A schema is removed although a retained snapshot was written under it.

    Checks
        A schema that the commit removes is named by no snapshot that remains in the table.
    Why it matters
        Time travel to the snapshot, and every tag on it, reads with the schema it names. Without the schema Java
        fails to open it, and nobody can say any more what its files hold.
    Example
        Removing schema 3 while snapshot 7 has schema-id 3 is refused; it is accepted together with remove-snapshots
        for snapshot 7.
    What to do
        Expire the snapshots first, or in the same commit.
    Spec
        Snapshots: schema-id is the ID of the table's current schema when the snapshot was created.
    """
    previous, current = change.previous, change.current
    if previous is None or previous.schemas is current.schemas:
        return
    removed = {schema_id for schema_id in previous.schemas if schema_id not in current.schemas}
    if not removed:
        return
    users: dict[int, list[int]] = {}
    for snapshot in current.snapshots:
        if snapshot.schema_id in removed:
            users.setdefault(snapshot.schema_id, []).append(snapshot.snapshot_id)
    for schema_id in sorted(users):
        named = users[schema_id]
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        yield Fault(
            text=f"schema {schema_id} would be removed, but snapshot {named[-1]}{more} was written under it",
            fix="Expire these snapshots first, or in the same commit.",
            before=str(schema_id),
        )


@RULES.rule("ICE505", "spec-removed-while-used", spec="Partition Evolution", floor=True)
def spec_removed_while_used(change: Change) -> Iterator[Fault]:
    """A partition spec is removed although manifests still name it.

    Checks
        A spec that the commit removes is named by no retained manifest, as far as manifests were looked at.
    Why it matters
        The spec is what decodes the partition tuples of its manifests. Without it every scan that meets one of them
        fails.
    Example
        Removing spec 0 while files written under it remain in a retained snapshot is refused.
    What to do
        Rewrite the files under the current spec and expire the old snapshots first.
    Spec
        Partition Evolution; Manifests name their spec by ID.
    """
    in_use = change.evidence.specs_in_use
    for spec_id in _removed_specs(change):
        if in_use is not None and spec_id in in_use:
            yield Fault(
                text=f"partition spec {spec_id} would be removed, but retained manifests are written under it",
                fix="Rewrite its files under the current spec and expire old snapshots first.",
                before=str(spec_id),
            )


@RULES.rule("ICE506", "spec-removed-unseen", spec="Partition Evolution", default=Severity.WARN)
def spec_removed_unseen(change: Change) -> Iterator[Fault]:
    """A partition spec is removed and nobody looked whether manifests still name it.

    Checks
        When a spec is removed from a table with snapshots, the manifests were searched for it. A spec that a table
        without snapshots drops on its own, because it fits the schema no more, is left out.
    Why it matters
        Clients send this after their own search (expire_snapshots with metadata clean-up does). The catalog has not
        repeated it here; if the client was wrong, scans of the manifests concerned fail.
    Example
        remove-partition-specs [0] on a table with snapshots is accepted and reported.
    What to do
        Nothing, if the client searched all retained snapshots. Else check the table.
    Spec
        Partition Evolution.
    """
    if change.evidence.specs_in_use is not None or not len(change.current.snapshots):
        return
    for spec_id in _removed_specs(change):
        if _unused(change, spec_id):
            continue
        yield Fault(
            text=f"partition spec {spec_id} is removed without proof that no retained manifest names it",
            fix="Make sure that the client searched the manifests of every retained snapshot.",
            before=str(spec_id),
        )


@RULES.rule("ICE507", "historical-source-dropped", spec="Partition Evolution", default=Severity.WARN)
def historical_source_dropped(change: Change) -> Iterator[Fault]:
    """A column is dropped that an older partition spec or sort order still uses.

    Checks
        A dropped column is the source of no partition field or sort field that remains in the table beside the
        default ones; void fields and version 1 tables aside.
    Why it matters
        The drop is legal. But some readers need the source's type to decode partition values of old files: PyIceberg
        cannot list the partitions of such a table any more, and Java shows their type as unknown.
    Example
        Spec 0 is `bucket[8](3)`, spec 1 is the default and does not use column 3: dropping 3 is reported.
    What to do
        Rewrite the files of the old spec and remove it before the drop, if someone reads partition metadata.
    Spec
        Silent; Partition Evolution keeps old specs because old manifests need them.
    """
    if change.before is None or not change.takes_effect:
        return
    gone = {slot.field_id: slot for slot in change.diff.dropped()}
    if not gone:
        return
    users: dict[int, list[str]] = {}
    for spec in change.current.partition_specs if change.format_version > 1 else ():
        for part in spec.fields if spec.spec_id != change.current.default_spec_id else ():
            for source in part.source_ids:
                if source in gone and not part.transform.is_void:
                    users.setdefault(source, []).append(f"partition spec {spec.spec_id}")
    for order in change.current.sort_orders:
        for field in order.fields if order.order_id != change.current.default_sort_order_id else ():
            for source in field.source_ids:
                if source in gone:
                    users.setdefault(source, []).append(f"sort order {order.order_id}")
    for source, named in users.items():
        slot = gone[source]
        yield Fault(
            text=f"{slot.label} is dropped while {', '.join(dict.fromkeys(named))} still uses it",
            fix="Rewrite the files of that spec or order and remove it, if a client reads partition metadata.",
            field_id=source,
            path=slot.path,
            before=str(slot.type),
        )


@RULES.rule("ICE508", "identifier-fields-changed", spec="Identifier Field IDs", default=Severity.WARN)
def identifier_fields_changed(change: Change) -> Iterator[Fault]:
    """The set of fields that identify a row changes on a table with data.

    Checks
        A schema with identifier fields keeps them. Setting them for the first time is not reported.
    Why it matters
        Upserts match rows by these fields, and equality deletes already written name the old ones. After the change
        the same upsert touches other rows.
    Example
        identifier-field-ids [1] to [1, 5] is reported.
    What to do
        Stop streaming upserts during the change, and compact equality deletes before it.
    Spec
        Identifier Field IDs; Equality Delete Files.
    """
    before, diff = change.before, change.diff
    if before is None or not change.takes_effect or not before.identifier_field_ids or not change.had_branch:
        return
    if diff.identifiers_added or diff.identifiers_removed:
        old, new = sorted(before.identifier_field_ids), sorted(change.after.identifier_field_ids)
        yield Fault(
            text=f"the fields that identify a row change from {old} to {new}, so upserts match rows differently",
            fix="Pause upserts during the change and compact equality deletes written before it.",
            before=str(old),
            after=str(new),
        )


def _removed_specs(change: Change) -> list[int]:
    if change.previous is None or change.previous.partition_specs is change.current.partition_specs:
        return []
    kept = {spec.spec_id for spec in change.current.partition_specs}
    return [spec.spec_id for spec in change.previous.partition_specs if spec.spec_id not in kept]


def _unused(change: Change, spec_id: int) -> bool:
    """Whether a removed spec is one that no file can use: nothing was written before, and nothing can be after."""
    if change.previous is None or not change.previous.never_written:
        return False
    spec = change.previous.spec(spec_id)
    return spec is not None and any(unfit(part, change.after) is not None for part in spec.fields)


def _retyped(change: Change, source_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The sources, when each is still there: then it is what they became that does not fit."""
    return source_ids if all(source in change.after.by_id for source in source_ids) else ()


def _sources(change: Change, source_ids: tuple[int, ...]) -> str:
    """The columns by their name after the change, or before it where it drops them."""
    named = []
    for field_id in source_ids:
        for schema in (change.after, change.before):
            if schema is not None and field_id in schema.by_id:
                named.append(f"column {schema.name_of(field_id)} (field {field_id})")
                break
        else:
            named.append(f"field {field_id}")
    return ", ".join(named)
