"""Runs the migrations with Alembic: where the scripts are, and how each database carries them out.

Alembic keeps its context in module globals, so one migration runs at a time in a process.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, event, pool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from app.errors import BadSettings, Unavailable
from app.store.postgres_connections import connect as connect_postgresql
from app.store.revisions import REVISION, REVISIONS, require_current, state_of
from app.store.sqlite_files import open_writer
from app.store.urls import PostgresUrl

PACKAGE: Final = "icekeel_migrations"
"""The name under which a wheel carries the `migrations` folder."""

_UPGRADE_LOCK: Final = 0x1CE_4EE1

_one_at_a_time = threading.Lock()


def script_location() -> Path:
    """The folder with Alembic's `env.py` and `versions` beside this very code, in an installed wheel or in a checkout.

    Never what the import path finds: an older or newer release may be installed beside a checkout.
    """
    above = Path(__file__).resolve().parents[2]
    carried = above / PACKAGE
    return carried if carried.is_dir() else above / "migrations"


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration without any file; `env.py` takes the connection from its attributes."""
    config = Config()
    config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def run(connection: Connection, target: str) -> None:
    """Go up to `target` (a revision of this server or `head`, its own), or down to `base`, inside the transaction.

    Scripts of a newer release are never run: the server could not use what they make.
    """
    if target not in ("head", "base", *REVISIONS):
        raise BadSettings(f"There is no schema {target}: this server knows {', '.join(REVISIONS)}")
    current = MigrationContext.configure(connection).get_current_revision()
    if state_of(current).status == "newer":
        require_current(current)
    with _one_at_a_time:
        if target == "base":
            command.downgrade(configuration(connection), target)
        else:
            command.upgrade(configuration(connection), REVISION if target == "head" else target)


def migrate_sqlite(path: Path, target: str) -> None:
    """Call under `upgrade_lock`."""
    engine = create_engine("sqlite://", creator=lambda: open_writer(path), poolclass=pool.NullPool)

    # The driver opens no transaction by itself, so the whole migration is one: a crash leaves the old schema.
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            run(connection, target)
    except DBAPIError as error:
        raise Unavailable(f"The database file {path} cannot be upgraded: {error.orig}") from error


def migrate_postgresql(url: PostgresUrl, target: str) -> None:
    """Several upgrades at once wait for the first one, then find nothing left to do."""
    asyncio.run(_migrate_postgresql(url, target))


async def _migrate_postgresql(url: PostgresUrl, target: str) -> None:
    async def connect() -> Any:
        return await connect_postgresql(url)

    def locked(connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        run(connection, target)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=pool.NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(locked)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Unavailable(f"Cannot reach the database {url.shown}: {error}") from error
    except DBAPIError as error:
        raise Unavailable(f"The database {url.shown} cannot be upgraded: {error.orig}") from error
    finally:
        await engine.dispose()
