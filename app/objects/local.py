"""Objects on local disks: durable, create-only, never seen half-written.

`create` writes a temporary file in the target's own folder, fsyncs it, gives it its final name with a hard link
(which fails when the name is taken, unlike a rename), and fsyncs the folder, so an acknowledged file survives a power
cut under its name. A crash leaves at most a temporary file; `is_leftover` tells it from everything else.

Locations are resolved twice: `catalog` compares them as text, and this adapter follows symbolic links and refuses
whatever ends outside the roots it was given. That stops links that exist; it does not stop another process with
write access to the warehouse from swapping a folder for a link in the very moment of an operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import islice
from typing import Final, ParamSpec, TypeVar

from app.errors import BadRequest, Forbidden, ObjectExists, ObjectMissing, ObjectsUnavailable, PayloadTooLarge
from app.objects.exclusive import name_exclusively
from app.objects.folders import DurableFolders, sync_folder, within
from app.ports import Folder, ObjectStat
from app.spec.location import local_path

LEFTOVER_PREFIX: Final = ".icekeel-"
LEFTOVER_SUFFIX: Final = ".tmp"

_LIST_BATCH: Final = 512

P = ParamSpec("P")
R = TypeVar("R")


def is_leftover(location: str) -> bool:
    """Whether this is the temporary file of a `create` that was cut short (or is running right now)."""
    name = location.rpartition("/")[2]
    return name.startswith(LEFTOVER_PREFIX) and name.endswith(LEFTOVER_SUFFIX)


class LocalObjects:
    """`ports.Objects` over a file system. `roots` are the absolute paths under which it may act.

    `home`, the warehouse's own folder, is never made by the way: where it is not there, a disk is probably not mounted,
    and no file below it is called missing or made. Allowed locations beside it are made when they are first used.
    """

    local = True

    def __init__(self, roots: Sequence[str], executor: Executor, home: str | None = None) -> None:
        self._roots = tuple(_tidy(root) for root in roots)
        self._home = None if home is None else _tidy(home)
        self._executor = executor
        self._durable = DurableFolders()

    async def read(self, location: str, *, limit: int | None = None) -> bytes:
        return await self._run(self._read, location, 0, None, limit)

    async def read_range(self, location: str, start: int, length: int) -> bytes:
        return await self._run(self._read, location, start, length, None)

    def vanished(self, location: str) -> bool:
        """For every load: `access` costs half of what `stat` does, which has a say only when something is amiss."""
        return not os.access(local_path(location), os.F_OK) and self._stat(location) is None

    async def stat(self, location: str) -> ObjectStat | None:
        """Inline: one system call, a few microseconds, against fifty for a hop to a thread."""
        return self._stat(location)

    def _stat(self, location: str) -> ObjectStat | None:
        try:
            found = os.stat(local_path(location))
        except OSError as fault:
            if _means_missing(fault):
                self._check_mounted(location)
                return None
            raise _unavailable("stat", location, fault) from fault
        return _stat_of(location, found) if stat.S_ISREG(found.st_mode) else None

    async def create(self, location: str, data: bytes) -> None:
        """A caller that is cancelled meanwhile gets no file: what the thread still creates is removed again."""
        work = self._executor.submit(self._create, location, data)
        try:
            await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            work.add_done_callback(lambda done: self._discard(location, done))
            raise

    async def delete(self, location: str) -> None:
        await self._run(self._delete, location)

    async def list(self, prefix: str) -> AsyncIterator[ObjectStat]:
        """Regular files only; symbolic links are neither listed nor entered."""
        walk = self._walk(prefix)
        while batch := await self._run(lambda: tuple(islice(walk, _LIST_BATCH))):
            for found in batch:
                yield found

    async def look(self, location: str) -> Folder:
        return await self._run(self._look, location)

    async def prepare(self, location: str) -> None:
        await self._run(self._prepare, location)

    async def remove_empty_folders(self, location: str) -> None:
        await self._run(self._remove_empty_folders, location)

    async def resolved(self, location: str) -> str:
        return await self._run(self._resolved, location)

    async def establish(self, location: str) -> None:
        await self._run(self._establish, location)

    async def check_root(self, location: str) -> None:
        await self._run(self._check_mounted, location)

    # --- in threads ------------------------------------------------------------------------------------------

    async def _run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    def _inside(self, location: str, *, follow: bool = True) -> tuple[str, str]:
        """The path of `location` and its root, with links resolved; the last component's own link only if `follow`."""
        path = _tidy(local_path(location))
        if any(within(root, path) for root in self._roots):
            folder, name = os.path.split(path)
            real = os.path.realpath(path) if follow else os.path.join(os.path.realpath(folder), name)
            for root in map(os.path.realpath, self._roots):
                if within(root, real):
                    return real, root
        raise Forbidden(f"Location is outside the warehouse and the allowed locations: {location}", location=location)

    def _check_mounted(self, location: str) -> None:
        home = self._home
        if home is not None and within(home, _tidy(local_path(location))) and not os.path.isdir(home):
            raise ObjectsUnavailable(
                f"The warehouse folder {home} is not there; is its disk mounted?", location=location
            )

    def _resolved(self, location: str) -> str:
        """Also where a root is a link itself: another warehouse may be what it leads to."""
        real, _ = self._inside(location)
        return location if real == _tidy(local_path(location)) else real

    def _establish(self, location: str) -> None:
        try:
            path = _tidy(local_path(location))
            self._durable.forget(path)
            self._durable.make(path, path)
        except OSError as fault:
            raise _failed_to_make("create", location, fault) from fault

    def _read(self, location: str, start: int, length: int | None, limit: int | None) -> bytes:
        try:
            path, _ = self._inside(location)
            # Without O_NONBLOCK, opening a FIFO would hang the thread for good.
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode):
                    raise ObjectMissing(location)
                if limit is not None and found.st_size > limit:
                    raise too_large(location, found.st_size, limit)
                return _read_all(handle, start, found.st_size - start if length is None else length)
            finally:
                os.close(handle)
        except OSError as fault:
            if _means_missing(fault):
                self._check_mounted(location)
                raise ObjectMissing(location) from fault
            raise _unavailable("read", location, fault) from fault

    def _create(self, location: str, data: bytes) -> None:
        try:
            path, root = self._inside(location, follow=False)
            folder = os.path.dirname(path)
            self._check_mounted(location)
            self._durable.make(folder, root)
            try:
                _write_exclusively(folder, path, data)
            except FileNotFoundError:
                # Another process removed the folder as empty since it was last seen.
                self._check_mounted(location)
                self._durable.forget(folder)
                self._durable.make(folder, root)
                _write_exclusively(folder, path, data)
        except FileExistsError as fault:
            raise ObjectExists(f"Object already exists: {location}", location=location) from fault
        except OSError as fault:
            raise _failed_to_make("create", location, fault) from fault

    def _discard(self, location: str, done: Future[None]) -> None:
        if not done.cancelled() and done.exception() is None:
            self._delete(location)

    def _delete(self, location: str) -> None:
        try:
            path, _ = self._inside(location, follow=False)
            os.unlink(path)
        except OSError as fault:
            if not _means_missing(fault):
                raise _unavailable("delete", location, fault) from fault
            self._check_mounted(location)

    def _walk(self, prefix: str) -> Iterator[ObjectStat]:
        try:
            top, _ = self._inside(prefix)
        except OSError as fault:
            raise _unavailable("list", prefix, fault) from fault
        pending = [(top, prefix.rstrip("/"))]
        while pending:
            folder, spelled = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    children = list(entries)
            except OSError as fault:
                if _means_missing(fault):
                    self._check_mounted(prefix)
                    continue
                raise _unavailable("list", prefix, fault) from fault
            for child in children:
                with contextlib.suppress(FileNotFoundError):
                    if child.is_dir(follow_symlinks=False):
                        pending.append((child.path, f"{spelled}/{child.name}"))
                    elif child.is_file(follow_symlinks=False):
                        yield _stat_of(f"{spelled}/{child.name}", child.stat(follow_symlinks=False))

    def _look(self, location: str) -> Folder:
        spelled = location.rstrip("/")
        folders: list[str] = []
        objects: list[ObjectStat] = []
        try:
            top, _ = self._inside(location)
            with os.scandir(top) as entries:
                for child in entries:
                    with contextlib.suppress(FileNotFoundError):
                        if child.is_dir(follow_symlinks=False):
                            folders.append(f"{spelled}/{child.name}")
                        elif child.is_file(follow_symlinks=False):
                            objects.append(_stat_of(f"{spelled}/{child.name}", child.stat(follow_symlinks=False)))
        except OSError as fault:
            if not _means_missing(fault):
                raise _unavailable("list", location, fault) from fault
            self._check_mounted(location)
        return Folder(folders=tuple(sorted(folders)), objects=tuple(objects))

    def _prepare(self, location: str) -> None:
        try:
            path, root = self._inside(location)
            self._check_mounted(location)
            self._durable.make(path, root)
        except OSError as fault:
            raise _failed_to_make("prepare", location, fault) from fault

    def _remove_empty_folders(self, location: str) -> None:
        with contextlib.suppress(OSError, Forbidden):
            top, root = self._inside(location)
            for folder, _, _ in os.walk(top, topdown=False, followlinks=False):
                if folder != root:
                    self._durable.forget(folder)
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)


def too_large(location: str, size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"File is {size} bytes long, more than the limit of {limit}: {location}", location=location)


def _tidy(path: str) -> str:
    return path.rstrip("/") or "/"


def _means_missing(fault: OSError) -> bool:
    return fault.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO)


def _unavailable(doing: str, location: str, fault: OSError) -> ObjectsUnavailable:
    return ObjectsUnavailable(
        f"Failed to {doing} {location}: {os.strerror(fault.errno or errno.EIO)}", location=location
    )


def _failed_to_make(doing: str, location: str, fault: OSError) -> BadRequest | ObjectsUnavailable:
    """Names that no disk will ever take are the caller's fault, the rest may pass."""
    if fault.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP):
        return BadRequest(f"Not a usable location: {location}: {os.strerror(fault.errno)}", location=location)
    return _unavailable(doing, location, fault)


def _stat_of(location: str, found: os.stat_result) -> ObjectStat:
    return ObjectStat(
        location=location,
        size=found.st_size,
        modified_ms=found.st_mtime_ns // 1_000_000,
        leftover=is_leftover(location),
    )


def _read_all(handle: int, start: int, length: int) -> bytes:
    pieces: list[bytes] = []
    while length > 0:
        piece = os.pread(handle, length, start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return b"".join(pieces)


def _write_exclusively(folder: str, path: str, data: bytes) -> None:
    """Leaves nothing behind when it fails, unless the process is killed."""
    temporary = os.path.join(folder, f"{LEFTOVER_PREFIX}{secrets.token_hex(8)}{LEFTOVER_SUFFIX}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        name_exclusively(temporary, path)
    except BaseException:
        _unlink_quietly(temporary)
        raise
    _unlink_quietly(temporary)
    try:
        sync_folder(folder, strict=True)
    except OSError:
        _unlink_quietly(path)
        raise


def _unlink_quietly(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
