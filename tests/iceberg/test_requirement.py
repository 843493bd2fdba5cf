"""Requirements as sent."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, SpecError
from app.iceberg.requirement import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    AssertViewUuid,
    parse_table_requirements,
    parse_view_requirements,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "assert-create"}, AssertCreate()),
        ({"type": "ASSERT-TABLE-UUID", "uuid": "x", "more": 1}, AssertTableUuid("x")),
        ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2**62}, AssertRefSnapshotId("main", 2**62)),
        ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3}, AssertLastAssignedFieldId(3)),
        ({"type": "assert-current-schema-id", "current-schema-id": 0}, AssertCurrentSchemaId(0)),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
            AssertLastAssignedPartitionId(999),
        ),
        ({"type": "assert-default-spec-id", "default-spec-id": 0}, AssertDefaultSpecId(0)),
        ({"type": "assert-default-sort-order-id", "default-sort-order-id": 0}, AssertDefaultSortOrderId(0)),
    ],
)
def test_each_type_is_read(value: dict[str, Any], expected: object) -> None:
    """Type names without regard to case, unknown members ignored."""
    assert parse_table_requirements([value]) == (expected,)


@pytest.mark.parametrize("more", [{}, {"snapshot-id": None}, {"snapshot-id": -1}])
def test_no_snapshot_has_three_spellings(more: dict[str, Any]) -> None:
    """Null, absent and -1 all mean that the ref must not exist."""
    assert parse_table_requirements([{"type": "assert-ref-snapshot-id", "ref": "main", **more}]) == (
        AssertRefSnapshotId("main", None),
    )


@pytest.mark.parametrize(
    "value", [{"type": "assert-moon-phase"}, {"type": "assert-view-uuid", "uuid": "x"}, {}, 1, {"type": None}]
)
def test_unknown_types_are_refused(value: Any) -> None:
    """Nothing is skipped; the requirement of a view is unknown to tables."""
    with pytest.raises(BadRequest):
        parse_table_requirements([value])


def test_views_know_one_requirement() -> None:
    """Everything else is refused."""
    assert parse_view_requirements([{"type": "assert-view-uuid", "uuid": "x"}]) == (AssertViewUuid("x"),)
    with pytest.raises(BadRequest):
        parse_view_requirements([{"type": "assert-table-uuid", "uuid": "x"}])


def test_no_requirements_at_all() -> None:
    """Null and an empty list are the same; another type is a fault with a path."""
    assert parse_table_requirements(None) == parse_view_requirements([]) == ()
    with pytest.raises(SpecError, match=r"\$\.requirements"):
        parse_table_requirements({})
