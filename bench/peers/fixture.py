"""Iceberg's reference REST server (JdbcCatalog on Jetty), on a SQLite file and local disk as the embedded server is.

SQLite gets the same durability as ours: write-ahead log, synchronous=FULL. The JVM is left at its own settings.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from bench.targets import ROOT, Target, launch, scratch

POM = Path(__file__).with_name("fixture.xml")
KEPT = ROOT / ".engines" / "bench"
_CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


class Unavailable(Exception):
    """The peer cannot run here; the message says why."""


def classpath() -> str:
    """The class path, resolved by Maven once and kept."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed")
    kept = KEPT / "fixture.classpath"
    if not kept.exists() or not all(Path(jar).exists() for jar in kept.read_text().split(":")):
        KEPT.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "-q", "-B", "-f", str(POM), _CLASSPATH, f"-Dmdep.outputFile={kept}"]
        done = subprocess.run(command, cwd=KEPT, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise Unavailable(f"Maven could not assemble it: {(done.stdout + done.stderr).strip()[-300:]}")
    return kept.read_text().strip()


def start() -> Target:
    """A running server. Unavailable."""
    jars = classpath()
    folder = scratch("fixture")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db?journal_mode=WAL&synchronous=FULL&busy_timeout=10000",
        "CATALOG_WAREHOUSE": f"file:{folder}/warehouse",
        "CATALOG_CATALOG_NAME": "bench",
        "CATALOG_REST_PORT": str(port),
    }
    command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars]
    command.append("org.apache.iceberg.rest.RESTCatalogServer")
    try:
        return launch("iceberg-fixture", command, folder, environment=environment, port=port, jvm=True)
    except RuntimeError as fault:
        raise Unavailable(str(fault)) from fault
