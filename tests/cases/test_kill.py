"""Kill -9 at random points: what was answered is there after the restart, the rest is there whole or not at all."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, Table, add_snapshot, set_properties, set_ref, snapshot, unique
from tests.server import Server

Json = Any
SIMPLE = schema("1:id long!, 2:v string")
COMMITS, ROUNDS, SECONDS = 200, 4, 100.0


class Ledger:
    """What the writers asked for and what was answered."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answered: dict[str, list[Table]] = {}
        self.refused: dict[str, list[Table]] = {}
        self.open: dict[str, list[Table]] = {}
        self.created: set[str] = set()
        self.creating: set[str] = set()

    def begin(self, mark: str, tables: list[Table]) -> None:
        with self.lock:
            self.open[mark] = tables

    def end(self, mark: str, status: int) -> None:
        with self.lock:
            if status in (200, 204):
                self.answered[mark] = self.open.pop(mark)
            elif status < 500:
                self.refused[mark] = self.open.pop(mark)


MARKS = itertools.count(1)


def marked(mark: str) -> Json:
    """One update that leaves two traces: half of it would be seen."""
    return set_properties(**{f"{mark}.a": mark, f"{mark}.b": mark})


def commits(ledger: Ledger, table: Table, location: str) -> None:
    """One property commit with a snapshot of its own."""
    number = next(MARKS)
    mark = f"m{number}"
    ledger.begin(mark, [table])
    extra = [add_snapshot(snapshot(location, number, None, number)), set_ref(f"b{number}", number)]
    ledger.end(mark, table.post([], [marked(mark), *extra]).status_code)


def transactions(ledger: Ledger, tables: list[Table]) -> None:
    """One commit over all tables."""
    mark = f"x{next(MARKS)}"
    ledger.begin(mark, tables)
    ledger.end(mark, tables[0].catalog.transaction(*((t, [], [marked(mark)]) for t in tables)).status_code)


def creates(ledger: Ledger, catalog: Catalog, space: tuple[str, ...]) -> None:
    name = unique("made")
    with ledger.lock:
        ledger.creating.add(name)
    if catalog.post_create(space, name, SIMPLE).status_code == 200:
        with ledger.lock:
            ledger.created.add(name)


def until_killed(step: Callable[[], None]) -> threading.Thread:
    def loop() -> None:
        try:
            while True:
                step()
        except httpx.TransportError:
            return

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def check(ledger: Ledger, catalog: Catalog, space: tuple[str, ...], tables: list[Table]) -> None:
    """The state after a restart agrees with what was answered."""
    state = {table.name: table.metadata() for table in tables}
    for table in tables:
        assert table.stored() == state[table.name]
        line = [e["metadata-file"] for e in state[table.name]["metadata-log"]] + [table.location_of_metadata()]
        assert len(set(line)) == len(line)
        assert len(state[table.name]["snapshots"]) == len(state[table.name]["refs"])

    def traces(mark: str, table: Table) -> list[str | None]:
        metadata = state[table.name]
        out = [metadata["properties"].get(f"{mark}.{side}") for side in "ab"]
        if mark.startswith("m"):
            number = int(mark[1:])
            out.append(mark if number in {s["snapshot-id"] for s in metadata["snapshots"]} else None)
            out.append(mark if f"b{number}" in metadata["refs"] else None)
        return out

    for mark, touched in ledger.answered.items():
        assert {t for table in touched for t in traces(mark, table)} == {mark}, f"{mark} was answered but is not there"
    for mark, touched in ledger.refused.items():
        assert {t for table in touched for t in traces(mark, table)} == {None}, f"{mark} was refused but is there"
    for mark, touched in ledger.open.items():
        found = {t for table in touched for t in traces(mark, table)}
        assert len(found) == 1, f"{mark} is there by halves"
    listed = catalog.http.get(f"{catalog.namespace_path(space)}/tables").json()["identifiers"]
    names = {item["name"] for item in listed} - set(state)
    assert ledger.created <= names <= ledger.creating
    for name in sorted(names)[:20]:
        created = catalog.table(space, name)
        assert created.stored() == created.metadata()


@pytest.mark.timeout(180)
def test_kill_at_random_points_of_two_hundred_commits(tmp_path: Path) -> None:
    """Commits, transactions and creates run in parallel while the server is killed again and again."""
    rng = random.Random(20260101)
    ledger = Ledger()
    server = Server(tmp_path / "home").start()
    try:
        with server.client() as http:
            catalog = Catalog(http, server.warehouse)
            space = catalog.namespace()
            tables = [catalog.create(space, SIMPLE) for _ in range(3)]
            where = [table.metadata()["location"] for table in tables]
        deadline, rounds = time.monotonic() + SECONDS, 0
        while len(ledger.answered) < COMMITS or rounds < ROUNDS:
            assert time.monotonic() < deadline, f"{len(ledger.answered)} commits in {rounds} rounds"
            with server.client() as http:
                now = Catalog(http, server.warehouse)
                mine = [now.table(space, table.name) for table in tables]
                threads = [
                    *(until_killed(partial(commits, ledger, t, w)) for t, w in zip(mine, where, strict=True)),
                    until_killed(partial(commits, ledger, mine[0], where[0])),
                    until_killed(partial(transactions, ledger, mine[:2])),
                    until_killed(partial(creates, ledger, now, space)),
                ]
                time.sleep(rng.uniform(0.1, 1.6))
                server.kill()
                for thread in threads:
                    thread.join()
            server.start()
            rounds += 1
            with server.client() as http:
                check(
                    ledger,
                    Catalog(http, server.warehouse),
                    space,
                    [Catalog(http, server.warehouse).table(space, table.name) for table in tables],
                )
            ledger.open.clear()
        with server.client() as http:
            table = Catalog(http, server.warehouse).table(space, tables[0].name)
            assert table.commit([set_properties(after="1")])["properties"]["after"] == "1"
    finally:
        server.stop()
