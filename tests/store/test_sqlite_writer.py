"""The writer thread: group commit, crashes, full disks, and several processes on one file."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import AlreadyExists, OutcomeUnknown, Unavailable
from app.ports import Store
from app.store import open_store
from app.store.program import Call, Program
from app.store.sqlite_writer import Writer
from app.store.statements import Statements
from app.store.warehouses import ALL, put
from tests.store import workers
from tests.store.acts import HOUSE, get, house, key, make, space, swap

pytestmark = pytest.mark.anyio


async def test_queued_units_share_a_transaction_and_fail_alone(sqlite: Store, path: Path) -> None:
    """While another process holds the file, units pile up; then they land in one commit, each with its own outcome."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sends = [
            asyncio.ensure_future(sqlite.write([make(f"t{i}"), key("same" if i % 4 == 0 else f"k{i}")]))
            for i in range(40)
        ]
        await asyncio.sleep(0.05)
        assert not any(send.done() for send in sends)
        before = other.execute("PRAGMA data_version").fetchone()[0]
        other.execute("ROLLBACK")
        results = await asyncio.gather(*sends, return_exceptions=True)
        after = other.execute("PRAGMA data_version").fetchone()[0]
    stored = [i for i in range(40) if await sqlite.tabular(HOUSE, ("n",), f"t{i}") is not None]
    assert stored == [i for i, result in enumerate(results) if result is None]
    assert len(stored) == 31, "all but the nine that repeat the key"
    # The first unit may have gone ahead alone; the other 39 cannot have taken a commit each.
    assert after - before <= 3


async def test_a_refusal_waits_for_the_commit_it_rests_on(path: Path, anyio_backend: str) -> None:
    """A unit refused because of a neighbour in its group is answered only after that neighbour is durable."""
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.write([house(), space("n")])
    answered: list[str] = []

    async def create(uuid: str) -> None:
        try:
            await store.write([make("t", uuid=uuid)])
            answered.append("created")
        except AlreadyExists:
            answered.append("refused")
            with closing(sqlite3.connect(path)) as other:
                assert other.execute("SELECT count(*) FROM tabular").fetchone() == (1,)

    await asyncio.gather(create("u1"), create("u2"), create("u3"))
    await store.close()
    assert sorted(answered) == ["created", "refused", "refused"]


async def test_a_program_that_breaks_is_undone_alone(sqlite: Store, path: Path) -> None:
    """A fault in one program reaches its caller as it is; its neighbours and later units are not disturbed."""

    def broken() -> Program[None]:
        yield Call(ALL, {})
        raise ZeroDivisionError("a fault in the program")

    writer = Writer(path, Statements.of_sqlite())
    try:
        with pytest.raises(ZeroDivisionError):
            await writer.submit(broken)
        await sqlite.write([make("t")])
        with pytest.raises(ZeroDivisionError):
            await writer.submit(broken)
    finally:
        await writer.close()
    with pytest.raises(Unavailable):
        writer.submit(broken)


async def test_closing_commits_what_is_queued(path: Path, anyio_backend: str) -> None:
    """Units sent before close are stored and answered."""
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.write([house(), space("n")])
    sends = [asyncio.ensure_future(store.write([make(f"t{i}")])) for i in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*sends)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM tabular").fetchone() == (50,)


async def test_reads_do_not_wait_for_a_writer_elsewhere(sqlite: Store, path: Path) -> None:
    """While another process holds the write lock, reads answer at once with what is committed."""
    await sqlite.write([make("t")])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE tabular SET metadata_location = 'dirty'")
        began = time.perf_counter()
        for _ in range(100):
            assert (await get(sqlite, "t")).metadata_location == "t-0"
        assert time.perf_counter() - began < 1.0
        other.execute("COMMIT")
    assert (await get(sqlite, "t")).metadata_location == "dirty"


async def test_a_write_waits_for_another_process(sqlite: Store, path: Path) -> None:
    """A lock held for a while elsewhere delays a write and does not fail it; the event loop goes on meanwhile."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            held.set()
            let_go.wait(20)
            other.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    sent = asyncio.ensure_future(sqlite.write([make("t")]))
    await asyncio.sleep(0.3)
    assert not sent.done()
    let_go.set()
    await sent
    thread.join()
    assert (await get(sqlite, "t")).version == 1


def prepare(path: Path) -> None:
    """A closed store on the file, with the warehouse `default`, the namespace `n` and the table `shared`."""

    async def run() -> None:
        store = open_store(f"sqlite:///{path}")
        await store.open()
        await store.write([house(), space("n"), make("shared")])
        await store.close()

    asyncio.run(run())


def test_three_processes_with_many_writers_never_see_a_lock(path: Path) -> None:
    """Sixty writers in three servers on one file: no error, no lost swap, every table at its last pointer."""
    writers, swaps = 20, 25
    prepare(path)
    processes = [workers.start("count_up", path, name, writers, swaps) for name in ("a", "b", "c")]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    with closing(sqlite3.connect(path)) as reader:
        tables = dict(reader.execute("SELECT name, metadata_location FROM tabular WHERE name <> 'shared'").fetchall())
        assert tables == {
            f"{name}-{writer}": f"{name}-{writer}-{swaps}" for name in ("a", "b", "c") for writer in range(writers)
        }
        assert reader.execute("SELECT version FROM tabular WHERE name = 'shared'").fetchone() == (1 + 3 * writers,)
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_killed_writer_loses_nothing_that_it_acknowledged(path: Path) -> None:
    """SIGKILL at random moments, several servers on one file: acknowledged units are there, and every unit is whole."""
    prepare(path)
    chance = random.Random(20_240_229)
    acknowledged: set[str] = set()
    processes = [workers.start("pairs", path, f"p{turn}") for turn in range(5)]
    for process in processes:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.2))
        process.kill()
        out, errors = process.communicate(timeout=60)
        assert first and "Error" not in errors, errors
        # The last line may be cut off by the kill, and the first by what reading one line ahead has swallowed.
        acknowledged.update((first.rstrip("\n"), *out.split("\n")[1:-1]))
    with closing(sqlite3.connect(path)) as reader:
        names = {name for (name,) in reader.execute("SELECT name FROM tabular").fetchall()}
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    left = {name.removesuffix("-left") for name in names if name.endswith("-left")}
    right = {name.removesuffix("-right") for name in names if name.endswith("-right")}
    assert left == right, "half a unit was stored"
    assert len(acknowledged) > 50
    assert acknowledged <= left


def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path) -> None:
    """When the file system takes no more, the unit is Unavailable and not there; later writes succeed."""
    limits = (400_000, 450_000, 523_456)
    for limit in limits:
        prepare(tmp_path / f"{limit}.db")
    processes = [workers.start("fill", tmp_path / f"{limit}.db", limit) for limit in limits]
    for limit, process in zip(limits, processes, strict=True):
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        lines = [line.split() for line in out.splitlines()]
        stored = {line[1] for line in lines if line[0] == "stored"}
        ((_, refused, kind),) = [line for line in lines if line[0] == "refused"]
        assert len(stored) > 5 and "after" in stored
        assert kind == Unavailable.__name__
        with closing(sqlite3.connect(tmp_path / f"{limit}.db")) as reader:
            names = {name for (name,) in reader.execute("SELECT name FROM tabular").fetchall()}
            assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert names == stored | {"shared"}
        assert refused not in names


class _SyncFails(Writer):
    """A writer whose COMMIT reaches SQLite and is then reported as failed in the sync of the log."""

    failing = False
    can_overwrite = True

    def _execute_commit(self) -> None:
        if not self.failing:
            super()._execute_commit()
            return
        real = self._connection
        self._connection = _FailingCommit(real, self.can_overwrite)  # type: ignore[assignment]
        try:
            super()._execute_commit()
        finally:
            self._connection = real


class _FailingCommit:
    def __init__(self, real: sqlite3.Connection, can_overwrite: bool) -> None:
        self._real = real
        self._left = 1 if can_overwrite else 2

    @property
    def in_transaction(self) -> bool:
        return self._real.in_transaction

    def execute(self, sql: str) -> sqlite3.Cursor:
        if sql == "COMMIT" and self._left:
            self._left -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return self._real.execute(sql)


@pytest.mark.parametrize(("can_overwrite", "kind"), [(True, Unavailable), (False, OutcomeUnknown)])
async def test_a_failed_sync_is_unknown_until_its_pages_are_overwritten(
    sqlite: Store, path: Path, can_overwrite: bool, kind: type[Exception]
) -> None:
    """After a failed sync the commit mark may be on disk: only a commit over it makes the failure certain.

    No file system here fails a sync on demand, so the failure is put between the writer and SQLite.
    """
    writer = _SyncFails(path, Statements.of_sqlite())
    writer.can_overwrite = can_overwrite
    try:
        writer.failing = True
        with pytest.raises(kind):
            await writer.submit(lambda: _insert("fresh"))
        writer.failing = False
        await writer.submit(lambda: _insert("later"))
    finally:
        await writer.close()
    assert await sqlite.warehouse("fresh") is None
    assert await sqlite.warehouse("later") is not None


def _insert(name: str) -> Program[None]:
    return put(house(name))


async def test_a_busy_file_is_given_up_in_the_end(sqlite: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is never released ends in Unavailable, and nothing is stored."""
    monkeypatch.setattr("app.store.sqlite_files.LOCK_WAIT_S", 0.1)
    monkeypatch.setattr("app.store.sqlite_writer.LOCK_WAIT_S", 0.2)
    writer = Writer(path, Statements.of_sqlite())
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="busy"):
                await writer.submit(lambda: _insert("fresh"))
            other.execute("ROLLBACK")
        await writer.submit(lambda: _insert("later"))
    finally:
        await writer.close()
    assert await sqlite.warehouse("fresh") is None
    assert await sqlite.warehouse("later") is not None


async def test_swaps_of_one_table_in_one_group_form_a_line(sqlite: Store) -> None:
    """Of many swaps from one pointer that share a group, the first lands and the others are lost."""
    await sqlite.write([make("t")])
    table = await get(sqlite, "t")
    results = await asyncio.gather(
        *(sqlite.write([swap(table, f"t-{i}")]) for i in range(1, 200)), return_exceptions=True
    )
    assert results.count(None) == 1
    assert (await get(sqlite, "t")).version == 2
