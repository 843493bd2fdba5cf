"""Whether anybody has committed to a SQLite file, asked of shared memory instead of a statement.

In write-ahead mode every commit, by whichever process, ends by writing the header of the wal-index, the memory that all
connections share (sqlite.org/walformat.html, 2.1). SQLite itself takes an unchanged header as proof that the pages it
remembers are still those of the file: by the same proof a row that was read under this header is the row of now. A
statement asks the system for a lock and gives it back, which costs more than all the rest of a short read.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER: Final = 48
_VERSION: Final = 3_007_000
_MAPPED: Final = 4096

# version, unused, change counter, initialised: what every release since write-ahead logging has put at the front.
_FRONT: Final = struct.Struct("=IIIB")


@dataclass(slots=True)
class _Mapping:
    memory: mmap.mmap
    handle: int
    users: int = 0


_lock: Final = threading.Lock()
_mapped: Final[dict[tuple[int, int], _Mapping]] = {}


class WalIndex:
    """The header of the wal-index of one database file.

    Open it when a connection of this process has read the file, and close it when the last one is closed, never before:
    closing any descriptor of the shared memory drops the locks by which connections of this process hold it, and the
    next process to come would take it for its own. Several of one process on one file share a mapping for that reason.
    """

    def __init__(self, database: Path) -> None:
        # Beside the file itself, as SQLite has it: what lies beside a link to it was left by another file.
        found = database.resolve()
        self._key, self._memory = _open(found.with_name(found.name + "-shm"))

    def close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            _close(self._key)

    def stamp(self) -> bytes | None:
        """Changes with every commit; None while one is being written, and where the header cannot be understood."""
        memory = self._memory
        if memory is None:
            return None
        # Writers fill the second copy first: equal copies are complete.
        first, second = memory[:_HEADER], memory[_HEADER : 2 * _HEADER]
        if first != second:
            return None
        version, _, _, initialised = _FRONT.unpack_from(first)
        return first if version == _VERSION and initialised == 1 else None

    def still(self, stamp: bytes) -> bool:
        """Whether nobody has committed since `stamp`."""
        memory = self._memory
        return memory is not None and memory[: 2 * _HEADER] == stamp * 2


def _open(path: Path) -> tuple[tuple[int, int], mmap.mmap | None]:
    """The shared mapping of a file; none where the system has no such memory, or not in this form."""
    with _lock:
        try:
            found = path.stat()
            key = (found.st_dev, found.st_ino)
            held = _mapped.get(key)
            if held is None:
                if found.st_size < _MAPPED:
                    return key, None
                # A descriptor that cannot be mapped stays open all the same: see above.
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                held = _Mapping(mmap.mmap(handle, _MAPPED, prot=mmap.PROT_READ), handle)
                _mapped[key] = held
        except (OSError, ValueError):
            return (0, 0), None
        held.users += 1
        return key, held.memory


def _close(key: tuple[int, int]) -> None:
    with _lock:
        held = _mapped[key]
        held.users -= 1
        if held.users == 0:
            del _mapped[key]
            held.memory.close()
            os.close(held.handle)
