"""Group C of the public cases: the commit protocol (O-15 to O-23)."""

from __future__ import annotations

import itertools
import json
import socket
import sqlite3
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.backends import LOCAL_ONLY
from tests.cases.shorthand import schema
from tests.cases.wire import (
    Catalog,
    Table,
    add_snapshot,
    assert_ref,
    assert_schema,
    drop_ref,
    error_of,
    local_path,
    ok,
    set_properties,
    set_ref,
    snapshot,
    unique,
)
from tests.server import Server

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


# --- O-15 ---------------------------------------------------------------------------------------------------------


def test_o15_a_failed_requirement_is_409(catalog: Catalog, ns: Namespace) -> None:
    """CommitFailedException: the client may refresh and try again."""
    table = catalog.create(ns, SIMPLE)
    error = table.refuse([set_properties(a="1")], [assert_schema(5)], 409, "CommitFailedException")
    assert error["message"].startswith("Requirement failed: current schema changed")


@LOCAL_ONLY
def test_o15_a_folder_that_cannot_be_written_is_surely_not_committed(catalog: Catalog, ns: Namespace) -> None:
    """The file write fails before anything was published: no status that means unknown, and the table is as before."""
    table = catalog.create(ns, SIMPLE)
    blocker = local_path(table.metadata()["location"]) / "blocker"
    blocker.write_bytes(b"a file where a folder should be")
    location = f"{table.metadata()['location']}/blocker/metadata"
    table.refuse([set_properties(**{"write.metadata.path": location})], status=(400, 503))
    assert table.commit([set_properties(a="1")])["properties"]["a"] == "1"


@LOCAL_ONLY
def test_o15_a_busy_database_is_waited_for_or_503(tmp_path: Path) -> None:
    """While another process holds the SQLite write lock a commit waits; giving up is 503 and stores nothing."""
    with Server(tmp_path / "home") as server, server.client(timeout=90.0) as http:
        catalog = Catalog(http, server.warehouse)
        table = catalog.create(catalog.namespace(), SIMPLE)
        files = [p for p in server.home.glob("*") if p.is_file() and p.read_bytes()[:15] == b"SQLite format 3"]
        assert len(files) == 1
        with ThreadPoolExecutor(1) as pool:
            lock = sqlite3.connect(files[0], isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            answer = pool.submit(table.post, [], [set_properties(a="1")])
            time.sleep(1.0)
            assert not answer.done() or answer.result().status_code == 503
            lock.execute("ROLLBACK")
            lock.close()
            response = answer.result()
        if response.status_code == 200:
            assert table.metadata()["properties"]["a"] == "1"
        else:
            error_of(response, 503)
            assert "a" not in table.metadata()["properties"]


# --- O-16 ---------------------------------------------------------------------------------------------------------


def stale(catalog: Catalog, ns: Namespace, version: int) -> Table:
    """A table at sequence number 5 whose branch x already took number 6."""
    rows = {"first-row-id": 0, "added-rows": 100} if version == 3 else {}
    more = {"first-row-id": 100, "added-rows": 50} if version == 3 else {}
    table = catalog.seed(
        ns,
        catalog.document(
            SIMPLE,
            version=version,
            snapshots=[snapshot("", 9, None, 5, **rows)],
            main=9,
            refs={"x": {"snapshot-id": 9, "type": "branch"}},
        ),
    )
    table.commit([add_snapshot(table.snap(10, 9, 6, **more)), set_ref("x", 10)], [assert_ref("x", 9)])
    return table


@pytest.mark.parametrize("how", ["commit", "transaction"])
@pytest.mark.parametrize("version", [2, 3])
def test_o16_a_spent_number_is_a_lost_race(catalog: Catalog, ns: Namespace, version: int, how: str) -> None:
    """A spent sequence number (v2) or first row id (v3) is 409 although the branch check holds."""
    table = stale(catalog, ns, version)
    number = {2: (6, {}), 3: (7, {"first-row-id": 100, "added-rows": 5})}[version]
    updates = [add_snapshot(table.snap(11, 9, number[0], **number[1])), set_ref("main", 11)]
    if how == "commit":
        table.refuse(updates, [assert_ref("main", 9)], 409, "CommitFailedException")
    else:
        before = table.load()
        error_of(catalog.transaction((table, [assert_ref("main", 9)], updates)), 409, "CommitFailedException")
        assert table.load() == before


@pytest.mark.parametrize("how", ["commit", "transaction"])
def test_o16_v3_snapshots_need_a_first_row_id(catalog: Catalog, ns: Namespace, how: str) -> None:
    """A missing first-row-id on v3 is 400: no refresh cures it."""
    table = stale(catalog, ns, 3)
    updates = [add_snapshot(table.snap(11, 9, 7)), set_ref("main", 11)]
    if how == "commit":
        table.refuse(updates, [assert_ref("main", 9)], 400)
    else:
        error_of(catalog.transaction((table, [assert_ref("main", 9)], updates)), 400)


# --- O-17 ---------------------------------------------------------------------------------------------------------


def test_o17_forty_independent_commits(catalog: Catalog, ns: Namespace) -> None:
    """Every 200 is visible in the end, and the metadata log is one line of real predecessors."""
    table = catalog.create(ns, SIMPLE)
    check = [table.uuid_ok()]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: table.post(check, [set_properties(**{f"k{n}": str(n)})]), range(40)))
    assert {a.status_code for a in answers} <= {200, 409, 429}
    won = [n for n, a in enumerate(answers) if a.status_code == 200]
    assert won
    loaded = table.load()
    assert {k: v for k, v in loaded["metadata"]["properties"].items() if k.startswith("k")} == {
        f"k{n}": str(n) for n in won
    }
    named = [answers[n].json()["metadata-location"] for n in won]
    assert len(set(named)) == len(named)
    line = [entry["metadata-file"] for entry in loaded["metadata"]["metadata-log"]] + [loaded["metadata-location"]]
    assert len(line) == len(set(line)) == len(won) + 1
    for older, newer in itertools.pairwise(line):
        assert json.loads(local_path(newer).read_bytes())["metadata-log"][-1]["metadata-file"] == older


# --- O-18 ---------------------------------------------------------------------------------------------------------


def first_append(table: Table, snapshot_id: int, check: Json) -> Any:
    return table.post([check], [add_snapshot(table.snap(snapshot_id)), set_ref("main", snapshot_id)])


def test_o18_two_first_appends(catalog: Catalog, ns: Namespace) -> None:
    """`null` means the branch must not exist: one of two parallel first appends wins."""
    for _ in range(10):
        table = catalog.create(ns, SIMPLE)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda n, t=table: first_append(t, n, assert_ref("main", None)), [1, 2]))
        assert sorted(a.status_code for a in answers) == [200, 409]


@pytest.mark.parametrize("check", [{"type": "assert-ref-snapshot-id", "ref": "main"}, assert_ref("main", -1)])
def test_o18_absent_and_minus_one_are_null(catalog: Catalog, ns: Namespace, check: Json) -> None:
    """Both spellings pass on an empty table and fail once main exists."""
    table = catalog.create(ns, SIMPLE)
    assert ok(first_append(table, 1, check))["metadata"]["current-snapshot-id"] == 1
    table.refuse([set_properties(a="1")], [check], 409, "CommitFailedException")


def test_o18_null_while_main_exists(catalog: Catalog, ns: Namespace) -> None:
    """409."""
    table = catalog.create(ns, SIMPLE)
    table.append(1)
    table.refuse([set_properties(a="1")], [assert_ref("main", None)], 409, "CommitFailedException")


# --- O-19 ---------------------------------------------------------------------------------------------------------


def statistics(table: Table, snapshot_id: int, name: str = "s.puffin") -> Json:
    return {
        "action": "set-statistics",
        "snapshot-id": snapshot_id,
        "statistics": {
            "snapshot-id": snapshot_id,
            "statistics-path": f"{table.metadata()['location']}/metadata/{name}",
            "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 4,
            "blob-metadata": [],
        },
    }


def test_o19_removals_last(tmp_path: Path) -> None:
    """The last property, tag, statistics file and snapshot stay gone in a new process."""
    with Server(tmp_path / "home") as server:
        with server.client() as http:
            catalog = Catalog(http, server.warehouse)
            space = catalog.namespace()
            table = catalog.seed(
                space,
                catalog.document(
                    SIMPLE,
                    snapshots=[snapshot("", 1)],
                    main=1,
                    refs={"k": {"snapshot-id": 1, "type": "tag"}},
                    properties={"only": "1"},
                ),
            )
            table.commit([statistics(table, 1)])
            table.commit([{"action": "remove-properties", "removals": ["only"]}])
            table.commit([drop_ref("k")])
            table.commit([{"action": "remove-statistics", "snapshot-id": 1}])
            last = table.commit([{"action": "remove-snapshots", "snapshot-ids": [1]}])
        server.restart()
        with server.client() as http:
            loaded = Catalog(http, server.warehouse).table(space, table.name).metadata()
    assert loaded == last
    assert (loaded["properties"], loaded["refs"], loaded["snapshots"]) == ({}, {}, [])
    assert not loaded.get("statistics")
    assert loaded["current-snapshot-id"] == -1


# --- O-20 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "updates",
    [
        [set_properties(a="1"), {"action": "frobnicate"}],
        [set_properties(a="1"), {"action": "add-partition-spec", "spec": {"fields": []}}],
        [set_properties(a="1"), {"spec": {"fields": []}}],
        [set_properties(a="1"), {"action": "set-current-view-version", "view-version-id": 1}],
        [set_properties(a="1"), {"action": None}],
        [set_properties(a="1"), "x"],
        [set_properties(a="1"), None],
    ],
)
def test_o20_unknown_updates(catalog: Catalog, ns: Namespace, updates: Sequence[Json]) -> None:
    """400 and nothing is stored, the good part included."""
    table = catalog.create(ns, SIMPLE)
    table.refuse(updates)
    assert "a" not in table.metadata()["properties"]


@pytest.mark.parametrize("check", [{"type": "assert-moon-phase"}, {}, {"type": "assert-view-uuid", "uuid": "x"}])
def test_o20_unknown_requirements(catalog: Catalog, ns: Namespace, check: Json) -> None:
    """400, not 409: no refresh cures it."""
    catalog.create(ns, SIMPLE).refuse([set_properties(a="1")], [check])


def test_o20_historic_keys_and_extra_keys(catalog: Catalog, ns: Namespace) -> None:
    """`updated` and `removed` of older Java clients are read; unknown extra keys of an update are ignored."""
    table = catalog.create(ns, SIMPLE)
    after = table.commit([{"action": "set-properties", "updated": {"a": "1", "b": "2"}, "colour": "red"}])
    assert after["properties"] == {**after["properties"], "a": "1", "b": "2"}
    after = table.commit([{"action": "remove-properties", "removed": ["a"]}])
    assert "a" not in after["properties"]


# --- O-21 ---------------------------------------------------------------------------------------------------------


def test_o21_nulls_are_absent(catalog: Catalog, ns: Namespace) -> None:
    """Every optional null of a create behaves as absent, and answers carry no null maps."""
    answer = ok(
        catalog.post_create(
            ns,
            "nulls",
            {
                "type": "struct",
                "identifier-field-ids": None,
                "fields": [{"id": 1, "name": "id", "required": True, "type": "long", "doc": None}],
            },
            location=None,
            partition_spec=None,
            write_order=None,
            stage_create=None,
            properties=None,
        )
    )
    assert answer["metadata"]["schemas"][0]["fields"] == [{"id": 1, "name": "id", "required": True, "type": "long"}]
    for loaded in (answer, catalog.table(ns, "nulls").load()):
        for key in ("config", "storage-credentials"):
            assert loaded.get(key, {}) is not None


def test_o21_namespace_properties_null_or_absent(catalog: Catalog) -> None:
    """A namespace can be created either way and shows a map."""
    for body in ({"properties": None}, {}):
        name = unique("nulls")
        ok(catalog.http.post(f"{catalog.base}/namespaces", json={"namespace": [name], **body}))
        shown = ok(catalog.http.get(catalog.namespace_path([name])))
        assert isinstance(shown["properties"], dict)


def test_o21_a_null_parent_is_no_parent(catalog: Catalog, ns: Namespace) -> None:
    """A snapshot sent with `parent-snapshot-id: null` is stored without the key, which Java could not read."""
    table = catalog.create(ns, SIMPLE)
    after = table.commit([add_snapshot({**table.snap(1), "parent-snapshot-id": None}), set_ref("main", 1)])
    assert "parent-snapshot-id" not in after["snapshots"][0]
    assert "parent-snapshot-id" not in table.stored()["snapshots"][0]


# --- O-22 ---------------------------------------------------------------------------------------------------------


def test_o22_a_recreated_table_is_another_table(catalog: Catalog, ns: Namespace) -> None:
    """A writer that holds the old UUID gets 409; UUIDs compare without case; an existing UUID cannot be changed."""
    old = catalog.create(ns, SIMPLE, name="same")
    first = old.metadata()["table-uuid"]
    assert catalog.drop(old).status_code == 204
    table = catalog.create(ns, SIMPLE, name="same")
    second = table.metadata()["table-uuid"]
    assert first != second
    error = table.refuse(
        [set_properties(a="1")], [{"type": "assert-table-uuid", "uuid": first}], 409, "CommitFailedException"
    )
    assert "UUID does not match" in error["message"]
    table.commit([set_properties(a="1")], [{"type": "assert-table-uuid", "uuid": second.upper()}])
    table.refuse([{"action": "assign-uuid", "uuid": str(uuid.uuid4())}], status=(400, 409))


# --- O-23 ---------------------------------------------------------------------------------------------------------


def backlog(catalog: Catalog, ns: Namespace, count: int) -> Table:
    start = 1_700_000_000_000
    snapshots = [snapshot("", n, n - 1 if n > 1 else None, n, start + n) for n in range(1, count + 1)]
    return catalog.seed(ns, catalog.document(SIMPLE, snapshots=snapshots, main=count))


def test_o23_expiring_a_large_backlog(catalog: Catalog, ns: Namespace) -> None:
    """One update with 59,990 ids and 59,990 updates of one id are both done within seconds, with equal results."""
    count, kept = 60_000, 10
    gone = list(range(1, count - kept + 1))
    results = []
    for updates in (
        [{"action": "remove-snapshots", "snapshot-ids": gone}],
        [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in gone],
    ):
        table = backlog(catalog, ns, count)
        began = time.monotonic()
        after = ok(table.post([], updates))["metadata"]
        assert time.monotonic() - began < 15
        results.append(
            (
                [s["snapshot-id"] for s in after["snapshots"]],
                after["refs"],
                after["current-snapshot-id"],
                [e["snapshot-id"] for e in after["snapshot-log"]],
            )
        )
        assert catalog.drop(table).status_code == 204
    assert results[0] == results[1]
    assert results[0][0] == list(range(count - kept + 1, count + 1))


def test_o23_unknown_and_repeated_ids_are_ignored(catalog: Catalog, ns: Namespace) -> None:
    """The known ones go, once."""
    table = backlog(catalog, ns, 5)
    after = table.commit([{"action": "remove-snapshots", "snapshot-ids": [1, 1, 77, 2, 1]}])
    assert [s["snapshot-id"] for s in after["snapshots"]] == [3, 4, 5]


def test_o23_a_body_above_the_limit(catalog: Catalog, server: Server, ns: Namespace) -> None:
    """413 with the envelope, told from the announced length without reading gigabytes."""
    table = catalog.create(ns, SIMPLE)
    head = (
        f"POST {table.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        "Content-Length: 3000000000\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(head.encode())
        answer = b""
        while piece := raw.recv(65536):
            answer += piece
    status, _, rest = answer.partition(b"\r\n")
    assert status.split()[1] == b"413"
    error = json.loads(rest.partition(b"\r\n\r\n")[2])["error"]
    assert error["code"] == 413 and error["message"]
    assert catalog.http.get("/health/live").status_code == 200
