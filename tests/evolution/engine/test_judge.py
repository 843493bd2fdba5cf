"""The judge: what it refuses, what it leaves alone, and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings

from app.evolution.engine.change import Change, Evidence
from app.evolution.engine.judge import judge
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.table import TableMetadata
from app.rules import Policy, Severity, Waiver
from tests.evolution.schemas import schemas
from tests.evolution.tables import (
    NOW,
    UUID,
    Json,
    add_schema,
    add_snapshot,
    branch,
    commit,
    evolve,
    field,
    judged,
    list_of,
    map_of,
    part,
    refusals,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    snapshot,
    sort_by,
    struct,
    table,
    tag,
    upgrade,
    warnings,
)

ID = field(1, "id", "long", True)
NAME = field(2, "name", "string")
QTY = field(3, "qty", "int")
WIDE = field(3, "qty", "long")


def narrow_then_wide(snapshots: list[Json], **refs: Json) -> TableMetadata:
    """Schema 0 has qty as int, the current schema 1 as long."""
    return table(schema(ID, QTY, schema_id=0), schema(ID, WIDE, schema_id=1), snapshots=snapshots, refs=refs)


def create(*fields: Json, version: int = 2) -> list[Json]:
    """What a staged create or CREATE TABLE AS SELECT sends."""
    return [
        {"action": "assign-uuid", "uuid": UUID},
        upgrade(version),
        {"action": "add-schema", "schema": schema(*fields)},
        set_schema(),
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": "s3://lake/t"},
    ]


class TestWhatIsIntroduced:
    """Only what a commit brings is judged."""

    def test_a_table_with_old_sins_stays_alterable(self) -> None:
        """Reserved IDs, metadata names, v3 types on v2, bad defaults and empty names that were there do not block."""
        sins = (
            field(2147483600, "reserved", "string"),
            field(0, "zero", "string"),
            field(4, "_file", "string"),
            field(5, "ns", "timestamp_ns"),
            field(6, "bad", "int", initial="34"),
            field(7, "", "string"),
            field(8, "point", struct(field(9, "x", "int", True)), initial={}),
            field(10, "empty", struct()),
        )
        stored = table(schema(ID, *sins), snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, last_column_id=50)
        assert refusals(stored, evolve(ID, *sins, field(51, "fine", "string"))) == []
        assert refusals(stored, evolve(field(1, "key", "long", True), *sins)) == []
        assert refusals(stored, evolve(ID, *sins[1:])) == []

    def test_an_old_unreadable_history_stays_alterable(self) -> None:
        """Where a table arrived with snapshots that its schema cannot read, other columns may still change."""
        stored = table(
            schema(field(1, "id", "string"), schema_id=0),
            schema(ID, NAME, schema_id=1),
            snapshots=[snapshot(1, 0), snapshot(2, 1, 1)],
            refs={"main": branch(2)},
        )
        assert refusals(stored, evolve(ID, NAME, QTY)) == []
        assert refusals(stored, [add_snapshot(3, 1, 2), set_ref("main", 3)][:0] or evolve(ID)) == []

    def test_promoting_a_column_with_an_old_default_is_free(self) -> None:
        """A v2 table that arrived with a default may promote that column."""
        old = field(3, "qty", "int", write=1)
        stored = table(schema(ID, old), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
        assert refusals(stored, evolve(ID, field(3, "qty", "long", write=1))) == []

    def test_the_same_sin_again_is_refused(self) -> None:
        """Renaming a column to a metadata name is refused although another column has one already."""
        stored = table(schema(ID, field(2, "_file", "string")))
        assert refusals(stored, evolve(ID, field(2, "_file", "string"), field(3, "_pos", "long"))) == ["ICE701"]
        assert refusals(stored, evolve(ID, field(2, "_pos", "string"))) == ["ICE701"]

    def test_nothing_is_said_when_nothing_changed(self) -> None:
        """A commit of properties alone gives no findings."""
        stored = table(schema(ID, field(2, "_file", "string")))
        verdict = judged(stored, [{"action": "set-properties", "updates": {"a": "b"}}])
        assert verdict.findings == ()


class TestCreate:
    """A new table has no past: identity rules are off, definitions are judged."""

    def test_any_positive_id_is_fresh(self) -> None:
        """A staged create keeps the client's IDs, gaps included, and may have required columns."""
        assert refusals(None, create(field(7, "a", "int", True), field(20, "b", struct(field(21, "c", "date"))))) == []

    @pytest.mark.parametrize(
        ("column", "code"),
        [
            (field(2147483448, "a", "int"), "ICE101"),
            (field(1, "_row_id", "int"), "ICE701"),
            (field(1, "", "int"), "ICE703"),
            (field(1, "v", "variant"), "ICE209"),
            (field(1, "l", list_of(2, "timestamp_ns")), "ICE209"),
            (field(1, "a", "int", write=1), "ICE304"),
        ],
    )
    def test_definitions_are_judged(self, column: Json, code: str) -> None:
        """Reserved IDs, metadata names, empty names, types and defaults before their version are refused."""
        assert refusals(None, create(column)) == [code]

    def test_ctas_with_a_snapshot_is_accepted(self) -> None:
        """The first snapshot of a created table, written under its schema, is no arrival from elsewhere."""
        first = add_snapshot(1, 0)
        del first["snapshot"]["first-row-id"], first["snapshot"]["added-rows"]
        assert refusals(None, [*create(ID, NAME), first, set_ref("main", 1)]) == []


class TestSchemasNotMadeCurrent:
    """A schema that is only added is judged by its IDs and definitions."""

    def test_ids_of_an_added_schema_are_judged_at_once(self) -> None:
        """A burnt ID is refused when the schema is added, not when it is made current."""
        stored = table(schema(ID), last_column_id=5, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
        assert refusals(stored, [add_schema(ID, field(5, "x", "int"))]) == ["ICE104"]
        assert refusals(stored, [add_schema(ID, field(6, "_pos", "int"))]) == ["ICE701"]

    def test_readability_is_judged_when_it_becomes_current(self) -> None:
        """A schema that cannot read the data may be kept, but not made current."""
        stored = table(schema(ID), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
        aside = [add_schema(field(1, "id", "string"))]
        assert refusals(stored, aside) == []
        assert refusals(commit(stored, aside), [set_schema(1)]) == ["ICE201"]

    def test_a_schema_added_earlier_may_become_current(self) -> None:
        """Its new columns, required ones with both defaults included, are no restored columns."""
        stored = table(schema(ID), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
        aside = [add_schema(ID, field(2, "r", "string", True, initial="x", write="x"), field(3, "o", "int"))]
        assert refusals(commit(stored, aside), [set_schema(1)]) == []


class TestUndo:
    """Taking a change back is legal while nothing was written under it and the whole history tells so."""

    def test_an_unused_promotion_can_be_taken_back(self) -> None:
        """Every snapshot names the narrow schema: back to it is accepted, by number and as a new schema."""
        stored = narrow_then_wide([snapshot(1, 0), snapshot(2, 0, 1)], main=branch(2))
        assert refusals(stored, [set_schema(0)]) == []
        assert refusals(stored, evolve(ID, QTY)) == []

    @pytest.mark.parametrize(
        "snapshots",
        [
            [snapshot(1, 0), snapshot(2, 1, 1)],
            [snapshot(1, None)],
            [snapshot(2, 0, 1)],
        ],
        ids=["written since", "no schema named", "history expired"],
    )
    def test_otherwise_it_cannot(self, snapshots: list[Json]) -> None:
        """One snapshot under the wide schema, of unknown schema, or with an expired parent, and it is refused."""
        stored = narrow_then_wide(snapshots, main=branch(snapshots[-1]["snapshot-id"]))
        assert refusals(stored, [set_schema(0)]) == ["ICE201"]

    def test_every_branch_counts(self) -> None:
        """A branch that wrote under the wide schema binds main's undo; a tag does not."""
        snapshots = [snapshot(1, 0), snapshot(2, 1, 1)]
        assert refusals(narrow_then_wide(snapshots, main=branch(1), audit=branch(2)), [set_schema(0)]) == ["ICE201"]
        assert refusals(narrow_then_wide(snapshots, main=branch(1), v1=tag(2)), [set_schema(0)]) == []

    def test_an_unused_relaxation_can_be_taken_back(self) -> None:
        """Required to optional and back, with nothing written in between."""
        optional = field(1, "id", "long")
        stored = table(
            schema(ID, schema_id=0), schema(optional, schema_id=1), snapshots=[snapshot(1, 0)], refs={"main": branch(1)}
        )
        assert refusals(stored, [set_schema(0)]) == []

    def test_only_what_was_can_come_back(self) -> None:
        """That nothing was written under a column does not let it become another one."""
        stored = table(
            schema(ID, schema_id=0), schema(ID, QTY, schema_id=1), snapshots=[snapshot(1, 0)], refs={"main": branch(1)}
        )
        assert refusals(stored, evolve(ID, field(3, "qty", "string"))) == ["ICE201"]

    def test_undo_of_one_column_beside_a_new_one(self) -> None:
        """Undo is judged by column: the same commit may add another."""
        stored = narrow_then_wide([snapshot(1, 0)], main=branch(1))
        assert refusals(stored, evolve(ID, QTY, field(4, "more", "string"))) == []


class TestRestored:
    """Bringing a dropped column back under its ID."""

    def restored(self, was: Json, again: Json, **more: Any) -> list[str]:
        """Column 2 `was` in schema 0, dropped in schema 1, and comes `again`."""
        more.setdefault("snapshots", [snapshot(1, 0), snapshot(2, 1, 1)])
        stored = table(
            schema(ID, was, schema_id=0),
            schema(ID, schema_id=1),
            refs={"main": branch(more["snapshots"][-1]["snapshot-id"])},
            **more,
        )
        return refusals(stored, evolve(ID, again))

    def test_under_another_name_or_wider(self) -> None:
        """A restored column may be renamed and promoted on the way."""
        assert self.restored(field(2, "q", "int"), field(2, "quantity", "long")) == []

    def test_narrower_is_another_column(self) -> None:
        """A restored column cannot come back narrower than it was."""
        assert self.restored(field(2, "q", "long"), field(2, "q", "int")) == ["ICE103"]

    def test_required_comes_back_as_optional(self) -> None:
        """A required column comes back as optional, even after writes without it."""
        assert self.restored(field(2, "q", "int", True), field(2, "q", "int")) == []

    def test_required_comes_back_when_heads_have_it(self) -> None:
        """Undo of a required drop needs no complete history: no branch head was written without the column."""
        was = field(2, "q", "int", True)
        assert self.restored(was, was, snapshots=[snapshot(7, 0, 6)]) == []
        assert self.restored(was, was, snapshots=[snapshot(7, None, 6)]) == ["ICE105"]

    def test_optional_cannot_come_back_as_required(self) -> None:
        """Even unwritten since the drop, an optional column may hold nulls."""
        was, again = field(2, "q", "int"), field(2, "q", "int", True)
        assert self.restored(was, again, snapshots=[snapshot(1, 0)]) == ["ICE301"]

    def test_with_another_initial_default_it_is_another_column(self) -> None:
        """The initial-default is frozen across a drop."""
        was, again = field(2, "q", "string", initial="a"), field(2, "q", "string", initial="b")
        assert self.restored(was, again, version=3) == ["ICE103"]
        assert self.restored(was, was, version=3) == []

    def test_under_another_parent_it_is_another_column(self) -> None:
        """A dropped top-level column cannot come back inside a struct."""
        assert self.restored(field(2, "q", "int"), field(3, "s", struct(field(2, "q", "int")))) == ["ICE103"]

    def test_a_whole_struct_comes_back(self) -> None:
        """A dropped struct comes back with its required children, but with no new ones that old files lack."""
        was = field(2, "s", struct(field(3, "x", "int", True)))
        again = field(2, "s", struct(field(3, "x", "int", True), field(4, "y", "int", True)))
        assert self.restored(was, was) == []
        assert self.restored(was, again) == ["ICE302"]

    def test_a_required_child_dropped_before_its_struct(self) -> None:
        """A struct comes back with a required child that files written in between lack."""
        x, y = field(3, "x", "int"), field(4, "y", "int", True)
        stored = table(
            schema(ID, field(2, "s", struct(x, y)), schema_id=0),
            schema(ID, field(2, "s", struct(x)), schema_id=1),
            schema(ID, schema_id=2),
            snapshots=[snapshot(1, 0), snapshot(2, 1, 1)],
            refs={"main": branch(2)},
        )
        assert refusals(stored, evolve(ID, field(2, "s", struct(x, y)))) == ["ICE105"]
        assert refusals(stored, evolve(ID, field(2, "s", struct(x, {**y, "required": False})))) == []

    def test_against_every_retained_definition_when_history_is_incomplete(self) -> None:
        """Two definitions under one ID, left by a replacement: with the history gone, both must stay readable."""
        stored = table(
            schema(ID, field(2, "q", "string"), schema_id=0),
            schema(ID, field(2, "q", "int"), schema_id=1),
            schema(ID, schema_id=2),
            snapshots=[snapshot(5, 2, 4)],
            refs={"main": branch(5)},
        )
        assert refusals(stored, evolve(ID, field(2, "q", "int"))) == ["ICE201"]
        whole = table(
            schema(ID, field(2, "q", "string"), schema_id=0),
            schema(ID, field(2, "q", "int"), schema_id=1),
            schema(ID, schema_id=2),
            snapshots=[snapshot(4, 1), snapshot(5, 2, 4)],
            refs={"main": branch(5)},
        )
        assert refusals(whole, evolve(ID, field(2, "q", "int"))) == []


class TestReplacement:
    """CREATE OR REPLACE TABLE and the way back."""

    OTHER = (field(1, "id", "string"), field(2, "name", "int", True))

    def test_a_table_without_branches_may_become_anything(self) -> None:
        """Before the first snapshot, and after a replacement without data, the schema is free."""
        assert refusals(table(schema(ID, NAME)), evolve(*self.OTHER)) == []
        gone = table(schema(ID, NAME), snapshots=[snapshot(1, 0)], refs={"v1": tag(1)})
        assert refusals(gone, evolve(*self.OTHER)) == []

    def test_fresh_ids_are_asked_for_all_the_same(self) -> None:
        """A replacement may retype the IDs of the current schema, not those of dropped columns."""
        stored = table(
            schema(ID, QTY, schema_id=0),
            schema(ID, schema_id=1),
            last_column_id=9,
            snapshots=[snapshot(1, 0)],
            refs={"main": branch(1)},
        )
        for taken, code in ((field(3, "x", "string"), "ICE103"), (field(8, "x", "string"), "ICE104")):
            assert refusals(stored, [remove_ref("main"), *evolve(field(1, "id", "string"), taken)]) == [code]

    def returned(self, listed: list[Json], to: int, schema_id: int, **more: Any) -> list[str]:
        """Main goes back to snapshot `to`, with schema `schema_id`, after a replacement under schema 2."""
        stored = table(
            schema(ID, QTY, schema_id=0),
            schema(ID, WIDE, schema_id=1),
            schema(*self.OTHER, schema_id=2),
            snapshots=[*listed, snapshot(9, 2)],
            refs={"main": branch(9), **more},
        )
        return refusals(stored, [set_ref("main", to), set_schema(schema_id)])

    def test_return_to_a_history_of_several_schemas(self) -> None:
        """Back across the replacement with the newest schema of that time, not with an older one."""
        listed = [snapshot(1, 0), snapshot(2, 1, 1)]
        assert self.returned(listed, 2, 1) == []
        assert self.returned(listed, 2, 0) == ["ICE503"]
        assert self.returned(listed, 1, 0) == []

    def test_return_to_a_history_whose_beginning_expired(self) -> None:
        """The expired part was written under schemas older than the replacement: the one set back must read them."""
        assert self.returned([snapshot(2, 1, 1)], 2, 1) == []
        assert self.returned([snapshot(2, 0, 1)], 2, 0) == ["ICE503"]

    def test_return_is_bound_by_other_branches(self) -> None:
        """While a branch stays on the replaced table, its data binds."""
        assert self.returned([snapshot(1, 0)], 1, 0, audit=branch(9)) != []

    def test_a_dropped_main_can_come_back(self) -> None:
        """After a replacement without data, main may return with its schema although its beginning expired."""
        stored = table(
            schema(ID, QTY, schema_id=0),
            schema(*self.OTHER, schema_id=1),
            snapshots=[snapshot(2, 0, 1)],
            refs={"t": tag(2)},
        )
        assert refusals(stored, [set_ref("main", 2), set_schema(0)]) == []
        assert refusals(stored, [set_ref("main", 2)]) == ["ICE503"]

    def test_the_message_names_what_blocks(self) -> None:
        """With only other branches in the way, the fix is to drop or tag them."""
        stored = table(
            schema(ID, NAME),
            snapshots=[snapshot(1, 0)],
            refs={"main": branch(1), "audit": branch(1), "blue": branch(1)},
        )
        replaced = [remove_ref("main"), *evolve(*self.OTHER)]
        fixes = {f.fix for f in judged(stored, replaced).findings if f.refuses}
        assert len(fixes) == 1 and "Drop branches audit, blue, or keep the snapshot as a tag" in fixes.pop()


class TestBranches:
    """Refs that come to snapshots."""

    def test_a_snapshot_under_an_older_schema_is_read(self) -> None:
        """A writer that began before a promotion may commit late."""
        stored = narrow_then_wide([snapshot(1, 0)], main=branch(1))
        late = add_snapshot(2, 0, 1)
        del late["snapshot"]["first-row-id"], late["snapshot"]["added-rows"]
        assert refusals(stored, [late, set_ref("main", 2)]) == []

    def test_a_late_writer_after_a_taken_back_promotion_is_refused(self) -> None:
        """A snapshot under the wide schema cannot land once the narrow one is current again."""
        stored = commit(narrow_then_wide([snapshot(1, 0)], main=branch(1)), [set_schema(0)])
        late = add_snapshot(2, 1, 1)
        del late["snapshot"]["first-row-id"], late["snapshot"]["added-rows"]
        assert refusals(stored, [late, set_ref("main", 2)]) == ["ICE503"]

    def test_the_fix_is_one_that_works(self) -> None:
        """A late writer is told to write again, a rollback to set the schema of the snapshot it goes to."""
        stored = table(
            schema(ID, QTY, schema_id=0),
            schema(ID, WIDE, schema_id=1),
            schema(field(1, "id", "string"), schema_id=2),
            snapshots=[snapshot(1, 0), snapshot(2, 1, 1), snapshot(3, 2)],
            refs={"main": branch(3)},
        )
        back = judged(stored, [set_ref("main", 2)]).findings
        assert [f.code for f in back] == ["ICE503", "ICE503"]
        assert all(f.fix.startswith("Set the current schema back to 1 in the same commit") for f in back)
        late = add_snapshot(4, 0, 3)
        del late["snapshot"]["first-row-id"], late["snapshot"]["added-rows"]
        told = judged(stored, [late, set_ref("main", 4)]).findings
        assert [f.fix for f in told] == ["Refresh the table and write again under the current schema 2."]

    def test_new_branches_and_tags_on_old_snapshots(self) -> None:
        """A tag may be put on a snapshot that the schema cannot read, a branch may not."""
        stored = table(
            schema(ID, schema_id=0),
            schema(field(1, "id", "string"), schema_id=1),
            snapshots=[snapshot(1, 0), snapshot(2, 1)],
            refs={"main": branch(2)},
        )
        assert refusals(stored, [set_ref("v1", 1, "tag")]) == []
        assert refusals(stored, [set_ref("audit", 1)]) == ["ICE503"]

    def test_rollback_within_a_history_is_free(self) -> None:
        """What a branch held already was judged when it came."""
        stored = narrow_then_wide([snapshot(1, 0), snapshot(2, 1, 1)], main=branch(2))
        assert judged(stored, [set_ref("main", 1)]).findings == ()

    def test_a_snapshot_without_schema_passes(self) -> None:
        """Nothing can be said about a snapshot that names no schema."""
        stored = table(
            schema(ID, schema_id=0),
            schema(field(1, "id", "string"), schema_id=1),
            snapshots=[snapshot(1, None), snapshot(2, 1)],
            refs={"main": branch(2)},
        )
        assert refusals(stored, [set_ref("main", 1)]) == []


class TestSpecsAndOrders:
    """The default spec and order are judged whenever they, or the schema, change."""

    def test_a_default_that_lost_its_source(self) -> None:
        """Going back to an old spec or order whose column is gone is refused, with the schema unchanged."""
        stored = table(schema(ID), specs=[[], [part(2, "identity", "name")]], orders=[[sort_by(2)]], last_column_id=2)
        assert refusals(stored, [{"action": "set-default-spec", "spec-id": 1}]) == ["ICE501"]
        assert refusals(stored, [{"action": "set-default-sort-order", "sort-order-id": 1}]) == ["ICE502"]

    def test_a_spec_that_nobody_uses_may_go(self) -> None:
        """With evidence the removal of a spec is refused or silent; without, it is a warning."""
        stored = table(
            schema(ID, NAME),
            specs=[[part(1, "bucket[4]", "b")], []],
            default_spec=1,
            snapshots=[snapshot(1, 0)],
            refs={"main": branch(1)},
        )
        removal: list[Json] = [{"action": "remove-partition-specs", "spec-ids": [0]}]
        assert refusals(stored, removal, specs_in_use=frozenset({0})) == ["ICE505"]
        assert judged(stored, removal, specs_in_use=frozenset({1})).findings == ()
        assert warnings(stored, removal) == ["ICE506"]

    def test_the_schemas_of_tags_stay(self) -> None:
        """A schema that a tag's snapshot names cannot be removed."""
        stored = table(
            schema(ID, schema_id=0),
            schema(ID, NAME, schema_id=1),
            snapshots=[snapshot(1, 0), snapshot(2, 1, 1)],
            refs={"main": branch(2), "v1": tag(1)},
        )
        assert refusals(stored, [{"action": "remove-schemas", "schema-ids": [0]}]) == ["ICE504"]

    def test_promotion_of_a_source_under_a_spec_that_this_commit_adds(self) -> None:
        """A new spec has no files yet, so promotion does not change what its transform yields."""
        stored = table(
            schema(ID, field(2, "d", "date")), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)}
        )
        updates = [
            *evolve(ID, field(2, "d", "timestamp")),
            {"action": "add-spec", "spec": {"spec-id": -1, "fields": [part(2, "bucket[8]", "b")]}},
        ]
        assert refusals(stored, updates) == []


class TestNested:
    """The same rules hold inside structs, lists and map values."""

    def nested(self, before: Any, after: Any) -> list[str]:
        stored = table(
            schema(ID, field(2, "n", before)),
            version=3,
            snapshots=[snapshot(1, 0)],
            refs={"main": branch(1)},
            last_column_id=20,
        )
        return refusals(stored, evolve(ID, field(2, "n", after)))

    @pytest.mark.parametrize(
        ("before", "after", "codes"),
        [
            (list_of(3, "int"), list_of(3, "long"), []),
            (list_of(3, "int", True), list_of(3, "int"), []),
            (list_of(3, "int"), list_of(3, "int", True), ["ICE301"]),
            (map_of(3, "int", 4, "int"), map_of(3, "int", 4, "long"), []),
            (map_of(3, "int", 4, "int"), map_of(3, "int", 4, "int", True), ["ICE301"]),
            (map_of(3, "int", 4, "int"), map_of(3, "int", 21, "int"), ["ICE402"]),
            (
                list_of(3, struct(field(4, "x", "int"))),
                list_of(3, struct(field(4, "x", "long"), field(21, "y", "int"))),
                [],
            ),
            (
                list_of(3, struct(field(4, "x", "int"))),
                list_of(3, struct(field(4, "x", "int"), field(21, "y", "int", True))),
                ["ICE302"],
            ),
            (struct(field(3, "x", "int")), list_of(3, "int"), ["ICE204", "ICE401"]),
            (
                map_of(3, struct(field(4, "k", "int"), field(5, "l", "int")), 6, "int"),
                map_of(3, struct(field(4, "k", "int")), 6, "int"),
                ["ICE205"],
            ),
            (
                map_of(3, struct(field(4, "k", "int")), 6, "int"),
                map_of(3, struct(field(4, "k", "int", doc="a key")), 6, "int"),
                [],
            ),
            (
                map_of(3, struct(field(4, "k", "int")), 6, "int"),
                map_of(3, struct(field(4, "renamed", "int")), 6, "int"),
                ["ICE205"],
            ),
        ],
    )
    def test_change_inside_a_column(self, before: Any, after: Any, codes: list[str]) -> None:
        """Promotions and relaxations pass at any depth, everything else is refused by its rule."""
        assert self.nested(before, after) == codes


class TestPolicy:
    """Severities, waivers and floors."""

    STORED = table(schema(ID, NAME), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})

    def waiver(self, code: str, **more: Any) -> Waiver:
        return msgspec.structs.replace(
            Waiver(
                waiver_id="w1",
                table_uuid=UUID,
                code=code,
                reason="migration",
                granted_by="ann",
                granted_at_ms=NOW - 1,
                expires_at_ms=NOW + 1,
            ),
            **more,
        )

    def test_a_waiver_lets_one_rule_pass_and_is_consumed(self) -> None:
        """A live waiver turns the refusal into a finding that names it."""
        after = commit(self.STORED, evolve(field(1, "id", "string", True), NAME))
        policy = Policy(waivers=(self.waiver("ICE201"),))
        verdict = judge(self.STORED, after, Evidence(), policy, NOW)
        assert not verdict.refused
        assert [f.waived_by for f in verdict.findings if f.code == "ICE201"] == ["w1"]
        assert [w.waiver_id for w in verdict.waivers_used] == ["w1"]

    def test_an_expired_waiver_does_not(self) -> None:
        """After its expiry a waiver has no effect."""
        after = commit(self.STORED, evolve(field(1, "id", "string", True), NAME))
        policy = Policy(waivers=(self.waiver("ICE201", expires_at_ms=NOW),))
        assert judge(self.STORED, after, Evidence(), policy, NOW).refused

    def test_a_floor_holds(self) -> None:
        """A rule that keeps metadata readable can be neither lowered nor waived."""
        updates = evolve(ID, NAME, field(3, "v", "variant"))
        assert refusals(self.STORED, updates, lowered={"ICE209": Severity.OFF}) == ["ICE209"]
        policy = Policy(waivers=(self.waiver("ICE209"),))
        assert judge(self.STORED, commit(self.STORED, updates), Evidence(), policy, NOW).refused

    def test_a_rule_that_is_off_says_nothing(self) -> None:
        """Off is silent, warn is a finding that does not refuse."""
        updates = evolve(field(1, "id", "string", True), NAME)
        assert judged(self.STORED, updates, lowered={"ICE201": Severity.OFF}).findings == ()
        assert warnings(self.STORED, updates, lowered={"ICE201": Severity.WARN}) == ["ICE201"]

    def test_a_warning_can_be_raised(self) -> None:
        """Names that differ only in case refuse once the rule is raised."""
        updates = evolve(ID, NAME, field(3, "NAME", "string"))
        assert refusals(self.STORED, updates, lowered={"ICE702": Severity.ERROR}) == ["ICE702"]


@given(schemas(), schemas())
@settings(max_examples=80, deadline=None)
def test_every_conflict_is_refused_by_some_rule(before: Schema, after: Schema) -> None:
    """For any two schemas of a table with data: a field that files cannot be read as is always told of, and a change
    without such a field is never refused, required adds without write-default aside."""
    stored = table(
        schema_to_json(before),
        version=3,
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
        last_column_id=max([0, *before.by_id]),
    )
    following = commit(stored, evolve(*schema_to_json(after)["fields"]))
    assume(following.current_schema_id == 1)
    assume(all(field_id > stored.last_column_id for field_id in after.by_id if field_id not in before.by_id))
    verdict = judge(stored, following, Evidence(), Policy(), NOW)
    change = Change(stored, following, stored.schema, following.schema, Evidence())
    refused = {f.field_id for f in verdict.findings if f.refuses}
    for pair in change.pairs:
        assert pair.slot.field_id in refused, (pair, verdict.findings)
    allowed = {pair.slot.field_id for pair in change.pairs}
    for finding in verdict.findings:
        if finding.refuses and finding.code not in ("ICE302", "ICE306"):
            assert finding.field_id in allowed, finding
