"""Single connections to PostgreSQL: what schema a database stands at, and the one that migrates it."""

from __future__ import annotations

from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from app.errors import Unavailable
from app.store.urls import PostgresUrl

_CONNECT_S: Final = 30.0


async def connect(url: PostgresUrl) -> Any:
    """A connection of its own, without prepared statements."""
    return await asyncpg.connect(url.dsn, statement_cache_size=0, timeout=_CONNECT_S)


async def revision_of(url: PostgresUrl) -> str | None:
    """The migration the database at `url` stands at; Unavailable when it cannot be reached."""
    try:
        connection = await connect(url)
        try:
            return await revision(connection)
        finally:
            await connection.close()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Unavailable(f"Cannot reach the database {url.shown}: {error}") from error


async def revision(connection: Any) -> str | None:
    """The migration the database stands at; None when it has no tables yet."""
    try:
        row = await connection.fetchrow("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return None if row is None else str(row[0])
