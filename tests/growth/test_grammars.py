"""Reading what a client wrote takes work that grows with its length, whatever it is."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from tests.growth.grammars import GRAMMARS
from tests.growth.patterns import ROOT, modules, uses

pytestmark = pytest.mark.timeout(400)

# What takes text apart with these methods and functions is a parser.
_PARSING = frozenset(
    {
        "split", "rsplit", "partition", "rpartition", "splitlines", "fromisoformat", "b64decode", "urlsafe_b64decode",
        "unquote", "unquote_to_bytes", "urlsplit", "parse_qsl", "fromhex",
    }
)  # fmt: skip
_NOT_OF_CLIENTS = {
    "app.main": "settings",
    "app.settings": "settings",
    "app.store.urls": "settings",
    "app.store.sealing": "settings and what this server has stored",
    "app.store.postgres_store": "the answer of the database to a statement",
    "app.rules": "docstrings of this program",
    "app.edge.errors": "the names of members that the framework found at fault",
    "app.api.warehouses.router": "calls `storage.split`, which takes a mapping",
    "app.objects.failures": "what the object store's client says of a failure",
    "app.objects.options": "an endpoint that `app.iceberg.endpoint` has read",
    "app.catalog.storage": "names of options that `app.catalog.storage` has let through",
    "app.objects.local": "paths that `app.iceberg.location` has let through, of bounded length",
    "app.catalog.orphan_files": "locations that the object store lists",
    "app.catalog.purges": "one cut of a location or name of bounded length",
    "app.catalog.tables": "one cut of a location of bounded length",
    "app.edge.bodies": "one cut of a header",
    "app.edge.access_log": "one pattern of bounded length, judged in `test_patterns`",
}


@cache
def measured() -> tuple[dict[str, list[dict[str, Any]]], str | None]:
    """What grew too fast, by grammar; and the grammar at which the measuring did not end, if so."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.growth.measure"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=360,
            check=False,
        )
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as end:
        output, errors = (end.stdout or b"").decode(), "it took too long"
    said = [json.loads(line) for line in output.splitlines()]
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in said:
        if len(entry) > 1:
            found.setdefault(entry["grammar"], []).append(entry)
    last = said[-1]["grammar"] if said else "the first"
    return found, None if last is None else f"{last}: {errors[-2000:]}"


@pytest.mark.parametrize("name", [grammar.name for grammar in GRAMMARS])
def test_work_grows_no_faster_than_the_text(name: str) -> None:
    """Four times the text runs at most about four times the lines, sixteen times the text takes no square of it."""
    found, unfinished = measured()
    assert found.get(name) is None
    assert unfinished is None or not unfinished.startswith(f"{name}:"), unfinished


def test_every_grammar_has_been_measured() -> None:
    """None of them held the others up."""
    assert measured()[1] is None


def test_no_parser_is_missing_from_the_table() -> None:
    """A module that takes text apart is read by a grammar of the table, or known to read nothing of clients."""
    parsing = {use.module for use in uses("app.cli")}
    for name, tree in modules("app.cli"):
        called = {
            getattr(node.func, "attr", getattr(node.func, "id", None))
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        if called & _PARSING:
            parsing.add(name)
    covered = {module for grammar in GRAMMARS for module in grammar.modules}
    assert parsing - covered - _NOT_OF_CLIENTS.keys() == set()
    assert _NOT_OF_CLIENTS.keys() - parsing == set()
