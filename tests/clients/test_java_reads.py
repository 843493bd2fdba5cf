"""What the server writes is what Java reads: the metadata files of a black-box run, parsed by the reference code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.test_rck import Outcome, maven
from tests.server import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

CASES = ("test_a_schema_evolution.py", "test_b_partitioning.py", "test_d_create_and_replace.py", "test_i_views.py",
         "test_vectors.py")  # fmt: skip
NOT_FOR_JAVA = "test_22"
"""The vector that lowers the rule against struct defaults, which exists because no Java reader can load them."""


def test_java_loads_every_metadata_file(tmp_path: Path) -> None:
    """The cases and vectors of schema evolution leave hundreds of files; Java's parser takes each of them."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", f"not {NOT_FOR_JAVA}",
         "--basetemp", str(tmp_path / "run"), *(str(ROOT / "tests" / "cases" / name) for name in CASES)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    outcome = Outcome(maven(tmp_path, "**/ReadableTests.class", f"-Drck.folder={tmp_path / 'run'}"))
    assert outcome.failed == {}
    assert outcome.passed == {"everyMetadataFileLoads"}
