"""Connections to a SQLite file.

Nothing here opens the database file by other means than SQLite: closing any descriptor of it would drop the POSIX locks
that other connections of this process hold on it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from app.errors import BadSettings, Unavailable

LOCK_WAIT_S: Final = 60.0
"""How long a write waits for other processes on the same file before it is given up."""

_CACHE_KIB: Final = 32 * 1024
_WAL_KEPT_BYTES: Final = 64 * 1024 * 1024
_MINIMUM: Final = (3, 24, 0)
"""The first release with ON CONFLICT DO UPDATE."""

_UNREADABLE: Final = frozenset({"SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM"})

# One upgrade at a time in this process; other processes are held off by the lock file.
_upgrading = threading.Lock()


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection was in the way for the moment."""
    name: str = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"))


def _connect(path: Path, wait_s: float) -> sqlite3.Connection:
    # Autocommit at the driver: transactions are opened and closed in plain sight. Each connection has one user at a
    # time, but not always on the thread that made it.
    return sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=256)


def open_writer(path: Path) -> sqlite3.Connection:
    """A connection whose COMMIT is on disk when it returns."""
    connection = _connect(path, LOCK_WAIT_S)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")
    connection.execute("PRAGMA checkpoint_fullfsync=ON")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA journal_size_limit={_WAL_KEPT_BYTES}")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    return connection


def open_reader(path: Path, *, wait_s: float = 0.0) -> sqlite3.Connection:
    """A connection that cannot write. Without `wait_s` a busy file is reported at once: the loop must not wait.

    Opening itself waits: it reads the file, which another process locks for a moment when it opens the file first or
    closes it last.
    """
    connection = _connect(path, LOCK_WAIT_S)
    connection.execute("PRAGMA query_only=ON")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute(f"PRAGMA busy_timeout={int(wait_s * 1000)}")
    return connection


def open_frozen(path: Path) -> sqlite3.Connection:
    """A connection that needs no room on the disk, and that nobody else can have a connection beside.

    A reader of a write-ahead log shares an index of it with other processes, in a file that it makes when it is the
    first. Alone it keeps that index in memory. Where the file itself cannot be written, and so not locked either, it is
    read as it is, provided that no log is left which would belong to it. sqlite3.Error.
    """
    connection = _connect(path, 0.0)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA query_only=ON")
        revision(connection)
        return connection
    except sqlite3.Error:
        connection.close()
        log_file = path.with_name(path.name + "-wal")
        if os.access(path, os.W_OK) or (log_file.exists() and log_file.stat().st_size):
            raise
    uri = f"file:{quote(str(path))}?immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)


@contextmanager
def upgrade_lock(path: Path) -> Iterator[None]:
    """Hold off every other process that would create or upgrade the same file.

    The lock is SQLite's own on an empty side file: the system drops it when a process dies, on every platform.
    """
    if sqlite3.sqlite_version_info < _MINIMUM:
        raise BadSettings(f"SQLite {sqlite3.sqlite_version} is too old: 3.24 or newer is needed")
    if not path.parent.is_dir():
        raise BadSettings(
            f"There is no folder {path.parent} for the database file {path.name}: make it, or correct the path"
        )
    side_file = path.with_name(path.name + ".lock")
    try:
        with _upgrading, closing(_connect(side_file, LOCK_WAIT_S)) as side:
            side.execute("BEGIN EXCLUSIVE")
            yield
            side.execute("ROLLBACK")
    except (OSError, sqlite3.OperationalError) as error:
        raise Unavailable(f"Cannot open the database file {path}: {error}") from error


def create_file(path: Path) -> None:
    """Create the file, readable by its owner alone (it holds storage secrets), and switch it to write-ahead logging.

    Call under `upgrade_lock`.
    """
    if not path.exists():
        # The one plain open: exclusive, so that no connection can exist yet.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(_connect(path, LOCK_WAIT_S)) as connection:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") in _UNREADABLE:
                raise BadSettings(f"{path} is not a usable SQLite database: {error}") from error
            raise
    if mode != "wal":
        raise BadSettings(f"{path} cannot use write-ahead logging here; put the database on a local disk")


def revision(connection: sqlite3.Connection) -> str | None:
    """The migration the file stands at; None when it has no tables yet."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise
    return None if row is None else str(row[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether the file holds nothing at all."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
