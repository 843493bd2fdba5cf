"""What a server's processes cost, from /proc: CPU seconds and resident memory of a process and all its descendants."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def _fields(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def tree(root: int) -> list[int]:
    """`root` and every living descendant."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _fields(int(entry))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, at = [root], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of these processes' living threads, to the nanosecond where the scheduler keeps it.

    The plain count comes in ticks of 10 ms, too coarse for a slice of a second. A thread that ends in between takes its
    time with it; the servers here keep theirs.
    """
    total = 0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except OSError:
            continue
    return total / 1e9 if total else _ticks(pids) / TICKS


def _ticks(pids: list[int]) -> int:
    return sum(int(fields[11]) + int(fields[12]) for pid in pids if (fields := _fields(pid)) is not None)


def resident_mb(pids: list[int]) -> float:
    """Resident megabytes (10^6 bytes). Pages that workers share count once for each of them."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * PAGE / 1e6


def listener(port: int) -> int | None:
    """The process of this machine that listens on a TCP port, as far as this user may look."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    owners = []
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(handle) in inodes:
                owners.append(int(handle.parts[2]))
        except OSError:
            continue
    # A parent opened the socket and its workers inherited it: the root of the tree is the eldest.
    return min(owners, default=None)
