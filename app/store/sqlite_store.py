"""The store on a SQLite file: reads inline on the event loop, writes through one writer thread.

Several server processes may share the file. In write-ahead mode readers never wait for writers, and every read opens
and ends its own snapshot, so it sees all that was acknowledged before it began.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

from app.errors import BadRequest, BadSettings, SchemaOutOfDate, Unavailable
from app.ports import Pointer
from app.store.databases import prepare_sqlite
from app.store.program import Program, Row
from app.store.revisions import require_current
from app.store.sql_store import SqlStore
from app.store.sqlite_files import LOCK_WAIT_S, is_busy, open_frozen, open_reader, revision
from app.store.sqlite_writer import Writer
from app.store.statements import Compiled, Params, Statement, Statements
from app.store.tabulars import PLACE, POINTER

log = logging.getLogger(__name__)

T = TypeVar("T")

INLINE_ROWS: Final = 2_000
"""An answer beyond this many rows is read on a thread: it would hold up every other request."""

_READ_RETRY_S: Final = 10.0


class SqliteStore(SqlStore):
    """`ports.Store` on the file at `path`; `open` creates and upgrades it.

    A file that is there and current, but that nothing can be written beside (a full disk), is opened for reads alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._statements = Statements.of_sqlite()
        self._pointer_sql = self._statements[POINTER].sql
        self._reader: sqlite3.Connection | None = None
        self._pointers: sqlite3.Cursor | None = None
        self._writer: Writer | None = None
        self._frozen: str | None = None

    async def open(self) -> None:
        if self._reader is not None:
            return
        try:
            await asyncio.to_thread(prepare_sqlite, self._path)
        except (BadSettings, Unavailable) as error:
            self._read_from(self._open_frozen(error))
            return
        try:
            reader = open_reader(self._path)
        except sqlite3.Error as error:
            raise Unavailable(f"Cannot open the database file {self._path}: {error}") from error
        try:
            self._writer = Writer(self._path, self._statements)
        except sqlite3.Error as error:
            reader.close()
            raise Unavailable(f"Cannot open the database file {self._path}: {error}") from error
        self._read_from(reader)

    def _read_from(self, reader: sqlite3.Connection) -> None:
        self._reader = reader
        self._pointers = reader.cursor()
        self._pointers.execute(self._pointer_sql, ("", "", "")).fetchall()

    def _open_frozen(self, why: BadSettings | Unavailable) -> sqlite3.Connection:
        """For reads alone; `why` again where that is no way out either."""
        cause = why.__cause__
        if not (isinstance(cause, (sqlite3.Error, OSError)) and self._path.exists()):
            raise why
        if isinstance(cause, sqlite3.Error) and is_busy(cause):
            raise why
        try:
            reader = open_frozen(self._path)
        except sqlite3.Error:
            raise why from None
        try:
            require_current(revision(reader))
        except (SchemaOutOfDate, sqlite3.Error):
            reader.close()
            raise why from None
        self._frozen = (
            f"{why.message}. The server was started for reads only: make room or the file writable, then start it again"
        )
        log.error("%s; until then every write answers 503", self._frozen)
        return reader

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer.close()
            self._writer = None
        if self._reader is not None:
            self._reader.close()
            self._reader = self._pointers = self._frozen = None

    async def ping(self) -> None:
        reader = self._open_reader()
        try:
            found = revision(reader)
        except sqlite3.Error as error:
            if is_busy(error):
                return
            raise Unavailable(f"The database cannot be read: {error}") from error
        require_current(found)

    async def run(self, program: Callable[[], Program[T]]) -> T:
        if self._writer is None:
            raise Unavailable(self._frozen or "The store is not open")
        return await self._writer.submit(program)

    async def fetch(self, statement: Statement, params: Params) -> Sequence[Row]:
        reader = self._open_reader()
        whole = params.get("limit", 0) is None
        compiled, args = self._statements.bind(statement, {**params, "limit": INLINE_ROWS} if whole else params)
        rows: Sequence[Row]
        try:
            rows = reader.execute(compiled.sql, args).fetchall()
        except sqlite3.Error as error:
            rows = await self._fetch_again(compiled, args, error)
        except UnicodeEncodeError as error:
            raise BadRequest("A text in the request is not valid Unicode") from error
        if whole and len(rows) == INLINE_ROWS:
            compiled, args = self._statements.bind(statement, params)
            if self._frozen is not None:
                return reader.execute(compiled.sql, args).fetchall()
            return await asyncio.to_thread(self._fetch_all, compiled, args)
        return rows

    async def pointer_at(self, place: tuple[str, str, str]) -> Pointer | None:
        # No names to bind, and one cursor for all, since each is read to its end at once.
        rows: Sequence[Row]
        try:
            if self._pointers is None:
                raise Unavailable("The store is not open")
            rows = self._pointers.execute(self._pointer_sql, place).fetchall()
        except (sqlite3.Error, UnicodeEncodeError):
            rows = await self.fetch(POINTER, dict(zip(PLACE, place, strict=True)))
        return Pointer(*rows[0]) if rows else None

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            raise Unavailable("The store is not open")
        return self._reader

    async def _fetch_again(self, compiled: Compiled, args: Sequence[Any], error: sqlite3.Error) -> Sequence[Row]:
        """Readers meet a lock only while the log is recovered after a crash; wait for that without holding the loop."""
        deadline = asyncio.get_running_loop().time() + _READ_RETRY_S
        while is_busy(error) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.002)
            try:
                return self._open_reader().execute(compiled.sql, args).fetchall()
            except sqlite3.Error as again:
                error = again
        raise Unavailable(f"The database cannot be read: {error}") from error

    def _fetch_all(self, compiled: Compiled, args: Sequence[Any]) -> Sequence[Row]:
        """One statement on a connection of its own, so that the whole list is one snapshot."""
        try:
            with closing(open_reader(self._path, wait_s=LOCK_WAIT_S)) as reader:
                return reader.execute(compiled.sql, args).fetchall()
        except sqlite3.Error as error:
            raise Unavailable(f"The database cannot be read: {error}") from error
