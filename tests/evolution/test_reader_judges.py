"""A reader judges the judge: random histories of real tables, with real Parquet files between the changes.

Soundness: whatever the judge accepts, every file that a branch reaches reads under the current schema, and every file
behind a retained snapshot under the schema that the snapshot names, with the values that were written. Bounds hide no
row, and partition values are what the transforms look for.

Completeness: changes that are legal by construction are never refused, and every refusal has a witness: a file that a
conforming writer may have written and that would be misread, or a sentence of the spec.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from app.evolution.engine.change import Evidence
from app.evolution.engine.judge import judge
from app.evolution.engine.registry import RULES
from app.iceberg.schema import Schema
from app.iceberg.table import TableMetadata
from app.iceberg.types import DateType, StructType, TimestampType
from app.rules import Policy, Severity, Verdict
from tests.evolution.histories.history import Tally, run, run_seed
from tests.evolution.histories.refusals import SENTENCES, Refusals
from tests.evolution.histories.world import Judge, Unsound, Unwarranted, World
from tests.evolution.histories.writes import appends
from tests.evolution.tables import (
    Json,
    branch,
    evolve,
    field,
    list_of,
    refusals,
    schema,
    set_ref,
    set_schema,
    snapshot,
    struct,
    table,
)
from tests.projection.lake import StoredFile, plain, write_lake
from tests.projection.oracle.arrow import read_parquet

SECONDS = 20
"""What the seeds of an ordinary run may take; a few hundred of them fit."""

SEEDS = 400
FULL_SEEDS = 10_000


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_histories_that_shrink(draw: Any) -> None:
    """Fewer of them, and a failing one is made small."""
    run(draw, Tally(), steps=15)


def test_histories_of_many_seeds() -> None:
    """As many as fit the time, always the same ones first."""
    tally, until = Tally(), time.monotonic() + SECONDS
    for seed in range(SEEDS):
        run_seed(seed, tally)
        if time.monotonic() > until:
            break
    assert tally.histories >= 5
    assert tally.readings > 10 * tally.histories


@pytest.mark.engines
@pytest.mark.timeout(7200)
def test_ten_thousand_histories(capsys: pytest.CaptureFixture[str]) -> None:
    """The long proof, with FULL=1; a tenth of it without."""
    tally = Tally()
    for seed in range(SEEDS, SEEDS + (FULL_SEEDS if os.environ.get("FULL") else FULL_SEEDS // 10)):
        run_seed(seed, tally)
    with capsys.disabled():
        print(f"\n{tally}")
    unseen = {rule.code for rule in RULES if rule.default is Severity.ERROR and not rule.retired}
    unseen -= set(tally.refusals.counted) | NOT_DRAWN
    assert not os.environ.get("FULL") or not unseen, f"no history was refused by {sorted(unseen)}"


NOT_DRAWN = {
    "ICE106",
    "ICE107",
    "ICE108",  # the commit room numbers schemas, specs and columns itself
    "ICE210",  # types that no file can hold are not drawn
    "ICE207",  # only unknown columns outgrow a transform, and no spec is drawn on one
    "ICE306",
    "ICE305",
    "ICE307",
    "ICE308",
    "ICE309",  # defaults that no reader can load are not drawn
    "ICE502",
    "ICE701",
    "ICE703",
    "ICE704",  # sort orders and names are not a matter of files
}


# --- what histories have found ---------------------------------------------------------------------------------------


def test_an_undo_brings_back_a_required_child_of_a_list_that_older_files_lack() -> None:
    """Snapshot 1 was written before the list existed, so nobody asks its files for the child."""
    inside = [field(11, "day", "date", True), field(12, "n", "long", True)]
    old = schema(field(1, "id", "int"))
    full = schema(field(1, "id", "int"), field(2, "l", list_of(10, struct(*inside))), schema_id=1)
    less = schema(field(1, "id", "int"), field(2, "l", list_of(10, struct(inside[1]))), schema_id=2)
    base = table(
        old,
        full,
        less,
        current=2,
        last_column_id=12,
        snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1)],
        refs={"main": branch(2)},
    )
    assert refusals(base, [set_schema(1)]) == []


def test_a_required_child_that_files_with_the_list_lack_stays_out() -> None:
    """The near miss: snapshot 2 was written with the list and without the child."""
    inside = [field(11, "day", "date", True), field(12, "n", "long", True)]
    full = schema(field(1, "id", "int"), field(2, "l", list_of(10, struct(*inside))))
    less = schema(field(1, "id", "int"), field(2, "l", list_of(10, struct(inside[1]))), schema_id=1)
    base = table(
        full,
        less,
        current=1,
        last_column_id=12,
        snapshots=[snapshot(1, 0), snapshot(2, 1, parent=1)],
        refs={"main": branch(2)},
    )
    assert refusals(base, [set_schema(0)]) == ["ICE105"]


def test_a_rollback_within_a_replaced_table_whose_middle_expired_is_free() -> None:
    """Snapshot 4 names schema 1, which could not read schema 0: so nothing of schema 0 lies behind it."""
    assert refusals(_middle_expired("string"), [set_ref("main", 4)]) == []


def test_a_rollback_to_a_lost_past_that_may_hold_another_column_is_refused() -> None:
    """The near miss: schema 1 reads schema 0, whose column 2 was an int and is a string now."""
    assert refusals(_middle_expired("int"), [set_ref("main", 4)]) == ["ICE503"]


def _middle_expired(kind: str) -> TableMetadata:
    """Column 2 was dropped in schema 1 and is another one now; of seven snapshots 1, 4 and 7 are left."""
    schemas = [
        schema(field(1, "a", "int"), field(2, "b", "int")),
        schema(field(1, "a", kind), schema_id=1),
        schema(field(1, "a", kind), field(2, "b", "string"), schema_id=2),
    ]
    listed = [snapshot(1, 0), snapshot(4, 1, parent=3), snapshot(7, 1, parent=6)]
    return table(*schemas, current=2, snapshots=listed, refs={"main": branch(7)})


# --- the proof can fail ----------------------------------------------------------------------------------------------


def test_a_judge_who_accepts_everything_is_caught() -> None:
    """A reader misreads what he let through."""

    def accept(*_: Any) -> Verdict:
        return Verdict()

    assert _caught(accept, seeds=10) is Unsound


def test_a_judge_who_refuses_every_change_is_caught() -> None:
    """He refuses a legal one."""

    def refuse(
        previous: TableMetadata | None, current: TableMetadata, evidence: Evidence, policy: Policy, now_ms: int
    ) -> Verdict:
        strict = Policy(tightened={rule.code: Severity.ERROR for rule in RULES})
        return judge(previous, current, evidence, strict, now_ms)

    assert _caught(refuse, seeds=10) is Unwarranted


@pytest.mark.parametrize(
    "code",
    ["ICE201", "ICE202", "ICE204", "ICE301", "ICE302", "ICE401", "ICE402", "ICE503", "ICE504", "ICE509", "ICE510"],
)
def test_a_judge_without_one_rule_is_caught(code: str) -> None:
    """Each rule about what files hold is needed."""
    assert _caught(without(code), seeds=150) is Unsound


def without(code: str) -> Judge:
    """The judge, blind to one rule."""

    def lenient(
        previous: TableMetadata | None, current: TableMetadata, evidence: Evidence, policy: Policy, now_ms: int
    ) -> Verdict:
        found = judge(previous, current, evidence, policy, now_ms)
        return Verdict(findings=tuple(f for f in found.findings if f.code != code))

    return lenient


@pytest.mark.parametrize("transform", ["identity", "bucket[16]"])
def test_partition_values_are_looked_for_as_they_were_stored(transform: str) -> None:
    """A date that partitions the table becomes a timestamp: without the rule for it, scans look in the wrong place."""
    columns = [field(1, "a", "int"), field(2, "day", "date")]
    later = evolve(columns[0], field(2, "day", "timestamp"))
    for judged, wrong in ((judge, None), (without("ICE206"), Unsound)):
        world = World(random.Random(1), columns, 3, Refusals(), judged)
        spec = {"spec-id": -1, "fields": [{"source-id": 2, "name": "p", "transform": transform}]}
        added: list[Json] = [{"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}]
        assert world.commit("repartitions", added, legal=True).accepted
        written = appends(world)
        assert written is not None and written.accepted
        if wrong is None:
            assert [finding.code for finding in world.commit("promotes", later, legal=False).refused_by] == ["ICE206"]
        else:
            with pytest.raises(wrong, match="looks for"):
                world.commit("promotes", later, legal=False)


def _caught(judged: Judge, seeds: int) -> type[Exception] | None:
    for seed in range(seeds):
        try:
            run_seed(seed, Tally(), judged=judged)
        except (Unsound, Unwarranted) as caught:
            return type(caught)
    return None


def test_every_sentence_belongs_to_a_rule_that_refuses() -> None:
    """The list of rules that need no file holds no others."""
    for code in SENTENCES:
        rule = RULES.get(code)
        assert rule is not None and rule.default is Severity.ERROR, code


# --- other readers on the tables that come out ------------------------------------------------------------------------


def test_pyiceberg_reads_random_tables_alike(tmp_path: Path) -> None:
    """What the judge let through, PyIceberg reads with the same values, as far as it knows the types."""
    compared = 0
    for seed in range(30):
        world = run_seed(seed, Tally(), steps=12)
        if not _known_to_all(world) or _structs_in_collections(world.table.schema):
            continue
        compared += 1
        lake = _lake(world, tmp_path / str(seed))
        assert _sorted(StaticTable.from_metadata(str(lake)).scan().to_arrow()) == _ours(world), world.story()
    assert compared >= 5


@pytest.mark.engines
def test_duckdb_reads_random_tables_alike(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same with DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    extensions = pytest.importorskip("duckdb_extensions")
    folder = str(tmp_path_factory.mktemp("extensions"))
    compared = 0
    with duckdb.connect(config={"extension_directory": folder, "autoinstall_known_extensions": "false"}) as engine:
        for name in ("avro", "httpfs", "iceberg"):
            extensions.import_extension(name, con=engine)
            engine.execute(f"LOAD {name}")
        engine.execute("SET TimeZone = 'UTC'")
        for seed in range(100):
            world = run_seed(seed, Tally())
            if not _known_to_all(world):
                continue
            compared += 1
            lake = _lake(world, tmp_path / str(seed))
            found = engine.execute(f"SELECT * FROM iceberg_scan('{lake}')").to_arrow_table()
            assert _sorted(found) == _ours(world), world.story()
    assert compared >= 30


def _known_to_all(world: World) -> bool:
    """Whether main has files, and no type that readers lag behind with."""
    main = world.branches().get("main")
    if main is None:
        return False
    schemas = (world.table.schema, *(file.written for file in main.files))
    if any(word in str(s.struct) for s in schemas for word in ("variant", "geo", "_ns", "unknown")):
        return False
    dates = {i for s in schemas for i, column in s.by_id.items() if column.field_type == DateType()}
    return not any(column.field_type == TimestampType() for i, column in schemas[0].by_id.items() if i in dates)


def _structs_in_collections(schema: Schema) -> bool:
    """PyIceberg loses the nulls of lists and maps that hold structs."""
    inner = (schema.by_id[i] for i in schema.by_id if schema.kind_of(i) != "field")
    return any(isinstance(field.field_type, StructType) for field in inner)


def _lake(world: World, folder: Path) -> Path:
    files = [StoredFile(file.data) for file in world.branches()["main"].files]
    return write_lake(folder, world.table.schema, files, version=max(2, world.table.format_version))


def _ours(world: World) -> list[str]:
    files = world.branches()["main"].files
    return _sorted(pa.concat_tables([read_parquet(file.data, world.table.schema) for file in files]))


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, plain(table.to_pylist())))
