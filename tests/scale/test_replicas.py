"""Several servers on one database and one store: they agree, they can be replaced, and their clocks may differ."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog

from tests.backends import Scaled
from tests.cases.wire import Catalog, add_snapshot, error_of, evolve, ok, set_properties, set_ref, snapshot, unique
from tests.nginx import CannotStart, nginx
from tests.scale.conftest import KEY
from tests.server import Server

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
SKEW_S = 300


@pytest.fixture(scope="module")
def second(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Another replica of the shared server."""
    with Server(tmp_path_factory.mktemp("second") / "home", settings=server.settings) as running:
        yield running


@pytest.fixture
def both(server: Server, second: Server) -> Iterator[tuple[Catalog, Catalog]]:
    with server.client() as one, second.client() as two:
        yield Catalog(one, server.warehouse), Catalog(two, second.warehouse)


def test_what_one_replica_acknowledged_the_other_shows(both: tuple[Catalog, Catalog]) -> None:
    """At once, also where the other one holds an older version in memory; an old tag does not match any more."""
    one, two = both
    ns = one.namespace()
    here = one.create(ns, SCHEMA)
    there = two.table(ns, here.name)
    for number in range(10):
        tag = there.get().headers["etag"]
        here.commit([set_properties(n=str(number))])
        answer = there.get(headers={"If-None-Match": tag})
        assert ok(answer)["metadata"]["properties"]["n"] == str(number)
        here, there = there, here


def test_a_stale_memory_is_never_the_reason_of_a_refusal(both: tuple[Catalog, Catalog]) -> None:
    """The other replica holds the old version, and accepts what is right for the new one; it refuses on the new one."""
    one, two = both
    ns = one.namespace()
    here = one.create(ns, SCHEMA)
    there = two.table(ns, here.name)
    there.load()
    here.append(1)
    check = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}]
    ok(there.post(check, [add_snapshot(there.snap(2, 1, 2)), set_ref("main", 2)]))
    error = error_of(here.post(check, [set_properties(a="1")]), 409, "CommitFailedException")
    assert "expected id 1 != 2" in error["message"]
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 2, "name": "y", "type": "int", "required": False}]}
    here.commit(evolve(wider))
    ok(there.post([{"type": "assert-current-schema-id", "current-schema-id": 1}], [set_properties(b="1")]))


def test_names_and_warehouses_are_known_everywhere_at_once(both: tuple[Catalog, Catalog], operator: Server) -> None:
    """Nothing is refused because a replica has not heard of it; nothing is served that is gone."""
    one, two = both
    ns = one.namespace()
    table = one.create(ns, SCHEMA)
    two.table(ns, table.name).load()
    moved = {
        "source": {"namespace": list(ns), "name": table.name},
        "destination": {"namespace": list(ns), "name": "moved"},
    }
    assert one.http.post("/v1/tables/rename", json=moved).status_code == 204
    error_of(two.table(ns, table.name).get(), 404, "NoSuchTableException")
    two.table(ns, "moved").load()
    name = unique("everywhere-")
    with operator.client() as http:
        ok(http.post("/icekeel/v1/warehouses", json={"name": name, "location": f"s3://lake/{name}"}))
    ok(two.http.get(f"/v1/{name}/namespaces"))
    place = f"s3://lake/{unique('beside-')}"
    with operator.client() as http:
        ok(http.patch("/icekeel/v1/warehouses/default", json={"allowed-locations": [place]}))
    ok(two.post_create(ns, "there", SCHEMA, location=f"{place}/t"))


def test_a_replica_is_not_ready_while_the_database_is_away(backend: Scaled, tmp_path: Path) -> None:
    """Requests are answered 503 with Retry-After meanwhile, and everything works when it is back, without a restart."""
    with Server(tmp_path / "home", settings=backend.settings(tmp_path)) as replica, replica.client() as http:
        ok(http.post("/v1/namespaces", json={"namespace": ["a"]}))
        backend.database.stop(signal.SIGQUIT)
        try:
            assert http.get("/health/ready").status_code == 503
            assert http.get("/health/live").status_code == 200
            away = http.post("/v1/namespaces", json={"namespace": ["b"]})
            assert error_of(away, 503)["type"] == "ServiceUnavailableException" and away.headers["retry-after"]
        finally:
            backend.database.start()
        assert http.get("/health/ready").status_code == 200
        ok(http.post("/v1/namespaces", json={"namespace": ["b"]}))


def test_a_replica_of_another_schema_version_refuses_to_serve(backend: Scaled, tmp_path: Path) -> None:
    """The old one does not start, with the reason; one that runs becomes unready when the schema moves on under it."""
    settings = backend.settings(tmp_path)
    database = settings["DATABASE_URL"].rsplit("/", 1)[-1]
    with Server(tmp_path / "running", settings=settings) as running, running.client() as http:
        backend.database.execute("UPDATE alembic_version SET version_num = '9999'", database)
        unready = error_of(http.get("/health/ready"), 503)
        assert "newer than this server" in unready["message"]
        with pytest.raises(RuntimeError, match="newer than this server") as refused:
            Server(tmp_path / "late", settings=settings).start()
        assert "Traceback" not in str(refused.value) and "upgrade the server" in str(refused.value)


def test_an_empty_database_needs_the_upgrade_command(backend: Scaled, tmp_path: Path) -> None:
    """A server of many does not change the schema by itself; the line says what does."""
    settings = {**backend.settings(tmp_path), "DATABASE_URL": backend.database.empty_database()}
    with pytest.raises(RuntimeError, match="run `icekeel db upgrade`") as refused:
        Server(tmp_path / "home", settings=settings).start()
    assert "Traceback" not in str(refused.value)


def test_a_rolling_restart_fails_no_client(backend: Scaled, tmp_path: Path) -> None:
    """Two replicas behind nginx, each taken out, stopped and started in turn, under clients that commit and load."""
    settings = {**backend.settings(tmp_path), "DRAIN": "1", "SECRET_KEY": KEY}
    replicas = [Server(tmp_path / f"replica{number}", settings=settings) for number in range(2)]
    try:
        with nginx(tmp_path / "nginx") as proxy:
            for replica in replicas:
                replica.start(60)
            ports = [replica.port for replica in replicas]
            proxy.serve(ports)
            failures: list[str] = []
            done = 0
            stop = threading.Event()

            def work(number: int) -> None:
                nonlocal done
                # A reload of nginx closes idle connections of clients, which may lose a request that is on its way.
                once = {"Connection": "close"}
                with httpx.Client(base_url=proxy.url, headers=once, timeout=30, trust_env=False) as http:
                    catalog = Catalog(http, tmp_path)
                    table = catalog.table(("rolling",), f"t{number}")
                    ok(catalog.post_create(("rolling",), table.name, SCHEMA))
                    while not stop.is_set():
                        try:
                            ok(table.post([], [set_properties(n=str(done))]))
                            ok(table.get())
                            done += 1
                        except Exception as error:
                            failures.append(repr(error))

            with httpx.Client(base_url=proxy.url, timeout=30, trust_env=False) as http:
                ok(http.post("/v1/namespaces", json={"namespace": ["rolling"]}))
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for replica in replicas:
                proxy.serve(ports, down=[replica.port])
                assert replica.stop(30) == 0
                replica.start(60)
                proxy.serve(ports)
            stop.set()
            for thread in threads:
                thread.join()
            assert failures == [] and done > 20
    except CannotStart as reason:
        pytest.skip(str(reason))
    finally:
        for replica in replicas:
            replica.stop()


def test_odd_paths_survive_the_proxy(server: Server, tmp_path: Path) -> None:
    """Encoded slashes and unit separators reach the server as they were sent."""
    try:
        with nginx(tmp_path / "nginx") as proxy:
            proxy.serve([server.port])
            with httpx.Client(base_url=proxy.url, timeout=30, trust_env=False) as http:
                catalog = Catalog(http, server.warehouse)
                ns = catalog.namespace()
                inner = catalog.namespace(*ns, "a/b c")
                table = catalog.create(inner, SCHEMA, name="x/y")
                assert table.load()["metadata"]["table-uuid"]
    except CannotStart as reason:
        pytest.skip(str(reason))


def skewed(folder: Path, settings: dict[str, str], seconds: int) -> Server:
    """A replica whose clock is wrong by `seconds`."""
    program = shutil.which("faketime")
    if program is None:
        pytest.skip("no faketime: not on the PATH (Debian package faketime)")
    faked = (program, "-f", f"{seconds:+d}s", sys.executable, "-m", "app.cli")
    return Server(folder, settings=settings, program=faked)


def test_clocks_that_differ_by_five_minutes_make_no_bad_metadata(backend: Scaled, tmp_path: Path) -> None:
    """Replicas ahead and behind take turns, and so do clients; what Java refuses on load never comes to be."""
    settings = backend.settings(tmp_path)
    ahead, behind = skewed(tmp_path / "ahead", settings, SKEW_S), skewed(tmp_path / "behind", settings, -SKEW_S)
    try:
        ahead.start(60)
        behind.start(60)
        with ahead.client() as one, behind.client() as two:
            catalogs = [Catalog(one, tmp_path), Catalog(two, tmp_path)]
            ns = catalogs[0].namespace()
            name = catalogs[0].create(ns, SCHEMA).name
            for number in range(1, 9):
                table = catalogs[number % 2].table(ns, name)
                skew_ms = (number // 2 % 2 * 2 - 1) * SKEW_S * 1000
                stamp = time.time_ns() // 1_000_000 + skew_ms
                location = table.metadata()["location"]
                parent = number - 1 or None
                table.commit([
                    add_snapshot(snapshot(location, number, parent, number, stamp)), set_ref("main", number),
                ])  # fmt: skip
                check_times(table.metadata())
        loaded = load_catalog("x", type="rest", uri=behind.url).load_table((*ns, name))
        assert loaded.current_snapshot() is not None and len(loaded.history()) == 8
    finally:
        for replica in (ahead, behind):
            kill_wrapped(replica)


def kill_wrapped(replica: Server) -> None:
    """faketime starts the server as its child, which would outlive it."""
    if replica.process is None:
        return
    wrapper = replica.process.pid
    for child in Path(f"/proc/{wrapper}/task/{wrapper}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    replica.kill()


def check_times(metadata: dict[str, Any]) -> None:
    """What Iceberg's Java reader demands: logs sorted to within a minute, and nothing far ahead of the last update."""
    for log in ("snapshot-log", "metadata-log"):
        stamps = [entry["timestamp-ms"] for entry in metadata[log]]
        assert all(newer - older >= -60_000 for older, newer in pairwise(stamps)), (log, stamps)
        if stamps:
            assert metadata["last-updated-ms"] - stamps[-1] >= -60_000, (log, stamps, metadata["last-updated-ms"])
