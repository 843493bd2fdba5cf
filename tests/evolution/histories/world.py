"""One table in memory with real Parquet files, and the only way to change it: a commit that is judged.

Every accepted commit is followed by the reader: each file that a branch reaches is read under the current schema, each
file behind a retained snapshot under the schema that the snapshot names. Every refusal is followed by the search for
its witness.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from app.commit.requirements import check_table
from app.commit.tables import apply
from app.errors import BadRequest, CommitFailed
from app.evolution.change import Evidence
from app.evolution.judge import judge
from app.rules import Finding, Policy, Verdict
from app.spec.bounds import to_bytes
from app.spec.partition import PartitionField, PartitionSpec
from app.spec.requirement import parse_table_requirements
from app.spec.schema import Schema
from app.spec.table import TableMetadata, parse_table_metadata, render_table_metadata
from app.spec.types import GeographyType, GeometryType, NestedField, PrimitiveType, StructType, Type, UnknownType
from app.spec.update import parse_table_updates
from tests.evolution.fitting import unbound
from tests.evolution.histories.drawing import Draw, rows
from tests.evolution.histories.reading import Readings, Violation, partition_of
from tests.evolution.histories.truth import DataFile, Published, Written, default_of, published
from tests.evolution.tables import NOW, UUID, Json
from tests.reader.parquet_files import Row, parquet

LOCATION = "s3://lake/t"


Judge = Callable[[TableMetadata | None, TableMetadata, Evidence, Policy, int], Verdict]


class Unsound(AssertionError):
    """The judge accepted what a reader misreads."""


class Unwarranted(AssertionError):
    """The judge refused a legal change, or one that no reader and no sentence of the spec has anything against."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """`refused_by` is empty for what was accepted; `rejected` holds the words of the commit room."""

    accepted: bool
    refused_by: tuple[Finding, ...] = ()
    rejected: str | None = None


class World:
    def __init__(self, draw: Draw, first: Sequence[Json], version: int, refusals: Any, judged: Judge = judge) -> None:
        self.draw = draw
        self._judge = judged
        self.readings = Readings()
        self.snapshots: dict[int, Written] = {}
        self.published: dict[int, tuple[Type, Any]] = {}
        self.trail: list[int] = []
        self.replaced = False
        self.nameless = False
        self.log: list[str] = []
        self._refusals = refusals
        self._numbers = itertools.count(1)
        self._names = itertools.count(1)
        self.table = self._created(list(first), version)
        self.trail.append(self.table.current_schema_id)
        self._publish()

    def _created(self, first: list[Json], version: int) -> TableMetadata:
        updates: list[Json] = [
            {"action": "assign-uuid", "uuid": UUID},
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "add-schema", "schema": {"type": "struct", "schema-id": 0, "fields": first}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": LOCATION},
        ]
        self.note("create", updates)
        table = apply(None, None, parse_table_updates(updates, "$"), NOW, UUID).metadata
        found = self._judge(None, table, Evidence(), Policy(), NOW)
        if found.refused:
            raise Unwarranted(f"creation refused: {[f.message for f in found.findings if f.refuses]}")
        return table

    # --- what acts need ---------------------------------------------------------------------------------------------

    def note(self, act: str, updates: Sequence[Json]) -> None:
        self.log.append(f"{act}: {json.dumps(list(updates), default=str)}")

    def story(self) -> str:
        return "\n".join(self.log)

    def fresh_name(self) -> str:
        return f"c{next(self._names)}"

    def fresh_snapshot_id(self) -> int:
        return max(self.snapshots, default=0) + 1

    def branches(self) -> dict[str, Written]:
        return {n: self.snapshots[r.snapshot_id] for n, r in self.table.refs.items() if r.is_branch}

    def on_branches(self, table: TableMetadata | None = None) -> list[Written]:
        """The snapshots in the history of a branch, as far back as the metadata links them."""
        table = self.table if table is None else table
        found: dict[int, Written] = {}
        for ref in table.refs.values():
            for listed in table.snapshots.ancestry(ref.snapshot_id) if ref.is_branch else ():
                found[listed.snapshot_id] = self.snapshots[listed.snapshot_id]
        return list(found.values())

    def retained(self, snapshot: Written) -> bool:
        return snapshot.snapshot_id in self.table.snapshots

    def complete(self, table: TableMetadata | None = None) -> bool:
        """Whether every branch's whole history is retained and each snapshot names a retained schema."""
        table = self.table if table is None else table
        heads = [self.snapshots[r.snapshot_id] for r in table.refs.values() if r.is_branch]
        return all(
            s.snapshot_id in table.snapshots and s.names_schema and s.schema.schema_id in table.schemas
            for head in heads
            for s in (*head.ancestry, head)
        )

    def file(self, schema: Schema, spec: PartitionSpec, content: list[Row] | None = None) -> DataFile:
        """A data file of a conforming writer."""
        content = rows(self.draw, schema) if content is None else content
        if not all(_applies(part, schema) for part in spec.fields):
            spec = PartitionSpec(spec.spec_id, ())
        for part in spec.fields:
            for row in content[1:]:
                row[part.source_id] = content[0][part.source_id]
        return DataFile(
            next(self._numbers),
            schema,
            content,
            parquet(schema, content),
            spec,
            partition_of(spec, schema, content[0]),
            dict(_bounds(schema, content)),
        )

    # --- commits ----------------------------------------------------------------------------------------------------

    def commit(
        self,
        act: str,
        updates: Sequence[Json],
        *,
        legal: bool,
        written: Sequence[Written] = (),
        look: bool = False,
        replaces: bool = False,
    ) -> Outcome:
        """Apply and judge; keep the result if it is accepted.

        `written` are the snapshots that the updates add. `look`: the catalog searched manifests for partition specs.
        `replaces`: the commit means to start afresh (CREATE OR REPLACE).
        """
        self.note(f"{act} ({'legal' if legal else 'anything'})", updates)
        try:
            check_table(parse_table_requirements(self._requirements(), "$"), self.table)
            applied = apply(
                self.table, f"{LOCATION}/metadata/v1.metadata.json", parse_table_updates(list(updates), "$"), NOW, UUID
            )
        except (BadRequest, CommitFailed) as fault:
            if legal:
                raise Unwarranted(f"{act} rejected: {fault.message}\n{self.story()}") from fault
            return Outcome(False, rejected=fault.message)
        evidence = Evidence(specs_in_use=self._specs_in_use(applied.metadata) if look else None)
        # Whatever its files hold, a table is lost to Java when one of its specs cannot be bound.
        legal = legal and not unbound(applied.metadata)
        found = self._judge(self.table, applied.metadata, evidence, Policy(), NOW)
        for snapshot in written:
            self.snapshots[snapshot.snapshot_id] = snapshot
        if found.refused:
            refusing = tuple(f for f in found.findings if f.refuses)
            if legal:
                raise Unwarranted(f"{act} refused: {[f.message for f in refusing]}\n{self.story()}")
            missing = self._refusals.without_witness(self, applied.metadata, refusing)
            for snapshot in written:
                del self.snapshots[snapshot.snapshot_id]
            if missing:
                raise Unwarranted(f"{act}: no witness for {[f.message for f in missing]}\n{self.story()}")
            return Outcome(False, refusing)
        if unbound(applied.metadata):
            raise Unsound(f"{act}: no reader can bind specs {unbound(applied.metadata)}\n{self.story()}")
        before = self.table
        self.table = parse_table_metadata(b"".join([render_table_metadata(applied.metadata)]))
        self._remember(before, replaces, bool(written))
        self._settle()
        return Outcome(True)

    def _requirements(self) -> list[Json]:
        return [
            {"type": "assert-table-uuid", "uuid": UUID},
            {"type": "assert-current-schema-id", "current-schema-id": self.table.current_schema_id},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": self.table.last_column_id},
        ]

    def _specs_in_use(self, table: TableMetadata) -> frozenset[int]:
        """What a search of all retained manifests finds."""
        retained = (self.snapshots.get(s.snapshot_id) for s in table.snapshots)
        return frozenset(f.spec.spec_id for s in retained if s is not None for f in s.files)

    def _remember(self, before: TableMetadata, replaces: bool, wrote: bool) -> None:
        moved = {n: r.snapshot_id for n, r in before.refs.items() if r.is_branch} != {
            n: r.snapshot_id for n, r in self.table.refs.items() if r.is_branch
        }
        if wrote or moved or replaces:
            self.trail = []
        if self.table.current_schema_id not in self.trail:
            self.trail.append(self.table.current_schema_id)
        self.replaced = self.replaced or replaces
        old = {snapshot.snapshot_id for snapshot in self.on_branches(before)}
        if replaces or old.isdisjoint(snapshot.snapshot_id for snapshot in self.on_branches()):
            # Nothing older is read with the current schema: what it says of its columns is news.
            self.published = {}
        self._publish()

    def _publish(self) -> None:
        """Note what the current schema says of its fields first, and forget what was dropped before it was written: if
        its id comes back from before a replacement, no file contradicts."""
        held = {field_id for snapshot in self.on_branches() for field_id in snapshot.schema.by_id}
        held.update(self.table.schema.by_id)
        self.published = {field_id: entry for field_id, entry in self.published.items() if field_id in held}
        for field_id, field in self.table.schema.by_id.items():
            self.published.setdefault(field_id, default_of(field))

    def _settle(self) -> None:
        """The soundness of the table as it is now."""
        for reader, violation in self.violations(self.table):
            raise Unsound(f"{reader}: {violation}\n{self.story()}")

    # --- readers ----------------------------------------------------------------------------------------------------

    def violations(self, table: TableMetadata) -> Iterator[tuple[str, Violation]]:
        """What readers of this version of the table get wrong, with the reader."""
        for name, ref in table.refs.items():
            if ref.is_branch:
                head = self.snapshots[ref.snapshot_id]
                for violation in self.of_snapshot(head, table.schema, self.published):
                    yield f"branch {name} under schema {table.current_schema_id}", violation
        known = {spec.spec_id for spec in table.partition_specs}
        for listed in table.snapshots:
            snapshot = self.snapshots[listed.snapshot_id]
            reader = f"snapshot {snapshot.snapshot_id} under schema {listed.schema_id}"
            for file in snapshot.files:
                if file.spec.spec_id not in known:
                    yield reader, Violation(0, f"file {file.number} needs partition spec {file.spec.spec_id}")
            if listed.schema_id is None:
                continue  # read with the current schema, which no rule can promise after a replacement
            schema = table.schemas.get(listed.schema_id)
            if schema is None:
                yield reader, Violation(0, f"schema {listed.schema_id} is gone")
                continue
            for violation in self.of_snapshot(snapshot, schema, {}):
                yield reader, violation

    def of_snapshot(self, snapshot: Written, schema: Schema, later: Published) -> Iterator[Violation]:
        for file in snapshot.files:
            defaults = published(snapshot.since(file), later)
            yield from self.readings.violations(file, schema, defaults)


def _applies(part: PartitionField, schema: Schema) -> bool:
    source = schema.by_id.get(part.source_id)
    return source is not None and schema.parents[part.source_id] is None and part.transform.accepts(source.field_type)


def _bounds(schema: Schema, content: Sequence[Row]) -> Iterator[tuple[int, tuple[bytes, bytes]]]:
    """Bounds of the columns that lie under structs only."""
    stack: list[tuple[tuple[int, ...], NestedField]] = [((field.field_id,), field) for field in schema.fields]
    while stack:
        path, column = stack.pop()
        kind = column.field_type
        if isinstance(kind, StructType):
            stack.extend(((*path, child.field_id), child) for child in kind.fields)
        if not isinstance(kind, PrimitiveType) or isinstance(kind, UnknownType | GeometryType | GeographyType):
            continue
        values = [v for row in content if (v := _at(row, path)) is not None]
        if values:
            yield column.field_id, (to_bytes(kind, min(values)), to_bytes(kind, max(values)))


def _at(row: Any, path: Sequence[int]) -> Any:
    for step in path:
        row = row.get(step) if isinstance(row, dict) else None
    return row
