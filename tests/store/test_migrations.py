"""Migrations: up, down, no drift from the metadata, and several processes at once."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from app.errors import BadSettings, SchemaOutOfDate, Unavailable
from app.store import migrate, open_store, schema_state
from app.store.migrations import configuration, script_location
from app.store.program import COMPILED
from app.store.revisions import REVISION, REVISIONS
from app.store.schema import metadata
from tests.postgres import Postgres
from tests.store import workers
from tests.store.acts import HOUSE


def sqlite_tables(path: Path) -> list[Any]:
    """Everything SQLite knows of its tables, in no dependence on how they were made."""
    with closing(sqlite3.connect(path)) as connection:

        def all_of(sql: str) -> list[Any]:
            return sorted(connection.execute(sql).fetchall(), key=repr)

        names = [name for (name,) in all_of("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            (
                name,
                all_of(f"SELECT * FROM pragma_table_xinfo('{name}')"),
                all_of(f"SELECT [table], [from], [to], on_update, on_delete FROM pragma_foreign_key_list('{name}')"),
                [
                    (index, unique, origin, all_of(f"SELECT seqno, name, coll FROM pragma_index_xinfo('{index}')"))
                    for index, unique, origin in all_of(
                        f"SELECT name, [unique], origin FROM pragma_index_list('{name}')"
                    )
                ],
            )
            for name in names
            if name not in ("alembic_version", "sqlite_sequence")
        ]


PG_TABLES = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text, a.attidentity::text,
       coalesce(l.collname, ''), coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'alembic_version'
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', '', ''
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'
UNION ALL
SELECT 'index', tablename, indexname, indexdef, '', '', '', ''
FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
ORDER BY 1, 2, 3
"""


def query(url: str, sql: str) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(run())


def test_the_newest_script_is_the_revision_of_the_code() -> None:
    """The listed revisions are exactly the scripts, in order, with one head."""
    scripts = ScriptDirectory.from_config(configuration())
    assert scripts.get_heads() == [REVISION]
    assert [script.revision for script in scripts.walk_revisions()] == list(reversed(REVISIONS))


def test_a_migrated_file_has_exactly_the_tables_of_the_metadata(tmp_path: Path) -> None:
    """Columns, keys, constraints and indexes by SQLite's own account, and nothing for Alembic to generate."""
    migrate(f"sqlite:///{tmp_path}/migrated.db")
    engine = create_engine(f"sqlite:///{tmp_path}/made.db")
    metadata.create_all(engine)
    engine.dispose()
    assert sqlite_tables(tmp_path / "migrated.db") == sqlite_tables(tmp_path / "made.db")
    assert len(sqlite_tables(tmp_path / "migrated.db")) == len(metadata.tables)
    engine = create_engine(f"sqlite:///{tmp_path}/migrated.db")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_a_migrated_postgresql_has_exactly_the_tables_of_the_metadata(postgres_server: Postgres) -> None:
    """Types, collations, identities, constraints and indexes by PostgreSQL's own account."""
    migrated, made = postgres_server.empty_database(), postgres_server.empty_database()
    migrate(migrated)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    statements = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    postgres_server.execute("; ".join(statements), made.rpartition("/")[2])
    found = query(migrated, PG_TABLES)
    assert found == query(made, PG_TABLES)
    assert {row[1] for row in found} == set(metadata.tables)
    assert ("column", "tabular", "name", "text", "true", "", "C", "") in found


def test_down_takes_everything_away_and_up_brings_it_back(tmp_path: Path, postgres_server: Postgres) -> None:
    """On both databases: up, down, up ends where the first up did."""
    path = tmp_path / "catalog.db"
    url = f"sqlite:///{path}"
    migrate(url)
    first = sqlite_tables(path)
    migrate(url, "base")
    assert sqlite_tables(path) == []
    assert schema_state(url).status == "empty"
    migrate(url)
    assert sqlite_tables(path) == first
    url = postgres_server.empty_database()
    migrate(url)
    before = query(url, PG_TABLES)
    migrate(url, "base")
    assert query(url, PG_TABLES) == []
    migrate(url)
    assert query(url, PG_TABLES) == before


def test_the_state_tells_empty_current_and_newer(tmp_path: Path, postgres_server: Postgres) -> None:
    """Asking changes nothing, not even by creating the file."""
    for url in (f"sqlite:///{tmp_path}/catalog.db", postgres_server.empty_database()):
        assert schema_state(url) == (None, REVISION, "empty")
        assert list(tmp_path.iterdir()) == []
        migrate(url)
        assert schema_state(url) == (REVISION, REVISION, "current")
        _set_revision(url, "9999", postgres_server)
        assert schema_state(url) == ("9999", REVISION, "newer")
        with pytest.raises(SchemaOutOfDate, match="newer than this server"):
            migrate(url)
        for file in tmp_path.iterdir():
            file.unlink()


def _set_revision(url: str, revision: str, server: Postgres) -> None:
    sql = f"UPDATE alembic_version SET version_num = '{revision}'"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute(sql)
    else:
        server.execute(sql, url.rpartition("/")[2])


def test_a_server_refuses_a_newer_schema(tmp_path: Path, postgres_server: Postgres) -> None:
    """Open says to upgrade the server; a server that runs while others upgrade sees it at the next ping."""

    async def check(url: str) -> None:
        running = open_store(url)
        await running.open()
        await asyncio.to_thread(_set_revision, url, "9999", postgres_server)
        with pytest.raises(SchemaOutOfDate, match="upgrade the server"):
            await running.ping()
        await running.close()
        with pytest.raises(SchemaOutOfDate, match="upgrade the server"):
            await open_store(url).open()

    for url in (f"sqlite:///{tmp_path}/catalog.db", postgres_server.database()):
        asyncio.run(check(url))


def test_a_server_refuses_a_postgresql_that_was_not_upgraded(postgres_server: Postgres) -> None:
    """Open names the command, and makes no table by itself."""
    url = postgres_server.empty_database()

    async def check() -> None:
        with pytest.raises(SchemaOutOfDate, match="run `icekeel db upgrade`"):
            await open_store(url).open()

    asyncio.run(check())
    assert query(url, PG_TABLES) == []


def test_a_file_upgrades_itself_once_when_processes_start_together(path: Path) -> None:
    """Three servers at once on a file that does not exist: all come up, one made the tables, one the warehouse."""
    processes = [workers.start("first_start", path) for _ in range(3)]
    for process in processes:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert out in ("", "AlreadyExists\n")
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("SELECT name FROM warehouse").fetchall() == [(HOUSE,)]
        assert reader.execute("SELECT version_num FROM alembic_version").fetchall() == [(REVISION,)]


def test_an_interrupted_upgrade_leaves_the_old_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole migration is one transaction: a failure half-way through makes no table."""
    scripts = tmp_path / "scripts"
    shutil.copytree(script_location(), scripts)
    (version,) = (scripts / "versions").glob("0001*.py")
    version.write_text(version.read_text().replace("    _create_journal()\n", "    raise ZeroDivisionError\n"))
    url = f"sqlite:///{tmp_path}/catalog.db"
    migrate(url)
    migrate(url, "base")
    with monkeypatch.context() as patch:
        patch.setattr("app.store.migrations.script_location", lambda: scripts)
        with pytest.raises(ZeroDivisionError):
            migrate(url)
    assert sqlite_tables(tmp_path / "catalog.db") == []
    migrate(url)
    assert schema_state(url).status == "current"


def test_an_interrupted_first_start_leaves_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script that makes the tables of a new file is one transaction too."""
    compiled = tmp_path / "compiled"
    shutil.copytree(COMPILED, compiled)
    script = compiled / "sqlite.sql"
    script.write_text(script.read_text().replace("CREATE TABLE journal", "CREATE TABEL journal"))
    path = tmp_path / "catalog.db"
    with monkeypatch.context() as patch:
        patch.setattr("app.store.databases.COMPILED", compiled)
        with pytest.raises(Unavailable, match="TABEL"):
            migrate(f"sqlite:///{path}")
    assert sqlite_tables(path) == []
    migrate(f"sqlite:///{path}")
    assert schema_state(f"sqlite:///{path}").status == "current"


def test_an_older_file_upgrades_itself(path: Path) -> None:
    """A server that opens a file of the first revision brings it to the newest, and it ends like a new one."""
    migrate(f"sqlite:///{path}", REVISIONS[0])
    assert schema_state(f"sqlite:///{path}").status == "older"

    async def open_it() -> None:
        store = open_store(f"sqlite:///{path}")
        await store.open()
        await store.close()

    asyncio.run(open_it())
    new = path.with_name("new.db")
    migrate(f"sqlite:///{new}")
    assert schema_state(f"sqlite:///{path}").status == "current"
    assert sqlite_tables(path) == sqlite_tables(new)


PLACES = """
INSERT INTO warehouse VALUES ('a', '/a', '[]', '{}', '{}', '{}', 1, 0, 0), ('b', '/b', '[]', '{}', '{}', '{}', 1, 0, 0);
INSERT INTO namespace (warehouse, path, parent, properties, created_at_ms, updated_at_ms)
VALUES ('a', 'n', NULL, '{}', 0, 0), ('b', 'n', NULL, '{}', 0, 0);
INSERT INTO tabular (warehouse, namespace_id, name, kind, uuid, location, location_key, metadata_location, version,
                     format_version, last_column_id, current_schema_id, field_count, created_at_ms, updated_at_ms)
SELECT warehouse, namespace_id, 't', 'table', 'u', '/shared/t', 'file:///shared/t', 'm', 1, 2, 1, 0, 1, 0, 0
FROM namespace;
INSERT INTO tabular_root SELECT tabular_id, warehouse, 'file:///roots/' || warehouse, '/roots' FROM tabular
"""


def test_tables_of_the_third_revision_are_found_from_every_warehouse(tmp_path: Path, postgres_server: Postgres) -> None:
    """Their places, recorded when each warehouse was looked at by itself, count for all."""

    async def check(url: str) -> None:
        store = open_store(url)
        await store.open()
        assert await store.locations_overlapping("/shared") == ("a.n.t", "b.n.t")
        assert await store.locations_overlapping("/shared/t/below") == ("a.n.t", "b.n.t")
        assert await store.locations_overlapping("/roots/a/below") == ("a.n.t",)
        assert await store.locations_overlapping("/roots") == ("a.n.t", "b.n.t")
        await store.close()

    path = tmp_path / "catalog.db"
    migrate(f"sqlite:///{path}", "0003")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(PLACES)
    url = postgres_server.empty_database()
    migrate(url, "0003")
    postgres_server.execute(PLACES, url.rpartition("/")[2])
    for each in (f"sqlite:///{path}", url):
        migrate(each)
        asyncio.run(check(each))


def test_upgrades_of_one_postgresql_at_once_all_succeed(postgres_server: Postgres) -> None:
    """Three at the same moment: one does the work, the others find it done."""
    url = postgres_server.empty_database()
    failures: list[BaseException] = []

    def upgrade() -> None:
        try:
            migrate(url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert schema_state(url).status == "current"


def test_an_unreachable_database_is_unavailable() -> None:
    """Nothing listens on port 1: state, upgrade and open say so without the password."""
    url = "postgresql://me:secret@127.0.0.1:1/db"

    async def open_it() -> None:
        await open_store(url).open()

    for call in (lambda: schema_state(url), lambda: migrate(url), lambda: asyncio.run(open_it())):
        with pytest.raises(Unavailable, match="Cannot reach the database") as caught:
            call()
        assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_a_wrong_setting(tmp_path: Path) -> None:
    """It is refused in one line and left as it is."""
    path = tmp_path / "catalog.db"
    path.write_bytes(b"not a database, but somebody's file" * 100)
    before = path.read_bytes()
    with pytest.raises(BadSettings, match="not a usable SQLite database"):
        migrate(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_scripts_stand_beside_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a wheel under a name of their own, in a checkout as `migrations`; whatever else the import path holds."""
    assert script_location() == workers.ROOT / "migrations"
    stray = tmp_path / "path" / "icekeel_migrations"
    shutil.copytree(script_location(), stray)
    monkeypatch.syspath_prepend(str(stray.parent))
    assert script_location() == workers.ROOT / "migrations"
    carried = tmp_path / "wheel" / "icekeel_migrations"
    shutil.copytree(stray, carried)
    monkeypatch.setattr("app.store.migrations.__file__", str(tmp_path / "wheel" / "app" / "store" / "migrations.py"))
    assert script_location() == carried and (carried / "env.py").exists()


NEWER = """
revision = "9999"
down_revision = "{head}"
def upgrade() -> None:
    raise AssertionError("a script of a newer release was run")
"""


def test_no_server_upgrades_beyond_its_own_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts of a newer release may lie there (a half-done installation): they are not for this one."""
    scripts = tmp_path / "migrations"
    shutil.copytree(script_location(), scripts)
    (scripts / "versions" / "9999_newer.py").write_text(NEWER.format(head=REVISION))
    monkeypatch.setattr("app.store.migrations.script_location", lambda: scripts)
    url = f"sqlite:///{tmp_path}/catalog.db"
    migrate(url, REVISIONS[0])
    migrate(url)
    assert schema_state(url).current == REVISION
    with pytest.raises(BadSettings, match="no schema 9999"):
        migrate(url, "9999")
    assert schema_state(url).status == "current"


LOADED = """
import asyncio, sys
from app.store import open_store
async def run():
    store = open_store(sys.argv[1])
    await store.open()
    await store.warehouses()
    await store.close()
asyncio.run(run())
print(*({"alembic", "sqlalchemy", "asyncpg", "sqlite3"} & sys.modules.keys()))
"""


def loaded_by_a_server_on(url: str) -> set[str]:
    root = Path(workers.ROOT)
    ran = subprocess.run([sys.executable, "-c", LOADED, url], cwd=root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_a_server_on_a_file_loads_neither_sqlalchemy_nor_the_other_driver(path: Path) -> None:
    """They would be half of its start and of its memory, also when it makes the file."""
    assert loaded_by_a_server_on(f"sqlite:///{path}") == {"sqlite3"}
    assert loaded_by_a_server_on(f"sqlite:///{path}") == {"sqlite3"}


def test_a_server_on_postgresql_does_not_load_sqlalchemy(postgres_server: Postgres) -> None:
    """It refuses a schema that is not its own, so it never migrates."""
    assert loaded_by_a_server_on(postgres_server.database()) <= {"asyncpg", "sqlite3"}
