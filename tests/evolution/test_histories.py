"""Random histories of a table, judged commit by commit, against what a reader makes of every file ever written.

The model remembers for each snapshot all files behind it, expired or not, each with the columns it was written with.
After every accepted commit, each file reachable from a branch must read under the current schema, and each file behind
a listed snapshot under the schema that the snapshot names; and changes that are legal by construction must never be
refused. The reader here is a few lines of its own and shares no code with the
judge.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.iceberg.schema import schema_to_json
from app.iceberg.table import TableMetadata
from tests.evolution.tables import (
    Json,
    add_snapshot,
    commit,
    evolve,
    field,
    refusals,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    struct,
    table,
    upgrade,
)

WIDER = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(12, 2)")}
WIDER_V3 = {("date", "timestamp")}
TYPES = ("int", "long", "float", "double", "string", "decimal(9, 2)", "decimal(12, 2)", "decimal(12, 4)", "date")
NEXT = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(12, 2)"}
Columns = dict[int, tuple[int | None, str, bool, Any]]


def columns_of(fields: list[Json], parent: int | None = None) -> Columns:
    """ID -> (parent, type, required, initial-default), for flat columns and structs."""
    out: Columns = {}
    for f in fields:
        kind = f["type"] if isinstance(f["type"], str) else "struct"
        out[f["id"]] = (parent, kind, f["required"], f.get("initial-default"))
        if kind == "struct":
            out.update(columns_of(f["type"]["fields"], f["id"]))
    return out


def reads(file: Columns, wanted: Columns, version: int) -> bool:
    """Whether a file with these columns answers for all the wanted ones with values that were meant."""
    steps = WIDER | (WIDER_V3 if version >= 3 else set())
    for field_id, (parent, kind, required, default) in wanted.items():
        stored = file.get(field_id)
        if stored is None:
            reachable = parent is None or parent in file
            if reachable and required and default is None:
                return False
            continue
        if stored[0] != parent or (stored[2] is False and required):
            return False
        if stored[1] != kind and (stored[1], kind) not in steps:
            return False
    return True


class Histories(RuleBasedStateMachine):
    """One table; `files[s]` are the columns of every file that snapshot s reads."""

    stale_writers = False

    @initialize(version=st.sampled_from([2, 3]))
    def start(self, version: int) -> None:
        fields = [
            field(1, "id", "int", True),
            field(2, "name", "string"),
            field(3, "day", "date"),
            field(4, "point", struct(field(5, "x", "float"), field(6, "y", "float", True))),
        ]
        self.table: TableMetadata = table(schema(*fields), version=version)
        self.files: dict[int, list[Columns]] = {}
        self.names = 0
        self.snapshots = 0

    # What the model asks of the table

    def fields(self) -> list[Json]:
        return list(schema_to_json(self.table.schema)["fields"])

    def columns(self, schema_id: int | None = None) -> Columns:
        found = self.table.schema if schema_id is None else self.table.schemas.get(schema_id)
        assert found is not None
        return columns_of(schema_to_json(found)["fields"])

    def propose(self, updates: list[Json], legal: bool = False) -> bool:
        """Commit unless refused; a legal change must not be refused."""
        codes = refusals(self.table, updates)
        if codes:
            assert not legal, (codes, updates)
            return False
        self.table = commit(self.table, updates)
        return True

    def fresh_name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def branch_names(self) -> list[str]:
        return [name for name, ref in self.table.refs.items() if ref.is_branch]

    def write(
        self,
        branch: str | None,
        schema_id: int,
        parent: int | None,
        updates: list[Json],
        legal: bool = False,
        kind: str = "branch",
    ) -> None:
        """A snapshot with all files of its parent and a new one; `branch` None leaves it without a ref."""
        self.snapshots += 1
        at = self.snapshots
        files = [] if parent is None else self.files[parent]
        columns: Columns | None = None
        if schema_id in self.table.schemas:
            columns = self.columns(schema_id)
        sent = add_snapshot(at, schema_id, parent, self.table.last_sequence_number + 1)
        sent["snapshot"]["first-row-id"] = self.table.next_row_id
        if self.table.format_version < 3:
            del sent["snapshot"]["first-row-id"], sent["snapshot"]["added-rows"]
        refs = [] if branch is None else [set_ref(branch, at, kind)]
        if self.propose([*updates, sent, *refs], legal):
            self.files[at] = [*files, columns if columns is not None else self.columns()]

    # Legal by construction

    @rule()
    def adds_an_optional_column(self) -> None:
        added = field(self.table.last_column_id + 1, self.fresh_name(), "int")
        self.propose(evolve(*self.fields(), added), legal=True)

    @rule(at=st.integers(0, 9))
    def renames(self, at: int) -> None:
        fields = self.fields()
        at %= len(fields)
        fields[at] = {**fields[at], "name": self.fresh_name()}
        self.propose(evolve(*fields), legal=True)

    @rule(at=st.integers(0, 9))
    def moves_first(self, at: int) -> None:
        fields = self.fields()
        moved = fields.pop(at % len(fields))
        self.propose(evolve(moved, *fields), legal=True)

    @rule(at=st.integers(0, 9))
    def drops(self, at: int) -> None:
        fields = self.fields()
        if len(fields) > 1:
            fields.pop(at % len(fields))
            self.propose(evolve(*fields), legal=True)

    @rule(at=st.integers(0, 9))
    def promotes(self, at: int) -> None:
        fields = self.fields()
        at %= len(fields)
        kind = fields[at]["type"]
        if isinstance(kind, str) and kind in NEXT:
            fields[at] = {**fields[at], "type": NEXT[kind]}
            self.propose(evolve(*fields), legal=True)

    @rule(at=st.integers(0, 9))
    def relaxes(self, at: int) -> None:
        fields = self.fields()
        at %= len(fields)
        fields[at] = {**fields[at], "required": False}
        self.propose(evolve(*fields), legal=True)

    @rule(branch=st.integers(0, 3))
    def appends(self, branch: int) -> None:
        names = self.branch_names() or ["main"]
        name = names[branch % len(names)]
        ref = self.table.refs.get(name)
        self.write(name, self.table.current_schema_id, None if ref is None else ref.snapshot_id, [], legal=True)

    @rule(branch=st.integers(0, 3), tagged=st.booleans())
    def stages(self, branch: int, tagged: bool) -> None:
        """A snapshot on a branch's head that no branch comes to."""
        names = self.branch_names()
        if names:
            parent = self.table.refs[names[branch % len(names)]].snapshot_id
            self.write("s" if tagged else None, self.table.current_schema_id, parent, [], True, "tag")

    @rule(at=st.integers(0, 30), back=st.integers(1, 6), tagged=st.booleans())
    def writes_off_branch(self, at: int, back: int, tagged: bool) -> None:
        """On any listed snapshot, under any retained schema."""
        self.write_under_any_schema(at, back, "s" if tagged else None, "tag")

    def write_under_any_schema(self, at: int, back: int, ref: str | None, kind: str) -> None:
        listed, ids = list(self.table.snapshots), self.table.schemas.ids
        parent = listed[at % len(listed)].snapshot_id if listed else None
        self.write(ref, ids[-back % len(ids)], parent, [], kind=kind)

    @rule()
    def replaces_when_alone(self) -> None:
        """CREATE OR REPLACE AS SELECT, every ID of the old schema with another type."""
        others = [name for name in self.branch_names() if name != "main"]
        fields = [field(f["id"], self.fresh_name(), "string", True) for f in self.fields()]
        removal = [remove_ref("main")] if "main" in self.table.refs else []
        known = [s for s in self.table.schemas.all() if columns_of(schema_to_json(s)["fields"]) == columns_of(fields)]
        if not others and not known:
            self.write("main", -1, None, [*removal, *evolve(*fields)], legal=True)

    # Anything goes; the judge decides

    @rule(at=st.integers(0, 9), kind=st.sampled_from(TYPES))
    def retypes(self, at: int, kind: str) -> None:
        fields = self.fields()
        at %= len(fields)
        fields[at] = {k: v for k, v in fields[at].items() if "default" not in k} | {"type": kind}
        self.propose(evolve(*fields))

    @rule(at=st.integers(0, 9))
    def requires(self, at: int) -> None:
        fields = self.fields()
        at %= len(fields)
        fields[at] = {**fields[at], "required": True}
        self.propose(evolve(*fields))

    @rule(back=st.integers(0, 6), kind=st.sampled_from(TYPES), required=st.booleans(), default=st.booleans())
    def adds_under_some_id(self, back: int, kind: str, required: bool, default: bool) -> None:
        more = {"initial": "x", "write": "x"} if default and kind == "string" and self.table.format_version == 3 else {}
        field_id = max(1, self.table.last_column_id + 1 - back)
        if field_id not in self.columns():
            self.propose(evolve(*self.fields(), field(field_id, self.fresh_name(), kind, required, **more)))

    def structs(self) -> list[int]:
        """Positions of the struct columns."""
        return [at for at, f in enumerate(self.fields()) if isinstance(f["type"], dict)]

    @rule(required=st.booleans(), kind=st.sampled_from(TYPES))
    def adds_inside_a_struct(self, required: bool, kind: str) -> None:
        fields = self.fields()
        for at in self.structs()[:1]:
            added = field(self.table.last_column_id + 1, self.fresh_name(), kind, required)
            fields[at] = {**fields[at], "type": struct(*fields[at]["type"]["fields"], added)}
            self.propose(evolve(*fields), legal=not required)

    @rule(which=st.integers(0, 3))
    def drops_inside_a_struct(self, which: int) -> None:
        fields = self.fields()
        for at in self.structs()[:1]:
            inner = list(fields[at]["type"]["fields"])
            if len(inner) > 1:
                inner.pop(which % len(inner))
                fields[at] = {**fields[at], "type": struct(*inner)}
                self.propose(evolve(*fields), legal=True)

    @rule(back=st.integers(1, 12), which=st.integers(0, 5), extra=st.booleans(), relaxed=st.booleans())
    def restores_a_column(self, back: int, which: int, extra: bool, relaxed: bool) -> None:
        """A column of some older schema that the current one lacks, at the top or inside a struct, maybe changed."""
        ids = self.table.schemas.ids
        old = self.table.schemas.get(ids[-back % len(ids)])
        assert old is not None
        present, fields = self.columns(), self.fields()
        missing = [f for f in schema_to_json(old)["fields"] if f["id"] not in present]
        if missing:
            again = {**missing[which % len(missing)], "name": self.fresh_name()}
            if isinstance(again["type"], dict) and extra:
                added = field(self.table.last_column_id + 1, self.fresh_name(), "int", True)
                again["type"] = struct(*again["type"]["fields"], added)
            if not set(columns_of([again])) & set(present):
                self.propose(evolve(*fields, {**again, "required": again["required"] and not relaxed}))
            return
        for at, f in enumerate(fields):
            was = next((o for o in schema_to_json(old)["fields"] if o["id"] == f["id"]), None)
            if was is None or not isinstance(f["type"], dict) or not isinstance(was["type"], dict):
                continue
            gone = [{**i, "name": self.fresh_name()} for i in was["type"]["fields"] if i["id"] not in present]
            if gone:
                fields[at] = {**f, "type": struct(*f["type"]["fields"], gone[which % len(gone)])}
                self.propose(evolve(*fields))
                return

    @rule()
    def flattens(self) -> None:
        fields = self.fields()
        for at, f in enumerate(fields):
            if isinstance(f["type"], dict) and len(f["type"]["fields"]) > 1:
                inner = list(f["type"]["fields"])
                out = {**inner.pop(), "name": self.fresh_name()}
                fields[at] = {**f, "type": struct(*inner)}
                self.propose(evolve(*fields, out))
                return

    @rule(back=st.integers(1, 12))
    def goes_back_to_a_schema(self, back: int) -> None:
        ids = self.table.schemas.ids
        self.propose([set_schema(ids[-back % len(ids)])])

    @rule(at=st.integers(0, 30), name=st.sampled_from(["main", "audit"]), along=st.booleans())
    def points_a_branch(self, at: int, name: str, along: bool) -> None:
        """Rollback, fast-forward or a new branch, alone or with the snapshot's schema."""
        listed = list(self.table.snapshots)
        if listed:
            target = listed[at % len(listed)]
            back = [set_schema(target.schema_id)] if along and target.schema_id is not None else []
            self.propose([set_ref(name, target.snapshot_id), *back])

    @rule(at=st.integers(0, 30))
    def tags(self, at: int) -> None:
        listed = list(self.table.snapshots)
        if listed and "t" not in self.table.refs:
            self.propose([set_ref("t", listed[at % len(listed)].snapshot_id, "tag")], legal=True)

    @rule(name=st.sampled_from(["audit", "main"]))
    def drops_a_branch(self, name: str) -> None:
        if name in self.table.refs:
            self.propose([remove_ref(name)], legal=True)

    @rule(keep=st.integers(0, 3))
    def expires(self, keep: int) -> None:
        heads = {ref.snapshot_id for ref in self.table.refs.values()}
        old = [s.snapshot_id for s in self.table.snapshots if s.snapshot_id not in heads]
        gone = old[: len(old) - keep] if keep else old
        if gone:
            self.propose([{"action": "remove-snapshots", "snapshot-ids": gone}], legal=True)

    @rule(keep=st.integers(0, 2))
    def cleans_up(self, keep: int) -> None:
        """Expiry as engines do it: the schemas that no retained snapshot names go as well."""
        held = {ref.snapshot_id for ref in self.table.refs.values()}
        old = [s.snapshot_id for s in self.table.snapshots if s.snapshot_id not in held]
        gone = old[: len(old) - keep] if keep else old
        named = {s.schema_id for s in self.table.snapshots if s.snapshot_id not in gone}
        unused = [i for i in self.table.schemas.ids if i not in named and i != self.table.current_schema_id]
        updates: list[Json] = [{"action": "remove-snapshots", "snapshot-ids": gone}] if gone else []
        if unused:
            updates.append({"action": "remove-schemas", "schema-ids": unused})
        if updates:
            self.propose(updates, legal=True)

    @rule(at=st.integers(0, 9), tagged=st.booleans())
    def widens_writes_drops_and_writes(self, at: int, tagged: bool) -> None:
        """What leaves files behind that only expired snapshots and removed schemas could explain."""
        wide = [f["id"] for f in self.fields() if isinstance(f["type"], str) and f["type"] in NEXT]
        if not wide or len(self.fields()) < 2:
            return
        self.appends(0)
        if tagged:
            self.tags(len(self.table.snapshots) - 1)
        field_id = wide[at % len(wide)]
        self.promotes(next(i for i, f in enumerate(self.fields()) if f["id"] == field_id))
        self.appends(0)
        self.drops(next(i for i, f in enumerate(self.fields()) if f["id"] == field_id))
        self.appends(0)

    @rule()
    def upgrades(self) -> None:
        if self.table.format_version < 3:
            self.propose([upgrade()], legal=True)

    @invariant()
    def every_file_on_a_branch_reads(self) -> None:
        if not hasattr(self, "table"):
            return
        wanted = self.columns()
        for name in self.branch_names():
            for file in self.files[self.table.refs[name].snapshot_id]:
                assert reads(file, wanted, self.table.format_version), (name, file, wanted)

    @invariant()
    def every_snapshot_reads_with_its_own_schema(self) -> None:
        """As tags and snapshot IDs are read."""
        if not hasattr(self, "table"):
            return
        for listed in self.table.snapshots:
            wanted = self.columns(listed.schema_id)
            for file in self.files[listed.snapshot_id]:
                assert reads(file, wanted, self.table.format_version), (listed.snapshot_id, file, wanted)


class HistoriesWithStaleWriters(Histories):
    """Writers that began under an older schema commit late, with the schema ID they began with; nothing expires, since
    only the retained history tells of them."""

    @rule(back=st.integers(1, 6))
    def appends_late(self, back: int) -> None:
        ids = self.table.schemas.ids
        ref = self.table.refs.get("main")
        if ref is not None:
            self.write("main", ids[-back % len(ids)], ref.snapshot_id, [])

    @rule(at=st.integers(0, 30), back=st.integers(1, 6), name=st.sampled_from(["main", "audit"]))
    def writes_to_a_branch(self, at: int, back: int, name: str) -> None:
        """On any listed snapshot, under any retained schema."""
        self.write_under_any_schema(at, back, name, "branch")

    @rule(keep=st.integers(0, 3))
    def expires(self, keep: int) -> None:
        """Nothing expires here."""

    @rule(keep=st.integers(0, 2))
    def cleans_up(self, keep: int) -> None:
        """Nor here."""


_BUDGET = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestHistories = Histories.TestCase
TestHistories.settings = _BUDGET
TestHistoriesWithStaleWriters = HistoriesWithStaleWriters.TestCase
TestHistoriesWithStaleWriters.settings = _BUDGET
