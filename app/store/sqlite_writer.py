"""The one writer thread of a SQLite file: group commit.

Everything that is queued when the thread gets round to it becomes one transaction and one sync of the log. Each unit
runs in its own savepoint, so one that fails is undone alone. Nobody is answered before COMMIT has returned: a refusal
may rest on what a neighbour in the same group did.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from app.errors import BadRequest, IcekeelError, OutcomeUnknown, Unavailable
from app.store.program import DONE, Call, Outcome, Program, Step
from app.store.sqlite_files import LOCK_WAIT_S, is_busy, open_writer
from app.store.statements import Statements

log = logging.getLogger(__name__)

T = TypeVar("T")

GROUP: Final = 512
"""Units in one transaction at most, so that the first one does not wait for ever."""

_NOT_COMMITTED: Final = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_NOMEM"})
"""Failures of COMMIT that leave no commit mark in the log: it is written last, after every page."""


class _Unit:
    __slots__ = ("error", "future", "program", "value")

    def __init__(self, program: Callable[[], Program[Any]], future: asyncio.Future[Any]) -> None:
        self.program = program
        self.future = future
        self.value: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


class _GroupLost(Exception):
    """SQLite gave up the whole transaction, not only the statement."""


class Writer:
    """Runs programs on its own thread and connection. `submit` belongs to one event loop."""

    def __init__(self, path: Path, statements: Statements) -> None:
        self._path = path
        self._statements = statements
        self._queue: queue.SimpleQueue[_Unit | None] = queue.SimpleQueue()
        self._connection = open_writer(path)
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="icekeel-writer", daemon=True)
        self._thread.start()

    def submit(self, program: Callable[[], Program[T]]) -> asyncio.Future[T]:
        """Queue a program. The future fails with its domain error, Unavailable or OutcomeUnknown."""
        if self._closed:
            raise Unavailable("The store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Unit(program, future))
        return future

    async def close(self) -> None:
        """Commit what is queued, then stop."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        stop = False
        while not stop:
            group, stop = self._take()
            if group:
                self._commit(group)
                with suppress(RuntimeError):  # the loop was closed under us: nobody is left to answer
                    self._loop.call_soon_threadsafe(_answer, group)
        self._connection.close()

    def _take(self) -> tuple[list[_Unit], bool]:
        """Wait for one unit, then take all that are queued with it."""
        group: list[_Unit] = []
        unit = self._queue.get()
        while unit is not None:
            group.append(unit)
            if len(group) == GROUP:
                return group, False
            try:
                unit = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _commit(self, group: list[_Unit]) -> None:
        """Apply a group; every unit has its value or its error afterwards."""
        try:
            self._begin()
            for unit in group:
                self._apply(unit)
            if all(unit.error is not None for unit in group):
                self._connection.execute("ROLLBACK")
            else:
                self._execute_commit()
        except (_GroupLost, sqlite3.Error) as error:
            self._fail(group, Unavailable(f"The database cannot be written: {error}"))
        except IcekeelError as error:
            self._fail(group, error)
        except Exception as error:
            log.exception("the writer failed")
            self._fail(group, error)

    def _begin(self) -> None:
        """Take the write lock of the file, against other processes as long as it takes within reason."""
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.ProgrammingError:
                self._reopen()  # an earlier failure left no connection
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise
                if time.monotonic() > deadline:
                    raise Unavailable("The database is busy: another process holds its write lock") from error
            time.sleep(random.uniform(0.001, 0.01))

    def _apply(self, unit: _Unit) -> None:
        connection = self._connection
        connection.execute("SAVEPOINT unit")
        try:
            unit.value = self._drive(unit.program())
        except Exception as error:
            unit.error = _told(error)
            if not connection.in_transaction:
                raise _GroupLost(str(error)) from error
            connection.execute("ROLLBACK TO unit")
        connection.execute("RELEASE unit")

    def _drive(self, program: Program[T]) -> T:
        try:
            step = next(program)
            while True:
                step = program.send(self._step(step))
        except StopIteration as done:
            result: T = done.value
            return result

    def _step(self, step: Step) -> Outcome:
        if not isinstance(step, Call):
            return DONE
        compiled, args = self._statements.bind(step.statement, step.params)
        cursor = self._connection.execute(compiled.sql, args)
        if compiled.rows:
            return Outcome(cursor.fetchall(), 0)
        return Outcome((), cursor.rowcount)

    def _execute_commit(self) -> None:
        """COMMIT, or tell whether a failed one may still have reached the disk."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            log.error("COMMIT failed: %s (%s)", error, name)
            self._roll_back()
            if name in _NOT_COMMITTED or is_busy(error) or self._overwrite_log():
                raise Unavailable(f"The database cannot be written: {error}") from error
            raise OutcomeUnknown(f"The outcome of a commit is unknown: {error}") from error

    def _roll_back(self) -> None:
        if not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._reopen()

    def _overwrite_log(self) -> bool:
        """Commit something harmless over the pages of a failed commit.

        After a failed sync its commit mark may be in the log file, and recovery after a crash would bring it back. Once
        the next transaction has taken its place in the log, that cannot happen any more.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            self._connection.execute(f"PRAGMA user_version={version}")
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back()
            return False
        return True

    def _reopen(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        self._connection = open_writer(self._path)

    def _fail(self, group: list[_Unit], error: Exception) -> None:
        """Nothing of the group is stored, or it is not known. A unit that failed by itself surely stored nothing."""
        with suppress(sqlite3.Error):
            self._roll_back()
        for unit in group:
            if unit.error is not None and isinstance(error, OutcomeUnknown):
                unit.error = Unavailable(error.message)
            else:
                unit.error = error


def _answer(group: list[_Unit]) -> None:
    for unit in group:
        unit.settle()


def _told(error: Exception) -> Exception:
    """What the caller of one unit is told about its failure."""
    if isinstance(error, UnicodeEncodeError):
        return BadRequest("A text in the request is not valid Unicode and cannot be stored")
    if isinstance(error, sqlite3.OperationalError):
        return Unavailable(f"The database cannot be written: {error}")
    return error
