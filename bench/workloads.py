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


@dataclass(frozen=True, slots=True)
class Workload:
    """`job` makes the generator's script; `targets` names the ones it is for (empty: all of them)."""

    name: str
    job: Made
    targets: tuple[str, ...] = ()
    clients: int = 8
    seconds: float | None = 0.7
    count: int | None = None
    warm_count: int | None = None
    rate: float | None = None
    options: Json = field(default_factory=dict)

    def plan(self, target: Target, *, scale: float, warm_seconds: float) -> Json:
        """The whole job. Commit workloads send a fixed number of requests, so that every document grows alike."""
        job = {
            "host": f"{target.host}:{target.port}",
            "address": target.host,
            "port": target.port,
            "pid": target.pid,
            "clients": self.clients,
            **self.job(target),
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
    updates: list[Json] = [
        {"action": "add-schema", "schema": tables.schema("renamed_@N@")},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    return {"scripts": [{"requests": [_commit("schema", updates)(target)], "start": target.round * DISTANT}]}


def _append(name: str) -> Made:
    """The next snapshot on main, as an engine appends: one client, the numbers run on from what the table has."""

    def made(target: Target) -> Json:
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


def _hot(target: Target) -> Json:
    path = _table("hot")(target)
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
        "body": json.dumps({"name": "passing_@N@", "schema": tables.schema()}),
    }
    drop = {"method": "DELETE", "path": _table("passing_@N@")(target), "expect": [204]}
    return {"scripts": [{"requests": [create, drop], "start": target.round * DISTANT, "stride": 100_000}]}


def _floor(size: int, status: int = 200) -> Made:
    return _get(lambda _: f"/{size}", expect=[status])


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


OWN = ("icekeel", "icekeel-before")
FLOOR = ("floor",)
COLD = ("icekeel-cold",)

ALL: tuple[Workload, ...] = (
    Workload("floor 12 KB", _floor(8_400), FLOOR),
    Workload("floor 600 KB", _floor(600_000), FLOOR, clients=4),
    Workload("floor 304", _floor(304, 304), FLOOR),
    Workload("config", _get(lambda target: f"{target.base}/v1/config")),
    Workload("load 5 snapshots", _get(_table("t5"))),
    Workload("load 5 snapshots, open loop", _get(_table("t5")), rate=100, clients=16),
    Workload("load 1,000 snapshots", _get(_table("t1000")), clients=4),
    Workload("load 10,000 snapshots", _get(_table("t10000")), clients=2, seconds=1.0),
    Workload("load 5 snapshots, cold", _get(_table("t5")), COLD),
    Workload("load 1,000 snapshots, cold", _get(_table("t1000")), COLD, clients=2),
    Workload("load 1,000 snapshots, refs", _get(_table("t1000", "?snapshots=refs"))),
    Workload("304, 5 snapshots", _not_modified("t5")),
    Workload("304, 10,000 snapshots", _not_modified("t10000")),
    Workload("HEAD, 5 snapshots", _get(_table("t5"), "HEAD", expect=[200, 204])),
    Workload("HEAD, 10,000 snapshots", _get(_table("t10000"), "HEAD", expect=[200, 204])),
    Workload("list 1,000 tables", _listing(tables.LISTED, ""), clients=4),
    Workload("list page of 100 in 1,000", _middle(tables.LISTED, 100)),
    Workload("list page of 100 in 1,000,000", _middle(tables.MILLION, 100), OWN),
    Workload("commit set-properties", _properties, clients=1, seconds=None, count=150),
    Workload("commit add-schema", _add_schema, clients=1, seconds=None, count=60),
    Workload("commit append, 10 snapshots", _append("a10"), clients=1, seconds=None, count=150),
    Workload("commit append, 1,000 snapshots", _append("a1000"), clients=1, seconds=None, count=80),
    Workload("commit append, 10,000 snapshots", _append("a10000"), clients=1, seconds=None, count=25),
    Workload("32 clients on 32 tables", _many, clients=32, seconds=None, count=12),
    Workload("32 clients on one table", _hot, clients=32, seconds=3.0),
    Workload("transaction of 10 tables", _transaction, clients=1, seconds=None, count=25),
    Workload("create and drop", _create_and_drop, clients=4, seconds=None, count=40),
)
