"""Partition specs that a table keeps for older files, against the schemas that come after them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rules import Severity
from app.spec.schema_counter import remembered_spec_id
from app.spec.table import TableMetadata
from tests.evolution.fitting import TRANSFORMS, TYPES, takes, unbound
from tests.evolution.tables import (
    Json,
    add_snapshot,
    branch,
    commit,
    evolve,
    field,
    judged,
    list_of,
    part,
    refusals,
    remove_ref,
    schema,
    set_ref,
    snapshot,
    table,
    tag,
    warnings,
)

ANY_TYPE = st.sampled_from(TYPES)
UNPARTITIONED = [
    {"action": "add-spec", "spec": {"spec-id": 1, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
]


def days(kind: str, transform: str = "day", *, written: bool, version: int = 3) -> TableMetadata:
    """A table of one column `c` that is partitioned by it."""
    more = {"snapshots": [snapshot(1, 0)], "refs": {"main": branch(1)}} if written else {}
    return table(schema(field(1, "c", kind)), specs=[[part(1, transform, "p")]], version=version, **more)  # type: ignore[arg-type]


def replaced(kind: object, *, had_main: bool) -> list[Json]:
    """What CREATE OR REPLACE TABLE t (c <kind>) sends: the column keeps its ID, because it keeps its name."""
    return [*([remove_ref("main")] if had_main else []), *evolve(field(1, "c", kind)), *UNPARTITIONED]


@given(old=ANY_TYPE, transform=st.sampled_from(TRANSFORMS), new=ANY_TYPE, data=st.booleans())
def test_what_a_replacement_of_a_table_with_history_leaves_can_be_bound(
    old: str, transform: str, new: str, data: bool
) -> None:
    """It is refused for the retained spec exactly when the transform does not take the new type."""
    if not takes(transform, old):
        return
    base = days(old, transform, written=True)
    updates = replaced(new, had_main=True)
    if data:
        updates += [add_snapshot(2, -1), set_ref("main", 2)]
    assert refusals(base, updates) == ([] if takes(transform, new) else ["ICE511"])
    assert (unbound(commit(base, updates)) == []) is takes(transform, new)


@given(old=ANY_TYPE, transform=st.sampled_from(TRANSFORMS), new=ANY_TYPE, data=st.booleans())
def test_a_table_that_never_had_a_snapshot_drops_the_spec_that_does_not_fit(
    old: str, transform: str, new: str, data: bool
) -> None:
    """Nothing is refused, the spec stays exactly when it fits, and its ID is not given again."""
    if not takes(transform, old):
        return
    base = days(old, transform, written=False)
    updates = replaced(new, had_main=False)
    if data:
        updates += [add_snapshot(2, -1), set_ref("main", 2)]
    found = judged(base, updates)
    after = commit(base, updates)
    assert not found.refused and "ICE506" not in [f.code for f in found.findings]
    assert (after.spec(0) is not None) is takes(transform, new) and unbound(after) == []
    assert commit(after, [{"action": "add-spec", "spec": {"fields": [part(1, "void", "v")]}}]).spec(2) is not None


def test_the_id_of_a_spec_that_was_dropped_is_remembered_when_it_was_the_highest() -> None:
    """The list alone would give it to another spec."""
    base = table(schema(field(1, "c", "date")), specs=[[], [part(1, "day", "p")]], default_spec=0)
    after = commit(base, evolve(field(1, "c", "long")))
    assert [spec.spec_id for spec in after.partition_specs] == [0] and remembered_spec_id(after.extra) == 1
    later = commit(after, [{"action": "add-spec", "spec": {"fields": [part(1, "bucket[4]", "b", 1001)]}}])
    assert [spec.spec_id for spec in later.partition_specs] == [0, 2] and remembered_spec_id(later.extra) == -1


def test_an_expired_history_is_a_history() -> None:
    """Without snapshots but with a sequence number the spec stays, and the replacement is refused."""
    once = days("date", written=False)
    base = msgspec.structs.replace(once, last_sequence_number=4)
    assert refusals(base, replaced("long", had_main=False)) == ["ICE511"]


def test_files_of_the_same_commit_under_another_schema_keep_the_spec() -> None:
    """Data is written under day(date) and the column becomes a long: the spec may be in use, so nothing drops it."""
    base = days("date", written=False)
    updates = [add_snapshot(1, 0), set_ref("t", 1, "tag"), *replaced("long", had_main=False)]
    assert refusals(base, updates) == ["ICE511"]


def test_the_source_of_a_retained_spec_may_go() -> None:
    """Java binds a spec whose source is gone, without its type; the drop is legal and reported."""
    base = days("date", written=True)
    updates = [remove_ref("main"), *evolve(field(2, "other", "long")), *UNPARTITIONED]
    assert refusals(base, updates) == []
    dropped = table(
        schema(field(1, "c", "date"), field(2, "d", "int")),
        specs=[[part(1, "day", "p")], []],
        default_spec=1,
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    assert "ICE507" in warnings(dropped, evolve(field(2, "d", "int")))
    assert refusals(dropped, evolve(field(2, "d", "int"))) == []


def test_after_a_drop_of_the_column_its_name_is_free_for_any_type() -> None:
    """The way out that the finding names: the new column has another ID, and the spec binds without its source."""
    base = table(
        schema(field(2, "d", "int")),
        last_column_id=2,
        specs=[[part(1, "day", "p")], []],
        default_spec=1,
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    assert refusals(base, [remove_ref("main"), *evolve(field(3, "c", "long"))]) == []


def test_removing_the_spec_in_the_same_commit_is_a_way_out() -> None:
    """The client says that no file uses it; the judge reports that nobody looked."""
    base = days("date", written=True)
    updates = [*replaced("long", had_main=True), {"action": "remove-partition-specs", "spec-ids": [0]}]
    assert refusals(base, updates) == [] and "ICE506" in warnings(base, updates)


@pytest.mark.parametrize("kind", [list_of(2, "int"), {"type": "struct", "fields": [field(2, "x", "int")]}, "variant"])
def test_a_source_that_is_no_primitive_any_more_is_refused(kind: object) -> None:
    """Java's tasks check that when they unpack the table."""
    assert refusals(days("int", "identity", written=True), replaced(kind, had_main=True)) == ["ICE511"]


def test_a_source_that_comes_to_lie_in_a_list_is_refused() -> None:
    """`c.element` keeps its ID by its name when the struct becomes a list."""
    base = table(
        schema(field(1, "c", {"type": "struct", "fields": [field(2, "element", "int")]})),
        specs=[[part(2, "identity", "p")]],
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    assert refusals(base, replaced(list_of(2, "int"), had_main=True)) == ["ICE511"]


class TestTableThatIsBrokenAlready:
    """Spec 0 is day of a column that is a long since some other catalog replaced the table."""

    base = table(
        schema(field(1, "c", "long"), field(2, "d", "date")),
        specs=[[part(1, "day", "p")], [], [part(2, "day", "q", 1001)]],
        default_spec=1,
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1), "t": tag(1)},
    )

    def test_it_takes_commits_that_leave_it_as_it_is(self) -> None:
        """A new column has nothing to do with the spec."""
        assert refusals(self.base, evolve(field(1, "c", "long"), field(2, "d", "date"), field(3, "e", "int"))) == []

    def test_it_takes_the_cure(self) -> None:
        """Removing the spec, or dropping its source, is accepted."""
        assert refusals(self.base, [{"action": "remove-partition-specs", "spec-ids": [0]}]) == []
        assert refusals(self.base, evolve(field(2, "d", "date"))) == []

    def test_it_does_not_take_a_second_break(self) -> None:
        """Another spec that ceases to fit is refused, and only that is told."""
        found = judged(self.base, [remove_ref("main"), *evolve(field(1, "c", "long"), field(2, "d", "string"))])
        assert [(f.code, f.field_id) for f in found.findings if f.severity is Severity.ERROR] == [("ICE511", 2)]

    def test_without_a_history_the_next_commit_cures_it(self) -> None:
        """Whatever the commit is about."""
        base = table(
            schema(field(1, "c", "long")), specs=[[part(1, "day", "p")], []], default_spec=1, properties={"a": "1"}
        )
        after = commit(base, [{"action": "set-properties", "updates": {"a": "2"}}])
        assert [spec.spec_id for spec in after.partition_specs] == [1]
