"""Requirements against the base; the wording is what the reference suites match."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, CommitFailed
from app.iceberg.json.codec import encode
from app.iceberg.requirement import parse_table_requirements, parse_view_requirements
from app.iceberg.view import parse_view_metadata
from app.metadata.requirements import check_table, check_view, is_create
from tests.iceberg.documents import UUID, document, parsed, snapshot, with_history
from tests.iceberg.test_view import view

OTHER = "99999999-2222-4333-8444-555555555555"
BASE = parsed(with_history(snapshot(7)))
EMPTY = parsed(document())


def ref(snapshot_id: int | None, name: str = "main") -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}


MET: list[dict[str, Any]] = [
    {"type": "assert-table-uuid", "uuid": UUID.upper()},
    ref(7),
    ref(None, "other"),
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": None},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]
UNMET: list[tuple[dict[str, Any], str]] = [
    ({"type": "assert-create"}, "table already exists"),
    ({"type": "assert-table-uuid", "uuid": OTHER}, f"UUID does not match: expected {UUID} != {OTHER}"),
    (ref(None), "branch main was created concurrently"),
    (ref(8), "branch main has changed: expected id 8 != 7"),
    (ref(8, "x"), "branch or tag x is missing, expected 8"),
    (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
        "last assigned field id changed: expected id 1 != 2",
    ),
    ({"type": "assert-current-schema-id", "current-schema-id": 1}, "current schema changed: expected id 1 != 0"),
    (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
        "last assigned partition id changed: expected id 1000 != 999",
    ),
    ({"type": "assert-default-spec-id", "default-spec-id": 1}, "default partition spec changed: expected id 1 != 0"),
    (
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
        "default sort order changed: expected id 1 != 0",
    ),
]


def test_requirements_that_hold_pass() -> None:
    """All at once, and none at all."""
    check_table(parse_table_requirements(MET), BASE)
    check_table((), BASE)


@pytest.mark.parametrize(("requirement", "reason"), UNMET)
def test_each_failure_has_its_wording(requirement: dict[str, Any], reason: str) -> None:
    """A conflict, whatever else holds."""
    others = [] if requirement["type"] == "assert-create" else MET
    with pytest.raises(CommitFailed) as caught:
        check_table(parse_table_requirements([*others, requirement]), BASE)
    assert caught.value.message == f"Requirement failed: {reason}"


def test_an_empty_table_has_no_main() -> None:
    """Null, absent and -1 all hold then (O-18, O-31)."""
    for none in ({"snapshot-id": None}, {}, {"snapshot-id": -1}):
        check_table(parse_table_requirements([{"type": "assert-ref-snapshot-id", "ref": "main", **none}]), EMPTY)


def test_a_create_requirement_stands_alone() -> None:
    """It holds where there is no table."""
    create = {"type": "assert-create"}
    check_table(parse_table_requirements([create]), None)
    assert is_create(parse_table_requirements([create, create]))
    assert not is_create(())
    with pytest.raises(BadRequest, match="cannot be combined"):
        check_table(parse_table_requirements([create, MET[0]]), None)


def test_what_is_asserted_of_a_missing_table_fails() -> None:
    """Except the counters, which contradict nothing."""
    check_table(parse_table_requirements([MET[3], MET[5]]), None)
    with pytest.raises(CommitFailed):
        check_table(parse_table_requirements([MET[0]]), None)


def test_views_are_known_by_their_uuid() -> None:
    """In any letter case."""
    base = parse_view_metadata(encode(view()))
    check_view(parse_view_requirements([{"type": "assert-view-uuid", "uuid": UUID.upper()}]), base)
    with pytest.raises(CommitFailed, match=f"view UUID does not match: expected {UUID} != {OTHER}"):
        check_view(parse_view_requirements([{"type": "assert-view-uuid", "uuid": OTHER}]), base)
