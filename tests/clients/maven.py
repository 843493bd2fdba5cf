"""Jars from Maven's central repository through its ordinary client, kept in `.engines/`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server import ROOT

ENGINES = ROOT / ".engines"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def need(*tools: str) -> None:
    """Skip where one of these programs is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def jar(group: str, artifact: str, version: str) -> Path:
    """The jar of these coordinates; skips with Maven's own words where it cannot be had."""
    need("java", "mvn")
    path = ENGINES / "jars" / f"{artifact}-{version}.jar"
    if not path.exists():
        done = subprocess.run(
            ["mvn", "-B", "-q", _COPY, f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={path.parent}"],
            cwd=_scratch(),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"Maven could not fetch {artifact} {version}: {(done.stdout + done.stderr)[-400:]}")
    return path


def _scratch() -> Path:
    """A folder without a pom: Maven must not take one from the checkout."""
    folder = ENGINES / "maven"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
