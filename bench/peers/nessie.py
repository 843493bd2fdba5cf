"""Nessie, from its runner jar, storing in RocksDB, what its documentation names for production on a single node.

Nessie writes metadata to object stores alone, so its warehouse is on a SeaweedFS beside it. Request signing is off: who
asks for no delegated access gets none from the others either. So is the log of requests. The JVM is left at its own
settings.
"""

from __future__ import annotations

import shutil
import socket
from contextlib import ExitStack

from bench.peers import jvm
from bench.targets import Target, launch, scratch
from tests.seaweedfs import CannotStart, seaweedfs

VERSION = "0.108.8"
NOTE = (
    "RocksDB as Nessie opens it (its log is not synced per commit); metadata in an S3 beside it (SeaweedFS), whose own "
    "CPU and memory are not counted; tables hold their current snapshot alone, so `5 snapshots` and `10 snapshots` are "
    "documents of one."
)


def start() -> Target:
    """A running server. Unavailable."""
    java = jvm.java(21)
    runner = jvm.jar("org.projectnessie.nessie", "nessie-quarkus", VERSION, "runner")
    folder = scratch("nessie")
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, management = free.getsockname()[1], other.getsockname()[1]
    with ExitStack() as beside:
        beside.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            store = beside.enter_context(seaweedfs(folder / "s3"))
            settings = {
                "quarkus.http.host": "127.0.0.1",
                "quarkus.http.port": port,
                "quarkus.http.access-log.enabled": "false",
                "quarkus.log.level": "WARN",
                "quarkus.management.host": "127.0.0.1",
                "quarkus.management.port": management,
                "nessie.version.store.type": "ROCKSDB",
                "nessie.version.store.persist.rocks.database-path": folder / "db",
                "nessie.catalog.default-warehouse": "bench",
                "nessie.catalog.warehouses.bench.location": "s3://bench/warehouse",
                "nessie.catalog.service.s3.default-options.endpoint": store.endpoint,
                "nessie.catalog.service.s3.default-options.path-style-access": "true",
                "nessie.catalog.service.s3.default-options.region": "us-east-1",
                "nessie.catalog.service.s3.default-options.request-signing-enabled": "false",
                "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:bench.s3",
                "bench.s3.name": store.access_key,
                "bench.s3.secret": store.secret_key,
            }
            command = [java, *(f"-D{key}={value}" for key, value in settings.items()), "-jar", str(runner)]
            target = launch(
                "nessie",
                command,
                folder,
                environment={},
                port=port,
                jvm=True,
                probe="/iceberg/v1/config",
                timeout=120.0,
            )
        except (CannotStart, RuntimeError) as fault:
            raise jvm.Unavailable(str(fault)) from fault
        target.base, target.note = "/iceberg", NOTE
        target.beside = beside.pop_all()
    return target
