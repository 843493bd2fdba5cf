"""May this version of a table follow that one? Pure: metadata, evidence, policy and time are handed in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.evolution.change import Change, Evidence
from app.evolution.folding import folded
from app.evolution.lineage import arrivals, builds_on_its_own, newcomers, retained_schema_id, strange_ends
from app.evolution.policy import asks_for_rules
from app.evolution.registry import RULES
from app.rules import Fault, Policy, Rule, Severity, Verdict, verdict
from app.spec.name_mapping import NAME_MAPPING_PROPERTY
from app.spec.table import TableMetadata

_LIVE: Final = tuple(rule for rule in RULES if not rule.retired)

DEFINITION_RULES: Final = frozenset(
    {
        "ICE101",
        "ICE102",
        "ICE103",
        "ICE104",
        "ICE209",
        "ICE210",
        "ICE304",
        "ICE305",
        "ICE306",
        "ICE307",
        "ICE308",
        "ICE309",
        "ICE701",
        "ICE702",
        "ICE703",
    }
)
"""Rules about IDs and definitions. They also hold for a schema that a commit adds without making it current: it can
be made current later, when its fields are no news any more."""

_NOTHING: Final = Verdict()


def judge(
    previous: TableMetadata | None, current: TableMetadata, evidence: Evidence, policy: Policy, now_ms: int
) -> Verdict:
    """The findings on the step from `previous` (None: create) to `current`, refusing ones first.

    Only what the commit introduces is judged; what a table arrived with never refuses a commit. `now_ms` (epoch
    milliseconds) decides which waivers hold. A table that arrives by registration is not to be judged. When neither
    schemas, specs, orders, format version and name mapping nor the schema of a branch changed, and new snapshots build
    on the schema of their parents, this returns at once.
    """
    if previous is not None and _untouched(previous, current):
        return _NOTHING
    return verdict(folded(faults(previous, current, evidence, policy), policy, now_ms), policy, now_ms)


def faults(
    previous: TableMetadata | None, current: TableMetadata, evidence: Evidence, policy: Policy
) -> Iterator[tuple[Rule[Change], Fault]]:
    """What each rule that is not off has to say, before severities and waivers."""
    before = None if previous is None else previous.schema
    rules = [rule for rule in _LIVE if policy.severity(rule) is not Severity.OFF]
    main = Change(previous, current, before, current.schema, evidence)
    yield from _run(rules, main)
    definitions = [rule for rule in rules if rule.code in DEFINITION_RULES]
    for schema_id in current.schemas:
        if schema_id == current.current_schema_id or (previous is not None and schema_id in previous.schemas):
            continue
        schema = current.schemas.get(schema_id)
        if schema is not None:
            yield from _run(definitions, Change(previous, current, before, schema, evidence, takes_effect=False))


def _run(rules: list[Rule[Change]], change: Change) -> Iterator[tuple[Rule[Change], Fault]]:
    for rule in rules:
        if rule.check is not None:
            for fault in rule.check(change):
                yield rule, fault


def _untouched(previous: TableMetadata, current: TableMetadata) -> bool:
    if (
        previous.current_schema_id != current.current_schema_id
        or previous.format_version != current.format_version
        or previous.default_spec_id != current.default_spec_id
        or previous.default_sort_order_id != current.default_sort_order_id
        or previous.last_column_id != current.last_column_id
        or previous.last_partition_id != current.last_partition_id
        or previous.schemas is not current.schemas
        or previous.partition_specs is not current.partition_specs
        or previous.sort_orders is not current.sort_orders
    ):
        return False
    if previous.properties is not current.properties and asks_for_rules(current.properties):
        return False
    if previous.properties.get(NAME_MAPPING_PROPERTY) != current.properties.get(NAME_MAPPING_PROPERTY):
        return False
    for _, snapshot in arrivals(previous, current):
        if retained_schema_id(current, snapshot) not in (None, current.current_schema_id):
            return False
    for snapshot in newcomers(previous, current):
        if snapshot.snapshot_id in previous.snapshots or not builds_on_its_own(previous, snapshot):
            return False
    return next(strange_ends(previous, current), None) is None
