"""Metrics reports and what is known of a table's users."""

from __future__ import annotations

from typing import Any

import pytest

from app.catalog import tables
from app.catalog.usage import MAX_REPORTS, Usage
from app.errors import NoSuchTable
from app.events import Created
from app.ports import Report
from tests.catalog.shorthand import NS, create, create_view, load, namespace, set_properties
from tests.catalog.shorthand import commit as commit_
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    return world


def report(world: World, body: dict[str, Any], name: str = "t") -> None:
    world.run(tables.report_metrics(world.ctx, ALICE, HOME, NS, name, body))


def kept(world: World) -> list[str]:
    world.run(world.ctx.caches.usage.flush(world.store))
    return [r.kind for r in world.run(world.store.reports(uuid_of(world)))]


def uuid_of(world: World) -> str:
    row = world.run(world.store.tabular(HOME, NS, "t"))
    assert row is not None
    return row.uuid


def test_any_report_is_taken(shop: World) -> None:
    """Known kinds, unknown kinds, no kind at all, extra members."""
    for body in (
        {"report-type": "scan-report", "snapshot-id": 1, "metrics": {"x": {"unit": "count", "value": 1}}},
        {"report-type": "commit-report", "sequence-number": 1},
        {"report-type": "future-report", "anything": [1, {"deep": None}]},
        {"report-type": 7},
        {},
    ):
        report(shop, body)
    assert sorted(kept(shop)) == ["commit-report", "future-report", "scan-report", "unknown", "unknown"]


def test_a_huge_report_is_taken_but_not_kept(shop: World) -> None:
    """The client is not told to try again."""
    report(shop, {"report-type": "scan-report", "filter": "x" * (1 << 20)})
    assert kept(shop) == []


def test_a_report_for_no_table(shop: World) -> None:
    """NoSuchTable, for a view too."""
    create_view(shop, "v")
    for name in ("x", "v"):
        with pytest.raises(NoSuchTable):
            report(shop, {}, name)


def test_the_buffer_is_bounded() -> None:
    """A flood keeps the newest reports and costs no memory; unnamed clients leave no trace."""
    buffer = Usage()
    for number in range(MAX_REPORTS + 10):
        buffer.received(Report(table_uuid="u", kind=str(number), received_at_ms=number, body=b"{}"))
    for number in range(20_000):
        buffer.saw("u", f"client {number}", "1", "load", number)
        buffer.saw("u", "", "", "load", number)
    assert len(buffer._reports) == MAX_REPORTS and buffer._reports[0].kind == "10"
    assert len(buffer._sightings) == 10_000


def test_a_table_knows_its_clients_and_its_past(shop: World) -> None:
    """Latest sighting per client and action; journal newest first, in pages."""
    load(shop, "t")
    commit_(shop, "t", [set_properties(a="1")])
    shop.run(shop.ctx.caches.usage.flush(shop.store))
    uuid = uuid_of(shop)
    assert {s.action for s in shop.run(shop.store.sightings(uuid))} == {"load", "commit"}
    whole = shop.run(shop.store.journal(table_uuid=uuid, limit=100))
    assert isinstance(whole[-1].event, Created)
    first = shop.run(shop.store.journal(table_uuid=uuid, limit=1))
    rest = shop.run(shop.store.journal(table_uuid=uuid, before_id=first[0].entry_id, limit=100))
    assert (*first, *rest) == whole
    assert shop.run(shop.store.journal(warehouse=HOME, namespace=NS, limit=100)) == whole
