"""DuckDB as a writer: everything its Iceberg client can do on local files, without authentication."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.types import StringType

from tests.clients.duck import Duck
from tests.server import Server

Json = Any


@pytest.fixture(scope="module")
def duck(server: Server, duckdb_extensions: Path) -> Iterator[Duck]:
    one = Duck(server.url, duckdb_extensions)
    one.run("CREATE SCHEMA ice.d")
    yield one
    one.close()


def metadata(server: Server, name: str) -> Json:
    answer = httpx.get(f"{server.url}/v1/namespaces/d/tables/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()["metadata"]


def current(document: Json) -> list[tuple[int, str, str]]:
    schema = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    return [(f["id"], f["name"], f["type"]) for f in schema["fields"]]


def test_rows_are_written_and_changed(duck: Duck) -> None:
    """INSERT, UPDATE, DELETE and MERGE commit through the catalog."""
    duck.run("CREATE TABLE ice.d.rows (id BIGINT, name VARCHAR, n INTEGER)")
    assert duck.run("INSERT INTO ice.d.rows VALUES (1,'a',1),(2,'b',2),(3,'c',3)") == [(3,)]
    assert duck.run("UPDATE ice.d.rows SET n = 20 WHERE id = 2") == [(1,)]
    assert duck.run("DELETE FROM ice.d.rows WHERE id = 3") == [(1,)]
    duck.run("""MERGE INTO ice.d.rows t USING (SELECT 1 AS id, 'z' AS name, 9 AS n UNION ALL SELECT 4, 'd', 4) s
                ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name
                WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.n)""")
    assert duck.run("SELECT * FROM ice.d.rows ORDER BY id") == [(1, "z", 1), (2, "b", 20), (4, "d", 4)]


def test_columns_evolve(duck: Duck, server: Server, catalog: Catalog) -> None:
    """ADD, RENAME, TYPE and DROP keep ids; PyIceberg reads the result."""
    duck.run("CREATE TABLE ice.d.cols (id BIGINT, name VARCHAR, n INTEGER)")
    duck.run("INSERT INTO ice.d.cols VALUES (1,'a',1)")
    duck.run("ALTER TABLE ice.d.cols ADD COLUMN extra VARCHAR")
    duck.run("ALTER TABLE ice.d.cols RENAME COLUMN name TO title")
    duck.run("ALTER TABLE ice.d.cols ALTER COLUMN n TYPE BIGINT")
    assert current(metadata(server, "cols")) == [
        (1, "id", "long"),
        (2, "title", "string"),
        (3, "n", "long"),
        (4, "extra", "string"),
    ]
    duck.run("ALTER TABLE ice.d.cols DROP COLUMN extra")
    duck.run("INSERT INTO ice.d.cols VALUES (2,'b',9000000000)")
    assert duck.run("SELECT * FROM ice.d.cols ORDER BY id") == [(1, "a", 1), (2, "b", 9000000000)]
    assert metadata(server, "cols")["last-column-id"] == 4
    rows = catalog.load_table("d.cols").scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "title": "a", "n": 1}, {"id": 2, "title": "b", "n": 9000000000}]


def test_an_illegal_change_prints_the_rule(duck: Duck, server: Server) -> None:
    """DuckDB shows the server's line with code and fix, and the table is as before."""
    duck.run("CREATE TABLE ice.d.wrong (id BIGINT)")
    duck.run("INSERT INTO ice.d.wrong VALUES (1)")
    before = metadata(server, "wrong")
    with pytest.raises(duckdb.Error, match=r"ICE7\d\d [a-z-]+: .*_file"):
        duck.run("ALTER TABLE ice.d.wrong ADD COLUMN _file VARCHAR")
    assert metadata(server, "wrong") == before
    assert duck.run("SELECT * FROM ice.d.wrong") == [(1,)]


def test_tables_are_renamed_and_dropped(duck: Duck, server: Server) -> None:
    """The old name is 404 afterwards, and so is a dropped one."""
    duck.run("CREATE TABLE ice.d.before (id BIGINT)")
    duck.run("INSERT INTO ice.d.before VALUES (1)")
    duck.run("ALTER TABLE ice.d.before RENAME TO after")
    assert duck.run("SELECT * FROM ice.d.after") == [(1,)]
    assert httpx.head(f"{server.url}/v1/namespaces/d/tables/before").status_code == 404
    duck.run("DROP TABLE ice.d.after")
    assert httpx.head(f"{server.url}/v1/namespaces/d/tables/after").status_code == 404


def test_a_transaction_over_tables(duck: Duck, server: Server) -> None:
    """Two existing tables and a staged one change together; a rollback changes none."""
    duck.run("CREATE TABLE ice.d.one (id BIGINT)")
    duck.run("CREATE TABLE ice.d.two (id BIGINT)")
    duck.run("BEGIN")
    duck.run("INSERT INTO ice.d.one VALUES (1)")
    duck.run("INSERT INTO ice.d.two VALUES (2)")
    assert metadata(server, "one")["snapshots"] == []
    duck.run("COMMIT")
    assert duck.run("SELECT (SELECT id FROM ice.d.one), (SELECT id FROM ice.d.two)") == [(1, 2)]
    duck.run("BEGIN")
    duck.run("INSERT INTO ice.d.one VALUES (3)")
    duck.run("INSERT INTO ice.d.two VALUES (4)")
    duck.run("ROLLBACK")
    assert duck.run("SELECT (SELECT count(*) FROM ice.d.one), (SELECT count(*) FROM ice.d.two)") == [(1, 1)]
    assert len(metadata(server, "one")["snapshots"]) == 1


def test_a_table_created_inside_a_transaction(duck: Duck, server: Server) -> None:
    """A staged create becomes visible at COMMIT, with its first rows."""
    duck.run("CREATE TABLE ice.d.three (id BIGINT)")
    duck.run("BEGIN")
    duck.run("INSERT INTO ice.d.three VALUES (1)")
    duck.run("CREATE TABLE ice.d.staged (a INTEGER)")
    duck.run("INSERT INTO ice.d.staged VALUES (7), (8)")
    assert httpx.head(f"{server.url}/v1/namespaces/d/tables/staged").status_code == 404
    duck.run("COMMIT")
    assert duck.run("SELECT sum(a) FROM ice.d.staged") == [(15,)]
    assert duck.run("SELECT id FROM ice.d.three") == [(1,)]


def test_create_table_as_select(duck: Duck, catalog: Catalog) -> None:
    """CTAS on local files works although DuckDB never makes the metadata folder itself."""
    duck.run("CREATE TABLE ice.d.ctas AS SELECT range AS i, 'n' || range AS name FROM range(1000)")
    assert duck.run("SELECT count(*), sum(i) FROM ice.d.ctas") == [(1000, 499500)]
    assert catalog.load_table("d.ctas").scan().to_arrow().num_rows == 1000


def test_partitioned_tables(duck: Duck, server: Server) -> None:
    """PARTITIONED BY becomes a spec with fields from 1000."""
    duck.run("CREATE TABLE ice.d.parts (id BIGINT, day DATE) PARTITIONED BY (bucket(4, id), month(day))")
    duck.run("INSERT INTO ice.d.parts VALUES (1, DATE '2020-01-01'), (2, DATE '2021-02-03')")
    document = metadata(server, "parts")
    spec = next(s for s in document["partition-specs"] if s["spec-id"] == document["default-spec-id"])
    assert [(f["source-id"], f["transform"], f["field-id"]) for f in spec["fields"]] == [
        (1, "bucket[4]", 1000),
        (2, "month", 1001),
    ]
    assert duck.run("SELECT count(*) FROM ice.d.parts WHERE day < DATE '2020-06-01'") == [(1,)]


def test_v3_with_deletion_vectors(duck: Duck, server: Server, catalog: Catalog) -> None:
    """A v3 table keeps row lineage, and its deletion vector hides the row in DuckDB and in PyIceberg."""
    duck.run("CREATE TABLE ice.d.v3 (id BIGINT, v VARCHAR) WITH ('format-version'=3)")
    duck.run("INSERT INTO ice.d.v3 VALUES (1,'a'),(2,'b'),(3,'c')")
    document = metadata(server, "v3")
    assert (document["format-version"], document["next-row-id"]) == (3, 3)
    duck.run("DELETE FROM ice.d.v3 WHERE id = 2")
    assert duck.run("SELECT id FROM ice.d.v3 ORDER BY id") == [(1,), (3,)]
    assert sorted(catalog.load_table("d.v3").scan().to_arrow()["id"].to_pylist()) == [1, 3]
    folder = server.warehouse / "d"
    assert list(folder.rglob("*.puffin"))
    assert len(duck.run("SELECT * FROM iceberg_snapshots(ice.d.v3)")) == 2


def test_a_v3_default_reads_back_in_both(duck: Duck, catalog: Catalog) -> None:
    """Rows that DuckDB wrote before PyIceberg added a required column with a default show the default."""
    duck.run("CREATE TABLE ice.d.defaults (id BIGINT) WITH ('format-version'=3)")
    duck.run("INSERT INTO ice.d.defaults VALUES (1), (2)")
    table = catalog.load_table("d.defaults")
    with table.update_schema() as update:
        update.add_column("region", StringType(), required=True, default_value="EU")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "region": "EU"}, {"id": 2, "region": "EU"}]
    assert duck.run("SELECT region FROM ice.d.defaults") == [("EU",), ("EU",)]


def test_a_variant_column_is_stored(duck: Duck, server: Server) -> None:
    """The v3 type that few clients know survives create and load."""
    duck.run("CREATE TABLE ice.d.variants (id BIGINT, v VARIANT) WITH ('format-version'=3)")
    assert current(metadata(server, "variants")) == [(1, "id", "long"), (2, "v", "variant")]


def test_time_travel(duck: Duck) -> None:
    """AT (VERSION => ...) reads the rows of an earlier snapshot."""
    duck.run("CREATE TABLE ice.d.travel (id BIGINT)")
    duck.run("INSERT INTO ice.d.travel VALUES (1)")
    duck.run("INSERT INTO ice.d.travel VALUES (2)")
    first = duck.run("SELECT snapshot_id FROM iceberg_snapshots(ice.d.travel) ORDER BY sequence_number")[0][0]
    assert duck.run(f"SELECT count(*) FROM ice.d.travel AT (VERSION => {first})") == [(1,)]
    assert duck.run("SELECT count(*) FROM ice.d.travel") == [(2,)]


def test_schemas_are_listed_and_dropped(duck: Duck, server: Server) -> None:
    """CREATE SCHEMA and DROP SCHEMA are namespaces; a full one cannot be dropped."""
    duck.run("CREATE SCHEMA ice.short")
    assert httpx.head(f"{server.url}/v1/namespaces/short").status_code == 204
    duck.run("CREATE TABLE ice.short.t (id BIGINT)")
    with pytest.raises(duckdb.Error):
        duck.run("DROP SCHEMA ice.short")
    duck.run("DROP TABLE ice.short.t")
    duck.run("DROP SCHEMA ice.short")
    assert httpx.head(f"{server.url}/v1/namespaces/short").status_code == 404
