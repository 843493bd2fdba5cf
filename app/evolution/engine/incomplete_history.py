"""What a table's history leaves open once snapshots and schemas are gone: fields that lost files may clash with."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.evolution.engine.change import Change
from app.evolution.engine.compatibility import Against, Pair, conflicts, slot_of
from app.evolution.engine.diff import Delta, Slot, diff
from app.evolution.engine.lineage import LooseEnd, loose_ends, strange_ends
from app.evolution.engine.removed_schemas import Gap, born_after, gap, horizon
from app.iceberg.schema import Schema
from app.iceberg.table import TableMetadata


class Doubt(msgspec.Struct, frozen=True):
    """A field that files behind a loose end of a history may hold in a way that the schema cannot read.

    `clash` is it beside a retained definition; None when it is a schema in the `gap`, which nobody knows any more.
    """

    slot: Slot
    end: LooseEnd
    clash: Pair | None = None
    gap: Gap | None = None


def unsettled(change: Change) -> Iterator[Doubt]:
    """Restored fields that files of an unknown history may hold as a schema had them that is gone since.

    A snapshot whose schema has the field settles it: that schema could read all that lies behind, and the restored
    definition is compared with it elsewhere.
    """
    if not change.takes_effect or change.previous is None or not change.restored or not change.binds:
        return
    ends = tuple(loose_ends(change.current))
    known = {pair.slot.field_id for pair in (*change.impostors, *change.pairs)}
    known.update(slot.field_id for slot in change.unverifiable)
    for slot in change.restored:
        end = next((end for end in ends if not _settled(change, slot, end)), None)
        if end is None or slot.field_id in known:
            continue
        missing = gap(change.previous, slot.field_id)
        if missing is not None:
            yield Doubt(slot, end, gap=missing)


def strange(change: Change) -> Iterator[Doubt]:
    """Fields that clash with the unknown past which a branch newly comes to.

    Files there may be written under every retained schema, and under those that are gone if the field surely was there
    before the last known snapshot.
    """
    if not change.takes_effect or change.previous is None:
        return
    for end in strange_ends(change.previous, change.current):
        for field_id in change.after.by_id:
            slot = slot_of(change.after, field_id)
            if slot is not None and not _settled(change, slot, end):
                doubt = _clash(change, slot, end) or _hole(change.previous, slot, end)
                if doubt is not None:
                    yield doubt


def _clash(change: Change, slot: Slot, end: LooseEnd) -> Doubt | None:
    for schema, earlier in change.definitions(slot.field_id):
        found = conflicts(change.law, Delta(earlier, slot), schema, change.after)
        if found and may_lie_behind(change, schema, end):
            return Doubt(slot, end, clash=Pair(earlier, slot, found, Against(schema.schema_id)))
    return None


def may_lie_behind(change: Change, schema: Schema, end: LooseEnd) -> bool:
    """Whether files of the lost past may be written under the schema: those of the known part could read it all."""
    for schema_id in end.schema_ids:
        later = change.current.schemas.get(schema_id)
        if later is None:
            continue
        deltas = diff(schema, later).deltas.values()
        if any(conflicts(change.law, delta, schema, later) for delta in deltas):
            return False
    return True


def _hole(previous: TableMetadata, slot: Slot, end: LooseEnd) -> Doubt | None:
    if end.snapshot.schema_id not in previous.schemas:
        return None
    if born_after(previous, slot.field_id) >= horizon(previous, end.snapshot):
        return None
    missing = gap(previous, slot.field_id)
    return None if missing is None else Doubt(slot, end, gap=missing)


def _settled(change: Change, slot: Slot, end: LooseEnd) -> bool:
    schemas = (change.current.schemas.get(schema_id) for schema_id in end.schema_ids)
    return any(schema is not None and slot.field_id in schema.by_id for schema in schemas)
