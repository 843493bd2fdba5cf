"""Group E of the public cases: snapshots, statistics, metadata files (O-27 to O-34)."""

from __future__ import annotations

import copy
import gzip
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cases.shorthand import schema
from tests.cases.wire import (
    ASSERT_CREATE,
    Catalog,
    Table,
    add_order,
    add_snapshot,
    add_spec,
    assert_ref,
    assert_schema,
    error_of,
    evolve,
    local_path,
    now_ms,
    ok,
    set_properties,
    set_ref,
    snapshot,
)

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


# --- O-27 ---------------------------------------------------------------------------------------------------------


def set_statistics(table: Table, snapshot_id: int, name: str = "") -> Json:
    path = f"{table.metadata()['location']}/metadata/{name or snapshot_id}.puffin"
    return {
        "action": "set-statistics",
        "snapshot-id": snapshot_id,
        "statistics": {
            "snapshot-id": snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 4,
            "blob-metadata": [
                {
                    "type": "apache-datasketches-theta-v1",
                    "snapshot-id": snapshot_id,
                    "sequence-number": 1,
                    "fields": [1],
                }
            ],
        },
    }


def set_partition_statistics(table: Table, snapshot_id: int) -> Json:
    return {
        "action": "set-partition-statistics",
        "partition-statistics": {
            "snapshot-id": snapshot_id,
            "file-size-in-bytes": 10,
            "statistics-path": f"{table.metadata()['location']}/metadata/p{snapshot_id}.parquet",
        },
    }


@pytest.fixture
def measured(catalog: Catalog, ns: Namespace) -> Table:
    """S1 <- S2 <- S3 with both kinds of statistics for S1 and S3 and a tag on S1."""
    table = catalog.create(ns, SIMPLE)
    for number in (1, 2, 3):
        table.append(number, number - 1 or None, number)
    table.commit(
        [
            set_ref("k", 1, "tag"),
            *(set_statistics(table, n) for n in (1, 3)),
            *(set_partition_statistics(table, n) for n in (1, 3)),
        ]
    )
    return table


def listed(metadata: Json, key: str) -> list[int]:
    return [entry["snapshot-id"] for entry in metadata.get(key, [])]


def test_o27_statistics_survive_unrelated_commits(measured: Table) -> None:
    """A property commit leaves all four files listed."""
    after = measured.commit([set_properties(a="1")])
    assert sorted(listed(after, "statistics")) == sorted(listed(after, "partition-statistics")) == [1, 3]


def test_o27_statistics_and_refs_go_with_their_snapshot(measured: Table) -> None:
    """Removing S1 removes its statistics and the tag, and nothing of S3."""
    after = measured.commit([{"action": "remove-snapshots", "snapshot-ids": [1]}])
    assert listed(after, "statistics") == listed(after, "partition-statistics") == [3]
    assert set(after["refs"]) == {"main"}
    assert {r["snapshot-id"] for r in after["refs"].values()} <= {s["snapshot-id"] for s in after["snapshots"]}


def test_o27_refs_that_cannot_be(measured: Table) -> None:
    """main as a tag, and a ref to an unknown snapshot, are 400."""
    measured.refuse([set_ref("main", 3, "tag")])
    measured.refuse([set_ref("x", 99)])


def test_o27_statistics_of_one_snapshot_are_replaced(measured: Table) -> None:
    """The later of two wins."""
    after = measured.commit([set_statistics(measured, 3, "one"), set_statistics(measured, 3, "two")])
    found = [entry for entry in after["statistics"] if entry["snapshot-id"] == 3]
    assert [entry["statistics-path"].rsplit("/", 1)[1] for entry in found] == ["two.puffin"]


# --- O-28 ---------------------------------------------------------------------------------------------------------


def test_o28_update_time_and_rollback(catalog: Catalog, ns: Namespace) -> None:
    """The server's clock gives last-updated-ms; a rollback is logged at its own time; repeating it changes nothing."""
    table = catalog.create(ns, SIMPLE)
    old = now_ms() - 600_000
    began = now_ms()
    one = table.commit([add_snapshot(table.snap(1, None, 1, old)), set_ref("main", 1)])
    assert one["last-updated-ms"] >= began
    assert one["snapshots"][0]["timestamp-ms"] == old
    table.append(2, 1, 2)
    back = table.commit([set_ref("main", 1)])
    log = back["snapshot-log"]
    assert [entry["snapshot-id"] for entry in log] == [1, 2, 1]
    assert [entry["timestamp-ms"] for entry in log] == sorted(entry["timestamp-ms"] for entry in log)
    assert log[-1]["timestamp-ms"] >= began
    before = table.load()
    again = ok(table.post([], [set_ref("main", 1)]))
    assert again["metadata-location"] == before["metadata-location"]
    assert again["metadata"]["snapshot-log"] == log


# --- O-29 ---------------------------------------------------------------------------------------------------------


def staged_v1(catalog: Catalog, ns: Namespace) -> Table:
    staged = ok(catalog.post_create(ns, "v1", SIMPLE, stage_create=True, properties={"format-version": "1"}))
    assert staged["metadata"]["format-version"] == 1
    table = catalog.table(ns, "v1")
    ok(
        table.post(
            [ASSERT_CREATE],
            [
                {"action": "assign-uuid", "uuid": staged["metadata"]["table-uuid"]},
                {"action": "upgrade-format-version", "format-version": 1},
                *evolve(SIMPLE),
                *add_spec(),
                *add_order(),
                {"action": "set-location", "location": staged["metadata"]["location"]},
            ],
        )
    )
    return table


@pytest.mark.parametrize("staged", [False, True])
def test_o29_a_v1_table_and_its_upgrade(catalog: Catalog, ns: Namespace, staged: bool) -> None:
    """Version 1 is honoured in both forms, snapshots without sequence numbers count as 0, a downgrade is 400."""
    table = staged_v1(catalog, ns) if staged else catalog.create(ns, SIMPLE, version=1)
    stored = table.stored()
    assert stored["format-version"] == 1
    assert "format-version" not in stored["properties"]
    assert "schema" in stored and stored["partition-spec"] == []
    for number in (1, 2):
        table.append(number, number - 1 or None, None)
    upgraded = table.commit([{"action": "upgrade-format-version", "format-version": 2}])
    assert upgraded["last-sequence-number"] == 0
    assert all(s.get("sequence-number", 0) == 0 for s in upgraded["snapshots"])
    assert table.append(3, 2, 1)["last-sequence-number"] == 1
    table.refuse([{"action": "upgrade-format-version", "format-version": 1}])


# --- O-30 ---------------------------------------------------------------------------------------------------------


def metadata_files(table: Table) -> set[str]:
    return {p.name for p in (local_path(table.metadata()["location"]) / "metadata").glob("*.metadata.json")}


def wait_for_files(table: Table, names: set[str], seconds: float = 20.0) -> None:
    """Old files go after the answer, beside the next requests: wait until these and no others are there."""
    deadline = time.monotonic() + seconds
    while (found := metadata_files(table)) != names:
        assert time.monotonic() < deadline, found ^ names
        time.sleep(0.02)


def log_of(metadata: Json) -> list[str]:
    return [entry["metadata-file"].rsplit("/", 1)[1] for entry in metadata["metadata-log"]]


def test_o30_the_metadata_log_is_trimmed_and_files_deleted(catalog: Catalog, ns: Namespace) -> None:
    """The log holds the last three predecessors, older files go after the swap, failures and no-ops leave nothing."""
    table = catalog.create(
        ns,
        SIMPLE,
        properties={"write.metadata.previous-versions-max": "3", "write.metadata.delete-after-commit.enabled": "true"},
    )
    line = [table.location_of_metadata().rsplit("/", 1)[1]]
    for number in range(6):
        metadata = table.commit([set_properties(n=str(number))])
        line.append(table.location_of_metadata().rsplit("/", 1)[1])
        assert log_of(metadata) == line[:-1][-3:]
    wait_for_files(table, set(line[-4:]))
    table.refuse([set_properties(n="x")], [assert_schema(9)], 409)
    wait_for_files(table, set(line[-4:]))
    with ThreadPoolExecutor(2) as pool:
        check = [assert_ref("main", None)]
        updates = [[add_snapshot(table.snap(n, None, n)), set_ref("main", n)] for n in (1, 2)]
        answers = list(pool.map(table.post, [check, check], updates))
    assert sorted(a.status_code for a in answers) == [200, 409]
    loaded = table.load()
    current = loaded["metadata-location"].rsplit("/", 1)[1]
    wait_for_files(table, {*log_of(loaded["metadata"]), current})
    same = ok(table.post([], [set_properties(n="5")]))
    assert same["metadata-location"] == loaded["metadata-location"]
    wait_for_files(table, {*log_of(loaded["metadata"]), current})


def test_o30_nothing_is_deleted_unless_asked(catalog: Catalog, ns: Namespace) -> None:
    """With deletion off the log is trimmed but every file stays."""
    table = catalog.create(ns, SIMPLE, properties={"write.metadata.previous-versions-max": "2"})
    for number in range(5):
        table.commit([set_properties(n=str(number))])
    assert len(log_of(table.metadata())) == 2
    assert len(metadata_files(table)) == 6


# --- O-31 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_o31_a_table_without_snapshots(catalog: Catalog, ns: Namespace, version: int) -> None:
    """Empty lists are there; none is -1 in v1 and v2, and null or absent in v3."""
    table = catalog.create(ns, SIMPLE, version=version)
    for metadata in (table.metadata(), table.stored()):
        assert (metadata["snapshots"], metadata["snapshot-log"], metadata["metadata-log"]) == ([], [], [])
        assert metadata["refs"] == {}
        if version < 3:
            assert metadata["current-snapshot-id"] == -1
        else:
            assert metadata.get("current-snapshot-id") is None
            assert metadata["next-row-id"] == 0


@pytest.mark.parametrize("spelling", [{"current-snapshot-id": -1}, {"current-snapshot-id": None}, {}])
def test_o31_every_spelling_of_none_is_read(catalog: Catalog, ns: Namespace, spelling: Json) -> None:
    """-1, null and absent all mean that main does not exist yet."""
    table = catalog.seed(ns, {**catalog.document(SIMPLE), **spelling})
    assert table.metadata().get("current-snapshot-id") in (None, -1)
    table.commit([add_snapshot(table.snap(1)), set_ref("main", 1)], [assert_ref("main", None)])


# --- O-32 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "zipped"),
    [("x.gz.metadata.json", True), ("x.metadata.json.gz", True), ("x.metadata.json", False), ("y.metadata.json", True)],
)
def test_o32_compressed_metadata_files(catalog: Catalog, ns: Namespace, name: str, zipped: bool) -> None:
    """Both historic names, plain JSON and gzip bytes under the plain name register; the next file fits its name."""
    document = catalog.document(SIMPLE)
    data = json.dumps(document).encode()
    location = catalog.write_metadata(document, name, gzip.compress(data) if zipped else data)
    answer = ok(catalog.post_register(ns, "t", location))
    assert answer["metadata-location"] == location
    table = catalog.table(ns, "t")
    for codec in ("gzip", "none"):
        table.commit([set_properties(**{"write.metadata.compression-codec": codec})])
        written = table.location_of_metadata()
        is_gzip = local_path(written).read_bytes()[:2] == b"\x1f\x8b"
        assert is_gzip == (".gz" in written.rsplit("/", 1)[1]) == (codec == "gzip")


# --- O-33 ---------------------------------------------------------------------------------------------------------


def test_o33_large_integers_and_rich_summaries(catalog: Catalog, ns: Namespace, tmp_path: Path) -> None:
    """Digits beyond 2^53 and sixty summary keys come back the same from every place, also after another commit."""
    big, bigger = 9007199254740993, 8103159149723679873
    summary: Json = {"operation": "append", **{f"k{n}": "é" * n for n in range(60)}}
    table = catalog.create(ns, SIMPLE, version=3)
    rows: list[Json] = [{"first-row-id": 0, "added-rows": 2**60}, {"first-row-id": 2**60, "added-rows": 7}]
    first = table.snap(big, None, 1, summary=summary, **rows[0])
    second = table.snap(bigger, big, 2**40, summary=summary, **rows[1])
    table.commit([add_snapshot(first), set_ref("main", big)])
    table.commit([add_snapshot(second), set_ref("main", bigger), set_statistics(table, bigger)])
    table.commit([set_properties(a="1")])
    for metadata in (table.metadata(), table.stored()):
        assert metadata["snapshots"] == [first, second]
        assert metadata["current-snapshot-id"] == metadata["refs"]["main"]["snapshot-id"] == bigger
        assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [big, bigger]
        assert metadata["statistics"][0]["snapshot-id"] == bigger
        assert metadata["next-row-id"] == 2**60 + 7
    raw = table.get().text
    assert f'"snapshot-id":{bigger}' in raw.replace(" ", "")
    assert "e+" not in raw.lower().replace("é", "")


def test_o33_unknown_members_survive(catalog: Catalog, ns: Namespace) -> None:
    """What a typed model does not list is kept in snapshots, fields, refs, specs and the document itself."""
    document = catalog.document(
        schema("1:id long!", extra={1: {"x-field": {"deep": [1, None]}}}),
        snapshots=[snapshot("", 1, None, 1, **{"x-snapshot": 3})],
        main=1,
    )
    document.update(
        {
            "x-table": {"a": 1},
            "partition-specs": [
                {
                    "spec-id": 0,
                    "fields": [
                        {"source-id": 1, "transform": "identity", "name": "p", "field-id": 1000, "x-spec": True}
                    ],
                }
            ],
            "last-partition-id": 1000,
        }
    )
    document["refs"]["main"]["x-ref"] = "r"
    table = catalog.seed(ns, copy.deepcopy(document))
    table.commit([set_properties(a="1")])
    for metadata in (table.metadata(), table.stored()):
        assert metadata["x-table"] == {"a": 1}
        assert metadata["schemas"][0]["fields"][0]["x-field"] == {"deep": [1, None]}
        assert metadata["snapshots"][0]["x-snapshot"] == 3
        assert metadata["partition-specs"][0]["fields"][0]["x-spec"] is True
        assert metadata["refs"]["main"]["x-ref"] == "r"


# --- O-34 ---------------------------------------------------------------------------------------------------------


def upgrade(version: int) -> list[Json]:
    return [{"action": "upgrade-format-version", "format-version": version}]


def test_o34_upgrade_to_v3_with_snapshots(catalog: Catalog, ns: Namespace) -> None:
    """Old snapshots stay without row ids, the counter starts at 0 and follows; 2 and 99 are refused."""
    table = catalog.create(ns, SIMPLE, version=2)
    table.append(1, None, 1)
    before = table.append(2, 1, 2)
    after = table.commit(upgrade(3))
    assert after["next-row-id"] == 0
    assert after["snapshots"] == before["snapshots"]
    rows: Json = {"first-row-id": 0, "added-rows": 250}
    assert table.append(3, 2, 3, **rows)["next-row-id"] == 250
    location = table.location_of_metadata()
    assert ok(table.post([], upgrade(3)))["metadata-location"] == location
    for version in (2, 99, 4, 0, -1):
        table.refuse(upgrade(version))


def test_o34_a_new_v3_table(catalog: Catalog, ns: Namespace) -> None:
    """Its first row id is 0; versions that do not exist cannot be created."""
    assert catalog.create(ns, SIMPLE, version=3).metadata()["next-row-id"] == 0
    for version in ("0", "4", "99", "x", ""):
        error_of(catalog.post_create(ns, "no", SIMPLE, properties={"format-version": version}), 400)


# --- nulls in files that others wrote -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["refs", "snapshots", "snapshot-log", "metadata-log", "statistics", "properties", "partition-statistics"]
)
def test_a_registered_null_is_not_handed_on(catalog: Catalog, ns: Namespace, key: str) -> None:
    """Java and PyIceberg cannot read an explicit null here: the file is refused, or served without it."""
    document = {**catalog.document(SIMPLE), key: None}
    answer = catalog.post_register(ns, "t", catalog.write_metadata(document))
    if answer.status_code == 200:
        for metadata in (answer.json()["metadata"], catalog.table(ns, "t").metadata()):
            assert metadata.get(key, []) is not None
    else:
        error_of(answer, 400)


@pytest.mark.parametrize("key", ["parent-snapshot-id", "summary", "manifest-list", "sequence-number", "schema-id"])
def test_a_registered_null_in_a_snapshot_is_not_handed_on(catalog: Catalog, ns: Namespace, key: str) -> None:
    """The same inside a snapshot."""
    document = catalog.document(SIMPLE, snapshots=[snapshot("", 1)], main=1)
    document["snapshots"][0][key] = None
    answer = catalog.post_register(ns, "t", catalog.write_metadata(document))
    if answer.status_code == 200:
        for metadata in (
            answer.json()["metadata"],
            catalog.table(ns, "t").metadata(),
            catalog.table(ns, "t").metadata(snapshots="refs"),
        ):
            assert metadata["snapshots"][0].get(key, 0) is not None
    else:
        error_of(answer, 400)


@pytest.mark.parametrize("key", ["doc", "initial-default", "write-default"])
def test_a_registered_null_in_a_field_is_not_handed_on(catalog: Catalog, ns: Namespace, key: str) -> None:
    """The same inside a schema field."""
    document = catalog.document(schema("1:id long!, 2:v string", extra={2: {key: None}}), version=3)
    answer = catalog.post_register(ns, "t", catalog.write_metadata(document))
    if answer.status_code == 200:
        for metadata in (answer.json()["metadata"], catalog.table(ns, "t").metadata()):
            assert metadata["schemas"][0]["fields"][1].get(key, 0) is not None
    else:
        error_of(answer, 400)
