"""Strictness and permission: the severity of each rule for a table or namespace, and one-shot waivers. Journaled."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog import commit_point, judgement, namespaces, tabulars, warehouses
from app.catalog.context import Caller, Context
from app.catalog.idempotency import Key
from app.catalog.journal import journal_writer
from app.catalog.judgement import Scope
from app.errors import BadRequest, NotFound
from app.evolution.engine.change import Change
from app.evolution.engine.registry import RULES
from app.ports import AddWaiver, AppendJournal, Levels, PolicySetting, RevokeWaiver, SetPolicy, WriteOp
from app.rules import Rule, Severity, Waiver

_REASON_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Strictness:
    """How one rule is held for one table: what holds now, and where the policy API has set it (nearest last)."""

    rule: Rule[Change]
    severity: Severity
    settings: tuple[PolicySetting, ...]


async def table_policy(ctx: Context, warehouse: str, levels: Levels, name: str) -> tuple[Strictness, ...]:
    """Every live rule with the severity that the table's next commit meets. NoSuchTable."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    document = await tabulars.table_document(ctx, home, row)
    policy = await judgement.policy(ctx, Scope.of(row), None, document.metadata)
    settings = judgement.nearest_last(await ctx.store.policy(home.name, levels, row.uuid))
    return tuple(
        Strictness(rule, policy.severity(rule), tuple(s for s in settings if s.code == rule.code))
        for rule in RULES
        if not rule.retired
    )


async def namespace_policy(ctx: Context, warehouse: str, levels: Levels) -> tuple[PolicySetting, ...]:
    """What the policy API has set for a namespace and those above it, nearest last. NoSuchNamespace."""
    home = await warehouses.warehouse(ctx, warehouse)
    await namespaces.existing(ctx, home, levels)
    return judgement.nearest_last(await ctx.store.policy(home.name, levels, None))


async def set_policy(
    ctx: Context,
    caller: Caller,
    warehouse: str,
    levels: Levels,
    name: str | None,
    code: str,
    severity: Severity | None,
) -> None:
    """Set a rule's severity for a table, or (`name` None) for a namespace and all below it; None takes it back.

    NotFound for an unknown rule; BadRequest for lowering one that keeps metadata readable; NoSuchTable;
    NoSuchNamespace.
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)
    rule = _rule(code)
    if severity is not None and rule.floor and severity.rank < rule.default.rank:
        raise BadRequest(f"{rule.code} {rule.slug} keeps metadata readable and cannot be lowered")
    if name is None:
        await namespaces.existing(ctx, home, levels)
        uuid = None
    else:
        uuid = (await tabulars.table(ctx, home, levels, name)).uuid
    writer = journal_writer(ctx, caller, home, levels, name or "", uuid or "")
    setting = SetPolicy(
        warehouse=home.name,
        namespace=levels,
        table_uuid=uuid,
        code=rule.code,
        severity=severity,
        set_by=caller.principal,
        now_ms=ctx.clock.now_ms(),
    )
    event = writer.policy_changed(rule.code, None if severity is None else severity.value)
    await commit_point.land(ctx, [setting, AppendJournal(event=event)], _no_key(ctx, home.name), {})


async def grant_waiver(
    ctx: Context,
    caller: Caller,
    warehouse: str,
    levels: Levels,
    name: str,
    code: str,
    reason: str,
    lifetime_ms: int,
) -> Waiver:
    """Permit one commit to this table to break one rule, until it is used or `lifetime_ms` have passed.

    NotFound for an unknown rule; BadRequest for one that cannot be waived, no reason, or a lifetime out of bounds.
    """
    home = await warehouses.fresh_warehouse(ctx, warehouse)
    rule = _rule(code)
    if rule.floor:
        raise BadRequest(f"{rule.code} {rule.slug} keeps metadata readable and cannot be waived")
    if not reason.strip() or len(reason) > _REASON_CHARS:
        raise BadRequest(f"Invalid waiver: a reason of 1 to {_REASON_CHARS} characters is needed")
    if not 0 < lifetime_ms <= ctx.limits.waiver_lifetime_max_ms:
        days = ctx.limits.waiver_lifetime_max_ms // 86_400_000
        raise BadRequest(f"Invalid waiver: it must expire within {days} days")
    row = await tabulars.table(ctx, home, levels, name)
    now = ctx.clock.now_ms()
    waiver = Waiver(
        waiver_id=ctx.ids.uuid4(),
        table_uuid=row.uuid,
        code=rule.code,
        reason=reason.strip(),
        granted_by=caller.principal,
        granted_at_ms=now,
        expires_at_ms=now + lifetime_ms,
    )
    event = journal_writer(ctx, caller, home, levels, name, row.uuid).waiver_granted(waiver)
    await commit_point.land(ctx, [AddWaiver(waiver=waiver), AppendJournal(event=event)], _no_key(ctx, home.name), {})
    return waiver


async def list_waivers(ctx: Context, warehouse: str, levels: Levels, name: str) -> tuple[Waiver, ...]:
    """The table's waivers, used and expired ones included. NoSuchTable."""
    home = await warehouses.warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    return await ctx.store.waivers(row.uuid)


async def revoke_waiver(
    ctx: Context, caller: Caller, warehouse: str, levels: Levels, name: str, waiver_id: str
) -> None:
    """Take an unused waiver back. NotFound when the table has no such waiver; BadRequest when it was used."""
    home = await warehouses.fresh_warehouse(ctx, warehouse)
    row = await tabulars.table(ctx, home, levels, name)
    waiver = next((w for w in await ctx.store.waivers(row.uuid) if w.waiver_id == waiver_id), None)
    if waiver is None:
        raise NotFound(f"No such waiver: {waiver_id}")
    if waiver.used_at_ms is not None:
        raise BadRequest(f"Waiver {waiver_id} was used and can no longer be revoked")
    event = journal_writer(ctx, caller, home, levels, name, row.uuid).waiver_revoked(waiver)
    unit: list[WriteOp] = [RevokeWaiver(waiver_id=waiver_id), AppendJournal(event=event)]
    await commit_point.land(ctx, unit, _no_key(ctx, home.name), {})


def _rule(code: str) -> Rule[Change]:
    rule = RULES.get(code)
    if rule is None or rule.retired:
        raise NotFound(f"No such rule: {code}")
    return rule


def _no_key(ctx: Context, warehouse: str) -> Key:
    return Key(ctx, warehouse, None, "")
