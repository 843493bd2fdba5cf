"""Iceberg's reference REST server with its JdbcCatalog on PostgreSQL and its files on local disk.

It shares neither database nor machine time with ours: each has a PostgreSQL of its own, with the same settings. The JVM
is left at its own settings.
"""

from __future__ import annotations

import shutil
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from bench.peers import fixture, jvm
from bench.targets import Target, launch, scratch
from tests.postgres import CannotStart, postgres

POM = Path(__file__).with_name("fixture_postgresql.xml")
NOTE = "JdbcCatalog on a PostgreSQL (fsync on) beside it, whose own CPU and memory are not counted"


def start() -> Target:
    """A running server. Unavailable."""
    java, jars = jvm.java(17), f"{jvm.classpath(fixture.POM)}:{jvm.classpath(POM)}"
    folder = scratch("fixture-postgresql")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as beside:
        beside.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            database = urlsplit(beside.enter_context(postgres(durable=True)).empty_database())
            environment = {
                "CATALOG_URI": f"jdbc:postgresql://{database.hostname}:{database.port}{database.path}",
                "CATALOG_JDBC_USER": database.username or "",
                "CATALOG_WAREHOUSE": f"file:{folder}/warehouse",
                "CATALOG_CATALOG_NAME": "bench",
                "CATALOG_REST_PORT": str(port),
            }
            command = [java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars]
            command.append("org.apache.iceberg.rest.RESTCatalogServer")
            target = launch("iceberg-fixture-pg", command, folder, environment=environment, port=port, jvm=True)
        except (CannotStart, RuntimeError) as fault:
            raise jvm.Unavailable(str(fault)) from fault
        target.note = NOTE
        target.beside = beside.pop_all()
    return target
