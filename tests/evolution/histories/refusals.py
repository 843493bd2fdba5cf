"""The witness of a refusal: a file that a conforming writer may have written and that would be misread, or a sentence.

Metadata does not tell what files hold, so the judge answers for every file that it allows. The witness is looked for
among the files that there are, and then among files written for the purpose under each schema that reachable files may
have: the current one, those that the snapshots of a branch name, and all retained ones where the history has gaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from app.rules import Finding
from app.spec.partition import PartitionSpec
from app.spec.schema import Schema
from app.spec.table import TableMetadata
from tests.evolution.histories.drawing import storable
from tests.evolution.histories.reading import Violation
from tests.evolution.histories.truth import Written, published
from tests.evolution.histories.world import World

SENTENCES: Final = {
    "ICE101": "Reserved Field IDs: user field ids must not exceed 2147483447",
    "ICE102": "Table Metadata Fields: last-column-id is the highest assigned id, and it starts at 0",
    "ICE103": "Schema Evolution: adding a new field assigns a new ID for that field and for any nested fields",
    "ICE104": "Schema Evolution: adding a new field assigns a new ID for that field and for any nested fields",
    "ICE105": "Schema Evolution: field deletion cannot be rolled back unless the field was nullable",
    "ICE106": "Schema Evolution: a new schema is identified by a unique schema ID",
    "ICE107": "Partition Evolution: a new spec is identified by a unique spec ID",
    "ICE108": "Table Metadata Fields: last-column-id is the highest assigned id",
    "ICE109": "Schema Evolution: adding a new field assigns a new ID for that field and for any nested fields",
    "ICE203": "Schema Evolution: the column of valid promotions of versions 1 and 2",
    "ICE205": "Schema Evolution lists changes of structs; changes of map keys are not among them",
    "ICE209": "Primitive Types: the version that added the type",
    "ICE302": "Schema Evolution: when a required field is added, both defaults must be set to a non-null value",
    "ICE303": "Schema Evolution: the initial-default must be set when a field is added and cannot change",
    "ICE304": "Format Versioning: defaults came with version 3",
    "ICE305": "Default values: unknown, variant, geometry and geography must default to null",
    "ICE306": "Appendix D: JSON single-value serialization",
    "ICE307": "Default values, restricted to what the reference implementation can load",
    "ICE308": "Default values: the default of a struct has no field values",
    "ICE309": "Default values: the effective default sets each field's default in a new struct",
    "ICE403": "Appendix A: a struct is a Parquet group, which cannot be empty",
    "ICE501": "Partitioning: source columns must be in the table's schema",
    "ICE502": "Sorting: each sort field has a source column from the table's schema",
    "ICE511": "Partition Transforms, source types: every listed spec is bound when a table is loaded",
    "ICE701": "Reserved Field IDs: the metadata columns",
    "ICE703": "Nested Types: each field has a name",
    "ICE704": "Partitioning: partition fields share the columns' name space when a spec is bound",
}
"""Rules that need no file to be right. All others must show one."""


_FREE: Final = PartitionSpec(-1)
"""Partition columns are alike in all rows of a file, so one spec without any shows what these would hide."""

_OF_SNAPSHOTS: Final = ("ICE509", "ICE510")

_SENTENCES_WITHIN: Final = (
    "(the initial-default differs)",
    "(a map key, or something inside one, changed)",
    "removed since: nothing tells",
)
"""Conflicts under which ICE503 stands for ICE303, ICE205 and ICE109."""


class Refusals:
    """Counts refusals by rule, and for how many of them a file was shown."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()

    def without_witness(
        self, world: World, candidate: TableMetadata, findings: Sequence[Finding]
    ) -> tuple[Finding, ...]:
        """The findings that nothing speaks for."""
        if not storable(world.table.schema):
            return ()  # no writer can make a file under it, so none can be shown
        real = [violation for _, violation in world.violations(candidate)]
        wrong = [*real, *_of_files_that_may_be(world, candidate), *_of_new_snapshots(world, candidate)]
        missing = []
        for finding in findings:
            self.counted[finding.code] += 1
            related = None if finding.field_id is None else _related(world, candidate, finding)
            if any(related is None or violation.field_id in related for violation in wrong):
                self.shown[finding.code] += 1
            elif finding.code not in SENTENCES and not _stands_for_a_sentence(finding, candidate):
                missing.append(finding)
        return tuple(missing)


def _stands_for_a_sentence(finding: Finding, candidate: TableMetadata) -> bool:
    promoted_early = candidate.format_version < 3 and "no legal promotion" in finding.message  # as ICE203
    return promoted_early or any(words in finding.message for words in _SENTENCES_WITHIN)


def _related(world: World, candidate: TableMetadata, finding: Finding) -> set[int]:
    """The field, what is in it and what it is in: before or after, or in any schema where new snapshots have theirs."""
    assert finding.field_id is not None
    found = {finding.field_id}
    others = candidate.schemas if finding.code in _OF_SNAPSHOTS else ()
    for schema in (world.table.schema, candidate.schema, *filter(None, map(candidate.schemas.get, others))):
        for inner in schema.by_id:
            line = {inner, *(ancestor.field_id for ancestor in schema.ancestors(inner))}
            if finding.field_id in line:
                found.add(inner)
            if inner == finding.field_id:
                found |= line
    return found


def _of_files_that_may_be(world: World, candidate: TableMetadata) -> Iterator[Violation]:
    before = {spec.spec_id for spec in world.table.partition_specs}
    specs = [*(spec for spec in candidate.partition_specs if spec.spec_id in before), _FREE]
    for schema in filter(storable, _possible(world, candidate)):
        for spec in specs:
            file = world.file(schema, spec)
            defaults = published([schema], world.published)
            yield from world.readings.violations(file, candidate.schema, defaults)


def _of_new_snapshots(world: World, candidate: TableMetadata) -> Iterator[Violation]:
    """What time travel to a new snapshot would misread of the files that its ancestors may hold."""
    for listed in candidate.snapshots:
        schema = None if listed.schema_id is None else candidate.schemas.get(listed.schema_id)
        if schema is None or listed.snapshot_id in world.table.snapshots:
            continue
        for earlier in filter(storable, _behind(world, world.snapshots[listed.snapshot_id])):
            for spec in (*world.table.partition_specs, _FREE):
                file = world.file(earlier, spec)
                yield from world.readings.violations(file, schema, published([earlier], {}))


def _behind(world: World, snapshot: Written) -> list[Schema]:
    """The schemas that files behind a snapshot may have been written under."""
    found = {s.schema.schema_id: s.schema for s in snapshot.ancestry}
    if not all(world.retained(s) and s.names_schema for s in snapshot.ancestry):
        for schema_id in world.table.schemas:
            schema = world.table.schemas.get(schema_id)
            if schema is not None:
                found.setdefault(schema_id, schema)
    return list(found.values())


def _possible(world: World, candidate: TableMetadata) -> list[Schema]:
    """The schemas that files reachable from a branch of the candidate may have been written under."""
    heads = [world.snapshots[ref.snapshot_id] for ref in candidate.refs.values() if ref.is_branch]
    if not heads:
        return []
    found = {s.schema.schema_id: s.schema for head in heads for s in (*head.ancestry, head)}
    if world.complete(candidate) and set(found) == {candidate.current_schema_id}:
        return []
    found[world.table.current_schema_id] = world.table.schema
    if not world.complete(candidate):
        for schema_id in world.table.schemas:
            schema = world.table.schemas.get(schema_id)
            if schema is not None:
                found.setdefault(schema_id, schema)
    return list(found.values())
