"""The store on PostgreSQL through asyncpg. Everything that only PostgreSQL has is in this file.

One transaction per unit, READ COMMITTED: each statement sees what was committed before it began, which the check under
an advisory lock needs. No session state is used (no settings, no session locks), so PgBouncer in transaction mode is
fine; then the URL says `statement_cache_size=0`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from app.errors import BadRequest, BadSettings, IcekeelError, OutcomeUnknown, Unavailable
from app.ports import Pointer, Tabular, Warehouse, WriteOp
from app.store import batches, tabulars
from app.store.batches import Place
from app.store.coalescing import Board, Coalescer
from app.store.postgres_connections import revision
from app.store.program import DONE, Lock, Outcome, Program, Row, Step
from app.store.revisions import require_current
from app.store.sql_store import SqlStore
from app.store.statements import Params, Statement, Statements
from app.store.urls import PostgresUrl
from app.store.warehouses import warehouse_of

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS: Final = 8
IDLE_S: Final = 300.0
"""A connection idle for longer is closed: what lies in between may have forgotten it without a word."""
_CONNECT_S: Final = 10.0
_END_S: Final = 5.0
_IDLE_MS: Final = 60_000
"""A server that stalls inside a transaction loses it after this long, so its locks do not stall the others."""

_RETRIED: Final = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "23505",  # unique violation: somebody was faster; the next attempt finds the row and says whose name is taken
        "23503",  # foreign key violation: the namespace went away, or something came into it
    }
)
_GONE: Final = ("08", "57P")
"""SQLSTATE prefixes that end the session: connection failures, and a server that shuts down or crashed."""

_LOCATIONS: Final = int.from_bytes(hashlib.blake2b(b"icekeel.locations", digest_size=8).digest(), "big", signed=True)
"""The advisory lock of `program.Lock`."""

_BROKEN: Final = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What asyncpg raises when the connection, or its own idea of it, is broken; a timeout is an OSError."""

_FAILURES: Final = (asyncpg.PostgresError, *_BROKEN, UnicodeError)
"""All that asyncpg raises."""

_Connection = Any  # asyncpg ships no types


class _Closing(asyncpg.Connection):  # type: ignore[misc]  # it ships no types
    """Closes without a complaint: the pool closes what it has expired in a task of its own, whose failure would be a
    traceback in the log, and a connection that went silent always fails to take its leave."""

    async def close(self, **options: Any) -> None:
        with suppress(*_BROKEN):
            await super().close(**options)


class _Again(Exception):
    """Surely nothing was stored and another attempt may succeed; `final` is what the caller is told if none does."""

    def __init__(self, final: IcekeelError) -> None:
        super().__init__(final.message)
        self.final = final


class PostgresStore(SqlStore):
    """`ports.Store` on a PostgreSQL database; `open` refuses a schema that is not this server's.

    `pool_size` counts connections; `statement_timeout_ms` bounds one statement, waiting for locks included.
    """

    def __init__(self, url: PostgresUrl, *, pool_size: int, statement_timeout_ms: int) -> None:
        self._url = url
        self._pool_size = pool_size
        self._timeout_s = statement_timeout_ms / 1000 + 1.0
        self._begin = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {statement_timeout_ms}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}"
        )
        self._statements = Statements.of_postgresql()
        self._pool: Any = None
        self._warehouses: Coalescer[str, Warehouse] = Coalescer(self._read_warehouses, flights=pool_size)
        self._pointers: Coalescer[Place, Pointer] = Coalescer(self._read_pointers, flights=pool_size)
        self._tabulars: Coalescer[Place, Tabular] = Coalescer(self._read_tabulars, flights=pool_size)
        self._writes: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        if self._pool is not None:
            return
        options: dict[str, Any] = {} if self._url.statement_cache else {"statement_cache_size": 0}
        # No statement leaves session state behind, so a connection that comes back needs no reset: one trip less each.
        self._pool = asyncpg.create_pool(
            self._url.dsn,
            min_size=0,
            max_size=self._pool_size,
            max_inactive_connection_lifetime=IDLE_S,
            reset=_as_it_is,
            connection_class=_Closing,
            timeout=_CONNECT_S,
            command_timeout=self._timeout_s,
            **options,
        )
        await self._pool
        try:
            await self.ping()
            await self._check_encoding()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let writes in flight end, then close the connections; those that take too long for either are cut."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._writes:
            await asyncio.wait(self._writes, timeout=_END_S)
        try:
            await asyncio.wait_for(pool.close(), _END_S)
        except _FAILURES:
            pool.terminate()

    async def ping(self) -> None:
        require_current(await self._reading(revision))

    async def _check_encoding(self) -> None:
        async def read(connection: _Connection) -> str:
            return str(await connection.fetchval("SHOW server_encoding"))

        encoding = await self._reading(read)
        if encoding != "UTF8":
            raise BadSettings(f"The database {self._url.shown} is encoded in {encoding}; UTF8 is needed")

    # --- reads ---

    async def fetch(self, statement: Statement, params: Params) -> Sequence[Row]:
        compiled, args = self._statements.bind(statement, params)

        async def read(connection: _Connection) -> Sequence[Row]:
            rows: Sequence[Row] = await connection.fetch(compiled.sql, *args)
            return rows

        return await self._reading(read)

    async def pointer_at(self, place: Place) -> Pointer | None:
        return await self._pointers.get(place)

    async def tabular_at(self, place: Place) -> Tabular | None:
        return await self._tabulars.get(place)

    async def _read_pointers(self, board: Board[Place]) -> Mapping[Place, Pointer]:
        places, rows = await self._look_up(board, tabulars.POINTER, batches.POINTERS)
        return batches.pointers_at(places, rows)

    async def _read_tabulars(self, board: Board[Place]) -> Mapping[Place, Tabular]:
        places, rows = await self._look_up(board, tabulars.BY_NAME, batches.TABULARS)
        return batches.tabulars_at(places, rows)

    async def warehouse_of(self, name: str) -> Warehouse | None:
        return await self._warehouses.get(name)

    async def _read_warehouses(self, board: Board[str]) -> Mapping[str, Warehouse]:
        async def read(connection: _Connection) -> Mapping[str, Warehouse]:
            names = board()
            if not names:
                return {}
            rows = await connection.fetch(self._statements[batches.WAREHOUSES].sql, names)
            return {row[0]: warehouse_of(row) for row in rows}

        return await self._reading(read)

    async def _look_up(
        self, board: Board[Place], one: Statement, many: Statement
    ) -> tuple[Sequence[Place], Sequence[Row]]:
        async def read(connection: _Connection) -> tuple[Sequence[Place], Sequence[Row]]:
            places = board()
            if not places:
                return (), ()
            if len(places) == 1:
                rows = await connection.fetch(self._statements[one].sql, *places[0])
                return places, [(1, *row) for row in rows]
            compiled, args = self._statements.bind(many, batches.places(places))
            return places, await connection.fetch(compiled.sql, *args)

        return await self._reading(read)

    async def _reading(self, read: Callable[[_Connection], Coroutine[Any, Any, T]]) -> T:
        """A connection that died while idle is not the caller's trouble: every pooled one may have, after a restart."""
        for attempt in range(self._pool_size + 1):
            try:
                async with self._connection() as connection:
                    return await read(connection)
            except _FAILURES as error:
                failure = _failure(error)
                if not isinstance(failure, _Again):
                    raise failure from error
                if attempt == self._pool_size:
                    raise failure.final from error
        raise AssertionError("the last attempt returns or raises")

    # --- writes ---

    async def write(self, unit: Sequence[WriteOp]) -> None:
        call = batches.one_trip(unit)
        if call is not None and await self._shielded(self._one_trip(*call)):
            return
        await super().write(unit)

    async def run(self, program: Callable[[], Program[T]]) -> T:
        return await self._shielded(self._attempts(program))

    async def _shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """A caller that is cancelled does not take its transaction with it: half a COMMIT is an unknown outcome."""
        task = asyncio.get_running_loop().create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # it knows a failure, which knows this frame

    async def _one_trip(self, statement: Statement, params: Params) -> bool:
        """A unit as one statement that is its own transaction.

        False when it did not match, or surely did nothing: the long way then tells why.
        """
        compiled, args = self._statements.bind(statement, params)
        async with self._connection() as connection:
            try:
                if compiled.rows:
                    return bool(await connection.fetch(compiled.sql, *args))
                return bool(_count(await connection.execute(compiled.sql, *args)))
            except (asyncpg.DataError, UnicodeError):  # refused with its values, or never sent
                return False
            except _BROKEN as error:
                _cut(connection)
                raise OutcomeUnknown(f"The outcome of a commit is unknown: {error}") from error
            except asyncpg.PostgresError as error:
                if _ends_session(error):
                    raise OutcomeUnknown(f"The outcome of a commit is unknown: {error}") from error
                return False

    async def _attempts(self, program: Callable[[], Program[T]]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return await self._transaction(program)
            except _Again as again:
                log.info("retrying a unit: %s", again)
                last = again
            await asyncio.sleep(random.uniform(0.0, 0.005 * 2**attempt))
        raise last.final from last

    async def _transaction(self, program: Callable[[], Program[T]]) -> T:
        async with self._connection() as connection:
            try:
                await connection.execute(self._begin)
                value = await self._drive(connection, program())
            except TimeoutError as error:
                # A server that is silent would let the ROLLBACK wait as well, and undoes what was not committed.
                _cut(connection)
                raise _failure(error) from error
            except _FAILURES as error:
                await _roll_back(connection)
                raise _failure(error) from error
            except BaseException:
                await _roll_back(connection)
                raise
            await _commit(connection)
            return value

    async def _drive(self, connection: _Connection, program: Program[T]) -> T:
        try:
            step = next(program)
            while True:
                step = program.send(await self._step(connection, step))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _step(self, connection: _Connection, step: Step) -> Outcome:
        if isinstance(step, Lock):
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCATIONS)
            return DONE
        compiled, args = self._statements.bind(step.statement, step.params)
        if compiled.rows:
            return Outcome(await connection.fetch(compiled.sql, *args), 0)
        return Outcome((), _count(await connection.execute(compiled.sql, *args)))

    def _connection(self) -> _Loan:
        if self._pool is None:
            raise Unavailable("The store is not open")
        return _Loan(self._pool, self._url, self._timeout_s)


class _Loan:
    """A connection of the pool for the time of a `with`. Unavailable when there is none in time.

    One that did not answer in time is cut, and every idle one with it: when the way to the server was lost without a
    word they are all dead, and each would cost its next user the whole wait again.
    """

    __slots__ = ("_connection", "_pool", "_url", "_wait_s")

    def __init__(self, pool: Any, url: PostgresUrl, wait_s: float) -> None:
        self._pool = pool
        self._url = url
        self._wait_s = wait_s

    async def __aenter__(self) -> _Connection:
        try:
            self._connection = await self._pool.acquire(timeout=self._wait_s)
        except (*_FAILURES, ValueError) as error:
            reason = str(error) or "no connection in time"
            raise Unavailable(f"Cannot reach the database {self._url.shown}: {reason}") from error
        return self._connection

    async def __aexit__(self, _: type[BaseException] | None, error: BaseException | None, *__: object) -> None:
        if isinstance(error, TimeoutError) or (error is not None and isinstance(error.__cause__, TimeoutError)):
            _cut(self._connection)
            await self._pool.expire_connections()
        await self._pool.release(self._connection)


async def _as_it_is(connection: _Connection) -> None:
    """What asyncpg's pool does to a connection that comes back: nothing."""


def _cut(connection: _Connection) -> None:
    """End a connection now. One that broke by itself is not ours any more: its pool has taken it back."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def _roll_back(connection: _Connection) -> None:
    """Undo, or end the connection: the server undoes what was not committed."""
    try:
        await connection.execute("ROLLBACK", timeout=_END_S)
    except _FAILURES:
        _cut(connection)


async def _commit(connection: _Connection) -> None:
    """COMMIT. What the server itself reports is definite; anything that ended the session first is not."""
    try:
        status = await connection.execute("COMMIT")
    except asyncpg.PostgresError as error:
        if _ends_session(error):
            raise OutcomeUnknown(f"The outcome of a commit is unknown: {error}") from error
        await _roll_back(connection)
        raise _failure(error) from error
    except _BROKEN as error:
        _cut(connection)
        raise OutcomeUnknown(f"The outcome of a commit is unknown: {error}") from error
    if status != "COMMIT":
        raise _Again(Unavailable(f"The database answered {status} to COMMIT"))


def _ends_session(error: BaseException) -> bool:
    return str(getattr(error, "sqlstate", None) or "08").startswith(_GONE)


def _failure(error: BaseException) -> _Again | IcekeelError:
    """What a failure before COMMIT means: nothing was stored; may another attempt succeed?"""
    if isinstance(error, TimeoutError):
        return Unavailable("The database did not answer in time")
    state = str(getattr(error, "sqlstate", None) or "")
    if state in _RETRIED:
        return _Again(Unavailable(f"The database is contended: {error}"))
    if state.startswith("22") or isinstance(error, (asyncpg.DataError, UnicodeError)):
        return BadRequest(f"A value in the request cannot be stored: {error}")
    unavailable = Unavailable(f"The database failed: {error}")
    if isinstance(error, _BROKEN) or _ends_session(error):
        return _Again(unavailable)
    return unavailable


def _count(status: str) -> int:
    """Rows touched, from a command tag such as `UPDATE 1` or `INSERT 0 1`."""
    return int(status.rsplit(" ", 1)[-1])
