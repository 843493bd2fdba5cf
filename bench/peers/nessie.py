"""Nessie's server from its runner jar, storing in memory-mapped RocksDB, with a warehouse on local disk."""

from __future__ import annotations

import shutil
import socket
import subprocess

from bench.peers.fixture import KEPT, Unavailable
from bench.targets import Target, launch, scratch

VERSION = "0.107.3"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def start() -> Target:
    """A running server. Unavailable."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed")
    jar = KEPT / f"nessie-quarkus-{VERSION}-runner.jar"
    refused = KEPT / f"nessie-quarkus-{VERSION}.refused"
    if refused.exists():
        raise Unavailable(refused.read_text())
    if not jar.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        artifact = f"org.projectnessie.nessie:nessie-quarkus:{VERSION}:jar:runner"
        command = ["mvn", "-q", "-B", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={KEPT}"]
        done = subprocess.run(command, cwd=KEPT, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            reason = f"Maven Central does not serve {artifact}"
            if "Could not find artifact" in done.stdout + done.stderr:
                refused.write_text(reason)
            raise Unavailable(reason)
    folder = scratch("nessie")
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, management = free.getsockname()[1], other.getsockname()[1]
    environment = {
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": str(management),
        "NESSIE_VERSION_STORE_TYPE": "ROCKSDB",
        "NESSIE_VERSION_STORE_PERSIST_ROCKS_DATABASE_PATH": str(folder / "db"),
        "NESSIE_CATALOG_DEFAULT_WAREHOUSE": "bench",
        "NESSIE_CATALOG_WAREHOUSES_BENCH_LOCATION": f"file://{folder}/warehouse",
    }
    try:
        target = launch(
            "nessie",
            ["java", "-jar", str(jar)],
            folder,
            environment=environment,
            port=port,
            jvm=True,
            probe="/iceberg/v1/config",
        )
    except RuntimeError as fault:
        raise Unavailable(str(fault)) from fault
    target.base = "/iceberg"
    return target
