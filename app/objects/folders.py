"""Folders on a disk that survive a power cut."""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from threading import Lock
from typing import Final

_REMEMBERED_FOLDERS: Final = 20_000


class DurableFolders:
    """Makes folders that survive a power cut, and remembers which ones this process has already seen to.

    A folder found in place may be so new that its maker has not yet fsynced the parent, so the first sight of a
    folder costs one fsync per level up to the root; later ones cost nothing.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def make(self, folder: str, root: str) -> None:
        """Make `folder` and what is missing above it. `root` is where looking at existing ancestors ends."""
        with self._lock:
            if folder in self._seen:
                self._seen.move_to_end(folder)
                return
        unsure = _make_missing(folder)
        level = folder
        while within(root, level) and level != "/" and (level in unsure or level not in self._seen):
            unsure.add(level)
            level = os.path.dirname(level)
        for level in unsure:
            parent = os.path.dirname(level)
            sync_folder(parent, strict=within(root, parent))
        with self._lock:
            for level in unsure:
                self._seen[level] = None
            while len(self._seen) > _REMEMBERED_FOLDERS:
                self._seen.popitem(last=False)

    def forget(self, folder: str) -> None:
        with self._lock:
            self._seen.pop(folder, None)


def _make_missing(folder: str) -> set[str]:
    """Make `folder` with its missing ancestors; returns what was made."""
    if os.path.isdir(folder):
        return set()
    parent = os.path.dirname(folder)
    made = _make_missing(parent) if parent != folder else set()
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
    return made | {folder}


def sync_folder(folder: str, *, strict: bool) -> None:
    """`strict` is false above the root, where this process may have no right to open folders."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        if strict:
            raise


def within(root: str, path: str) -> bool:
    return path == root or path.startswith("/" if root == "/" else root + "/")
