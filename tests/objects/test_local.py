"""Objects on a local disk: durability, crashes, full disks, links."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from app.errors import BadRequest, Forbidden, ObjectExists, ObjectMissing, ObjectsUnavailable
from app.objects import is_leftover
from app.objects.exclusive import rename_exclusively
from app.objects.local import LocalObjects

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "wh"
    folder.mkdir()
    return folder


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def objects(warehouse: Path, threads: ThreadPoolExecutor) -> LocalObjects:
    return LocalObjects([str(warehouse)], threads)


def python(code: str, *args: object) -> subprocess.Popen[str]:
    """A child with `objects(root)` and `run` at hand."""
    prelude = """
        import asyncio, os, resource, sys
        from concurrent.futures import ThreadPoolExecutor
        from app.objects.local import LocalObjects
        run = asyncio.run
        def objects(root): return LocalObjects([root], ThreadPoolExecutor(2))
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, args)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class Recorder:
    """Watches the system calls that durability rests on, and lets them through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        fsync, link, mkdir = os.fsync, os.link, os.mkdir

        def record_fsync(handle: int) -> None:
            self.calls.append(("fsync", os.readlink(f"/proc/self/fd/{handle}")))
            fsync(handle)

        def record_link(source: str, target: str) -> None:
            self.calls.append(("name", target))
            link(source, target)

        def record_mkdir(path: str) -> None:
            mkdir(path)
            self.calls.append(("mkdir", path))

        monkeypatch.setattr(os, "fsync", record_fsync)
        monkeypatch.setattr(os, "link", record_link)
        monkeypatch.setattr(os, "mkdir", record_mkdir)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads the names of open files from /proc")
def test_content_is_on_disk_before_the_name_and_the_name_before_the_answer(
    objects: LocalObjects, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """create fsyncs new folders' parents, then the file, names it, and fsyncs its folder last."""
    calls = Recorder(monkeypatch).calls
    run(objects.create(f"{warehouse}/t/metadata/00000.json", b"x"))
    temporary = next(path for call, path in calls if call == "fsync" and is_leftover(path))
    named = calls.index(("name", f"{warehouse}/t/metadata/00000.json"))
    assert calls.index(("mkdir", f"{warehouse}/t")) < calls.index(("fsync", str(warehouse)))
    assert calls.index(("mkdir", f"{warehouse}/t/metadata")) < calls.index(("fsync", f"{warehouse}/t"))
    assert calls.index(("fsync", f"{warehouse}/t")) < calls.index(("fsync", temporary)) < named
    assert calls[-1] == ("fsync", f"{warehouse}/t/metadata")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads the names of open files from /proc")
def test_folders_found_in_place_are_made_durable_once(
    objects: LocalObjects, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have made a folder without having synced it yet; a second create costs two fsyncs."""
    (warehouse / "t" / "metadata").mkdir(parents=True)
    calls = Recorder(monkeypatch).calls
    run(objects.create(f"{warehouse}/t/metadata/1", b"x"))
    assert {("fsync", str(warehouse)), ("fsync", f"{warehouse}/t")} <= set(calls)
    calls.clear()
    run(objects.create(f"{warehouse}/t/metadata/2", b"x"))
    assert [call for call, _ in calls] == ["fsync", "name", "fsync"]


def test_nothing_but_the_file_remains_after_create(objects: LocalObjects, warehouse: Path) -> None:
    """The temporary name is gone as soon as create returns."""
    run(objects.create(f"{warehouse}/a/b", b"x"))
    assert files_below(warehouse) == {"a/b"}


def test_a_killed_create_leaves_no_half_file(warehouse: Path) -> None:
    """After kill -9 at any moment a name either holds the whole content or does not exist; the rest are leftovers."""
    child = python(
        """
        data = b"0123456789abcdef" * (1 << 20)
        async def work():
            store = objects(sys.argv[1])
            print("ready", flush=True)
            for number in range(1000):
                await store.create(f"{sys.argv[1]}/t/{number}", data)
        run(work())
        """,
        warehouse,
    )
    assert child.stdout is not None and child.stderr is not None
    assert child.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 20
    while not (warehouse / "t" / "2").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.013)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    child.stderr.close()
    named = {path for path in (warehouse / "t").iterdir() if not is_leftover(str(path))}
    assert named
    assert {path.stat().st_size for path in named} == {16 << 20}


def test_a_write_cut_short_leaves_nothing(warehouse: Path) -> None:
    """When the system refuses more bytes in the middle of a file, create fails and no trace of it remains."""
    child = python(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            run(objects(sys.argv[1]).create(f"{sys.argv[1]}/t/big", b"x" * (3 << 20)))
        except Exception as fault:
            print(type(fault).__name__, fault)
        run(objects(sys.argv[1]).create(f"{sys.argv[1]}/t/small", b"x"))
        """,
        warehouse,
    )
    output, errors = child.communicate(timeout=30)
    assert output.startswith("ObjectsUnavailable Failed to create"), errors
    assert files_below(warehouse) == {"t/small"}


def test_a_full_disk_leaves_nothing(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    """On a file system without room create fails as unavailable, removes its bytes, and smaller files still fit."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mounted)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {mount.stderr.decode(errors='replace').strip()}")
    try:
        objects = LocalObjects([str(mounted)], threads)
        with pytest.raises(ObjectsUnavailable, match="No space left"):
            run(objects.create(f"{mounted}/t/big", b"x" * (2 << 20)))
        assert files_below(mounted) == set()
        run(objects.create(f"{mounted}/t/small", b"x" * 1000))
        assert files_below(mounted) == {"t/small"}
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_cancelled_create_leaves_nothing(objects: LocalObjects, warehouse: Path, threads: ThreadPoolExecutor) -> None:
    """A caller that is cancelled while the thread still writes finds no file afterwards."""

    async def cancel_soon() -> None:
        task = asyncio.create_task(objects.create(f"{warehouse}/t/a", b"x" * (8 << 20)))
        await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for _ in range(5):
        run(cancel_soon())
    threads.shutdown()
    assert files_below(warehouse) == set()


def test_processes_that_race_for_a_name_agree_on_one_winner(warehouse: Path) -> None:
    """Three processes create the same twenty names: each name has one winner and the winner's content."""
    code = """
        store, won = objects(sys.argv[1]), []
        for number in range(20):
            try:
                run(store.create(f"{sys.argv[1]}/t/{number}", sys.argv[2].encode()))
                won.append(number)
            except Exception as fault:
                assert type(fault).__name__ == "ObjectExists", fault
        print(*won)
    """
    children = {name: python(code, warehouse, name) for name in ("one", "two", "three")}
    wins = {name: set(map(int, child.communicate(timeout=60)[0].split())) for name, child in children.items()}
    assert sorted(number for won in wins.values() for number in won) == list(range(20))
    for name, won in wins.items():
        assert all((warehouse / "t" / str(number)).read_text() == name for number in won)


def test_links_that_leave_the_warehouse_are_refused(objects: LocalObjects, warehouse: Path, tmp_path: Path) -> None:
    """A folder or file that is a symbolic link to the outside can be neither read, listed, written nor deleted."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (warehouse / "t").symlink_to(outside)
    (warehouse / "file").symlink_to(outside / "secret")

    async def listed() -> list[str]:
        return [found.location async for found in objects.list(f"{warehouse}/t")]

    for work in (
        objects.read(f"{warehouse}/t/secret"),
        objects.read(f"{warehouse}/file"),
        objects.create(f"{warehouse}/t/new", b"x"),
        objects.create(f"{warehouse}/t/deep/new", b"x"),
        objects.delete(f"{warehouse}/t/secret"),
        objects.prepare(f"{warehouse}/t/folder"),
        listed(),
    ):
        with pytest.raises(Forbidden):
            run(work)
    run(objects.remove_empty_folders(f"{warehouse}/t"))
    assert files_below(outside) == {"secret"}


def test_a_listing_does_not_follow_links(objects: LocalObjects, warehouse: Path, tmp_path: Path) -> None:
    """Links below the listed folder are not entered, so no purge can reach through them."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    (warehouse / "t").mkdir()
    (warehouse / "t" / "link").symlink_to(tmp_path / "other")
    (warehouse / "t" / "file").write_text("x")

    async def listed() -> list[str]:
        return [found.location async for found in objects.list(f"{warehouse}/t")]

    assert run(listed()) == [f"{warehouse}/t/file"]


def test_deleting_a_link_leaves_its_target(objects: LocalObjects, warehouse: Path, tmp_path: Path) -> None:
    """delete removes the link itself."""
    (tmp_path / "kept").write_text("x")
    (warehouse / "link").symlink_to(tmp_path / "kept")
    run(objects.delete(f"{warehouse}/link"))
    assert (tmp_path / "kept").exists()
    assert not (warehouse / "link").is_symlink()


def test_a_linked_warehouse_and_links_between_allowed_places_work(
    warehouse: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    """The warehouse itself may be a link to another disk, and a table's folder may point into an allowed location."""
    big_disk = tmp_path / "disk"
    big_disk.mkdir()
    (tmp_path / "linked").symlink_to(warehouse)
    (warehouse / "moved").symlink_to(big_disk)
    objects = LocalObjects([str(tmp_path / "linked"), str(big_disk)], threads)
    run(objects.create(f"{tmp_path}/linked/t/a", b"1"))
    run(objects.create(f"{tmp_path}/linked/moved/a", b"2"))
    assert run(objects.read(f"{tmp_path}/linked/t/a")) == b"1"
    assert (big_disk / "a").read_bytes() == b"2"


@pytest.mark.parametrize("location", ["{tmp}/elsewhere/a", "{tmp}/wh2/a", "/etc/hostname"])
def test_what_lies_outside_the_roots_is_refused(objects: LocalObjects, tmp_path: Path, location: str) -> None:
    """Even when asked to, the adapter touches nothing that its warehouse does not contain, prefix siblings included."""
    place = location.format(tmp=tmp_path)
    for work in (objects.read(place), objects.create(place, b"x"), objects.delete(place)):
        with pytest.raises(Forbidden):
            run(work)
    assert not (tmp_path / "elsewhere").exists()


def test_climbing_out_of_the_warehouse_is_refused(objects: LocalObjects, warehouse: Path) -> None:
    """`..`, plain or percent-encoded, never reaches the file system."""
    for trick in ("../x", "t/../../x", "%2e%2e/x", "t/..%2f..%2fx"):
        with pytest.raises(BadRequest):
            run(objects.create(f"{warehouse}/{trick}", b"x"))


def test_a_fifo_is_not_an_object(objects: LocalObjects, warehouse: Path) -> None:
    """Reading a named pipe fails at once and does not hang a thread."""
    os.mkfifo(warehouse / "pipe")
    with pytest.raises(ObjectMissing):
        run(asyncio.wait_for(objects.read(f"{warehouse}/pipe"), 5))
    assert run(objects.stat(f"{warehouse}/pipe")) is None


def test_names_that_no_disk_takes_are_the_callers_fault(objects: LocalObjects, warehouse: Path) -> None:
    """A name of 300 bytes, or a folder that is a file, is a BadRequest on create and missing on read."""
    (warehouse / "file").write_text("x")
    for place in (f"{warehouse}/{'n' * 300}/a", f"{warehouse}/file/a"):
        with pytest.raises(BadRequest):
            run(objects.create(place, b"x"))
        with pytest.raises(ObjectMissing):
            run(objects.read(place))
        assert run(objects.stat(place)) is None
        run(objects.delete(place))
    with pytest.raises(BadRequest):
        run(objects.prepare(f"{warehouse}/{'n' * 300}"))


def test_without_permission_the_object_is_unavailable_not_missing(warehouse: Path, tmp_path: Path) -> None:
    """A file that may not be opened, or a folder that may not be written, is never reported as missing."""
    if os.getuid() == 0:
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(0o755)
    (warehouse / "locked").write_text("x")
    (warehouse / "locked").chmod(0)
    warehouse.chmod(0o555)
    child = python(
        """
        if os.getuid() == 0:
            os.setgid(65534); os.setuid(65534)
        store = objects(sys.argv[1])
        for work in (store.read(sys.argv[1] + "/locked"), store.create(sys.argv[1] + "/t/a", b"x"),
                     store.delete(sys.argv[1] + "/locked")):
            try:
                print("done", run(work))
            except Exception as fault:
                print(type(fault).__name__)
        """,
        warehouse,
    )
    output, errors = child.communicate(timeout=30)
    warehouse.chmod(0o755)
    assert output.split() == ["ObjectsUnavailable"] * 3, errors


def test_removing_empty_folders_stops_at_the_warehouse(objects: LocalObjects, warehouse: Path) -> None:
    """Empty folders go, folders with files stay, and the warehouse itself stays even when empty."""
    (warehouse / "t" / "data" / "p=1").mkdir(parents=True)
    (warehouse / "t" / "metadata").mkdir()
    (warehouse / "t" / "metadata" / "kept").write_text("x")
    run(objects.remove_empty_folders(f"{warehouse}/t"))
    assert not (warehouse / "t" / "data").exists()
    assert (warehouse / "t" / "metadata" / "kept").exists()
    (warehouse / "t" / "metadata" / "kept").unlink()
    run(objects.remove_empty_folders(str(warehouse)))
    assert warehouse.is_dir()
    assert list(warehouse.iterdir()) == []


def test_a_folder_removed_behind_our_back_is_made_again(objects: LocalObjects, warehouse: Path) -> None:
    """Another replica may remove an empty folder that this one remembers as made."""
    run(objects.create(f"{warehouse}/t/metadata/1", b"x"))
    (warehouse / "t" / "metadata" / "1").unlink()
    (warehouse / "t" / "metadata").rmdir()
    (warehouse / "t").rmdir()
    run(objects.create(f"{warehouse}/t/metadata/2", b"x"))
    assert files_below(warehouse) == {"t/metadata/2"}


def test_leftovers_are_told_from_files() -> None:
    """A collector finds temporary files by name, and takes nothing else for one."""
    assert is_leftover("/wh/t/metadata/.icekeel-0123456789abcdef.tmp")
    assert is_leftover("file:///wh/.icekeel-00.tmp")
    for name in ("/wh/t/00000-a.metadata.json", "/wh/.icekeel-x.tmp/file", "/wh/t.tmp", "/wh/.icekeel-x"):
        assert not is_leftover(name)


def test_without_hard_links_a_rename_that_cannot_replace_is_used(
    objects: LocalObjects, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On file systems without links create still works, still refuses a taken name, and leaves nothing behind."""

    def no_links(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    run(objects.create(f"{warehouse}/a", b"first"))
    with pytest.raises(ObjectExists):
        run(objects.create(f"{warehouse}/a", b"second"))
    assert (warehouse / "a").read_bytes() == b"first"
    assert files_below(warehouse) == {"a"}


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_an_exclusive_rename_does_not_replace(warehouse: Path) -> None:
    """renameat2 with RENAME_NOREPLACE moves to a free name and fails on a taken one."""
    (warehouse / "a").write_text("a")
    (warehouse / "b").write_text("b")
    with pytest.raises(FileExistsError):
        rename_exclusively(f"{warehouse}/a", f"{warehouse}/b")
    rename_exclusively(f"{warehouse}/a", f"{warehouse}/c")
    assert {path.name: path.read_text() for path in warehouse.iterdir()} == {"b": "b", "c": "a"}
