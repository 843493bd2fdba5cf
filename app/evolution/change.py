"""What a rule judges: the step from one version of a table to the next, with everything derived from it at hand.

Derived values are computed once and only when a rule asks: a commit that renames a column never walks the snapshots.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cached_property

import msgspec

from app.evolution.diff import Delta, SchemaDiff, Slot, diff
from app.evolution.lineage import Lineage, arrivals, branches_moved, lineage, retained_schema_id
from app.evolution.reading import Against, Conflict, Law, Pair, conflicts, misread, misread_fields, slot_of
from app.spec.partition import PartitionSpec
from app.spec.schema import Schema
from app.spec.snapshot import Snapshot
from app.spec.sort import SortOrder
from app.spec.table import TableMetadata
from app.spec.types import StructType


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What metadata cannot tell, gathered by the caller.

    `specs_in_use`: the partition spec IDs that some retained manifest names; None when nobody looked.
    `files_without_ids`: whether a data file of some retained snapshot has columns without field IDs; None when nobody
    looked.
    `now_ms`: epoch milliseconds at which it was gathered.
    """

    specs_in_use: frozenset[int] | None = None
    files_without_ids: bool | None = None
    now_ms: int = 0


class Arrival(msgspec.Struct, frozen=True):
    """A schema that a branch's history newly brings, by the newest snapshot written under it."""

    branch: str
    snapshot: Snapshot | None
    schema: Schema


class Change:
    """The step from `previous` (None: the table is being created) to `current`.

    `before` and `after` are the schemas to compare. With `takes_effect` False, `after` is a schema that the commit
    adds without making it current: nobody reads with it yet, so only the rules about IDs and definitions apply.
    """

    def __init__(
        self,
        previous: TableMetadata | None,
        current: TableMetadata,
        before: Schema | None,
        after: Schema,
        evidence: Evidence,
        *,
        takes_effect: bool = True,
    ) -> None:
        self.previous = previous
        self.current = current
        self.before = before
        self.after = after
        self.evidence = evidence
        self.takes_effect = takes_effect

    @property
    def format_version(self) -> int:
        return self.current.format_version

    @cached_property
    def diff(self) -> SchemaDiff:
        counter = None if self.previous is None else self.previous.last_column_id
        return diff(self.before, self.after, last_column_id=counter)

    @cached_property
    def lineage(self) -> Lineage:
        """Linear in the retained snapshots; asked for only when some field's fate depends on history."""
        return lineage(self.previous, self.current)

    @cached_property
    def binds(self) -> bool:
        """Whether files written under `before` must stay readable under `after`."""
        if not self.takes_effect or self.before is None:
            return False
        # With the branches where they were, one head under another schema settles it without the walk.
        if not branches_moved(self.previous, self.current) and self._other_head():
            return True
        return self.lineage.binds_current

    def _other_head(self) -> bool:
        heads = (self.current.snapshots.get(ref.snapshot_id) for ref in self.current.refs.values() if ref.is_branch)
        return any(head is not None and head.schema_id != self.current.current_schema_id for head in heads)

    @cached_property
    def law(self) -> Law:
        """Reading under `after`; the partition specs are those that were there before and still are."""
        old = () if self.previous is None else self.previous.partition_specs
        kept = {spec.spec_id for spec in self.current.partition_specs}
        return Law.of(self.format_version, [spec for spec in old if spec.spec_id in kept])

    @cached_property
    def introduced(self) -> tuple[Delta, ...]:
        """Fields of `after` that `before` lacks or defines otherwise: what rules about definitions look at."""
        return tuple(delta for delta in self.diff.deltas.values() if delta.after is not None)

    @cached_property
    def restored(self) -> tuple[Slot, ...]:
        """Fields that `before` lacks under IDs that the table has given out earlier."""
        return tuple(
            delta.after for delta in self.introduced if delta.after is not None and delta.field_id in self.diff.restored
        )

    def definitions(self, field_id: int, among: Container[int] | None = None) -> Iterator[tuple[Schema, Slot]]:
        """What retained schemas (those `among` the given IDs) say of a field ID, youngest first. Parses as it goes."""
        if self.previous is None:
            return
        for schema_id in sorted(self.previous.schemas, reverse=True):
            if among is not None and schema_id not in among:
                continue
            schema = self.previous.schemas.get(schema_id)
            slot = None if schema is None else slot_of(schema, field_id)
            if schema is not None and slot is not None:
                yield schema, slot

    @cached_property
    def impostors(self) -> tuple[Pair, ...]:
        """Restored IDs that no retained schema defines compatibly, beside the youngest definition. Required or
        optional does not matter for that, nor do partition transforms."""
        found = []
        for slot in self.restored:
            youngest: Pair | None = None
            for schema, earlier in self.definitions(slot.field_id):
                clashes = conflicts(self.law, Delta(earlier, slot), schema, self.after)
                clashes = tuple(c for c in clashes if c not in _SAME_COLUMN)
                if not clashes:
                    break
                youngest = youngest or Pair(earlier, slot, clashes, Against(schema.schema_id))
            else:
                if youngest is not None:
                    found.append(youngest)
        return tuple(found)

    @cached_property
    def unverifiable(self) -> tuple[Slot, ...]:
        """Restored IDs that no retained schema knows."""
        return tuple(slot for slot in self.restored if next(self.definitions(slot.field_id), None) is None)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Fields that files reachable from a branch cannot be read as, each beside the definition it breaks with.

        Empty when nothing binds. Fields unchanged by this commit never appear: they were judged when they came.
        """
        if not self.takes_effect or not self.diff.deltas:
            return ()
        kept = self._kept_pairs()
        told = {pair.slot.field_id for pair in kept}
        return (*kept, *(pair for pair in self._brought_pairs() if pair.slot.field_id not in told))

    def _kept_pairs(self) -> tuple[Pair, ...]:
        """Those with what was there before the commit."""
        if self.before is None:
            return ()
        against = Against(self.before.schema_id)
        suspects = []
        for delta in self.diff.deltas.values():
            found = conflicts(self.law, delta, self.before, self.after)
            if found and delta.field_id not in self.diff.restored:
                suspects.append(Pair(delta.before, delta.after, found, against))
        if not (suspects or self.restored) or not self.binds:
            return ()
        broken = [pair for pair in suspects if not self._undone(pair)]
        return (*broken, *self._restored_pairs())

    def _brought_pairs(self) -> Iterator[Pair]:
        """Those with what this very commit writes, under a schema that it leaves again: fields that the schema before
        the commit reads there and the one after it does not. The youngest such definition of each field counts."""
        seen: set[int] = set()
        for arrival in self.arrivals:
            snapshot = arrival.snapshot
            if snapshot is None or (self.previous is not None and snapshot.snapshot_id in self.previous.snapshots):
                continue
            against = Against(arrival.schema.schema_id, arrival.branch, snapshot.snapshot_id)
            for pair in self.misread(arrival.schema):
                field_id = pair.slot.field_id
                if field_id in seen or field_id not in self.diff.deltas:
                    continue
                if self.before is None or not misread_fields(self.law, arrival.schema, self.before, (field_id,)):
                    seen.add(field_id)
                    yield Pair(pair.before, pair.after, pair.conflicts, against)

    def _restored_pairs(self) -> Iterator[Pair]:
        """Restored fields beside the definitions that reachable files were written under; where the history is not
        complete, beside all retained ones."""
        foreign = {pair.slot.field_id for pair in self.impostors}
        written = {w.schema_id: w for w in self.lineage.written}
        for slot in self.restored:
            if slot.field_id in foreign:
                continue
            for schema, earlier in self.definitions(slot.field_id, written if self.lineage.complete else None):
                witness = written.get(schema.schema_id)
                found = conflicts(self.law, Delta(earlier, slot), schema, self.after)
                if found:
                    against = (
                        Against(schema.schema_id)
                        if witness is None
                        else Against(schema.schema_id, witness.branch, witness.snapshot_id)
                    )
                    yield Pair(earlier, slot, found, against)
                    break
        for slot in self._inside_restored():
            lacking = self._lacking(slot)
            if lacking is not None and slot.field_id not in self.diff.restored:
                yield Pair(None, slot, (Conflict.REQUIRED_ABSENT,), Against(lacking.schema_id))

    def _inside_restored(self) -> Iterator[Slot]:
        """Required fields without initial-default that are added to a struct which itself comes back."""
        for delta in self.introduced:
            slot = delta.after
            if slot is None or not delta.added or slot.role != "field" or slot.parent not in self.diff.restored:
                continue
            if slot.required and slot.initial_default is None:
                yield slot

    def _lacking(self, slot: Slot) -> Schema | None:
        """A schema that files may be written under which has the field's parent as a struct, but not the field."""
        among = {w.schema_id for w in self.lineage.written} if self.lineage.complete else None
        assert slot.parent is not None
        for schema, parent in self.definitions(slot.parent, among):
            if isinstance(parent.type, StructType) and slot.field_id not in schema.by_id:
                return schema
        return None

    def _undone(self, pair: Pair) -> bool:
        """Whether the pair only takes back a change under which nothing was written.

        Needs the whole history: every snapshot on every branch names a schema whose field the new one can read. And
        the new definition must be one that the old came from, or that a retained schema has.
        """
        if pair.after is None or not self.lineage.complete:
            return False
        for witness in self.lineage.written:
            schema = self.current.schemas.get(witness.schema_id)
            if schema is None:
                return False
            delta = Delta(slot_of(schema, pair.after.field_id), pair.after)
            if conflicts(self.law, delta, schema, self.after):
                return False
        return self._goes_back(pair)

    def _goes_back(self, pair: Pair) -> bool:
        assert self.before is not None and pair.after is not None
        if pair.before is None:
            return False
        if not conflicts(self.law, Delta(pair.after, pair.before), self.after, self.before):
            return True
        return any(
            not conflicts(self.law, Delta(earlier, pair.after), schema, self.after)
            and not conflicts(self.law, Delta(pair.after, earlier), self.after, schema)
            for schema, earlier in self.definitions(pair.after.field_id)
        )

    @cached_property
    def unproven(self) -> tuple[Slot, ...]:
        """Required columns brought back although something was, or may have been, written without them.

        With both defaults set a restored column is no worse than a new one and does not appear.
        """
        if not self.takes_effect or self.before is None:
            return ()
        candidates = [s for s in self.restored if s.role == "field" and s.required]
        candidates = [s for s in candidates if s.initial_default is None or s.write_default is None]
        if not candidates or not self.binds:
            return ()
        known = {slot.field_id for slot in self.unverifiable}
        known.update(pair.slot.field_id for pair in self.impostors)
        inside = {s.field_id for s in self._inside_restored() if self._lacking(s) is not None}
        return tuple(
            s
            for s in candidates
            if s.field_id not in known
            and (s.field_id in inside or (self.in_old_struct(s) and self._written_without(s)))
        )

    def in_old_struct(self, slot: Slot) -> bool:
        """Whether the field's parent was there before: where the parent is new too, nobody asks for the child."""
        if slot.parent is None:
            return True
        parent = None if self.before is None else self.before.by_id.get(slot.parent)
        return parent is not None and isinstance(parent.field_type, StructType)

    def _written_without(self, slot: Slot) -> bool:
        """Whether files may lack the field where they have its parent; where the parent is missing, nobody asks."""
        if any(head.schema_id is None for head in self.lineage.heads):
            return True
        schemas = (self.current.schemas.get(w.schema_id) for w in self.lineage.written)
        return any(
            schema is None
            or (slot.field_id not in schema.by_id and (slot.parent is None or slot.parent in schema.by_id))
            for schema in schemas
        )

    @cached_property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Schemas, other than the current one, that a branch's history newly brings."""
        if not self.takes_effect:
            return ()
        found: dict[int, Arrival] = {}
        for branch, snapshot in arrivals(self.previous, self.current):
            schema_id = retained_schema_id(self.current, snapshot)
            if schema_id is None or schema_id == self.current.current_schema_id or schema_id in found:
                continue
            schema = self.current.schemas.get(schema_id)
            if schema is not None:
                found[schema_id] = Arrival(branch, snapshot, schema)
        if self.before is not None and self.before is not self.after and branches_moved(self.previous, self.current):
            # After a return to the time before a replacement, the expired part of the history counts as well.
            for schema_id in self.lineage.older or ():
                schema = self.current.schemas.get(schema_id)
                if schema is not None and schema_id not in found and schema_id != self.current.current_schema_id:
                    found[schema_id] = Arrival(self.lineage.heads[0].branch, None, schema)
        return tuple(found.values())

    def misread(self, schema: Schema) -> tuple[Pair, ...]:
        """Every field that files written under `schema` cannot be read as."""
        return misread(self.law, schema, self.after)

    @cached_property
    def added_specs(self) -> tuple[PartitionSpec, ...]:
        old = () if self.previous is None else self.previous.partition_specs
        known = {spec.spec_id for spec in old}
        return tuple(spec for spec in self.current.partition_specs if spec.spec_id not in known)

    @cached_property
    def kept_orders(self) -> tuple[SortOrder, ...]:
        """Sort orders that were there before and still are: files may claim them."""
        old = () if self.previous is None else self.previous.sort_orders
        kept = {order.order_id for order in self.current.sort_orders}
        return tuple(order for order in old if order.order_id in kept)

    @property
    def keeps_data(self) -> bool:
        """Whether some snapshot from before is still there."""
        if self.previous is None:
            return False
        return any(snapshot.snapshot_id in self.current.snapshots for snapshot in self.previous.snapshots)

    @property
    def had_branch(self) -> bool:
        """Whether anything could be read from the table before."""
        return self.previous is not None and any(ref.is_branch for ref in self.previous.refs.values())

    def way_out(self, fix: str) -> str:
        """`fix`, unless main is free of the past and only other branches bind the change: then dropping those is."""
        blockers = self.lineage.blockers
        if not blockers or "main" in blockers:
            return fix
        names = ", ".join(blockers)
        noun = "branch" if len(blockers) == 1 else "branches"
        return (
            f"Drop {noun} {names}, or keep the snapshot as a tag instead: branches are read with the current schema, "
            f"tags with their own."
        )


_SAME_COLUMN = frozenset({Conflict.MADE_REQUIRED, Conflict.REQUIRED_ABSENT, Conflict.PARTITIONED, Conflict.OUTGROWN})
