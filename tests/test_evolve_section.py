"""README's section about schema changes against the program: its curl lines run in order on a new server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from app.api.schema_changes.schemas import OperationModel
from tests.server import Server

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "README.md").read_text().split("\n## Evolve a schema safely\n")[1].split("\n## Rules\n")[0]
_BETWEEN = "\x1e"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("evolve") / "home") as running:
        yield running


def blocks() -> list[tuple[str, str]]:
    """Fenced blocks as (language, text), in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(script: str, server: Server) -> list[str]:
    """The answer of each curl line of a block."""
    here = script.replace("http://127.0.0.1:8181", server.url)
    marked = here.replace("curl -s", f"printf '{_BETWEEN}'; curl -sS --noproxy '*'")
    done = subprocess.run(["bash", "-euc", marked], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(_BETWEEN)[1:]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_curl_line_does_what_the_page_says(server: Server) -> None:
    """In order on an empty server; where the page shows a piece of the answer, it comes word for word."""
    found = blocks()
    ran = shown = 0
    for (_, code), (language, following) in zip(found, [*found[1:], ("", "")], strict=True):
        if not code.startswith("curl"):
            continue
        answers = run(code, server)
        assert len(answers) == code.count("curl -s")
        ran += len(answers)
        failed = [json.loads(answer)["error"] for answer in answers if answer.startswith('{"error"')]
        if language == "text":
            assert following.strip() in answers[-1].replace('\\"', '"'), answers[-1]
            shown += 1
        else:
            assert failed == [], code
    assert ran >= 15
    assert shown >= 5


def test_every_operation_is_listed() -> None:
    """The table of operations is that of the program."""
    rows = re.findall(r"^\| (`[a-z`, -]+`) \|", PAGE, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert listed == set(get_args(OperationModel.model_fields["op"].annotation))
