"""What is measured: each workload makes a job for the load generator (`bench/load.py`) from a seeded target."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import tables
from bench.targets import Target

Json = dict[str, Any]
Made = Callable[[Target], Json]
DISTANT = 10_000_000
"""Counters of different rounds never meet."""
GZIP = {"Accept-Encoding": "gzip"}
"""What comes back is not unpacked by the generator, and a server that sends it plain is measured as it is."""


@dataclass(frozen=True, slots=True)
class Workload:
    """`job` makes the generator's script; `targets` names the ones it is for (empty: all of them).

    With `history` it says something only of a server that keeps the snapshots of a table. `floor` is what the floors of
    the stack are asked for beside it: as many bytes as our server answers, or a status without a body.
    """

    name: str
    job: Made
    targets: tuple[str, ...] = ()
    clients: int = 8
    seconds: float | None = 0.7
    count: int | None = None
    warm_count: int | None = None
    rate: float | None = None
    history: bool = False
    floor: int | None = None
    options: Json = field(default_factory=dict)

    def plan(self, target: Target, *, scale: float, warm_seconds: float) -> Json:
        """The whole job. Commit workloads send a fixed number of requests, so that every document grows alike."""
        if self.history and not target.history:
            raise LookupError("it keeps only the current snapshot of a table")
        job = {
            "host": f"{target.host}:{target.port}",
            "address": target.host,
            "port": target.port,
            "pid": target.pid,
            "clients": self.clients,
            **(self.job(target) if target.name not in FLOORS else _floor(self.floor)),
            **self.options,
        }
        if self.count is not None:
            return {**job, "count": max(1, int(self.count * scale)), "warm_count": self.warm_count or 3}
        job |= {"seconds": (self.seconds or 0.7) * scale, "warm_seconds": warm_seconds}
        return {**job, "rate": self.rate} if self.rate else job


def _get(path: Callable[[Target], str], method: str = "GET", **extra: Any) -> Made:
    return lambda target: {"scripts": [{"requests": [{"method": method, "path": path(target), **extra}]}]}


def _table(name: str, query: str = "", space: str = tables.SPACE) -> Callable[[Target], str]:
    return lambda target: target.path(f"namespaces/{space}/tables/{name}{query}")


def _not_modified(name: str) -> Made:
    """Revalidation with the tag of a load before; a server without ETag cannot run this."""

    def made(target: Target) -> Json:
        tag = target.header(_table(name)(target), "ETag")
        if tag is None:
            raise LookupError("it sends no ETag")
        request = {"method": "GET", "path": _table(name)(target), "headers": {"If-None-Match": tag}, "expect": [304]}
        return {"scripts": [{"requests": [request]}]}

    return made


def _commit(name: str, updates: list[Json], requirements: list[Json] | None = None) -> Callable[[Target], Json]:
    body = json.dumps({"requirements": requirements or [], "updates": updates})
    body = body.replace('"@N@"', "@N@").replace('"@P@"', "@P@")
    return lambda target: {"method": "POST", "path": _table(name)(target), "body": body}


def _set(value: str) -> list[Json]:
    return [{"action": "set-properties", "updates": {"commit": f"number {value}"}}]


def _properties(target: Target) -> Json:
    return {"scripts": [{"requests": [_commit("properties", _set("@N@"))(target)], "start": target.round * DISTANT}]}


def _add_schema(target: Target) -> Json:
    """Each commit renames the last column: a new schema, made current, of the table with 100 snapshots."""
    # An id that no schema has yet, as engines send it; Nessie refuses others. Servers give out ids of their own.
    fresh = {**tables.schema("renamed_@N@"), "schema-id": "@N@"}
    updates: list[Json] = [
        {"action": "add-schema", "schema": fresh},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    name = _fresh(target, "schema", 100)
    return {"scripts": [{"requests": [_commit(name, updates)(target)], "start": target.round * DISTANT}]}


def _fresh(target: Target, stem: str, snapshots: int) -> str:
    """A table of this slice alone: what commits leave in it would make the next slice measure something else."""
    name = f"{stem}_{target.round}"
    tables.make(target, tables.SPACE, name, snapshots)
    return name


def _append(table: str | int, headers: Json | None = None) -> Made:
    """The next snapshot on main, as an engine appends: one client, the numbers run on from what the table has.

    A number is that of the snapshots of a fresh table.
    """

    def made(target: Target) -> Json:
        name = table if isinstance(table, str) else _fresh(target, f"a{table}", table)
        loaded = target.must("GET", _table(name)(target))["metadata"]
        last = loaded["last-sequence-number"]
        if loaded["current-snapshot-id"] != tables.FIRST_SNAPSHOT + last:
            raise RuntimeError(f"{target.name}: {name} is not where the last round should have left it")
        fresh = {**tables.snapshot(7, loaded["last-updated-ms"], loaded["location"]), "sequence-number": "@S@"}
        fresh |= {"snapshot-id": "@N@", "parent-snapshot-id": "@P@"}
        updates: list[Json] = [
            {"action": "add-snapshot", "snapshot": fresh},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": "@N@"},
        ]
        requirements = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "@P@"}]
        request = _commit(name, updates, requirements)(target)
        # Snapshot ids count on from FIRST_SNAPSHOT, so the last digits of the id are the sequence number.
        request["body"] = request["body"].replace('"@S@"', "@S@")
        request["headers"] = headers or {}
        start = {"start": tables.FIRST_SNAPSHOT + last, "sequence_base": tables.FIRST_SNAPSHOT}
        return {"scripts": [{"requests": [request], **start}]}

    return made


def _many(target: Target) -> Json:
    return {
        "scripts": [
            {"requests": [_commit(f"many{at}", _set("@N@"))(target)], "start": target.round * DISTANT}
            for at in range(tables.MANY)
        ]
    }


def _spread(target: Target) -> Json:
    """Loads of as many tables as there are: what many callers at once cost a server that asks a database."""
    return {
        "scripts": [{"requests": [{"method": "GET", "path": _table(f"many{at}")(target)}]} for at in range(tables.MANY)]
    }


def _spread_tags(target: Target) -> Json:
    """Revalidations of the same tables."""
    made = [_not_modified(f"many{at}")(target)["scripts"] for at in range(tables.MANY)]
    return {"scripts": [script for scripts in made for script in scripts]}


def _hot(target: Target) -> Json:
    path = _table(_fresh(target, "hot", 5))(target)
    return {
        "script": "contend",
        "scripts": [{"requests": [{"method": "GET", "path": path}, {"method": "POST", "path": path}]}],
    }


def _transaction(target: Target) -> Json:
    changes = [
        {
            "identifier": {"namespace": [tables.SPACE], "name": f"tx{at}"},
            "requirements": [],
            "updates": _set("@N@"),
        }
        for at in range(10)
    ]
    request = {
        "method": "POST",
        "path": target.path("transactions/commit"),
        "body": json.dumps({"table-changes": changes}),
        "expect": [204, 200],
    }
    return {"scripts": [{"requests": [request], "start": target.round * DISTANT}]}


def _create_and_drop(target: Target) -> Json:
    """A pair counts as two requests."""
    create = {
        "method": "POST",
        "path": target.path(f"namespaces/{tables.SPACE}/tables"),
        "body": json.dumps({"name": "passing_@N@", "schema": tables.schema(), "stage-create": False}),
    }
    drop = {"method": "DELETE", "path": _table("passing_@N@")(target), "expect": [204]}
    return {"scripts": [{"requests": [create, drop], "start": target.round * DISTANT, "stride": 100_000}]}


def _floor(asked: int | None) -> Json:
    """A body of that many bytes, or none with that status."""
    status = asked if asked in (204, 304) else 200
    return {"scripts": [{"requests": [{"method": "GET", "path": f"/{asked}", "expect": [status]}]}]}


def _listing(space: str, query: str) -> Made:
    return _get(lambda target: target.path(f"namespaces/{space}/tables{query}"))


def _middle(space: str, size: int) -> Made:
    """The page after the first, by the token that the first gave out."""

    def made(target: Target) -> Json:
        path = target.path(f"namespaces/{space}/tables?pageSize={size}&pageToken=")
        token = target.must("GET", path).get("next-page-token")
        if not token:
            raise LookupError("it gives out no page token")
        return {"scripts": [{"requests": [{"method": "GET", "path": path + token}]}]}

    return made


def _warming(target: Target) -> Json:
    return {"scripts": [{"requests": [_commit(tables.WARM, _set("@N@"))(target)]}]}


WARMING: tuple[Workload, ...] = (
    Workload("loads", _get(_table("t5")), count=1_250, options={"seconds": 30.0}),
    Workload("commits", _warming, clients=1, count=1_000, options={"seconds": 30.0}),
)
"""Sent to a JVM before anything is measured, each until the count or the time is reached."""

OWN = ("icekeel", "icekeel-before")
FLOORS = ("floor", "floor-bare")
"""The stack without us: with one SELECT for each request, and with none."""
COLD = ("icekeel-cold",)

ALL: tuple[Workload, ...] = (
    Workload("config", _get(lambda target: f"{target.base}/v1/config")),
    Workload("load 5 snapshots", _get(_table("t5")), floor=5_200),
    Workload("load 5 snapshots, open loop", _get(_table("t5")), rate=100, clients=16),
    Workload("load 1,000 snapshots", _get(_table("t1000")), clients=4, history=True, floor=587_000),
    Workload("load 10,000 snapshots", _get(_table("t10000")), clients=2, seconds=1.0, history=True, floor=5_900_000),
    Workload("load 1,000 snapshots, gzip", _get(_table("t1000"), headers=GZIP), clients=4, history=True),
    Workload("load 10,000 snapshots, gzip", _get(_table("t10000"), headers=GZIP), clients=2, seconds=1.0, history=True),
    Workload("load 5 snapshots, cold", _get(_table("t5")), COLD),
    Workload("load 1,000 snapshots, cold", _get(_table("t1000")), COLD, clients=2),
    Workload("load 1,000 snapshots, refs", _get(_table("t1000", "?snapshots=refs")), history=True),
    Workload("304, 5 snapshots", _not_modified("t5"), floor=304),
    Workload("304, 10,000 snapshots", _not_modified("t10000"), history=True),
    Workload("HEAD, 5 snapshots", _get(_table("t5"), "HEAD", expect=[200, 204]), floor=204),
    Workload("HEAD, 10,000 snapshots", _get(_table("t10000"), "HEAD", expect=[200, 204]), history=True),
    Workload("list 1,000 tables", _listing(tables.LISTED, ""), clients=4),
    Workload("list page of 100 in 1,000", _middle(tables.LISTED, 100)),
    Workload("list page of 100 in 1,000,000", _middle(tables.MILLION, 100), OWN),
    Workload("commit set-properties", _properties, clients=1, seconds=None, count=150),
    Workload("commit add-schema", _add_schema, clients=1, seconds=None, count=60),
    Workload("commit append, 10 snapshots", _append(10), clients=1, seconds=None, count=50),
    Workload("commit append, 1,000 snapshots", _append("a1000"), clients=1, seconds=None, count=80, history=True),
    Workload("commit append, 10,000 snapshots", _append("a10000"), clients=1, seconds=None, count=25, history=True),
    Workload(
        "commit append, 10,000 snapshots, gzip",
        _append(tables.PACKED, GZIP),
        clients=1,
        seconds=None,
        count=25,
        history=True,
    ),
    Workload("load 32 tables, 64 clients", _spread, clients=64),
    Workload("304 of 32 tables, 64 clients", _spread_tags, clients=64),
    Workload("32 clients on 32 tables", _many, clients=32, seconds=None, count=12),
    Workload("32 clients on one table", _hot, clients=32, seconds=10.0),
    Workload("transaction of 10 tables", _transaction, clients=1, seconds=None, count=25),
    Workload("create and drop", _create_and_drop, clients=4, seconds=None, count=40),
)
