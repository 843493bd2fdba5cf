"""The load generator, a process of its own: one job as JSON on standard input, its result as JSON on standard output.

A job names a server, the processes to charge, and a script that every client runs:

  requests  the client's own list of requests, over and over; in a path or body `@N@` is the client's counter,
            `@P@` the one before, `@S@` the counter less `sequence_base`
  contend   append to one hot table as engines do: load, commit with a requirement on main, on 409 back off and load

Closed loop: every client sends its next request when the last one is answered, for `seconds` or until each has sent
`count`. Open loop: requests arrive at `rate` a second whatever the server does; latency counts from the arrival.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Any

import uvloop

from bench import processes
from bench.wire import Connection, Reply, request

Json = dict[str, Any]
FIRST_BACKOFF_S = 0.02
LONGEST_BACKOFF_S = 1.0


class Tally:
    """What the clients saw."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.by_client: dict[int, int] = {}
        self.longest_gap: dict[int, float] = {}
        self.last: dict[int, float] = {}
        self.conflicts = 0
        self.errors = 0
        self.first_error = ""

    def start(self, clients: int) -> None:
        now = time.perf_counter()
        self.latencies = []
        self.conflicts = self.errors = 0
        self.first_error = ""
        self.by_client = dict.fromkeys(range(clients), 0)
        self.last = dict.fromkeys(range(clients), now)
        self.longest_gap = dict.fromkeys(range(clients), 0.0)

    def done(self, client: int, began: float) -> None:
        now = time.perf_counter()
        self.latencies.append(now - began)
        self.by_client[client] = self.by_client.get(client, 0) + 1
        self.longest_gap[client] = max(self.longest_gap.get(client, 0.0), now - self.last.get(client, now))
        self.last[client] = now

    def failed(self, reply: Reply) -> None:
        self.errors += 1
        if not self.first_error:
            self.first_error = f"{reply.status} {reply.body[:300].decode('utf-8', 'replace')}"


class Client:
    """One connection and its place in the script."""

    def __init__(self, job: Json, number: int, connection: Connection, tally: Tally) -> None:
        self.job = job
        self.number = number
        self.connection = connection
        self.tally = tally
        scripts = job["scripts"]
        script = scripts[number % len(scripts)]
        self.requests: list[Json] = script["requests"]
        self.counter: int = script.get("start", 0)
        self.step: int = script.get("step", 1)
        self.offset = number * script.get("stride", 0)
        self.base: int | None = script.get("sequence_base")
        self.at = 0
        self.fixed = [
            None
            if "@" in each["path"] + each.get("body", "")
            else request(job["host"], each["method"], each["path"], each.get("body", "").encode(), each.get("headers"))
            for each in self.requests
        ]

    async def once(self, began: float | None = None) -> None:
        """Send the next request of the list."""
        at = self.at
        self.at = (at + 1) % len(self.requests)
        each = self.requests[at]
        if at == 0:
            self.counter += self.step
        data = self.fixed[at] or self._made(each)
        start = time.perf_counter() if began is None else began
        reply = await self.connection.send(data)
        if reply.status in each.get("expect", (200,)):
            self.tally.done(self.number, start)
        else:
            self.tally.failed(reply)

    def _made(self, each: Json) -> bytes:
        number, before = str(self.counter + self.offset), str(self.counter + self.offset - self.step)
        path = each["path"].replace("@N@", number)
        body = each.get("body", "").replace("@N@", number).replace("@P@", before)
        if self.base is not None:
            body = body.replace("@S@", str(self.counter - self.base))
        return request(self.job["host"], each["method"], path, body.encode(), each.get("headers"))

    async def contend(self, until: float) -> None:
        """One append to the hot table, however many tries it takes before `until`."""
        began = time.perf_counter()
        wait = FIRST_BACKOFF_S
        load, commit = self.requests
        while time.perf_counter() < until:
            loaded = await self.connection.send(request(self.job["host"], "GET", load["path"]))
            if loaded.status != 200:
                self.tally.failed(loaded)
                return
            body = _append(json.loads(loaded.body)["metadata"])
            reply = await self.connection.send(request(self.job["host"], "POST", commit["path"], body))
            if reply.status == 200:
                self.tally.done(self.number, began)
                return
            if reply.status not in (409, 429):
                self.tally.failed(reply)
                return
            self.tally.conflicts += 1
            await asyncio.sleep(random.uniform(wait / 2, wait))
            wait = min(2 * wait, LONGEST_BACKOFF_S)


def _append(metadata: Json) -> bytes:
    head = metadata.get("current-snapshot-id")
    made = random.getrandbits(62)
    snapshot = {
        "snapshot-id": made,
        "parent-snapshot-id": head,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": max(time.time_ns() // 1_000_000, metadata["last-updated-ms"]),
        "manifest-list": f"{metadata['location']}/metadata/snap-{made}.avro",
        "summary": {"operation": "append", "added-data-files": "1"},
        "schema-id": metadata["current-schema-id"],
    }
    return json.dumps(
        {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": made},
            ],
        }
    ).encode()


async def _closed(clients: list[Client], job: Json, seconds: float | None, count: int | None) -> None:
    until = time.perf_counter() + (3600 if seconds is None else seconds)

    async def run(client: Client) -> None:
        sent = 0
        while time.perf_counter() < until and (count is None or sent < count):
            if job.get("script") == "contend":
                await client.contend(until)
            else:
                await client.once()
            sent += 1

    await asyncio.gather(*(run(client) for client in clients))


async def _open(clients: list[Client], seconds: float, rate: float) -> None:
    """Arrivals are spaced evenly; one that finds all connections taken waits, and its waiting counts."""
    arrivals: asyncio.Queue[float | None] = asyncio.Queue()

    async def serve(client: Client) -> None:
        while (arrived := await arrivals.get()) is not None:
            await client.once(arrived)

    serving = [asyncio.ensure_future(serve(client)) for client in clients]
    began = time.perf_counter()
    for number in range(int(seconds * rate)):
        due = began + number / rate
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        arrivals.put_nowait(due)
    for _ in clients:
        arrivals.put_nowait(None)
    await asyncio.gather(*serving)


async def run(job: Json) -> Json:
    tally = Tally()
    connections = [await Connection.open(job["address"], job["port"]) for _ in range(job["clients"])]
    clients = [Client(job, number, connection, tally) for number, connection in enumerate(connections)]
    if job.get("warm_seconds"):
        await _closed(clients, job, job["warm_seconds"], job.get("warm_count"))
    elif job.get("warm_count"):
        await _closed(clients, job, None, job["warm_count"])
    for client in clients:
        client.at = 0
    pids = processes.tree(job["pid"]) if job.get("pid") else []
    tally.start(len(clients))
    cpu, own, began = processes.cpu_seconds(pids), time.process_time(), time.perf_counter()
    if job.get("rate"):
        await _open(clients, job["seconds"], job["rate"])
    else:
        await _closed(clients, job, job.get("seconds"), job.get("count"))
    took = time.perf_counter() - began
    spent, own = processes.cpu_seconds(pids) - cpu, time.process_time() - own
    for connection in connections:
        connection.close()
    return _result(tally, took, spent if pids else None, own)


def _result(tally: Tally, took: float, spent: float | None, own: float) -> Json:
    ordered = sorted(tally.latencies)
    done = len(ordered)
    shares = list(tally.by_client.values())

    def at(share: float) -> float | None:
        return round(ordered[min(done - 1, int(share * done))] * 1e6, 1) if done else None

    return {
        "requests": done,
        "seconds": round(took, 4),
        "per_second": round(done / took, 2) if took else 0,
        "server_cpu_us": round(spent / done * 1e6, 2) if spent is not None and done else None,
        "client_cpu_us": round(own / done * 1e6, 2) if done else None,
        "p50_us": at(0.50),
        "p90_us": at(0.90),
        "p99_us": at(0.99),
        "max_us": at(1.0),
        "errors": tally.errors,
        "first_error": tally.first_error,
        "conflicts": tally.conflicts,
        "client_least": min(shares, default=0),
        "client_most": max(shares, default=0),
        "longest_gap_s": round(max(tally.longest_gap.values(), default=0.0), 3),
    }


def main() -> None:
    job = json.load(sys.stdin)
    json.dump(uvloop.run(run(job)), sys.stdout)


if __name__ == "__main__":
    main()
