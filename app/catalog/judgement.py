"""Asking the evolution engine: may this table follow that one, under the strictness that holds here?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.catalog import namespaces, weights
from app.catalog.context import Context
from app.catalog.metadata_cache import aside
from app.errors import CommitFailed, EvolutionRefused
from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.evolution.engine.policy import policy_from
from app.evolution.engine.registry import RULES
from app.iceberg.table import TableMetadata
from app.ports import Levels, Namespace, PolicySetting, Tabular
from app.rules import Policy, Severity, Verdict, Waiver

# What has no fault under this policy has none under any.
_STRICTEST: Final = Policy(set_by_api={rule.code: Severity.ERROR for rule in RULES})

_CURED_BY_REFRESH: Final = frozenset(rule.code for rule in RULES if rule.conflict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose policy holds: the table's own (`uuid` None: not yet there), its namespace's and those above it."""

    warehouse: str
    levels: Levels
    uuid: str | None
    namespace_properties: Mapping[str, str]

    @classmethod
    def of(cls, row: Tabular) -> Scope:
        return cls(row.warehouse, row.namespace, row.uuid, row.namespace_properties)

    @classmethod
    def inside(cls, namespace: Namespace) -> Scope:
        return cls(namespace.warehouse, namespace.levels, None, namespace.properties)


async def judged(
    ctx: Context,
    scope: Scope,
    before: TableMetadata | None,
    after: TableMetadata,
    spent: Collection[Waiver] = (),
) -> Verdict:
    """The verdict on `after` following `before`; it may refuse. No waiver of `spent` helps it.

    Most commits append and have no fault under any policy, so judging first with every rule raised spares them the
    two reads that the real policy costs.
    """
    now = ctx.clock.now_ms()
    evidence = Evidence(specs_in_use=None, now_ms=now)
    weight = weights.of_step(before, after)
    if not (await aside(weight, judge, before, after, evidence, _STRICTEST, now)).findings:
        return Verdict()
    return await aside(weight, judge, before, after, evidence, await policy(ctx, scope, before, after, spent), now)


async def accepted(
    ctx: Context,
    scope: Scope,
    before: TableMetadata | None,
    after: TableMetadata,
    spent: Collection[Waiver] = (),
) -> Verdict:
    """The verdict of `judged`. EvolutionRefused, with every finding, when it refuses; CommitFailed when all that
    refuses it is that the caller had not seen the present state."""
    verdict = await judged(ctx, scope, before, after, spent)
    if verdict.refused:
        stale = all(finding.code in _CURED_BY_REFRESH for finding in verdict.findings if finding.refuses)
        raise CommitFailed(EvolutionRefused(verdict.findings).message) if stale else EvolutionRefused(verdict.findings)
    return verdict


async def policy(
    ctx: Context,
    scope: Scope,
    before: TableMetadata | None,
    after: TableMetadata,
    spent: Collection[Waiver] = (),
) -> Policy:
    """Properties of the table, its namespace and those above (stricter only), settings of the policy API (nearest
    last), waivers that are not `spent`: each is good for one step, also for one of several in the same request.

    A strictness property that this very commit removes still holds for it.
    """
    settings = nearest_last(await ctx.store.policy(scope.warehouse, scope.levels, scope.uuid))
    waivers = () if scope.uuid is None else await ctx.store.waivers(scope.uuid)
    gone = {waiver.waiver_id for waiver in spent}
    return policy_from(
        after.properties if before is None else {**after.properties, **before.properties},
        await namespaces.namespace_properties(ctx, scope.warehouse, scope.levels, scope.namespace_properties),
        [(setting.code, setting.severity) for setting in settings],
        [waiver for waiver in waivers if waiver.waiver_id not in gone],
    )


def nearest_last(settings: Iterable[PolicySetting]) -> tuple[PolicySetting, ...]:
    """From the outermost namespace to the table itself."""
    return tuple(sorted(settings, key=lambda setting: (setting.table_uuid is not None, len(setting.namespace))))
