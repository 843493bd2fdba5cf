"""Schema migrations: where they are, what a database stands at, and how it gets to the newest.

Alembic keeps its context in module globals, so one migration runs at a time in a process.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it ships no types
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.errors import SchemaOutOfDate, Unavailable
from app.store.schema import REVISION
from app.store.sqlite_files import create_file, open_reader, open_writer, revision, upgrade_lock
from app.store.urls import PostgresUrl, SqliteUrl, parse

T = TypeVar("T")

PACKAGE: Final = "icekeel_migrations"
"""The name under which a wheel carries the `migrations` folder."""

_UPGRADE_LOCK: Final = 0x1CE_4EE1
_CONNECT_S: Final = 30

_one_at_a_time = threading.Lock()


class SchemaState(NamedTuple):
    """`current` is the revision of the database, None when it is empty; `head` is what this server speaks."""

    current: str | None
    head: str
    status: Literal["empty", "older", "current", "newer"]


def script_location() -> Path:
    """The folder with Alembic's `env.py` and `versions`, in an installed wheel or in a checkout."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(__file__).resolve().parents[2] / "migrations"


def migrate(database_url: str, revision: str = "head") -> None:
    """Bring the database to `revision` in one transaction; safe to run from several processes at once.

    `base` takes every table away. SchemaOutOfDate when the database is newer than this server; Unavailable when it
    cannot be reached.
    """
    url = parse(database_url)
    if isinstance(url, SqliteUrl):
        with upgrade_lock(url.path):
            create_file(url.path)
            _migrate_sqlite(url.path, revision)
    else:
        asyncio.run(_with_postgresql(url, lambda connection: _migrate_postgresql(connection, revision)))


def schema_state(database_url: str) -> SchemaState:
    """What the database stands at, without changing it. Unavailable when it cannot be reached."""
    url = parse(database_url)
    if isinstance(url, PostgresUrl):
        return state_of(asyncio.run(_with_postgresql(url, _revision)))
    if not url.path.exists():
        return state_of(None)
    try:
        with closing(open_reader(url.path, wait_s=_CONNECT_S)) as connection:
            return state_of(revision(connection))
    except sqlite3.Error as error:
        raise Unavailable(f"Cannot read the database file {url.path}: {error}") from error


def state_of(current: str | None) -> SchemaState:
    if current is None:
        return SchemaState(None, REVISION, "empty")
    if current == REVISION:
        return SchemaState(current, REVISION, "current")
    known = {script.revision for script in ScriptDirectory(str(script_location())).walk_revisions()}
    return SchemaState(current, REVISION, "older" if current in known else "newer")


def require_current(current: str | None) -> None:
    """SchemaOutOfDate, with what to do, unless `current` is what this server speaks."""
    state = state_of(current)
    if state.status == "current":
        return
    if state.status == "newer":
        raise SchemaOutOfDate(
            f"The database stands at schema {current}, which is newer than this server ({REVISION}): upgrade the server"
        )
    stands = "is empty" if current is None else f"stands at schema {current}, this server needs {REVISION}"
    raise SchemaOutOfDate(f"The database {stands}: run `icekeel db upgrade`")


def prepare_sqlite(path: Path) -> None:
    """Create or upgrade the file. Processes that start together wait for the first one, then find it current."""
    with upgrade_lock(path):
        create_file(path)
        with closing(open_reader(path, wait_s=_CONNECT_S)) as connection:
            state = state_of(revision(connection))
        if state.status == "newer":
            require_current(state.current)
        if state.status != "current":
            _migrate_sqlite(path, "head")


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration without any file; `env.py` takes the connection from its attributes."""
    config = Config()
    config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _run(connection: Connection, target: str) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    if state_of(current).status == "newer":
        require_current(current)
    with _one_at_a_time:
        if target == "base":
            command.downgrade(configuration(connection), target)
        else:
            command.upgrade(configuration(connection), target)


def _migrate_sqlite(path: Path, target: str) -> None:
    engine = create_engine("sqlite://", creator=lambda: open_writer(path), poolclass=pool.NullPool)

    # The driver opens no transaction by itself, so the whole migration is one: a crash leaves the old schema.
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.begin() as connection:
        _run(connection, target)
    engine.dispose()


def _migrate_postgresql(connection: Connection, target: str) -> None:
    # Held to the end of the transaction: a second upgrade waits, then finds nothing left to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
    _run(connection, target)


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


async def _with_postgresql(url: PostgresUrl, work: Callable[[Connection], T]) -> T:
    async def connect() -> Any:
        return await asyncpg.connect(url.dsn, statement_cache_size=0, timeout=_CONNECT_S)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=pool.NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    except (OSError, asyncpg.InterfaceError) as error:
        raise Unavailable(f"Cannot reach the database {url.shown}: {error}") from error
    except asyncpg.PostgresError as error:
        raise Unavailable(f"The database {url.shown} refused: {error}") from error
    finally:
        await engine.dispose()
