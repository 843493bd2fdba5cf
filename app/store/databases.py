"""What schema a database stands at, and how it gets to this server's.

Alembic is loaded only when a database has to change: it costs 0.6 s and 18 MB, and a server on a current database
never needs it.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from app.errors import SchemaOutOfDate, Unavailable
from app.store.schema import REVISION, REVISIONS
from app.store.sqlite_files import create_file, open_reader, revision, upgrade_lock
from app.store.urls import PostgresUrl, SqliteUrl, parse

_CONNECT_S: Final = 30.0


def schema_state(database_url: str) -> SchemaState:
    """What the database stands at, without changing it. Unavailable when it cannot be reached."""
    url = parse(database_url)
    current = _sqlite_revision(url.path) if isinstance(url, SqliteUrl) else asyncio.run(_postgresql_revision(url))
    return state_of(current)


def migrate(database_url: str, target: str = "head") -> None:
    """Bring the database to the revision `target` in one transaction; safe to run from several processes at once.

    `base` takes every table away. SchemaOutOfDate when the database is newer than this server; Unavailable when it
    cannot be reached.
    """
    url = parse(database_url)
    if isinstance(url, SqliteUrl):
        prepare_sqlite(url.path, target)
    else:
        _migrations().migrate_postgresql(url, target)


def prepare_sqlite(path: Path, target: str = "head") -> None:
    """Create or upgrade the file. Processes that start together wait for the first one, then find it current."""
    with upgrade_lock(path):
        create_file(path)
        state = state_of(_sqlite_revision(path))
        if state.status == "newer":
            require_current(state.current)
        if target != "head" or state.status != "current":
            _migrations().migrate_sqlite(path, target)


async def connect_postgresql(url: PostgresUrl) -> Any:
    """A connection of its own, without prepared statements."""
    return await asyncpg.connect(url.dsn, statement_cache_size=0, timeout=_CONNECT_S)


def _migrations() -> Any:
    return importlib.import_module("app.store.migrations")


def _sqlite_revision(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(open_reader(path, wait_s=_CONNECT_S)) as connection:
            return revision(connection)
    except sqlite3.Error as error:
        raise Unavailable(f"Cannot read the database file {path}: {error}") from error


async def _postgresql_revision(url: PostgresUrl) -> str | None:
    try:
        connection = await connect_postgresql(url)
        try:
            return await postgresql_revision(connection)
        finally:
            await connection.close()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Unavailable(f"Cannot reach the database {url.shown}: {error}") from error


async def postgresql_revision(connection: Any) -> str | None:
    """The migration the database stands at; None when it has no tables yet."""
    try:
        row = await connection.fetchrow("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return None if row is None else str(row[0])
