"""A real Spark in its own process and its own environment, answering SQL.

`SPARK_FROM` says where its Iceberg runtime comes from: `maven` (the newest release), `pypi` (an older one, made from
Python packages), or unset: Maven's where it is reached, else PyPI's.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.clients import spark_pypi
from tests.clients.maven import ENGINES, jar, need
from tests.server import ROOT

SCALA = "2.13"
SPARK = "4.1"
ICEBERG = "1.12.0"
"""The newest Iceberg release and the newest Spark line that it has a runtime for."""


class SparkError(Exception):
    """What Spark raised, as text."""


def environment(name: str) -> Path:
    """A virtual environment that holds what `requirements/<name>.lock` lists and nothing else; made on first use."""
    lock = ROOT / "requirements" / f"{name}.lock"
    folder = ENGINES / name
    done = folder / "installed.lock"
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        venv.create(folder, with_pip=True, clear=True)
        install = subprocess.run(
            [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(lock)],
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        if install.returncode != 0:
            pytest.skip(f"PySpark could not be installed: {install.stderr[-400:]}")
        done.write_bytes(lock.read_bytes())
    return folder


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def from_maven(*, s3: bool) -> tuple[Path, list[Path]]:
    """Python and jars of the newest release; skips where Maven cannot have them."""
    jars = [jar("org.apache.iceberg", f"iceberg-spark-runtime-{SPARK}_{SCALA}", ICEBERG)]
    if s3:
        jars.append(jar("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG))
    return python_of(environment("spark")), jars


def from_pypi(*, s3: bool) -> tuple[Path, list[Path]]:
    """Python and jars made from Python packages; skips where those cannot be installed."""
    need("java")
    folder = environment("spark-pypi")
    return python_of(folder), spark_pypi.jars(folder, s3=s3)


def distribution(*, s3: bool) -> tuple[Path, list[Path]]:
    """Python and jars from where `SPARK_FROM` says; skips with the reason of every way that was tried."""
    ways = {"maven": [from_maven], "pypi": [from_pypi], "": [from_maven, from_pypi]}
    reasons = []
    for way in ways[os.environ.get("SPARK_FROM", "")]:
        try:
            return way(s3=s3)
        except pytest.skip.Exception as skipped:
            reasons.append(str(skipped))
    pytest.skip("; ".join(reasons))


class Spark:
    """One Spark session whose default catalog is `ice`; `s3` gives it the AWS SDK that `S3FileIO` needs."""

    def __init__(self, url: str, work: Path, *, s3: bool = False, **options: str) -> None:
        python, jars = distribution(s3=s3)
        settings = {
            "spark.jars": ",".join(map(str, jars)),
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
                str(python),
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
