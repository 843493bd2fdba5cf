"""Server processes for tests: each opens the store by itself and reports on its standard output.

Run as `python -m tests.store.workers JOB PATH ARGUMENT...` from the checkout.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

from app.errors import IcekeelError, SwapLost
from app.ports import Store
from app.store import open_store
from tests.store.acts import HOUSE, get, house, make, space, swap

ROOT = Path(__file__).resolve().parents[2]


def start(job: str, path: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.workers", job, str(path), *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


async def pairs(store: Store, name: str) -> None:
    """Create pairs of tables for ever, two tables in one unit, and print each pair once it is acknowledged."""

    async def one_writer(writer: int) -> None:
        for number in range(1_000_000):
            pair = f"{name}-{writer}-{number}"
            await store.write([make(f"{pair}-left"), make(f"{pair}-right")])
            print(pair, flush=True)

    await asyncio.gather(*(one_writer(writer) for writer in range(8)))


async def count_up(store: Store, name: str, writers: str, swaps: str) -> None:
    """Many writers in one process: each swaps a table of its own and the one that all processes share."""

    async def one_writer(writer: int) -> None:
        own = f"{name}-{writer}"
        await store.write([make(own)])
        for number in range(int(swaps)):
            await store.write([swap(await get(store, own), f"{own}-{number + 1}")])
        while True:
            shared = await get(store, "shared")
            try:
                await store.write([swap(shared, f"{own} over {shared.version}")])
                return
            except SwapLost:
                await asyncio.sleep(0)

    await asyncio.gather(*(one_writer(writer) for writer in range(int(writers))))


async def fill(store: Store, limit: str) -> None:
    """Write until the file system refuses, then make room: print what was acknowledged and what was refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
    number = 0
    while True:
        name = f"t{number}"
        try:
            await store.write([make(name), space(f"{name} {'x' * 4000}")])
        except IcekeelError as error:
            print("refused", name, type(error).__name__, flush=True)
            break
        print("stored", name, flush=True)
        number += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.write([make("after")])
    print("stored after", flush=True)


async def first_start(store: Store) -> None:
    """Open is all."""
    found = await store.warehouse(HOUSE)
    if found is None:
        try:
            await store.write([house()])
        except IcekeelError as error:
            print(type(error).__name__, flush=True)


async def _main(job: str, path: str, *arguments: str) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    try:
        await JOBS[job](store, *arguments)  # type: ignore[operator]
    finally:
        await store.close()


JOBS = {"pairs": pairs, "count_up": count_up, "fill": fill, "first_start": first_start}

if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
