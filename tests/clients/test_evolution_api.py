"""Schema changes over plain HTTP beside engines that read and write the same tables."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from tests.clients.duck import Duck
from tests.clients.spark import Spark
from tests.server import Server

Json = dict[str, Any]
NS = "evolving"
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("country", pa.string()), pa.field("price", pa.int32())])


@pytest.fixture(scope="module", autouse=True)
def namespace(catalog: Catalog) -> None:
    catalog.create_namespace(NS)


def rows(*countries: str, first: int = 1) -> pa.Table:
    ids = range(first, first + len(countries))
    return pa.table({"id": list(ids), "country": list(countries), "price": list(ids)}, schema=ROWS)


def ask(server: Server, table: str, what: str, **body: Any) -> httpx.Response:
    """POST to a table's `evolution/` resource."""
    path = f"/icekeel/v1/default/namespaces/{NS}/tables/{table}/evolution/{what}"
    return httpx.post(server.url + path, json=body, timeout=60, trust_env=False)


def apply(server: Server, table: str, *operations: Json, **more: Any) -> Json:
    answer = ask(server, table, "apply", operations=list(operations), **more)
    assert answer.status_code == 200, answer.text
    done: Json = answer.json()
    return done


def restored_table(server: Server, catalog: Catalog, name: str) -> None:
    """Write, drop, write, restore."""
    table = catalog.create_table(f"{NS}.{name}", schema=ROWS)
    table.append(rows("NL", "BE"))
    apply(server, name, {"op": "drop", "path": "country"}, **{"tag-before-drop": True})
    catalog.load_table(f"{NS}.{name}").append(rows("", first=3).drop_columns(["country"]))
    done = apply(server, name, {"op": "restore", "path": "country", "after": "id"})
    assert done["changes"][0]["change"] == "restored"
    assert done["last-column-id"] == 3


WANTED = [(1, "NL", 1), (2, "BE", 2), (3, None, 3)]


def test_a_restored_column_has_its_values_again(server: Server, catalog: Catalog, duckdb_extensions: Path) -> None:
    """In PyIceberg and DuckDB: old rows show what was written before the drop, rows written meanwhile are null."""
    restored_table(server, catalog, "back")
    table = catalog.load_table(f"{NS}.back")
    found = table.scan().to_arrow().sort_by("id")
    assert found.column_names == ["id", "country", "price"]
    assert [tuple(row.values()) for row in found.to_pylist()] == WANTED
    kept = table.scan(snapshot_id=table.metadata.refs["before-drop-country"].snapshot_id).to_arrow()
    assert sorted(kept["country"].to_pylist()) == ["BE", "NL"]
    duck = Duck(server.url, duckdb_extensions)
    assert duck.run(f"SELECT id, country, price FROM ice.{NS}.back ORDER BY id") == WANTED
    duck.close()


@pytest.mark.engines
@pytest.mark.timeout(900)
def test_spark_reads_a_restored_column(server: Server, catalog: Catalog, tmp_path: Path) -> None:
    """Old values are back and rows written meanwhile are null."""
    restored_table(server, catalog, "spark_back")
    spark = Spark(server.url, tmp_path)
    found = spark.sql(f"SELECT id, country, price FROM {NS}.spark_back ORDER BY id")
    spark.close()
    assert [tuple(row) for row in found] == WANTED


def test_fifty_at_once_all_succeed(server: Server, catalog: Catalog) -> None:
    """Fifty people each add a column they thought of on schema 0, while PyIceberg commits data: nothing is lost."""
    table = catalog.create_table(f"{NS}.busy", schema=ROWS)
    table.append(rows("NL"))
    stop = threading.Event()
    appended = 0

    def write() -> None:
        nonlocal appended
        while not stop.is_set():
            try:
                catalog.load_table(f"{NS}.busy").append(rows("DE", first=100 + appended))
            except CommitFailedException:
                continue  # PyIceberg does not retry what it could not rebase
            appended += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(50) as pool:
            done = list(
                pool.map(
                    lambda n: apply(
                        server, "busy", {"op": "add", "path": f"c{n}", "type": "string"}, **{"base-schema-id": 0}
                    ),
                    range(50),
                )
            )
    finally:
        stop.set()
        writer.join()
    ids = [one["assigned-ids"][f"c{n}"] for n, one in enumerate(done)]
    assert sorted(ids) == list(range(4, 54))
    assert sum("rebased" in one for one in done) == 49
    after = catalog.load_table(f"{NS}.busy")
    assert {f.name: f.field_id for f in after.schema().fields if f.name.startswith("c") and f.name != "country"} == {
        f"c{n}": field_id for n, field_id in enumerate(ids)
    }
    assert appended > 0
    assert after.scan().to_arrow().num_rows == 1 + appended


def test_a_plan_is_a_commit_that_any_client_can_send(server: Server, catalog: Catalog) -> None:
    """Its requirements and updates go through the Iceberg protocol as they are."""
    catalog.create_table(f"{NS}.planned", schema=ROWS)
    address = {"type": "struct", "fields": [{"name": "city", "type": "string"}]}
    operations = [
        {"op": "add", "path": "address", "type": address},
        {"op": "rename", "path": "country", "to": "land"},
    ]
    made = ask(server, "planned", "plan", operations=operations).json()
    assert made["verdict"] == "compatible" and len(made["plan-hash"]) == 64
    commit = {"requirements": made["requirements"], "updates": made["updates"]}
    checked = ask(server, "planned", "check", **commit).json()
    assert checked["verdict"] == "compatible" and checked["changes"] == made["changes"]
    sent = httpx.post(f"{server.url}/v1/namespaces/{NS}/tables/planned", json=commit, trust_env=False)
    assert sent.status_code == 200, sent.text
    assert [f.name for f in catalog.load_table(f"{NS}.planned").schema().fields] == ["id", "land", "price", "address"]


def test_a_union_with_an_arrow_schema(server: Server, catalog: Catalog) -> None:
    """The IPC bytes of any Arrow program do: wider types and new columns come, nothing goes."""
    catalog.create_table(f"{NS}.united", schema=ROWS)
    arrow = pa.schema([("price", pa.int64()), ("tags", pa.list_(pa.string())), ("id", pa.int64())])
    body = base64.b64encode(arrow.serialize().to_pybytes()).decode()
    apply(server, "united", {"op": "union-by-name", "arrow-ipc-schema": body})
    assert [str(f.field_type) for f in catalog.load_table(f"{NS}.united").schema().fields] == [
        "long", "string", "long", "list<string>",
    ]  # fmt: skip


def test_a_rollback_takes_the_schema_along(server: Server, catalog: Catalog) -> None:
    """The branch goes back, and with it the schema that reads it; PyIceberg reads what there was."""
    table = catalog.create_table(f"{NS}.rolled", schema=ROWS)
    table.append(rows("NL"))
    first = catalog.load_table(f"{NS}.rolled").metadata.current_snapshot_id
    apply(server, "rolled", {"op": "rename", "path": "country", "to": "land"}, {"op": "drop", "path": "price"})
    catalog.load_table(f"{NS}.rolled").append(pa.table({"id": [2], "land": ["BE"]}))
    apply(server, "rolled", {"op": "rollback-to", "snapshot-id": first})
    found = catalog.load_table(f"{NS}.rolled")
    assert found.scan().to_arrow().to_pylist() == [{"id": 1, "country": "NL", "price": 1}]


def test_clients_that_lag_are_named(server: Server, catalog: Catalog) -> None:
    """A required column with a default: whoever loads the table and is not known to read initial-default is listed."""
    catalog.create_table(f"{NS}.lagging", schema=ROWS).append(rows("NL"))
    upgrade = {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 3}]}
    path = f"/v1/namespaces/{NS}/tables/lagging"
    httpx.post(server.url + path, json=upgrade, trust_env=False).raise_for_status()
    for agent in ("PyIceberg/0.9.1", "SomeEngine/1.0"):
        httpx.get(server.url + path, headers={"User-Agent": agent}, trust_env=False).raise_for_status()
    operation = {"op": "add", "path": "region", "type": "string", "required": True, "default": "eu"}
    made = ask(server, "lagging", "plan", operations=[operation]).json()
    assert made["verdict"] == "compatible", made
    lagging = {(c["client"], c["version"]): c["honours-initial-default"] for c in made["clients-without-defaults"]}
    assert lagging == {("pyiceberg", "0.9.1"): "no", ("someengine", "1.0"): "unknown"}
    (reading,) = made["reads"][-1]["columns"]
    assert (reading["returns"], reading["value"]) == ("initial-default", "eu")
    apply(server, "lagging", operation)
    assert catalog.load_table(f"{NS}.lagging").scan().to_arrow()["region"].to_pylist() == ["eu"]
