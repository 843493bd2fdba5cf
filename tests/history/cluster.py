"""Three replicas over one PostgreSQL and one S3, and what goes wrong with them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from obstore.store import S3Store

from app.iceberg.table import parse_table_metadata
from tests.backends import BUCKET, bucket, scaled
from tests.history.clients import NAMESPACE, Shared
from tests.history.recording import Found, Snapshot, Version
from tests.postgres import Postgres
from tests.server import Server


@contextmanager
def cluster(folder: Path, replicas: int = 3) -> Iterator[list[Server]]:
    """Replicas with a fresh database and warehouse. CannotStart where there is no PostgreSQL or S3."""
    backend = scaled()
    settings = backend.settings(folder)
    servers = [Server(folder / f"replica{number}", settings=settings) for number in range(replicas)]
    try:
        for server in servers:
            server.start(60)
        yield servers
    finally:
        for server in servers:
            server.kill()


class Nemesis(threading.Thread):
    """Kills a replica or the database now and then, and starts it again. `log` says what was done."""

    def __init__(self, servers: list[Server], database: Postgres, seed: int, pause_s: float) -> None:
        super().__init__(name="nemesis")
        self._servers = servers
        self._database = database
        self._random = random.Random(seed)
        self._pause_s = pause_s
        self._end = threading.Event()
        self.log: list[str] = []
        self.trouble: list[str] = []

    def run(self) -> None:
        try:
            while not self._end.wait(self._random.uniform(0.5, 1.5) * self._pause_s):
                self._strike()
        except Exception as error:
            self.trouble.append(f"nemesis: {error!r}")

    def finish(self) -> None:
        self._end.set()
        self.join()

    def _strike(self) -> None:
        if self._random.random() < 0.3:
            how = self._random.choice([signal.SIGKILL, signal.SIGQUIT])
            self.log.append(f"PostgreSQL {how.name}")
            crash(self._database, how)
            return
        server = self._random.choice(self._servers)
        self.log.append("replica SIGKILL")
        server.kill()
        time.sleep(self._random.uniform(0, 0.5))
        server.start(60)


def crash(database: Postgres, how: signal.Signals) -> None:
    """End every process of the database at once, and start it again on what is on the disk."""
    process = database._process
    assert process is not None
    if how == signal.SIGKILL:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        database._process = None
    else:
        database.stop(how)
    database.start()


def look(shared: Shared, server: Server, every: bool) -> Found:
    """The state that the cluster ended in, read from the files themselves.

    `every` reads each metadata file; otherwise one in as many as a log holds, which still names all of them.
    """
    names: dict[str, str] = {}
    versions: dict[str, tuple[Version, ...]] = {}
    store = bucket(scaled().s3, BUCKET)
    with server.client() as http:
        listed = http.get(f"/v1/namespaces/{NAMESPACE}/tables").json()["identifiers"]
        for name in [each["name"] for each in listed]:
            loaded = http.get(f"/v1/namespaces/{NAMESPACE}/tables/{name}").json()
            uuid = loaded["metadata"]["table-uuid"]
            if name.startswith("own_"):
                names[name] = uuid
            versions[uuid] = _chain(store, loaded["metadata-location"], every)
    for call in shared.calls:
        if call.kind == "create" and call.outcome == "ok" and call.name is not None and call.name.startswith("shared_"):
            names[call.name] = call.uuid or ""
    return Found(versions, names)


def _chain(store: S3Store, newest: str, every: bool) -> tuple[Version, ...]:
    found = [_version(store, newest)]
    while found[-1].log:
        found.append(_version(store, found[-1].log[-1 if every else 0]))
    return tuple(reversed(found))


def _version(store: S3Store, location: str) -> Version:
    data: Any = store.get(location.removeprefix(f"s3://{BUCKET}/")).bytes()
    metadata = parse_table_metadata(bytes(data))
    return Version(
        location=location,
        number=int(location.rsplit("/", 1)[-1].split("-")[0]),
        log=tuple(entry.metadata_file for entry in metadata.metadata_log),
        snapshots=tuple(
            Snapshot(each.snapshot_id, each.parent_snapshot_id, each.sequence_number) for each in metadata.snapshots
        ),
        updated_ms=metadata.last_updated_ms,
    )
