"""SQL behind `ports.Store`: two adapters, one set of statements, one contract suite.

- `schema.py` holds the tables as SQLAlchemy Core. One file per noun holds its statements and, as programs without I/O
  (`program.py`), how its operations are carried out; `sql_store.py` holds every read.
- The adapters bring connections, transactions and what their failures mean. They run the statements on sqlite3 and
  asyncpg, compiled once (`statements.py`): a quarter of the CPU of a request through an engine.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from app.ports import Store
from app.store.databases import migrate, schema_state
from app.store.revisions import SchemaState
from app.store.secrets import sealer
from app.store.sql_store import SqlStore
from app.store.sqlite_store import SqliteStore
from app.store.urls import SqliteUrl, parse

__all__ = ["SchemaState", "Store", "migrate", "open_store", "schema_state"]


def open_store(
    database_url: str,
    *,
    pool_size: int = 10,
    statement_timeout_ms: int = 30_000,
    secret_keys: Sequence[bytes] = (),
) -> Store:
    """The store for `sqlite:///path` or `postgresql://...`; call `open` on it before use.

    `pool_size` (connections) and `statement_timeout_ms` are for PostgreSQL. `secret_keys` (32 bytes each) encrypt the
    secrets of warehouses: the first one for writing, all of them for reading. BadSettings for any other URL.
    """
    url = parse(database_url)
    store: SqlStore
    if isinstance(url, SqliteUrl):
        store = SqliteStore(url.path)
    else:
        # Its driver costs a server on SQLite a tenth of a second.
        postgres = importlib.import_module("app.store.postgres_store")
        store = postgres.PostgresStore(url, pool_size=pool_size, statement_timeout_ms=statement_timeout_ms)
    store.sealer = sealer(secret_keys)
    return store
