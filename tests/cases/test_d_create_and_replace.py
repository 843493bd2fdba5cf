"""Group D of the public cases: create, replace, transactions (O-24 to O-26)."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
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
    assert_field_id,
    assert_ref,
    assert_schema,
    drop_ref,
    error_of,
    evolve,
    local_path,
    ok,
    set_properties,
    set_ref,
    snapshot,
)

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


def names(catalog: Catalog, ns: Namespace) -> list[str]:
    listed = ok(catalog.http.get(f"{catalog.namespace_path(ns)}/tables"))["identifiers"]
    return [item["name"] for item in listed]


def creation(location: str, table_uuid: str, columns: Json = SIMPLE) -> list[Json]:
    """The updates with which Java and PyIceberg complete a staged create."""
    return [
        {"action": "assign-uuid", "uuid": table_uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        *evolve(columns),
        *add_spec(),
        *add_order(),
        {"action": "set-location", "location": location},
        set_properties(owner="me"),
    ]


# --- O-24 ---------------------------------------------------------------------------------------------------------


def test_o24_a_staged_table_is_invisible(catalog: Catalog, ns: Namespace) -> None:
    """No metadata location, not listed, HEAD 404, and a commit without assert-create finds nothing."""
    staged = ok(catalog.post_create(ns, "t", SIMPLE, stage_create=True))
    assert staged.get("metadata-location") is None
    table = catalog.table(ns, "t")
    assert names(catalog, ns) == []
    assert catalog.http.head(table.path).status_code == 404
    error_of(table.post([], [set_properties(a="1")]), 404, "NoSuchTableException")
    assert not list(local_path(staged["metadata"]["location"]).rglob("*.json"))


def test_o24_completing_a_stage_keeps_uuid_and_location(catalog: Catalog, ns: Namespace) -> None:
    """The table appears with what was staged, without a metadata log, and works."""
    staged = ok(catalog.post_create(ns, "t", SIMPLE, stage_create=True))["metadata"]
    table = catalog.table(ns, "t")
    done = ok(table.post([ASSERT_CREATE], creation(staged["location"], staged["table-uuid"])))["metadata"]
    assert (done["table-uuid"], done["location"]) == (staged["table-uuid"], staged["location"])
    assert done["metadata-log"] == []
    assert names(catalog, ns) == ["t"]
    assert table.append(1)["current-snapshot-id"] == 1


def test_o24_a_hundred_racing_creates(catalog: Catalog, ns: Namespace) -> None:
    """One 200, ninety-nine 409 AlreadyExistsException, one entry listed, one table folder left."""
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: catalog.post_create(ns, "t", SIMPLE), range(100)))
    assert sorted({a.status_code for a in answers}) == [200, 409]
    assert sum(a.status_code == 200 for a in answers) == 1
    for answer in answers:
        if answer.status_code == 409:
            error_of(answer, 409, "AlreadyExistsException")
    assert names(catalog, ns) == ["t"]
    location = catalog.table(ns, "t").metadata()["location"]
    files = list(local_path(location.rpartition("/")[0]).rglob("*.metadata.json"))
    assert len(files) == 1


def test_o24_someone_else_created_the_staged_name(catalog: Catalog, ns: Namespace) -> None:
    """Completing the stage is 409 and changes nothing."""
    staged = ok(catalog.post_create(ns, "t", SIMPLE, stage_create=True))["metadata"]
    table = catalog.create(ns, SIMPLE, name="t")
    error = table.refuse(
        creation(staged["location"], staged["table-uuid"]), [ASSERT_CREATE], 409, "CommitFailedException"
    )
    assert "table already exists" in error["message"]


def test_o24_staging_an_existing_name(catalog: Catalog, ns: Namespace) -> None:
    """409 AlreadyExistsException at once."""
    catalog.create(ns, SIMPLE, name="t")
    error_of(catalog.post_create(ns, "t", SIMPLE, stage_create=True), 409, "AlreadyExistsException")


def test_o24_a_failed_create_does_not_burn_the_name(catalog: Catalog, ns: Namespace) -> None:
    """When the metadata file cannot be written nothing is left behind, and the second create succeeds."""
    blocker = catalog.warehouse / "blocked" / ns[0]
    blocker.parent.mkdir(exist_ok=True)
    blocker.write_bytes(b"a file where a folder should be")
    answer = catalog.post_create(ns, "t", SIMPLE, location=f"file://{blocker}/t")
    error_of(answer, (400, 503))
    assert names(catalog, ns) == []
    blocker.unlink()
    assert catalog.post_create(ns, "t", SIMPLE, location=f"file://{blocker}/t").status_code == 200


# --- O-25 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_o25_replace_keeps_history(catalog: Catalog, ns: Namespace, with_snapshot: bool) -> None:
    """UUID, old snapshots, their log entries and a tag survive; column ids may change their meaning."""
    table = catalog.create(ns, SIMPLE)
    table.append(1, None, 1)
    table.commit([set_ref("k", 1, "tag")])
    before = table.append(2, 1, 2)
    updates: list[Json] = [
        drop_ref("main"),
        *evolve(schema("1:id string, 2:v int!, 3:extra double!")),
        set_properties(replaced="yes"),
    ]
    if with_snapshot:
        updates += [add_snapshot(table.snap(3, None, 3, schema_id=1)), set_ref("main", 3)]
    after = table.commit(updates, [table.uuid_ok()])
    assert after["table-uuid"] == before["table-uuid"]
    assert {s["snapshot-id"] for s in after["snapshots"]} == ({1, 2, 3} if with_snapshot else {1, 2})
    assert after["snapshot-log"][:2] == before["snapshot-log"]
    assert after["refs"]["k"] == before["refs"]["k"]
    if with_snapshot:
        assert after["current-snapshot-id"] == after["refs"]["main"]["snapshot-id"] == 3
    else:
        assert after.get("current-snapshot-id") in (None, -1)
        assert "main" not in after["refs"]


# --- O-26 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(catalog: Catalog, ns: Namespace) -> list[Table]:
    return [catalog.create(ns, SIMPLE, name=name) for name in ("a", "b", "c")]


def files_of(table: Table) -> set[str]:
    return {str(p) for p in local_path(table.metadata()["location"]).rglob("*.metadata.json")}


def test_o26_one_bad_entry_undoes_all(catalog: Catalog, three: list[Table]) -> None:
    """A failed requirement, an unknown table or action, a missing identifier: nothing changes, no file is left."""
    good = [set_properties(a="1")]
    a, b, c = three
    b.append(1)
    before = [(t.load(), files_of(t)) for t in three]
    error_of(
        catalog.transaction((a, [], good), (b, [], good), (c, [assert_schema(9)], good)), 409, "CommitFailedException"
    )
    missing = catalog.table(a.namespace, "missing")
    error_of(catalog.transaction((a, [], good), (missing, [], good)), 404, "NoSuchTableException")
    error_of(catalog.transaction((a, [], good), (b, [], [{"action": "frobnicate"}])), 400)
    error_of(
        catalog.http.post(
            f"{catalog.base}/transactions/commit",
            json={
                "table-changes": [
                    {"identifier": {"namespace": list(a.namespace), "name": "a"}, "requirements": [], "updates": good},
                    {"requirements": [], "updates": good},
                ]
            },
        ),
        400,
    )
    error_of(
        catalog.transaction((a, [], good), (b, [], evolve(schema("1:id string!, 2:v string")))),
        400,
        "SchemaEvolutionException",
    )
    assert [(t.load(), files_of(t)) for t in three] == before


def test_o26_success_is_204_without_a_body(catalog: Catalog, three: list[Table]) -> None:
    """All tables change; a staged create may be one of them."""
    a, b, _ = three
    staged = ok(catalog.post_create(a.namespace, "fresh", SIMPLE, stage_create=True))["metadata"]
    answer = catalog.transaction(
        (a, [a.uuid_ok()], [set_properties(x="1")]),
        (b, [b.uuid_ok()], evolve(schema("1:id long!, 2:v string, 3:w int"))),
        (catalog.table(a.namespace, "fresh"), [ASSERT_CREATE], creation(staged["location"], staged["table-uuid"])),
    )
    assert (answer.status_code, answer.content) == (204, b"")
    assert a.metadata()["properties"]["x"] == "1"
    assert b.metadata()["last-column-id"] == 3
    assert catalog.table(a.namespace, "fresh").metadata()["table-uuid"] == staged["table-uuid"]


def test_o26_the_same_table_twice_in_order(catalog: Catalog, three: list[Table]) -> None:
    """The second entry stands on what the first made of the table: its updates and its requirements alike."""
    a = three[0]
    answer = catalog.transaction(
        (a, [assert_ref("main", None)], [add_snapshot(a.snap(1, None, 1)), set_ref("main", 1)]),
        (a, [assert_ref("main", 1)], [add_snapshot(a.snap(2, 1, 2)), set_ref("main", 2)]),
    )
    assert answer.status_code == 204, answer.text
    after = a.metadata()
    assert after["current-snapshot-id"] == 2 and len(after["metadata-log"]) == 1
    assert [entry["snapshot-id"] for entry in after["snapshot-log"]] == [1, 2]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_o26_two_appends_on_one_state_are_a_conflict(catalog: Catalog, ns: Namespace, version: int) -> None:
    """Both saw main at the same snapshot, so the second would take the rows of the first off main: 409 for all."""
    table = catalog.create(ns, SIMPLE, version=version)

    def entry(snapshot_id: int, parent: int | None, number: int) -> tuple[Table, list[Json], list[Json]]:
        lineage = {"first-row-id": number * 10, "added-rows": 10} if version == 3 else {}
        made = table.snap(snapshot_id, parent, None if version == 1 else number, **lineage)
        return table, [assert_ref("main", parent)], [add_snapshot(made), set_ref("main", snapshot_id)]

    ok(table.post(*entry(1, None, 1)[1:]))
    before, files = table.load(), files_of(table)
    error_of(catalog.transaction(entry(2, 1, 2), entry(3, 1, 3)), 409, "CommitFailedException")
    assert (table.load(), files_of(table)) == (before, files)
    assert catalog.transaction(entry(2, 1, 2), entry(3, 2, 3)).status_code == 204


def test_o26_two_columns_under_one_id_are_a_conflict(catalog: Catalog, ns: Namespace) -> None:
    """Two entries that each add a column to schema 0 are 409; the second one chained to the first adds its own."""
    table = catalog.create(ns, schema("1:id long!"))
    first = [assert_schema(0), assert_field_id(1)], evolve(schema("1:id long!, 2:a long"))
    same = [assert_schema(0), assert_field_id(1)], evolve(schema("1:id long!, 2:b long"))
    chained = [assert_schema(1), assert_field_id(2)], evolve(schema("1:id long!, 2:a long, 3:b long"))
    before, files = table.load(), files_of(table)
    error_of(catalog.transaction((table, *first), (table, *same)), 409, "CommitFailedException")
    assert (table.load(), files_of(table)) == (before, files)
    assert catalog.transaction((table, *first), (table, *chained)).status_code == 204
    after = table.metadata()
    assert [(f["id"], f["name"]) for f in after["schemas"][-1]["fields"]] == [(1, "id"), (2, "a"), (3, "b")]
    assert (after["current-schema-id"], after["last-column-id"]) == (2, 3)


def test_o26_a_new_table_may_be_changed_at_once(catalog: Catalog, ns: Namespace) -> None:
    """An entry after `assert-create` speaks of the table that this one makes; the first file shows both."""
    staged = ok(catalog.post_create(ns, "fresh", SIMPLE, stage_create=True))["metadata"]
    table = catalog.table(ns, "fresh")
    answer = catalog.transaction(
        (table, [ASSERT_CREATE], creation(staged["location"], staged["table-uuid"])),
        (
            table,
            [{"type": "assert-table-uuid", "uuid": staged["table-uuid"]}, assert_ref("main", None)],
            [add_snapshot(snapshot(staged["location"], 1)), set_ref("main", 1)],
        ),
    )
    assert answer.status_code == 204, answer.text
    after = table.metadata()
    assert (after["current-snapshot-id"], after["metadata-log"], len(files_of(table))) == (1, [], 1)


def test_o26_readers_never_see_half(catalog: Catalog, three: list[Table]) -> None:
    """While A and B are counted up together and a rival changes B, a later read is never behind an earlier one."""
    a, b, _ = three
    catalog.transaction((a, [], [set_properties(n="0")]), (b, [], [set_properties(n="0")]))
    stop = threading.Event()
    seen: list[tuple[int, int, int]] = []

    def watch() -> None:
        while not stop.is_set():
            first = int(b.metadata()["properties"]["n"])
            middle = int(a.metadata()["properties"]["n"])
            last = int(b.metadata()["properties"]["n"])
            seen.append((first, middle, last))

    def rival() -> None:
        while not stop.is_set():
            b.post([], [set_properties(noise=str(uuid.uuid4()))])

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(watch), pool.submit(rival)]
        done = 0
        for n in range(1, 61):
            answer = catalog.transaction((a, [], [set_properties(n=str(n))]), (b, [], [set_properties(n=str(n))]))
            if answer.status_code == 204:
                done = n
            else:
                error_of(answer, (409, 429))
        stop.set()
        for job in jobs:
            job.result()
    assert done > 0
    assert seen and all(first <= middle <= last for first, middle, last in seen)
    assert (a.metadata()["properties"]["n"], b.metadata()["properties"]["n"]) == (str(done), str(done))


def test_o26_no_changes_is_a_bad_request(catalog: Catalog) -> None:
    """An empty list of changes is refused as a client's mistake or is nothing to do, never a 500."""
    answer = catalog.http.post(f"{catalog.base}/transactions/commit", json={"table-changes": []})
    assert answer.status_code in (204, 400)
