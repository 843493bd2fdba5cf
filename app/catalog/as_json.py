"""Assessments, plans and histories as JSON values: one form for the API's answers and for the offline command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.catalog.assessments import Assessment
from app.catalog.outlook import Outlook, Reading
from app.catalog.schema_history import Chapter, Life
from app.evolution.editing.field_biography import Biography, Carriers
from app.evolution.editing.plan import Plan, requirements_to_json, updates_to_json
from app.evolution.engine.diff import Slot
from app.iceberg.schema import schema_to_json
from app.iceberg.snapshot import Snapshot

Value = dict[str, Any]


def assessment_json(of: Assessment) -> Value:
    """The body of a check."""
    out: Value = {"verdict": of.verdict}
    if of.reason is not None:
        out["reason"] = of.reason
    if of.base is not None:
        out["base"] = {
            "metadata-location": of.base_location,
            "schema-id": of.base.current_schema_id,
            "last-column-id": of.base.last_column_id,
        }
    out["findings"] = [finding.to_json() for finding in of.findings]
    change = of.change
    out["changes"] = [] if change is None else change.to_json()
    out["assigned-ids"] = (
        []
        if change is None
        else [
            {"field-id": slot.field_id, "path": slot.path, "type": str(slot.type)}
            for slot in change.added()
            if slot.field_id not in change.restored
        ]
    )
    out["metadata-changes"] = {name: {"before": old, "after": new} for name, (old, new) in of.changed.items()}
    out["reads"] = [_outlook(one) for one in of.outlooks]
    return out


def plan_json(made: Plan, assessment: Assessment) -> Value:
    """The body of a plan: the commit that it stands for, and everything a check says of that."""
    out: Value = {
        "plan-hash": made.digest,
        "requirements": requirements_to_json(made.requirements),
        "updates": updates_to_json(made.updates),
        "schema": schema_to_json(made.schema),
        "notes": list(made.notes),
        **assessment_json(assessment),
    }
    if made.tag is not None:
        out["tag"] = made.tag
    return out


def chapter_json(of: Chapter) -> Value:
    """One entry of a history."""
    out: Value = {"source": of.source, "namespace": list(of.levels), "table": of.name}
    for key, value in (
        ("entry-id", of.entry_id),
        ("at-ms", of.at_ms),
        ("by", of.by),
        ("client", of.client),
        ("metadata-location", of.metadata_location),
        ("from-schema-id", of.from_schema_id),
    ):
        if value is not None:
            out[key] = value
    out["to-schema-id"] = of.to_schema_id
    out["changes"] = [dict(change) for change in of.changes]
    if of.findings:
        out["findings"] = [dict(finding) for finding in of.findings]
    if of.waivers:
        out["waivers"] = [
            {"waiver-id": used.waiver_id, "code": used.code, "reason": used.reason, "granted-by": used.granted_by}
            for used in of.waivers
        ]
    return out


def life_json(of: Life) -> Value:
    """The biography of one field ID, with the history entries that are about it."""
    return {**biography_json(of.biography), "history": [chapter_json(chapter) for chapter in of.chapters]}


def biography_json(of: Biography) -> Value:
    out: Value = {"field-id": of.field_id, "state": of.state}
    if of.slot is not None:
        out["definition"] = slot_json(of.slot)
    out["definitions"] = [{"schema-id": one.schema_id, **slot_json(one.slot)} for one in of.definitions]
    out["schema-ids"] = list(of.schema_ids)
    out["snapshots"] = _carriers(of.snapshots)
    out["refs"] = list(of.refs)
    return out


def slot_json(of: Slot) -> Value:
    """A field's own definition."""
    out: Value = {"path": of.path, "type": str(of.type), "required": of.required, "position": of.position}
    if of.parent is not None:
        out["parent-id"] = of.parent
    for key, value in (
        ("doc", of.field.doc),
        ("initial-default", of.initial_default),
        ("write-default", of.write_default),
    ):
        if value is not None:
            out[key] = value
    return out


def _carriers(of: Carriers) -> Value:
    out: Value = {"count": of.count}
    if of.oldest is not None and of.newest is not None:
        out["oldest"], out["newest"] = _snapshot(of.oldest), _snapshot(of.newest)
    return out


def _snapshot(of: Snapshot) -> Value:
    return {"snapshot-id": of.snapshot_id, "timestamp-ms": of.timestamp_ms, "schema-id": of.schema_id}


def _outlook(of: Outlook) -> Value:
    return {"schema-id": of.schema_id, "snapshots": of.snapshots, "columns": [_reading(one) for one in of.readings]}


def _reading(of: Reading) -> Value:
    out: Value = {"field-id": of.slot.field_id, "path": of.slot.path, "returns": of.returns}
    extra: Mapping[str, Any] = {"value": of.value, "stored-as": of.stored_as, "reason": of.reason}
    out.update((key, value) for key, value in extra.items() if value is not None)
    return out
