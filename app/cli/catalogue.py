"""`icekeel rules`: the rule catalogue, offline."""

from __future__ import annotations

import argparse

from app.cli.output import add_format, show, table
from app.evolution.engine.registry import catalogue


def configure(command: argparse.ArgumentParser) -> None:
    add_format(command)
    command.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    entries = catalogue()
    rows = [[str(e["code"]), str(e["severity"]), str(e["rule"]), str(e["summary"])] for e in entries]
    show(given.format, {"rules": entries}, table(rows))
    return 0
