"""The cause comes first and takes in what follows from it: one finding for a fault and a column."""

from __future__ import annotations

import pytest

from app.rules import Severity
from app.spec.table import TableMetadata
from tests.evolution.tables import (
    Json,
    add_snapshot,
    branch,
    evolve,
    field,
    judged,
    part,
    refusals,
    remove_ref,
    schema,
    set_ref,
    snapshot,
    table,
    upgrade,
    warnings,
)

DATES = schema(field(1, "id", "long"), field(2, "c", "date"))
PROMOTED = evolve(field(1, "id", "long"), field(2, "c", "timestamp"))
EMPTY = table(DATES)
WRITTEN = table(DATES, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})


def appended(snapshot_id: int, schema_id: int, parent: int | None, name: str = "main") -> list[Json]:
    return [add_snapshot(snapshot_id, schema_id, parent), set_ref(name, snapshot_id)]


@pytest.mark.parametrize(
    ("base", "updates"),
    [
        (EMPTY, [*appended(2, 0, None), *PROMOTED]),
        (EMPTY, [*appended(2, 0, None), *PROMOTED, *appended(3, 1, 2)]),
        (EMPTY, [*PROMOTED, *appended(2, 0, None), *appended(3, 1, 2, "b")]),
        (WRITTEN, [*PROMOTED, *appended(2, 1, 1)]),
        (WRITTEN, [*appended(2, 0, 1), *PROMOTED]),
        (WRITTEN, [*appended(2, 0, 1), *PROMOTED, *appended(3, 1, 2)]),
        (WRITTEN, [*appended(2, 0, 1, "b"), *PROMOTED, *appended(3, 1, 1), *appended(4, 1, 2, "b")]),
    ],
)
def test_data_and_an_illegal_promotion_in_one_commit_name_the_promotion_alone(
    base: TableMetadata, updates: list[Json]
) -> None:
    """ICE203 with the way out is the only finding, in whatever order data and promotion come."""
    (found,) = judged(base, updates).findings
    assert (found.code, found.field_id) == ("ICE203", 2) and "Upgrade the table to v3 first" in found.fix


def test_the_cause_names_what_would_follow() -> None:
    """Nothing is lost: the codes of what it takes in stand in its message."""
    (found,) = judged(EMPTY, [*appended(2, 0, None), *PROMOTED]).findings
    assert "from which ICE503 branch-at-unreadable-snapshot would follow" in found.message


def test_with_the_cause_cured_nothing_refuses() -> None:
    """The upgrade to v3 in the same commit is all that the finding asks for."""
    assert refusals(WRITTEN, [upgrade(), *PROMOTED, *appended(2, 1, 1)]) == []


def test_two_columns_are_two_findings() -> None:
    """Each column's cause is told; what follows from both is in both."""
    base = table(schema(field(1, "a", "date"), field(2, "b", "int")))
    updates = [*appended(2, 0, None), *evolve(field(1, "a", "timestamp"), field(2, "b", "string"))]
    found = judged(base, updates).findings
    assert [(f.code, f.field_id) for f in found] == [("ICE201", 2), ("ICE203", 1)]
    assert all("ICE503" in f.message for f in found)


def test_a_cause_that_policy_lowers_folds_nothing() -> None:
    """What follows from it then refuses on its own: lowering one rule does not let another pass."""
    updates = [*appended(2, 0, None), *PROMOTED]
    assert refusals(EMPTY, updates, lowered={"ICE203": Severity.WARN}) == ["ICE503"]


def test_a_rollback_without_a_change_of_schema_has_no_other_cause() -> None:
    """It is the branch that is wrong, not the schema: ICE503 stays."""
    base = table(
        schema(field(1, "c", "long")),
        schema(field(1, "c", "string"), schema_id=1),
        snapshots=[snapshot(1, 0), snapshot(2, 1)],
        refs={"main": branch(2)},
    )
    assert refusals(base, [set_ref("main", 1)]) == ["ICE503"]


def test_a_partition_field_that_only_follows_its_source_is_no_second_fault() -> None:
    """date to long under day(c) is one fault; with the type kept nothing is wrong with the spec."""
    base = table(
        schema(field(1, "c", "date")),
        specs=[[part(1, "day", "p")]],
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    (found,) = judged(base, evolve(field(1, "c", "long"))).findings
    assert found.code == "ICE201" and "ICE501 default-spec-unfit" in found.message


class TestPromotionAheadOfReaders:
    """ICE604 warns where a date becomes a timestamp that old files cannot be read as yet, and nowhere else."""

    def test_not_for_a_change_that_is_no_promotion(self) -> None:
        """date to long is refused, and says nothing about readers."""
        later = table(DATES, snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, version=3)
        assert warnings(later, evolve(field(1, "id", "long"), field(2, "c", "long"))) == []

    def test_not_before_version_3(self) -> None:
        """The promotion itself is refused there."""
        assert warnings(WRITTEN, PROMOTED) == []

    def test_not_for_a_replacement(self) -> None:
        """No branch leads to the old files; the tags on them are read with their own schema."""
        later = table(DATES, snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, version=3)
        assert warnings(later, [remove_ref("main"), *PROMOTED]) == []

    def test_where_old_files_stay(self) -> None:
        """Those of earlier commits and those of the same commit."""
        later = table(DATES, snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, version=3)
        assert warnings(later, PROMOTED) == ["ICE604"]
        assert warnings(table(DATES, version=3), [*appended(2, 0, None), *PROMOTED]) == ["ICE604"]
