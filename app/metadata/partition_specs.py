"""Updates of a table's partition specs."""

from __future__ import annotations

from app.errors import ValidationFailed
from app.iceberg.json.codec import INT32_MAX
from app.iceberg.partition import (
    FIRST_PARTITION_FIELD_ID,
    HIGHEST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    UnboundPartitionField,
    UnboundPartitionSpec,
    check_retained_spec,
    check_spec,
    check_version_of_sources,
)
from app.iceberg.schema import Schema
from app.iceberg.update import (
    LAST_ADDED,
    AddPartitionSpec,
    RemovePartitionSpecs,
    SetDefaultSpec,
)
from app.metadata.builder import TableMetadataBuilder


def add_spec(draft: TableMetadataBuilder, update: AddPartitionSpec) -> None:
    """List the spec, or resolve to the compatible one that is listed already."""
    sent = update.spec
    schema = draft.bound_schema("partition spec")
    known = draft.specs.same_as(sent)
    if known is not None:
        _resolve(draft, sent, known.spec_id)
        return
    for part in sent.fields:
        if part.transform.is_unknown:
            raise ValidationFailed(f"Cannot add partition field {part.name}: unknown transform {part.transform}")
    check_version_of_sources(sent.fields, draft.format_version)
    check_spec(sent, schema)
    spec = PartitionSpec(_next_spec_id(draft), numbered_fields(draft, sent), sent.extra)
    draft.specs.append(spec)
    draft.last_partition_id = max(draft.last_partition_id, spec.highest_field_id)
    _resolve(draft, sent, spec.spec_id)
    draft.record(update)


def _resolve(draft: TableMetadataBuilder, sent: UnboundPartitionSpec, spec_id: int) -> None:
    draft.last_added_spec_id = spec_id
    # 0 and -1 are what clients send that do not number specs at all.
    if sent.spec_id is not None and sent.spec_id > 0 and sent.spec_id != spec_id:
        draft.assigned_spec_ids[sent.spec_id] = spec_id


def _next_spec_id(draft: TableMetadataBuilder) -> int:
    """Above every listed id, every id that this commit removed (manifests may still name those), and every id of a
    spec that the table dropped on its own (a writer may still hold that version)."""
    following = max(draft.specs.highest_id, draft.remembered_spec_id) + 1
    if following > INT32_MAX:
        raise ValidationFailed("Cannot add a partition spec: no spec-id is left")
    return max(following, 0)


def numbered_fields(draft: TableMetadataBuilder, sent: UnboundPartitionSpec) -> tuple[PartitionField, ...]:
    """The fields with ids: as sent, else those of equivalent fields in any spec, else fresh. ValidationFailed."""
    if draft.format_version == 1:
        return _sequential_fields(sent)
    taken = {part.field_id for part in sent.fields if part.field_id is not None}
    following = draft.last_partition_id
    fields = []
    for part in sent.fields:
        field_id = part.field_id
        if field_id is None:
            field_id = _equivalent_id(draft, part, taken)
        if field_id is None:
            following += 1
            while following in taken:
                following += 1
            field_id = following
        taken.add(field_id)
        fields.append(PartitionField(part.source_ids, field_id, part.name, part.transform, part.extra))
    _check_ids(draft, fields)
    return tuple(fields)


def _sequential_fields(sent: UnboundPartitionSpec) -> tuple[PartitionField, ...]:
    """Version 1 readers find partition fields by position: ids must count from 1000."""
    fields = []
    for at, part in enumerate(sent.fields, FIRST_PARTITION_FIELD_ID):
        if part.field_id not in (None, at):
            raise ValidationFailed(
                f"Spec does not use sequential IDs that are required in v1: {part.name} has {part.field_id}, not {at}"
            )
        fields.append(PartitionField(part.source_ids, at, part.name, part.transform, part.extra))
    return tuple(fields)


def _equivalent_id(draft: TableMetadataBuilder, part: UnboundPartitionField, taken: set[int]) -> int | None:
    known = draft.specs.field_ids(part.source_ids, part.transform)
    return next((field_id for field_id in known if field_id not in taken), None)


def _check_ids(draft: TableMetadataBuilder, fields: list[PartitionField]) -> None:
    """One field id means one partition field in every spec; void stands for a field that was dropped in version 1."""
    if len({part.field_id for part in fields}) != len(fields):
        raise ValidationFailed("Cannot add partition spec: two of its fields have the same field-id")
    by_id = {part.field_id: part for part in fields}
    _check_range(draft, by_id)
    for part in fields:
        for spec_id, known in draft.specs.uses(part.field_id):
            alike = part.transform == known.transform or part.transform.is_void or known.transform.is_void
            if part.source_ids != known.source_ids or not alike:
                raise ValidationFailed(
                    f"Conflicting partition fields: field-id {known.field_id} of {part.name} "
                    f"({part.transform} of {part.source_ids}) is {known.name} ({known.transform} of "
                    f"{known.source_ids}) in spec {spec_id}"
                )


def _check_range(draft: TableMetadataBuilder, by_id: dict[int, PartitionField]) -> None:
    """The counter never comes back down, so a table whose counter is at the end is never repartitioned again."""
    above = (field_id for field_id in sorted(by_id) if field_id > HIGHEST_PARTITION_FIELD_ID)
    beyond = next((field_id for field_id in above if not draft.specs.knows_field(field_id)), None)
    if beyond is None:
        return
    if draft.last_partition_id >= HIGHEST_PARTITION_FIELD_ID:
        raise ValidationFailed("Cannot add partition spec: no partition field id is left")
    raise ValidationFailed(
        f"Cannot add partition spec: field-id {beyond} of {by_id[beyond].name} is above {HIGHEST_PARTITION_FIELD_ID}, "
        f"and no field could be added after it. Use {draft.last_partition_id + 1}, or leave field-id out"
    )


def set_default_spec(draft: TableMetadataBuilder, update: SetDefaultSpec) -> None:
    if update.spec_id == LAST_ADDED:
        if draft.last_added_spec_id is None:
            raise ValidationFailed("Cannot set last added spec: no spec has been added")
        spec_id = draft.last_added_spec_id
    else:
        spec_id = update.spec_id
        if spec_id not in draft.specs:
            spec_id = draft.assigned_spec_ids.get(spec_id, spec_id)
    if spec_id not in draft.specs:
        raise ValidationFailed(f"Cannot set default spec to unknown spec: {update.spec_id}")
    if spec_id != draft.default_spec_id:
        draft.default_spec_id = spec_id
        draft.record(update)


def remove_specs(draft: TableMetadataBuilder, update: RemovePartitionSpecs) -> None:
    """Unknown ids are ignored. Whether files still use a spec is judged by the evolution rules."""
    if draft.default_spec_id in update.spec_ids:
        raise ValidationFailed("Cannot remove the default partition spec")
    gone = {spec_id for spec_id in update.spec_ids if spec_id in draft.specs}
    if gone:
        for spec_id in gone:
            draft.specs.remove(spec_id)
        draft.removed_spec_ids |= gone
        if draft.last_added_spec_id in gone:
            draft.last_added_spec_id = None
        draft.record(update)


def drop_unfit_specs(draft: TableMetadataBuilder, schema: Schema, default_spec_id: int) -> None:
    """Take out the specs that cannot be bound to `schema`, the current one, when no file can have used them.

    That is so when the table never had a snapshot and those that this commit adds were written under that very
    schema. Their ids are never given again. What files may have used stays, and the evolution rules judge it.
    """
    if draft.base is not None and not draft.base.never_written:
        return
    if any(snapshot.schema_id != schema.schema_id for snapshot in draft.added_snapshots.values()):
        return
    unfit = [spec.spec_id for spec in draft.specs if spec.spec_id != default_spec_id and not _binds(spec, schema)]
    if unfit:
        for spec_id in unfit:
            draft.specs.remove(spec_id)
        draft.remembered_spec_id = max(draft.remembered_spec_id, *unfit)
        draft.record(RemovePartitionSpecs(tuple(unfit)))


def _binds(spec: PartitionSpec, schema: Schema) -> bool:
    try:
        check_retained_spec(spec, schema)
    except ValidationFailed:
        return False
    return True
