"""Strictness by property and policy API, and one-shot waivers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.catalog import namespaces, schema_changes, strictness
from app.catalog.results import Committed
from app.errors import BadRequest, EvolutionRefused, NoSuchNamespace, NoSuchTable, NotFound
from app.events import PolicyChanged, SchemaChanged, WaiverGranted, WaiverRevoked, WaiverUsed
from app.evolution.engine.registry import RULES
from app.iceberg.update import parse_table_updates
from app.rules import Severity, Waiver
from tests.catalog.shorthand import (
    NS,
    append,
    commit,
    committing,
    create,
    document,
    field,
    load,
    metadata,
    namespace,
    schema_json,
    set_properties,
)
from tests.catalog.world import ALICE, HOME, World

HOUR = 3_600_000


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    commit(world, "t", append(1, None, 1))
    return world


def narrowing(scale: int = 4) -> list[dict[str, Any]]:
    schema = schema_json(field(1, "id", required=True), field(2, "price", f"decimal(9,{scale})"))
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def refusal(world: World) -> EvolutionRefused:
    with pytest.raises(EvolutionRefused) as refused:
        commit(world, "t", narrowing())
    return refused.value


def code(world: World) -> str:
    return refusal(world).findings[0].code


def set_policy(
    world: World, name: str | None, severity: Severity | None, rule: str, levels: tuple[str, ...] = NS
) -> None:
    world.run(strictness.set_policy(world.ctx, ALICE, HOME, levels, name, rule, severity))


def grant(world: World, rule: str, lifetime_ms: int = HOUR) -> Waiver:
    return world.run(strictness.grant_waiver(world.ctx, ALICE, HOME, NS, "t", rule, "restated by hand", lifetime_ms))


def lowerable() -> str:
    return next(rule.code for rule in RULES if not rule.floor and rule.default is Severity.ERROR)


def floor() -> str:
    return next(rule.code for rule in RULES if rule.floor)


def test_a_lowered_rule_warns_and_the_warning_is_kept(shop: World) -> None:
    """The commit is accepted, and its findings are in answer and journal."""
    rule = code(shop)
    set_policy(shop, "t", Severity.WARN, rule)
    done = commit(shop, "t", narrowing())
    assert [(f.code, f.severity) for f in done.findings] == [(rule, Severity.WARN)]
    newest = shop.run(shop.store.journal(table_uuid=metadata(shop, "t")["table-uuid"]))[0].event
    assert isinstance(newest, SchemaChanged) and newest.findings[0]["code"] == rule


def test_the_nearest_setting_wins_and_can_be_taken_back(shop: World) -> None:
    """Table before namespace; None restores what is around it."""
    rule = code(shop)
    set_policy(shop, None, Severity.OFF, rule)
    set_policy(shop, "t", Severity.ERROR, rule)
    refusal(shop)
    set_policy(shop, "t", None, rule)
    assert commit(shop, "t", narrowing()).findings == ()


def test_a_property_only_tightens(shop: World) -> None:
    """Any writer may set one, so it never makes a rule milder; and it holds for the commit that removes it."""
    rule = code(shop)
    commit(shop, "t", [set_properties(**{f"icekeel.rule.{rule}": "off"})])
    refusal(shop)
    set_policy(shop, "t", Severity.WARN, rule)
    commit(shop, "t", [set_properties(**{f"icekeel.rule.{rule}": "error"})])
    refusal(shop)
    with pytest.raises(EvolutionRefused):
        commit(shop, "t", [{"action": "remove-properties", "removals": [f"icekeel.rule.{rule}"]}, *narrowing()])
    commit(shop, "t", [{"action": "remove-properties", "removals": [f"icekeel.rule.{rule}"]}])
    commit(shop, "t", narrowing())


def test_a_property_of_the_namespace_tightens_too(shop: World) -> None:
    """For every table in it."""
    rule = code(shop)
    set_policy(shop, "t", Severity.WARN, rule)
    shop.run(namespaces.update_properties(shop.ctx, ALICE, HOME, NS, {f"icekeel.rule.{rule}": "error"}, ()))
    refusal(shop)


def test_a_waiver_lets_one_commit_through(shop: World) -> None:
    """It is used up in the commit's own unit, with who, why and what in the journal."""
    rule = code(shop)
    waiver = grant(shop, rule)
    done = commit(shop, "t", narrowing())
    assert [(f.code, f.waived_by) for f in done.findings] == [(rule, waiver.waiver_id)]
    (used,) = shop.run(strictness.list_waivers(shop.ctx, HOME, NS, "t"))
    assert used.used_at_ms is not None
    with pytest.raises(EvolutionRefused):
        commit(shop, "t", narrowing(6))
    events = [e.event for e in shop.run(shop.store.journal(table_uuid=waiver.table_uuid))]
    assert any(isinstance(e, WaiverUsed) and e.reason == "restated by hand" and e.code == rule for e in events)
    assert any(isinstance(e, WaiverGranted) and e.waiver_id == waiver.waiver_id for e in events)


def test_one_waiver_serves_one_of_two_racing_commits(shop: World) -> None:
    """The other is judged again and refused."""
    grant(shop, code(shop))
    other = shop.run(shop.second())

    async def race() -> list[object]:
        tries = (committing(w, "t", narrowing(scale)) for w, scale in ((shop, 4), (other, 6)))
        return list(await asyncio.gather(*tries, return_exceptions=True))

    results = shop.run(race())
    assert sorted(type(r).__name__ for r in results) == ["Committed", "EvolutionRefused"]
    assert sum(isinstance(r, Committed) for r in results) == 1


def test_an_expired_or_revoked_waiver_is_none(shop: World) -> None:
    """Either way the rule holds again."""
    rule = code(shop)
    grant(shop, rule, 10_000)
    shop.clock.ms += 20_000
    refusal(shop)
    waiver = grant(shop, rule)
    shop.run(strictness.revoke_waiver(shop.ctx, ALICE, HOME, NS, "t", waiver.waiver_id))
    refusal(shop)
    newest = shop.run(shop.store.journal(table_uuid=waiver.table_uuid, limit=1))[0].event
    assert isinstance(newest, WaiverRevoked)
    with pytest.raises(NotFound):
        shop.run(strictness.revoke_waiver(shop.ctx, ALICE, HOME, NS, "t", "nope"))


def test_a_refused_commit_uses_no_waiver(shop: World) -> None:
    """A second fault that nobody waived keeps the first one's waiver whole."""
    waiver = grant(shop, code(shop))
    schema = schema_json(field(1, "id", "string", required=True), field(2, "price", "decimal(9,4)"))
    with pytest.raises(EvolutionRefused):
        commit(
            shop,
            "t",
            [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}],
        )
    (left,) = shop.run(strictness.list_waivers(shop.ctx, HOME, NS, "t"))
    assert left == waiver


def test_what_keeps_metadata_readable_is_neither_lowered_nor_waived(shop: World) -> None:
    """Floor rules say so; unknown codes are not found."""
    with pytest.raises(BadRequest, match="cannot be lowered"):
        set_policy(shop, "t", Severity.WARN, floor())
    with pytest.raises(BadRequest, match="cannot be waived"):
        grant(shop, floor())
    with pytest.raises(NotFound, match="No such rule: ICE000"):
        set_policy(shop, "t", Severity.WARN, "ICE000")
    with pytest.raises(NotFound):
        grant(shop, "ICE000")


@pytest.mark.parametrize(
    ("reason", "lifetime"), [("", HOUR), ("  ", HOUR), ("x" * 1001, HOUR), ("x", 0), ("x", 10**12)]
)
def test_a_waiver_needs_a_reason_and_an_end(shop: World, reason: str, lifetime: int) -> None:
    """Neither may be left out or be boundless."""
    with pytest.raises(BadRequest):
        shop.run(strictness.grant_waiver(shop.ctx, ALICE, HOME, NS, "t", lowerable(), reason, lifetime))


def test_missing_tables_and_namespaces(shop: World) -> None:
    """Policy and waivers belong to what exists."""
    with pytest.raises(NoSuchTable):
        set_policy(shop, "x", Severity.WARN, lowerable())
    with pytest.raises(NoSuchNamespace):
        set_policy(shop, None, Severity.WARN, lowerable(), ("nope",))
    with pytest.raises(NoSuchTable):
        shop.run(strictness.list_waivers(shop.ctx, HOME, NS, "x"))


def test_the_policy_of_a_table_lists_every_rule(shop: World) -> None:
    """With what holds and where it was set, in any letter case of the code."""
    rule = lowerable()
    set_policy(shop, None, Severity.WARN, rule.lower())
    shown = {s.rule.code: s for s in shop.run(strictness.table_policy(shop.ctx, HOME, NS, "t"))}
    assert set(shown) == {r.code for r in RULES if not r.retired}
    assert shown[rule].severity is Severity.WARN and shown[rule].settings[0].set_by == "alice"
    assert [s.code for s in shop.run(strictness.namespace_policy(shop.ctx, HOME, NS))] == [rule]
    newest = shop.run(shop.store.journal(warehouse=HOME, limit=1))[0].event
    assert isinstance(newest, PolicyChanged) and (newest.namespace, newest.name, newest.severity) == (NS, "", "warn")


def test_a_check_says_what_a_commit_would_hear_and_changes_nothing(shop: World) -> None:
    """Verdict and difference by field id; a waiver is shown at work but not used up."""
    updates = parse_table_updates(narrowing())
    before, files = load(shop, "t").metadata, shop.files()
    got = shop.run(schema_changes.check_commit(shop.ctx, HOME, NS, "t", (), updates))
    assert got.verdict == "incompatible" and got.findings == refusal(shop).findings
    assert got.change is not None and [c["field-id"] for c in got.change.to_json()] == [2]
    waiver = grant(shop, got.findings[0].code)
    again = shop.run(schema_changes.check_commit(shop.ctx, HOME, NS, "t", (), updates))
    assert again.verdict == "compatible" and again.findings[0].waived_by == waiver.waiver_id
    assert load(shop, "t").metadata == before and shop.files() == files
    assert shop.run(strictness.list_waivers(shop.ctx, HOME, NS, "t")) == (waiver,)


def test_a_property_of_any_namespace_above_makes_a_rule_stricter(world: World) -> None:
    """The strictest of them holds, and none of them can be made milder from below."""
    outer, inner = ("shop",), ("shop", "eu")
    namespace(world, outer)
    namespace(world, inner)
    create(world, "t", inner)
    commit(world, "t", append(1, None, 1), levels=inner)

    def held() -> Severity:
        found = world.run(strictness.table_policy(world.ctx, HOME, inner, "t"))
        return next(one.severity for one in found if one.rule.code == "ICE702")

    def set_in(levels: tuple[str, ...], severity: str) -> None:
        change = {"icekeel.rule.ICE702": severity}
        world.run(namespaces.update_properties(world.ctx, ALICE, HOME, levels, change, ()))

    assert held() is Severity.WARN
    set_in(outer, "error")
    assert held() is Severity.ERROR
    set_in(inner, "warn")
    assert held() is Severity.ERROR


def test_a_lowered_rule_admits_transforms_of_several_columns(shop: World) -> None:
    """ICE512 stands for readers that cannot parse source-ids; who has none lowers it for the table."""
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    fields = [{"source-ids": [1, 1], "transform": "bucket[4]", "name": "several"}]
    updates = [upgrade, {"action": "add-spec", "spec": {"fields": fields}}]
    with pytest.raises(EvolutionRefused, match="lower the rule"):
        commit(shop, "t", updates)
    set_policy(shop, "t", Severity.WARN, "ICE512")
    done = commit(shop, "t", updates)
    assert [finding.code for finding in done.findings] == ["ICE512"]
    assert document(done.metadata)["partition-specs"][-1]["fields"][0]["source-ids"] == [1, 1]
