"""Giving a finished file its name, without ever replacing another file."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1

_NO_HARD_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def name_exclusively(temporary: str, path: str) -> None:
    """Make the file `temporary` appear as `path`; FileExistsError if that name is taken, which is left as it is.

    A hard link does it everywhere but on file systems without links (FAT, some network and FUSE mounts); there
    Linux's renameat2 with RENAME_NOREPLACE does. `temporary` may or may not be gone afterwards. Where neither is
    offered this fails: a plain rename could silently replace a file that another server just created.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as fault:
        if fault.errno not in _NO_HARD_LINKS:
            raise
        rename_exclusively(temporary, path)


def rename_exclusively(temporary: str, path: str) -> None:
    """Linux's renameat2(RENAME_NOREPLACE); OSError ENOTSUP where the C library or the file system has none."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)
    if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(path), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
