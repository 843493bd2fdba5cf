"""Folding and judging the updates of a commit takes work in proportion to what is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.commit.requirements import check_table
from app.commit.schemas import MOST_COLUMNS
from app.commit.tables import apply
from app.commit.views import apply as apply_view
from app.errors import ValidationFailed
from app.evolution.change import Evidence
from app.evolution.judge import judge
from app.rules import Policy
from app.spec.requirement import parse_table_requirements
from app.spec.table import render_table_metadata
from app.spec.update import parse_table_updates, parse_view_updates
from tests.commit.test_views import BASE as VIEW
from tests.commit.test_views import add as add_version
from tests.evolution.tables import NOW, UUID, branch, field, part, schema, snapshot, sort_by, table
from tests.work import MOST_GROWTH, growth

Json = dict[str, Any]
Updates = Callable[[int], list[Json]]


def spec(at: int, transform: str) -> Json:
    return {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "name": f"p{at}", "transform": transform}]}}


def specs(size: int) -> list[Json]:
    return [spec(at, f"bucket[{at + 1}]") for at in range(size)]


def schemas(size: int) -> list[Json]:
    own = (schema(field(1, "a", "int"), field(at + 2, f"b{at}", "int")) for at in range(size))
    return [{"action": "add-schema", "schema": one} for one in own]


def orders(size: int) -> list[Json]:
    return [
        {"action": "add-sort-order", "sort-order": {"order-id": at, "fields": [sort_by(1, f"bucket[{at}]")]}}
        for at in range(1, size + 1)
    ]


def snapshots(size: int) -> list[Json]:
    rows = ({**snapshot(at + 2), "first-row-id": 0, "added-rows": 0} for at in range(size))
    return [{"action": "add-snapshot", "snapshot": one} for one in rows]


def tags(size: int) -> list[Json]:
    return [{"action": "set-snapshot-ref", "ref-name": f"r{at}", "type": "tag", "snapshot-id": 1} for at in range(size)]


def properties(size: int) -> list[Json]:
    return [{"action": "set-properties", "updates": {f"k{at}": "x"}} for at in range(size)]


def keys(size: int) -> list[Json]:
    return [
        {"action": "add-encryption-key", "encryption-key": {"key-id": f"k{at}", "encrypted-key-metadata": "aGk="}}
        for at in range(size)
    ]


def statistics(snapshot_id: int) -> Json:
    file = {"snapshot-id": snapshot_id, "statistics-path": f"s3://b/{snapshot_id}", "file-size-in-bytes": 1}
    return {
        "action": "set-statistics",
        "statistics": {**file, "file-footer-size-in-bytes": 1, "blob-metadata": []},
    }


def wide(size: int) -> list[Json]:
    new = schema(field(1, "a", "int"), *[field(at + 2, f"b{at}", "int") for at in range(size)])
    return [{"action": "add-schema", "schema": new}, {"action": "set-current-schema", "schema-id": -1}]


UPDATES: dict[str, Updates] = {
    "add-spec": specs,
    "add-spec of one meaning": lambda n: [spec(at, "identity") for at in range(n)],
    "add-spec and remove it": lambda n: [
        one
        for at, added in enumerate(specs(n), 1)
        for one in (added, {"action": "remove-partition-specs", "spec-ids": [at]})
    ],
    "set-default-spec": lambda n: [*specs(n), *({"action": "set-default-spec", "spec-id": at} for at in range(1, n))],
    "a wide spec": lambda n: [
        *wide(n),
        {"action": "add-spec", "spec": {"fields": [part(at + 2, "identity", f"b{at}", 1000 + at) for at in range(n)]}},
        {"action": "set-default-spec", "spec-id": -1},
    ],
    "add-schema": schemas,
    "add-schema and remove it": lambda n: [
        one
        for at, added in enumerate(schemas(n), 1)
        for one in (added, {"action": "remove-schemas", "schema-ids": [at]})
    ],
    "set-current-schema": lambda n: [
        *schemas(n),
        *({"action": "set-current-schema", "schema-id": at} for at in range(1, n)),
    ],
    "a wide schema": wide,
    "add-sort-order": orders,
    "set-default-sort-order": lambda n: [
        *orders(n),
        *({"action": "set-default-sort-order", "sort-order-id": at} for at in range(1, n)),
    ],
    "add-snapshot": snapshots,
    "add-snapshot between schemas": lambda n: [
        one for both in zip(snapshots(n), schemas(n), strict=True) for one in both
    ],
    "remove-snapshots": lambda n: [
        *snapshots(n),
        *({"action": "remove-snapshots", "snapshot-ids": [at + 2]} for at in range(n)),
    ],
    "set-snapshot-ref": tags,
    "remove-snapshot-ref": lambda n: [
        *tags(n),
        *({"action": "remove-snapshot-ref", "ref-name": f"r{at}"} for at in range(n)),
    ],
    "set-properties": properties,
    "many properties": lambda n: [{"action": "set-properties", "updates": {f"k{at}": "x" for at in range(n)}}],
    "remove-properties": lambda n: [
        *properties(n),
        *({"action": "remove-properties", "removals": [f"k{at}"]} for at in range(n)),
    ],
    "set-location": lambda n: [{"action": "set-location", "location": f"s3://lake/t{at}"} for at in range(n)],
    "set-statistics": lambda n: [*snapshots(n), *(statistics(at + 2) for at in range(n))],
    "add-encryption-key": keys,
    "remove-encryption-key": lambda n: [
        *keys(n),
        *({"action": "remove-encryption-key", "key-id": f"k{at}"} for at in range(n)),
    ],
    "assign-uuid": lambda n: [{"action": "assign-uuid", "uuid": UUID}] * n,
    "upgrade-format-version": lambda n: [{"action": "upgrade-format-version", "format-version": 3}] * n,
}


def committed(updates: list[Json]) -> Callable[[], object]:
    base = table(schema(field(1, "a", "int")), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})

    def work() -> None:
        after = apply(base, None, parse_table_updates(updates), NOW + 1_000_000, UUID).metadata
        judge(base, after, Evidence(specs_in_use=None, now_ms=NOW), Policy(), NOW)
        render_table_metadata(after)

    return work


@pytest.mark.parametrize("updates", UPDATES.values(), ids=list(UPDATES))
def test_twice_the_updates_are_twice_the_work(updates: Updates) -> None:
    """Every kind of update finds what it is about without going through what the others brought."""
    assert growth(lambda size: committed(updates(size))) <= MOST_GROWTH


def test_twice_the_requirements_are_twice_the_work() -> None:
    """Each is checked by itself."""
    base = table(schema(field(1, "a", "int")), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})

    def work(size: int) -> Callable[[], object]:
        sent = [{"type": "assert-ref-snapshot-id", "ref": f"r{at}", "snapshot-id": None} for at in range(size)]
        return lambda: check_table(parse_table_requirements(sent), base)

    assert growth(work) <= MOST_GROWTH


def test_the_columns_of_a_new_schema_are_bounded() -> None:
    """The limit is in the message."""
    with pytest.raises(ValidationFailed, match=f"at most {MOST_COLUMNS} are accepted"):
        committed(wide(MOST_COLUMNS))()


VIEW_UPDATES: dict[str, Updates] = {
    "add-view-version": lambda n: [add_version(at + 2, f"select {at}") for at in range(n)],
    "add-view-version of one meaning": lambda n: [add_version(at + 2) for at in range(n)],
    "add-schema": schemas,
    "set-properties": properties,
}


@pytest.mark.parametrize("updates", VIEW_UPDATES.values(), ids=list(VIEW_UPDATES))
def test_twice_the_updates_of_a_view_are_twice_the_work(updates: Updates) -> None:
    """As for tables."""

    def work(size: int) -> Callable[[], object]:
        sent = parse_view_updates(updates(size))
        return lambda: apply_view(VIEW, sent, NOW)

    assert growth(work) <= MOST_GROWTH
