"""`icekeel explain`: the manual page of a rule, offline."""

from __future__ import annotations

import argparse

from app.cli.output import add_format, show
from app.evolution.engine.registry import RULES, entry, manual


def configure(command: argparse.ArgumentParser) -> None:
    command.add_argument("code", help="rule code, such as ICE202")
    add_format(command)
    command.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    text = manual(given.code)
    rule = RULES.get(given.code)
    assert rule is not None
    show(given.format, {**entry(rule), "manual": rule.manual}, text.rstrip())
    return 0
