"""The database file itself."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import BadSettings, Unavailable
from app.store import migrate, open_store
from app.store.sqlite_files import open_reader, open_writer
from tests.store.acts import space


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Storage secrets are in it: whatever the umask, nobody else may read it or its log."""
    path = tmp_path / "catalog.db"
    before = os.umask(0)
    try:
        migrate(f"sqlite:///{path}")
        with closing(open_writer(path)) as connection:
            connection.execute("PRAGMA user_version=1")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes["catalog.db"] == modes["catalog.db-wal"] == 0o600


def test_an_acknowledged_write_is_synced(path: Path) -> None:
    """Write-ahead log, a full sync on every commit, and foreign keys on."""
    migrate(f"sqlite:///{path}")
    with closing(open_writer(path)) as connection:
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in (
            "journal_mode", "synchronous", "foreign_keys", "fullfsync",
        )]  # fmt: skip
    assert found == ["wal", 2, 1, 1]


def test_a_reader_cannot_write(path: Path) -> None:
    """The reading connection refuses, whoever uses it."""
    migrate(f"sqlite:///{path}")
    with closing(open_reader(path)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM tabular")


def taken(path: Path) -> sqlite3.Connection:
    """A connection that locks all others out, as one does for a moment that opens the file first or closes it last."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version=1")
    connection.execute("COMMIT")
    return connection


def test_opening_waits_for_a_file_that_is_locked_for_a_moment(path: Path) -> None:
    """Servers that start or stop together do not fail on each other; afterwards a reader never waits by itself."""
    migrate(f"sqlite:///{path}")
    holder = taken(path)
    with pytest.raises(sqlite3.OperationalError, match="locked"), closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("PRAGMA user_version").fetchone()
    release = threading.Timer(0.3, holder.close)
    release.start()
    with closing(open_reader(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    release.join()


@pytest.mark.parametrize("folder", ["nodir", "nodir/deeper", "file"])
def test_a_missing_folder_is_told_and_not_made(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped path would else begin an empty catalog somewhere, relative ones at every start somewhere else."""
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    for url in (f"sqlite:///{tmp_path}/{folder}/x.db", f"sqlite:///{folder}/x.db"):
        with pytest.raises(BadSettings, match=f"no folder {tmp_path}/{folder} for the database file x.db"):
            migrate(url)
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_folder_in_its_place_is_a_failure_of_ours(path: Path) -> None:
    """Whatever SQLite says about it, the caller gets one of the product's own errors."""
    path.mkdir()
    with pytest.raises((Unavailable, BadSettings), match=r"catalog\.db"):
        migrate(f"sqlite:///{path}")


FULL_DISK = """
import asyncio, resource, sys
from app.errors import Unavailable
from app.store import open_store
from tests.store.acts import HOUSE, space

async def main():
    store = open_store(f"sqlite:///{sys.argv[1]}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
    await store.open()
    await store.ping()
    print((await store.namespaces(HOUSE, (), after=None, limit=None)).items)
    try:
        await store.write([space("late")])
    except Unavailable as refusal:
        print(refusal.message)
    await store.close()

asyncio.run(main())
"""
CUT_OFF = """
import asyncio, os, sys
from app.store import open_store
from tests.store.acts import house, space

async def main():
    store = open_store(f"sqlite:///{sys.argv[1]}")
    await store.open()
    await store.write([house(), space("n")])
    os._exit(0) if sys.argv[2] == "cut off" else await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["closed", "cut off"])
def test_a_file_that_nothing_can_be_written_beside_is_opened_for_reads(tmp_path: Path, end: str) -> None:
    """A limit on the size of files stands for a full disk: all that was acknowledged is read, also what a process left
    in the log that was cut off; writes are unavailable and say what to do, and with room all is as before."""
    path = str(tmp_path / "catalog.db")
    subprocess.run([sys.executable, "-c", CUT_OFF, path, end], check=True)
    Path(f"{path}-shm").unlink(missing_ok=True)
    full = subprocess.run([sys.executable, "-c", FULL_DISK, path], check=True, capture_output=True, text=True)
    items, refusal = full.stdout.splitlines()
    assert items == "(('n',),)" and "started for reads only: make room or" in refusal

    async def with_room() -> None:
        store = open_store(f"sqlite:///{path}")
        await store.open()
        await store.write([space("late")])
        await store.close()

    asyncio.run(with_room())


def test_a_database_that_is_not_there_yet_needs_room(tmp_path: Path) -> None:
    """There is nothing to read, so the start fails with its one line."""
    full = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "new.db")], check=False, capture_output=True, text=True
    )
    assert full.returncode != 0 and "Unavailable" in full.stderr
