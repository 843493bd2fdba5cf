"""What a commit cannot save: the CPU time of creating, writing, syncing and naming one file of so many bytes."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

_ROUNDS = 9


def write_us(size: int) -> float:
    """CPU microseconds, median of several files in a folder of their own, on the disk that the servers write to."""
    data = os.urandom(1 << 20) * (size // (1 << 20) + 1)
    spent = []
    with tempfile.TemporaryDirectory(prefix="bench-disk-") as name:
        folder = os.open(name, os.O_RDONLY)
        try:
            for turn in range(_ROUNDS):
                began = time.process_time_ns()
                _write(Path(name) / f"{turn}", memoryview(data)[:size], folder)
                spent.append((time.process_time_ns() - began) / 1000)
        finally:
            os.close(folder)
    return statistics.median(spent)


def _write(path: Path, data: memoryview, folder: int) -> None:
    temporary = path.with_suffix(".tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    os.link(temporary, path)
    os.unlink(temporary)
    os.fsync(folder)
