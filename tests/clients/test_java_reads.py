"""What the server writes is what Java reads: the metadata files of a black-box run, parsed by the reference code."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from app.spec.table import render_table_metadata
from tests.clients.test_rck import Outcome, maven
from tests.evolution.fitting import TRANSFORMS, TYPES, takes
from tests.evolution.tables import commit, evolve, field, judged, remove_ref
from tests.evolution.test_retained import UNPARTITIONED, days, replaced
from tests.server import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

CASES = ("test_a_schema_evolution.py", "test_b_partitioning.py", "test_d_create_and_replace.py", "test_i_views.py",
         "test_vectors.py")  # fmt: skip
NOT_FOR_JAVA = "test_22"
"""The vector that lowers the rule against struct defaults, which exists because no Java reader can load them."""


GONE = "gone"
"""The replacement has no column of that name."""


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


def test_java_binds_every_spec_of_a_replacement(tmp_path: Path) -> None:
    """Of all replacements (old type, transform, new type), Java loads those that are accepted and no refused one."""
    for kind in ("loads", "refused"):
        (tmp_path / "run" / kind).mkdir(parents=True)
    for old, transform, new, written in product(TYPES, TRANSFORMS, (*TYPES, GONE), (True, False)):
        if takes(transform, old):
            base = days(old, transform, written=written)
            updates = replaced(new, had_main=written)
            if new == GONE:
                updates = [*([remove_ref("main")] if written else []), *evolve(field(2, "d", "int")), *UNPARTITIONED]
            kind = "refused" if judged(base, updates).refused else "loads"
            name = re.sub(r"\W+", "_", f"{old}-{transform}-{new}-{written}")
            text = b"".join([render_table_metadata(commit(base, updates))])
            (tmp_path / "run" / kind / f"{name}.metadata.json").write_bytes(text)
    outcome = Outcome(maven(tmp_path, "**/BindingTests.class", f"-Drck.folder={tmp_path / 'run'}"))
    assert outcome.failed == {}
    assert outcome.passed == {"whatIsAcceptedBinds", "whatIsRefusedDoesNotBind"}
