"""Pointers that are not read again while nobody commits, and locks that a second look must not lose."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.ports import Store
from app.store import open_store
from app.store.sqlite_index import WalIndex
from app.store.sqlite_store import SqliteStore
from tests.store.acts import HOUSE, get, house, make, space, swap

pytestmark = pytest.mark.anyio

MOVE = "UPDATE tabular SET metadata_location = ? WHERE name = 't'"

# Another process: told what to do line by line, it answers when it is done.
OTHER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for line in sys.stdin:
    sql, arguments = json.loads(line)
    print(json.dumps(connection.execute(sql, arguments).fetchall()), flush=True)
"""

# Whether this process could take the first-comer's lock of the shared memory (byte 128 of the file).
FIRST = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    print("free")
except OSError:
    print("held")
"""


class Other:
    """A second process on the same file."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, sql: str, *arguments: object) -> list[list[object]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([sql, arguments]) + "\n")
        self._process.stdin.flush()
        rows: list[list[object]] = json.loads(self._process.stdout.readline())
        return rows

    def close(self) -> None:
        self._process.communicate(timeout=30)


def first_comer(path: Path) -> str:
    command = [sys.executable, "-c", FIRST, f"{path}-shm"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def memory_of(path: Path, new: bytes | None = None) -> bytes:
    """What the file of the shared memory beside `path` holds, after `new` was put there."""
    shared = path.with_name(f"{path.name}-shm")
    if new is not None:
        shared.write_bytes(new)
    return shared.read_bytes()


def move_and_link(path: Path) -> None:
    """As people do when a disk is full."""
    moved = path.parent / "moved" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    path.symlink_to(moved)


async def location(store: Store) -> str | None:
    found = await store.pointer(HOUSE, ("n",), "t")
    return None if found is None else found.metadata_location


async def test_a_commit_of_another_process_is_seen_by_the_next_look(sqlite: Store, path: Path) -> None:
    """Two hundred times in a row, with own commits and checkpoints in between."""
    await sqlite.write([make("t")])
    other = Other(path)
    try:
        for turn in range(200):
            assert await location(sqlite) == await location(sqlite)
            other.run(MOVE, f"theirs-{turn}")
            assert await location(sqlite) == f"theirs-{turn}"
            if turn % 3 == 0:
                await sqlite.write([swap(await get(sqlite, "t"), f"ours-{turn}")])
                assert await location(sqlite) == f"ours-{turn}"
            if turn % 5 == 0:
                other.run("PRAGMA wal_checkpoint(TRUNCATE)")
                assert await location(sqlite) in (f"theirs-{turn}", f"ours-{turn}")
        other.run("DELETE FROM tabular WHERE name = 't'")
        assert await location(sqlite) is None
    finally:
        other.close()


async def test_an_uncommitted_change_is_not_seen(sqlite: Store, path: Path) -> None:
    """Neither while it is being written, nor after it was taken back."""
    await sqlite.write([make("t")])
    other = Other(path)
    try:
        assert await location(sqlite) == "t-0"
        other.run("BEGIN IMMEDIATE")
        other.run(MOVE, "never")
        assert await location(sqlite) == "t-0"
        other.run("ROLLBACK")
        assert await location(sqlite) == "t-0"
    finally:
        other.close()


async def test_nothing_is_asked_of_the_file_while_nobody_commits(sqlite: Store, path: Path) -> None:
    """The second look runs no statement, until there was a commit."""
    await sqlite.write([make("t")])
    assert isinstance(sqlite, SqliteStore) and sqlite._reader is not None
    statements: list[str] = []
    await location(sqlite)
    sqlite._reader.set_trace_callback(statements.append)
    await location(sqlite)
    assert statements == []
    await sqlite.write([make("u")])
    await location(sqlite)
    assert len(statements) == 1


async def test_names_that_nobody_has_are_asked_for_each_time(sqlite: Store, path: Path) -> None:
    """That there is no such table is never from memory."""
    assert await location(sqlite) is None
    await sqlite.write([make("t")])
    assert await location(sqlite) == "t-0"


def test_the_stamp_changes_with_every_commit_and_with_nothing_else(path: Path) -> None:
    """Readers, transactions that were taken back and checkpoints leave it; a commit never does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        index = WalIndex(path)
        seen = {index.stamp()}
        for turn in range(100):
            connection.execute("INSERT INTO t VALUES (?)", (turn,))
            stamp = index.stamp()
            assert stamp is not None and stamp not in seen
            seen.add(stamp)
            connection.execute("SELECT count(*) FROM t").fetchall()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t VALUES (0)")
            connection.execute("ROLLBACK")
            assert index.still(stamp)
    index.close()
    assert index.stamp() is None and not index.still(b"")


def test_without_shared_memory_there_is_no_stamp(path: Path) -> None:
    """A file that was never opened in write-ahead mode has nothing to look at."""
    index = WalIndex(path)
    assert index.stamp() is None
    index.close()


def test_an_unknown_form_of_the_header_gives_no_stamp(path: Path) -> None:
    """A later version of it, or one that is only half written, is not understood; then every look is a statement."""
    shared = path.with_name(path.name + "-shm")
    header = bytearray(48)
    header[0:4] = (3_007_000).to_bytes(4, sys.byteorder)
    header[12] = 1
    shared.write_bytes(bytes(header * 2).ljust(32768, b"\0"))
    index = WalIndex(path)
    assert index.stamp() == bytes(header)
    for at, value in ((0, 99), (12, 0), (70, 1)):
        changed = bytearray(shared.read_bytes())
        changed[at] = value
        if at < 48:
            changed[at + 48] = value
        with shared.open("r+b") as file:
            file.write(changed)
        assert index.stamp() is None
        with shared.open("r+b") as file:
            file.write(bytes(header * 2))
    index.close()


async def test_closing_one_store_leaves_the_locks_of_another_of_the_same_process(path: Path) -> None:
    """Else the next process to come would take the shared memory for its own, and clear it under the first."""
    url = f"sqlite:///{path}"
    first, second = open_store(url), open_store(url)
    await first.open()
    await second.open()
    await first.write([house(), space("n"), make("t")])
    assert await location(second) == "t-0"
    await second.close()
    assert first_comer(path) == "held"
    other = Other(path)
    other.run(MOVE, "theirs")
    other.close()
    assert await location(first) == "theirs"
    await first.close()


async def test_a_link_to_the_file_leads_to_the_memory_of_the_file(path: Path) -> None:
    """A moved database leaves a link, and a crash before that its old shared memory, which nobody ever changes."""
    url = f"sqlite:///{path}"
    store = open_store(url)
    await store.open()
    await store.write([house(), space("n"), make("t")])
    left = memory_of(path)
    await store.close()
    move_and_link(path)
    memory_of(path, left)
    store = open_store(url)
    await store.open()
    assert await location(store) == "t-0"
    other = Other(path)
    other.run(MOVE, "theirs")
    other.close()
    assert await location(store) == "theirs"
    await store.close()


async def test_nothing_is_known_for_long(sqlite: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even under an unchanged header a pointer is read again after a second."""
    await sqlite.write([make("t")])
    assert isinstance(sqlite, SqliteStore) and sqlite._reader is not None
    await location(sqlite)
    statements: list[str] = []
    sqlite._reader.set_trace_callback(statements.append)
    await location(sqlite)
    assert statements == []
    later = time.monotonic() + 1.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    await location(sqlite)
    await location(sqlite)
    assert len(statements) == 1
