"""What the branches of a table still hold."""

from __future__ import annotations

from app.evolution.engine.lineage import (
    Reached,
    arrivals,
    builds_on_its_own,
    lineage,
    newcomers,
    recycles,
)
from app.iceberg.table import TableMetadata
from tests.evolution.tables import (
    Json,
    add_snapshot,
    branch,
    commit,
    field,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    snapshot,
    table,
    tag,
)

FIELDS = [field(1, "id", "long")]


def history(snapshots: list[Json], current: int = 1, **refs: Json) -> TableMetadata:
    """A table with schemas 0, 1 and 2."""
    fields = [[*FIELDS, field(at + 2, "x", "int")] for at in range(3)]
    listed = [schema(*columns, schema_id=at) for at, columns in enumerate(fields)]
    return table(*listed, current=current, snapshots=snapshots, refs=refs)


def test_no_branch_exempts() -> None:
    """Without a branch nothing binds, whatever tags hold."""
    found = lineage(None, history([snapshot(1, 0)], v1=tag(1)))
    assert found.exempt and not found.binds_current and found.blockers == ()


def test_a_history_under_the_current_schema_exempts() -> None:
    """A complete history of snapshots that all name the current schema binds nothing."""
    assert lineage(None, history([snapshot(1, 1), snapshot(2, 1, 1)], main=branch(2))).exempt


def test_one_older_snapshot_binds() -> None:
    """A snapshot under another schema, one that names none, or a missing parent binds."""
    for snapshots in ([snapshot(1, 0), snapshot(2, 1, 1)], [snapshot(1, None), snapshot(2, 1, 1)], [snapshot(2, 1, 1)]):
        found = lineage(None, history(snapshots, main=branch(2)))
        assert not found.exempt and found.binds_current and found.blockers == ("main",)


def test_complete_means_parentless_and_named() -> None:
    """A history is complete when it ends in a parentless snapshot and every snapshot names a retained schema."""
    assert lineage(None, history([snapshot(1, 0), snapshot(2, 1, 1)], main=branch(2))).complete
    assert not lineage(None, history([snapshot(2, 1, 1)], main=branch(2))).complete
    assert not lineage(None, history([snapshot(1, None)], main=branch(1))).complete
    assert not lineage(None, history([snapshot(1, 7)], main=branch(1))).complete


def test_written_names_each_schema_once_with_its_newest_snapshot() -> None:
    """Of several snapshots under a schema the newest stands for it."""
    snapshots = [snapshot(1, 0), snapshot(2, 0, 1), snapshot(3, 1, 2)]
    found = lineage(None, history(snapshots, main=branch(3), audit=branch(2)))
    assert [(w.schema_id, w.snapshot_id, w.branch) for w in found.written] == [(1, 3, "main"), (0, 2, "main")]


def test_blockers_are_the_branches_with_other_schemas() -> None:
    """A replaced main does not block; the branch that stayed behind does."""
    snapshots = [snapshot(1, 0), snapshot(2, 1)]
    found = lineage(None, history(snapshots, main=branch(2), audit=branch(1), v1=tag(1)))
    assert found.blockers == ("audit",) and not found.exempt


def test_a_branch_that_joins_a_bound_history_is_bound() -> None:
    """Histories that meet are walked once, and the verdict on the shared part counts for both."""
    snapshots = [snapshot(1, 0), snapshot(2, 1, 1)]
    assert lineage(None, history(snapshots, main=branch(2), audit=branch(1))).blockers == ("main", "audit")


def test_rebased_when_nothing_is_shared() -> None:
    """Main that goes to another history is rebased; a rollback within its own is not."""
    before = history([snapshot(1, 0), snapshot(2, 0, 1), snapshot(3, 1)], main=branch(3))
    back = commit(before, [set_ref("main", 2)])
    assert lineage(before, back).rebased
    within = history([snapshot(1, 0), snapshot(2, 0, 1)], main=branch(2))
    assert not lineage(within, commit(within, [set_ref("main", 1)])).rebased


def test_older_schemas_of_an_expired_beginning() -> None:
    """After a return across a replacement, schemas numbered below the replacement's may hold the expired part."""
    before = history([snapshot(2, 1, 1), snapshot(3, 2)], current=2, main=branch(3))
    found = lineage(before, commit(before, [set_ref("main", 2), set_schema(1)]))
    assert found.older == (0, 1) and not found.binds_current


def test_older_is_unknown_when_numbers_do_not_tell() -> None:
    """When the replacement reused an old schema, metadata cannot tell what the expired part holds."""
    before = history([snapshot(2, 1, 1), snapshot(3, 0)], current=0, main=branch(3))
    found = lineage(before, commit(before, [set_ref("main", 2), set_schema(1)]))
    assert found.older is None and found.binds_current


def arrived(before: TableMetadata | None, after: TableMetadata) -> list[tuple[str, int]]:
    return [(name, found.snapshot_id) for name, found in arrivals(before, after)]


def test_arrivals_are_what_no_branch_held() -> None:
    """A rollback brings nothing, a new branch on a tagged history brings all of it."""
    snapshots = [snapshot(1, 0), snapshot(2, 0, 1), snapshot(3, 1), snapshot(4, 1, 3)]
    before = history(snapshots, main=branch(4), v1=tag(2))
    assert arrived(before, commit(before, [set_ref("main", 3)])) == []
    assert arrived(before, commit(before, [set_ref("audit", 2)])) == [("audit", 2), ("audit", 1)]
    assert arrived(before, commit(before, [remove_ref("main")])) == []
    assert arrived(before, commit(before, [set_ref("v2", 1, "tag")])) == []


def test_everything_arrives_on_a_new_table() -> None:
    """A table that is created with snapshots brings them all."""
    assert arrived(None, history([snapshot(1, 0), snapshot(2, 0, 1)], main=branch(2))) == [("main", 2), ("main", 1)]


def test_newcomers_are_what_the_earlier_version_does_not_list() -> None:
    """After an append, after an expiry, and in a table that is just being created."""
    stored = history([snapshot(1, 1), snapshot(2, 1, 1)], main=branch(2))
    grown = commit(stored, [plain(add_snapshot(3, 1, 2))])
    assert [s.snapshot_id for s in newcomers(stored, grown)] == [3]
    assert list(newcomers(stored, stored)) == [] and len(list(newcomers(None, stored))) == 2
    expired = commit(grown, [{"action": "remove-snapshots", "snapshot-ids": [1]}])
    assert list(newcomers(grown, expired)) == [] and not recycles(grown, expired)


def test_an_id_that_names_another_snapshot_is_a_newcomer() -> None:
    """Removed and added by one commit."""
    stored = history([snapshot(1, 1), snapshot(2, 1, 1)], main=branch(1))
    again = commit(
        stored,
        [{"action": "remove-snapshots", "snapshot-ids": [2]}, plain(add_snapshot(2, 0, 1, sequence=3))],
    )
    assert [s.snapshot_id for s in newcomers(stored, again)] == [2]
    assert recycles(stored, again)


def test_a_snapshot_builds_on_its_own_schema() -> None:
    """On a parent of the same schema, or on a branch's head under the current one; a walk must tell about all else."""
    stored = history([snapshot(1, 0), snapshot(2, 2, 1)], current=1, main=branch(2))
    for parent, schema_id, plainly in [(2, 2, True), (2, 1, True), (1, 1, False), (2, 0, False), (1, 0, True)]:
        grown = commit(stored, [plain(add_snapshot(3, schema_id, parent))])
        assert [builds_on_its_own(stored, s) for s in newcomers(stored, grown)] == [plainly], (parent, schema_id)


def test_reached_walks_every_branch_and_no_tag() -> None:
    """And without a table it holds nothing."""
    stored = history([snapshot(1, 1), snapshot(2, 1, 1), snapshot(3, 1)], main=branch(2), old=tag(3))
    reached = Reached(stored)
    assert 1 in reached and 2 in reached and 3 not in reached and 4 not in reached
    assert 1 not in Reached(None)


def plain(update: Json) -> Json:
    """The update for a table of version 2."""
    del update["snapshot"]["first-row-id"], update["snapshot"]["added-rows"]
    return update
