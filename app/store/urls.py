"""Database URLs: `sqlite:////abs/path.db`, `sqlite:///relative.db`, `postgresql://user:pw@host/db?...`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from app.errors import BadSettings

_CACHE_OPTION = "statement_cache_size"


class SqliteUrl(NamedTuple):
    path: Path


class PostgresUrl(NamedTuple):
    """`dsn` as asyncpg takes it. Without `statement_cache` no prepared statement outlives its transaction."""

    dsn: str
    statement_cache: bool

    @property
    def shown(self) -> str:
        """The database without its password, for messages."""
        parts = urlsplit(self.dsn)
        return f"{parts.hostname or 'localhost'}{parts.path}"


def parse(database_url: str) -> SqliteUrl | PostgresUrl:
    """Raises BadSettings for anything that is neither a SQLite file nor a PostgreSQL database.

    `statement_cache_size=0` in the query of a PostgreSQL URL is for PgBouncer in transaction mode.
    """
    scheme, separator, rest = database_url.partition("://")
    if separator and scheme == "sqlite":
        return _sqlite(rest)
    if separator and scheme in ("postgresql", "postgres"):
        return _postgresql(database_url)
    raise BadSettings("ICEKEEL_DATABASE_URL must start with sqlite:/// or postgresql://")


def _sqlite(rest: str) -> SqliteUrl:
    path = unquote(rest[1:]) if rest.startswith("/") else ""
    if not path or path == ":memory:" or path.startswith("file:") or "?" in rest:
        raise BadSettings(
            "ICEKEEL_DATABASE_URL must name a file, without options: sqlite:////absolute/path.db or sqlite:///relative.db"
        )
    return SqliteUrl(Path(path).absolute())


def _postgresql(database_url: str) -> PostgresUrl:
    try:
        parts = urlsplit(database_url)
    except ValueError as error:
        raise BadSettings(f"ICEKEEL_DATABASE_URL is not a URL: {error}") from None
    options = parse_qsl(parts.query, keep_blank_values=True)
    cache = [value for name, value in options if name == _CACHE_OPTION]
    if any(not value.isdecimal() for value in cache):
        raise BadSettings(
            f"ICEKEEL_DATABASE_URL: {_CACHE_OPTION} must be a number; 0 is for PgBouncer in transaction mode"
        )
    query = urlencode([(name, value) for name, value in options if name != _CACHE_OPTION])
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, query, parts.fragment))
    return PostgresUrl(dsn=dsn, statement_cache="0" not in cache)
