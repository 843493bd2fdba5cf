"""A real Spark in its own process and its own environment, answering SQL."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.clients.maven import ENGINES, jar, need_java
from tests.server import ROOT

SCALA = "2.13"
SPARK = "4.1"
ICEBERG = "1.12.0"
"""The newest Iceberg release and the newest Spark line that it has a runtime for."""

LOCK = ROOT / "requirements" / "spark.lock"


class SparkError(Exception):
    """What Spark raised, as text."""


def environment() -> Path:
    """The Python of an environment that holds PySpark and nothing else; made on first use."""
    need_java()
    folder = ENGINES / "spark"
    done = folder / "installed.lock"
    python = folder / "bin" / "python"
    if not done.exists() or done.read_bytes() != LOCK.read_bytes():
        venv.create(folder, with_pip=True, clear=True)
        install = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)],
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        if install.returncode != 0:
            pytest.skip(f"PySpark could not be installed: {install.stderr[-400:]}")
        done.write_bytes(LOCK.read_bytes())
    return python


class Spark:
    """One Spark session whose default catalog is `ice`."""

    def __init__(self, url: str, work: Path, **options: str) -> None:
        runtime = jar("org.apache.iceberg", f"iceberg-spark-runtime-{SPARK}_{SCALA}", ICEBERG)
        settings = {
            "spark.jars": str(runtime),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "rest",
            "spark.sql.catalog.ice.uri": url,
            "spark.sql.defaultCatalog": "ice",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(work / "spark-warehouse"),
            "spark.driver.memory": "2g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            **options,
        }
        self.log = work / "spark.log"
        self._stderr = self.log.open("wb")
        self.process = subprocess.Popen(
            [
                str(environment()),
                str(Path(__file__).with_name("spark_shell.py")),
                *(f"{key}={value}" for key, value in settings.items()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=work,
            text=True,
        )
        self.version: str = self._answer()[0][0]

    def _answer(self) -> list[list[Any]]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SparkError(f"Spark ended:\n{self.log.read_text(errors='replace')[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise SparkError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def sql(self, statement: str) -> list[list[Any]]:
        """All rows of a statement; SparkError when it fails."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(statement) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._stderr.close()
