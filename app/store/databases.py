"""What schema a database stands at, and how it gets to this server's.

Drivers and Alembic are loaded only where they are used: a server on a current database needs no Alembic.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from app.errors import Unavailable
from app.store.revisions import SchemaState, require_current, state_of
from app.store.sqlite_files import create_file, open_reader, revision, upgrade_lock
from app.store.urls import SqliteUrl, parse

_READ_WAIT_S: Final = 30.0


def schema_state(database_url: str) -> SchemaState:
    """What the database stands at, without changing it. Unavailable when it cannot be reached."""
    url = parse(database_url)
    if isinstance(url, SqliteUrl):
        return state_of(_sqlite_revision(url.path))
    return state_of(asyncio.run(importlib.import_module("app.store.postgres_connections").revision_of(url)))


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
        if target == "head" and state.status == "current":
            return
        _migrations().migrate_sqlite(path, target)


def _migrations() -> Any:
    return importlib.import_module("app.store.migrations")


def _sqlite_revision(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(open_reader(path, wait_s=_READ_WAIT_S)) as connection:
            return revision(connection)
    except sqlite3.Error as error:
        raise Unavailable(f"Cannot read the database file {path}: {error}") from error
