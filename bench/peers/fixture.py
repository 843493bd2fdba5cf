"""Iceberg's reference REST server (JdbcCatalog on Jetty), on a SQLite file and local disk as the embedded server is.

SQLite gets the same durability as ours: write-ahead log, synchronous=FULL. The JVM is left at its own settings.
"""

from __future__ import annotations

import socket
from pathlib import Path

from bench.peers import jvm
from bench.targets import Target, launch, scratch

POM = Path(__file__).with_name("fixture.xml")


def start() -> Target:
    """A running server. Unavailable."""
    java, jars = jvm.java(17), jvm.classpath(POM)
    folder = scratch("fixture")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db?journal_mode=WAL&synchronous=FULL&busy_timeout=10000",
        "CATALOG_WAREHOUSE": f"file:{folder}/warehouse",
        "CATALOG_CATALOG_NAME": "bench",
        "CATALOG_REST_PORT": str(port),
    }
    command = [java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars]
    command.append("org.apache.iceberg.rest.RESTCatalogServer")
    try:
        return launch("iceberg-fixture", command, folder, environment=environment, port=port, jvm=True)
    except RuntimeError as fault:
        raise jvm.Unavailable(str(fault)) from fault
