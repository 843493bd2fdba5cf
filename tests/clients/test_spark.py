"""Spark with the newest Iceberg runtime that can be had against a real server: every statement its users rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import Catalog

from tests.clients.spark import Spark, SparkError
from tests.server import Server

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]
Json = Any


@pytest.fixture(scope="module")
def spark(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    session = Spark(server.url, tmp_path_factory.mktemp("spark"))
    session.sql("CREATE NAMESPACE s")
    yield session
    session.close()


def load(server: Server, name: str) -> Json:
    answer = httpx.get(f"{server.url}/v1/namespaces/s/tables/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def metadata(server: Server, name: str) -> Json:
    return load(server, name)["metadata"]


def current(document: Json) -> Json:
    return next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])


def columns(document: Json) -> list[tuple[int, str, str]]:
    return [(f["id"], f["name"], str(f["type"]).replace(" ", "")) for f in current(document)["fields"]]


# --- rows ---------------------------------------------------------------------------------------------------------


def test_rows(spark: Spark, catalog: Catalog) -> None:
    """INSERT, MERGE, UPDATE, DELETE and INSERT OVERWRITE commit; PyIceberg reads the same rows."""
    spark.sql(
        "CREATE TABLE s.rows (id BIGINT NOT NULL, name STRING, n INT) TBLPROPERTIES ("
        "'write.delete.mode'='merge-on-read', 'write.merge.mode'='copy-on-write')"
    )
    spark.sql("INSERT INTO s.rows VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    spark.sql("""MERGE INTO s.rows t USING (SELECT 1L AS id, 'z' AS name UNION ALL SELECT 4L, 'd') s ON t.id = s.id
                 WHEN MATCHED THEN UPDATE SET name = s.name
                 WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, s.name, 4)""")
    spark.sql("UPDATE s.rows SET n = 20 WHERE id = 2")
    spark.sql("DELETE FROM s.rows WHERE id = 3")
    expected = [[1, "z", 1], [2, "b", 20], [4, "d", 4]]
    assert spark.sql("SELECT * FROM s.rows ORDER BY id") == expected
    seen = catalog.load_table("s.rows").scan().to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in seen] == expected
    spark.sql("INSERT OVERWRITE s.rows VALUES (9, 'i', 9)")
    assert spark.sql("SELECT count(*) FROM s.rows") == [[1]]


def test_time_travel(spark: Spark) -> None:
    """By snapshot, by time and by metadata table, across a rename."""
    spark.sql("CREATE TABLE s.travel (id BIGINT, title STRING)")
    spark.sql("INSERT INTO s.travel VALUES (1, 'a')")
    spark.sql("ALTER TABLE s.travel RENAME COLUMN title TO book_title")
    spark.sql("INSERT INTO s.travel VALUES (2, 'b')")
    log = spark.sql("SELECT snapshot_id, committed_at FROM s.travel.snapshots ORDER BY committed_at")
    (first, at), (second, _) = log
    assert spark.sql(f"SELECT title FROM s.travel VERSION AS OF {first}") == [["a"]]
    assert spark.sql(f"SELECT book_title FROM s.travel VERSION AS OF {second} ORDER BY id") == [["a"], ["b"]]
    assert spark.sql(f"SELECT count(*) FROM s.travel TIMESTAMP AS OF '{at}'") == [[1]]
    assert len(spark.sql("SELECT * FROM s.travel.files")) == 2
    assert len(spark.sql("SELECT * FROM s.travel.history")) == 2


# --- columns, partitions, order ---------------------------------------------------------------------------------------


def test_alter_of_every_kind(spark: Spark, server: Server) -> None:
    """Add (nested too), rename, widen, relax, move, comment and drop keep ids and rows."""
    spark.sql(
        "CREATE TABLE s.cols (id BIGINT NOT NULL, name STRING, n INT, f FLOAT, price DECIMAL(9,2),"
        " addr STRUCT<city: STRING, zip: STRING>, tags ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<v: INT>>)"
    )
    spark.sql(
        "INSERT INTO s.cols VALUES (1, 'a', 1, 1.5, 12.50, named_struct('city', 'Bath', 'zip', 'BA1'),"
        " array(named_struct('a', 1)), map('k', named_struct('v', 1)))"
    )
    last = metadata(server, "cols")["last-column-id"]
    for change in (
        "ADD COLUMN extra STRING COMMENT 'c' AFTER id",
        "ADD COLUMN addr.country STRING",
        "ADD COLUMN tags.element.b STRING",
        "ADD COLUMN m.value.w INT",
        "RENAME COLUMN addr.zip TO postcode",
        "RENAME COLUMN name TO title",
        "ALTER COLUMN n TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN price TYPE DECIMAL(12,2)",
        "ALTER COLUMN tags.element.a TYPE BIGINT",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN n FIRST",
        "ALTER COLUMN title AFTER n",
        "ALTER COLUMN n COMMENT 'count'",
        "DROP COLUMN extra",
        "DROP COLUMN addr.city",
        "ADD COLUMNS (x INT, y STRING)",
    ):
        spark.sql(f"ALTER TABLE s.cols {change}")
    document = metadata(server, "cols")
    assert columns(document)[:4] == [(3, "n", "long"), (2, "title", "string"), (1, "id", "long"), (4, "f", "double")]
    assert document["last-column-id"] == last + 6
    assert spark.sql("SELECT n, title, id, f, price, addr.postcode, tags[0].a, m['k'].v, x FROM s.cols") == [
        [1, "a", 1, 1.5, "12.50", "BA1", 1, 1, None]
    ]


def test_rename_and_rename_back(spark: Spark, server: Server) -> None:
    """The second rename makes the first schema current again instead of storing it twice."""
    spark.sql("CREATE TABLE s.back (id BIGINT, name STRING)")
    spark.sql("INSERT INTO s.back VALUES (1, 'a')")
    spark.sql("ALTER TABLE s.back RENAME COLUMN name TO title")
    spark.sql("ALTER TABLE s.back RENAME COLUMN title TO name")
    document = metadata(server, "back")
    assert (document["current-schema-id"], len(document["schemas"])) == (0, 2)
    assert spark.sql("SELECT name FROM s.back") == [["a"]]


def test_partitions_order_and_identifiers(spark: Spark, server: Server) -> None:
    """Specs, write order, identifier fields and properties change and change back."""
    spark.sql("CREATE TABLE s.parts (id BIGINT NOT NULL, name STRING, at TIMESTAMP) PARTITIONED BY (days(at))")
    spark.sql("INSERT INTO s.parts VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00')")
    for change in (
        "ADD PARTITION FIELD bucket(4, id)",
        "REPLACE PARTITION FIELD bucket(4, id) WITH truncate(2, name) AS short",
        "DROP PARTITION FIELD short",
        "WRITE ORDERED BY id DESC NULLS LAST, name",
        "WRITE UNORDERED",
        "SET IDENTIFIER FIELDS id",
        "DROP IDENTIFIER FIELDS id",
        "SET TBLPROPERTIES ('k'='v', 'l'='w')",
        "UNSET TBLPROPERTIES ('k')",
    ):
        spark.sql(f"ALTER TABLE s.parts {change}")
        spark.sql("INSERT INTO s.parts VALUES (2, 'b', TIMESTAMP '2026-02-01 10:00:00')")
    document = metadata(server, "parts")
    assert document["last-partition-id"] == 1002
    assert document["default-sort-order-id"] == 0
    assert "identifier-field-ids" not in current(document)
    assert document["properties"]["l"] == "w" and "k" not in document["properties"]
    assert spark.sql("SELECT count(*) FROM s.parts") == [[10]]


# --- create as select, replace ----------------------------------------------------------------------------------------


def test_ctas_and_replace_with_changed_types(spark: Spark, server: Server) -> None:
    """CREATE OR REPLACE may give a name any other type; snapshots and UUID stay, and a tag still reads the old rows."""
    spark.sql("CREATE TABLE s.rep AS SELECT 1L AS id, 'a' AS name UNION ALL SELECT 2L, 'b'")
    before = metadata(server, "rep")
    spark.sql("ALTER TABLE s.rep CREATE TAG old")
    spark.sql(
        "CREATE OR REPLACE TABLE s.rep PARTITIONED BY (bucket(2, id)) AS"
        " SELECT CAST(id AS STRING) AS id, 7 AS name, current_date() AS d FROM s.rep"
    )
    after = metadata(server, "rep")
    assert after["table-uuid"] == before["table-uuid"]
    assert len(after["snapshots"]) == 2
    assert columns(after) == [(1, "id", "string"), (2, "name", "int"), (3, "d", "date")]
    assert spark.sql("SELECT id, name FROM s.rep ORDER BY id") == [["1", 7], ["2", 7]]
    assert spark.sql("SELECT id, name FROM s.rep VERSION AS OF 'old' ORDER BY id") == [[1, "a"], [2, "b"]]
    spark.sql("CREATE OR REPLACE TABLE s.rep (id BIGINT, other STRING)")
    assert spark.sql("SELECT * FROM s.rep") == []


def test_back_to_a_snapshot_of_another_meaning_is_refused(spark: Spark, server: Server) -> None:
    """After a replace main cannot return to old rows that the new schema would misread; Spark prints the rule."""
    spark.sql("CREATE TABLE s.undo AS SELECT 1L AS id")
    first = metadata(server, "undo")["current-snapshot-id"]
    spark.sql("CREATE OR REPLACE TABLE s.undo AS SELECT 'x' AS id")
    with pytest.raises(SparkError) as caught:
        spark.sql(f"CALL system.set_current_snapshot('s.undo', {first})")
    assert re.search(r"ICE\d{3} ", str(caught.value)), str(caught.value)
    assert spark.sql("SELECT id FROM s.undo") == [["x"]]


def test_tables_are_renamed(spark: Spark) -> None:
    """To another name and back."""
    spark.sql("CREATE TABLE s.name1 AS SELECT 1L AS id")
    spark.sql("ALTER TABLE s.name1 RENAME TO s.name2")
    assert spark.sql("SELECT * FROM s.name2") == [[1]]
    spark.sql("ALTER TABLE s.name2 RENAME TO s.name1")
    assert spark.sql("SELECT * FROM s.name1") == [[1]]


# --- branches, tags, maintenance --------------------------------------------------------------------------------------


def test_branches_and_tags(spark: Spark, server: Server) -> None:
    """Write to a branch, fast-forward main to it, tag, roll back, cherry-pick and drop."""
    spark.sql("CREATE TABLE s.forks AS SELECT 1L AS id")
    first = metadata(server, "forks")["current-snapshot-id"]
    spark.sql("ALTER TABLE s.forks CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS")
    spark.sql("INSERT INTO s.forks.branch_audit VALUES (2)")
    assert spark.sql("SELECT count(*) FROM s.forks VERSION AS OF 'audit'") == [[2]]
    assert spark.sql("SELECT count(*) FROM s.forks") == [[1]]
    spark.sql("ALTER TABLE s.forks CREATE TAG v1 RETAIN 7 DAYS")
    spark.sql("CALL system.fast_forward('s.forks', 'main', 'audit')")
    assert spark.sql("SELECT count(*) FROM s.forks") == [[2]]
    spark.sql(f"CALL system.rollback_to_snapshot('s.forks', {first})")
    assert spark.sql("SELECT count(*) FROM s.forks") == [[1]]
    picked = metadata(server, "forks")["refs"]["audit"]["snapshot-id"]
    spark.sql(f"CALL system.cherrypick_snapshot('s.forks', {picked})")
    assert spark.sql("SELECT count(*) FROM s.forks") == [[2]]
    spark.sql("ALTER TABLE s.forks DROP BRANCH audit")
    spark.sql("ALTER TABLE s.forks DROP TAG v1")
    assert set(metadata(server, "forks")["refs"]) == {"main"}


def test_expiry_cleans_metadata_too(spark: Spark, server: Server) -> None:
    """expire_snapshots with clean_expired_metadata removes old snapshots and the schemas and specs they alone used."""
    spark.sql("CREATE TABLE s.expire (id BIGINT) PARTITIONED BY (bucket(2, id))")
    spark.sql("INSERT INTO s.expire VALUES (1)")
    spark.sql("ALTER TABLE s.expire ADD COLUMN b STRING")
    spark.sql("INSERT INTO s.expire VALUES (2, 'b')")
    spark.sql("ALTER TABLE s.expire DROP COLUMN b")
    spark.sql("ALTER TABLE s.expire DROP PARTITION FIELD bucket(2, id)")
    spark.sql("CALL system.rewrite_data_files(table => 's.expire', options => map('rewrite-all', 'true'))")
    spark.sql("CALL system.rewrite_manifests('s.expire')")
    spark.sql(
        "CALL system.expire_snapshots(table => 's.expire', older_than => TIMESTAMP '2100-01-01 00:00:00',"
        " retain_last => 1, clean_expired_metadata => true)"
    )
    document = metadata(server, "expire")
    assert len(document["snapshots"]) == 1
    kept = document["snapshots"][0]["schema-id"]
    assert {s["schema-id"] for s in document["schemas"]} == {document["current-schema-id"], kept}
    assert spark.sql("SELECT id FROM s.expire ORDER BY id") == [[1], [2]]


def test_changelog_view_feeds_a_table(spark: Spark) -> None:
    """A table made from the changelog, whose columns are named like changelog metadata, is legal."""
    spark.sql("CREATE TABLE s.changes (id BIGINT NOT NULL, v STRING)")
    spark.sql("INSERT INTO s.changes VALUES (1, 'a'), (2, 'b')")
    spark.sql("DELETE FROM s.changes WHERE id = 1")
    view = spark.sql("CALL system.create_changelog_view(table => 's.changes', identifier_columns => array('id'))")[0][0]
    spark.sql(
        f"CREATE TABLE s.changelog AS SELECT * FROM spark_catalog.default.{view}"
        if "." in view
        else f"CREATE TABLE s.changelog AS SELECT * FROM {view}"
    )
    assert sorted(r[0] for r in spark.sql("SELECT _change_type FROM s.changelog")) == ["DELETE", "INSERT", "INSERT"]


# --- v3 -----------------------------------------------------------------------------------------------------------


def test_v3_deletion_vectors_and_row_lineage(spark: Spark, server: Server, catalog: Catalog) -> None:
    """A DELETE on v3 writes a Puffin deletion vector, row ids survive it, and PyIceberg agrees."""
    spark.sql(
        "CREATE TABLE s.v3 (id BIGINT, v STRING) TBLPROPERTIES ("
        "'format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    spark.sql("INSERT INTO s.v3 VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql("DELETE FROM s.v3 WHERE id = 2")
    assert spark.sql("SELECT file_format FROM s.v3.delete_files") == [["PUFFIN"]]
    lineage = spark.sql("SELECT id, _row_id FROM s.v3 ORDER BY id")
    assert [row[0] for row in lineage] == [1, 3]
    assert len({row[1] for row in lineage}) == 2
    assert metadata(server, "v3")["next-row-id"] >= 3
    assert sorted(catalog.load_table("s.v3").scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_upgrade_to_v3(spark: Spark, server: Server) -> None:
    """A v2 table with rows is upgraded, written and deleted from."""
    spark.sql("CREATE TABLE s.up (id BIGINT) TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql("INSERT INTO s.up VALUES (1), (2), (3)")
    spark.sql("ALTER TABLE s.up SET TBLPROPERTIES ('format-version'='3')")
    document = metadata(server, "up")
    assert (document["format-version"], document["next-row-id"]) == (3, 0)
    assert "format-version" not in document["properties"]
    spark.sql("INSERT INTO s.up VALUES (4)")
    spark.sql("DELETE FROM s.up WHERE id = 2")
    assert spark.sql("SELECT id FROM s.up ORDER BY id") == [[1], [3], [4]]


def test_variant(spark: Spark, server: Server) -> None:
    """A variant column is created, written and read."""
    if int(spark.version.split(".")[0]) < 4:
        pytest.skip(f"Spark {spark.version} has no VARIANT type; Spark 4 does")
    spark.sql("CREATE TABLE s.var (id BIGINT, v VARIANT) TBLPROPERTIES ('format-version'='3')")
    spark.sql("""INSERT INTO s.var SELECT 1, parse_json('{"a":1}')""")
    assert spark.sql("SELECT to_json(v) FROM s.var") == [['{"a":1}']]
    assert columns(metadata(server, "var")) == [(1, "id", "long"), (2, "v", "variant")]


# --- views, namespaces, drops -----------------------------------------------------------------------------------------


def test_views(spark: Spark, server: Server) -> None:
    """Create, select, replace, alter, list, rename and drop; the name is shared with tables."""
    spark.sql("CREATE TABLE s.base AS SELECT 1L AS id, 'a' AS name")
    spark.sql("CREATE VIEW s.vw (i COMMENT 'the id') COMMENT 'a view' AS SELECT id FROM s.base")
    assert spark.sql("SELECT i FROM s.vw") == [[1]]
    spark.sql("CREATE OR REPLACE VIEW s.vw AS SELECT id, name FROM s.base")
    assert spark.sql("SELECT * FROM s.vw") == [[1, "a"]]
    spark.sql("ALTER VIEW s.vw SET TBLPROPERTIES ('k'='v')")
    assert "vw" in [row[1] for row in spark.sql("SHOW VIEWS IN s")]
    document = httpx.get(f"{server.url}/v1/namespaces/s/views/vw").json()["metadata"]
    assert (len(document["versions"]), document["current-version-id"]) == (2, 2)
    with pytest.raises(SparkError):
        spark.sql("CREATE TABLE s.vw (id BIGINT)")
    spark.sql("ALTER VIEW s.vw RENAME TO s.vw2")
    assert spark.sql("SELECT name FROM s.vw2") == [["a"]]
    spark.sql("DROP VIEW s.vw2")
    assert not {"vw", "vw2"} & {row[1] for row in spark.sql("SHOW VIEWS IN s")}


def test_namespaces(spark: Spark) -> None:
    """Nested namespaces, properties, and a refusal to drop a full one."""
    spark.sql("CREATE NAMESPACE s.inner WITH PROPERTIES ('team'='books')")
    spark.sql("ALTER NAMESPACE s.inner SET PROPERTIES ('a'='b')")
    assert ["s.inner"] in spark.sql("SHOW NAMESPACES IN s")
    described = dict(tuple(row) for row in spark.sql("DESCRIBE NAMESPACE EXTENDED s.inner"))
    assert "a" in described["Properties"] and described["Location"]
    spark.sql("CREATE TABLE s.inner.t (id BIGINT)")
    with pytest.raises(SparkError, match=r"not empty|NOT_EMPTY"):
        spark.sql("DROP NAMESPACE s.inner")
    spark.sql("DROP TABLE s.inner.t")
    spark.sql("DROP NAMESPACE s.inner")
    assert ["s.inner"] not in spark.sql("SHOW NAMESPACES IN s")


def test_drop_keeps_files_and_purge_removes_them(spark: Spark, server: Server) -> None:
    """A plain DROP leaves data to be registered again; PURGE does not."""
    for name in ("kept", "gone"):
        spark.sql(f"CREATE TABLE s.{name} AS SELECT 1L AS id")
    kept, gone = load(server, "kept"), load(server, "gone")
    spark.sql("DROP TABLE s.kept")
    spark.sql("DROP TABLE s.gone PURGE")
    spark.sql(f"CALL system.register_table(table => 's.kept', metadata_file => '{kept['metadata-location']}')")
    assert spark.sql("SELECT * FROM s.kept") == [[1]]
    folder = Path(gone["metadata"]["location"].removeprefix("file://").removeprefix("file:"))
    assert not list(folder.rglob("*.parquet"))
    assert httpx.head(f"{server.url}/v1/namespaces/s/tables/gone").status_code == 404
