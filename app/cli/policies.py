"""`icekeel policy`: how strictly rules are held for a table, through a running server."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.client import add_action, call, evolution_path
from app.cli.output import show, table


def configure(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_action(actions, "get", _get, "show how strictly each rule is held for a table")
    change = add_action(actions, "set", _set, "hold a rule more or less strictly for a table or its namespace")
    change.add_argument("code", help="rule code, such as ICE202")
    change.add_argument(
        "severity", choices=("off", "warn", "error", "default"), help="default takes an earlier setting back"
    )
    change.add_argument("--namespace", action="store_true", help="set it for every table of the table's namespace")


def _get(given: argparse.Namespace) -> None:
    _show(given, call(given, "GET", evolution_path(given, "policy")))


def _set(given: argparse.Namespace) -> None:
    severity = None if given.severity == "default" else given.severity
    body = {"code": given.code, "severity": severity, "scope": "namespace" if given.namespace else "table"}
    answer = call(given, "PUT", evolution_path(given, "policy"), body)
    answer["rules"] = [rule for rule in answer["rules"] if rule["code"] == given.code.upper()]
    _show(given, answer)


def _show(given: argparse.Namespace, answer: Any) -> None:
    rows = [[rule["code"], rule["severity"], rule["rule"], _because(rule)] for rule in answer["rules"]]
    show(given.format, answer, table(rows))


def _because(rule: Any) -> str:
    reasons = []
    if "set-by-policy" in rule:
        reasons.append(f"policy says {rule['set-by-policy']}")
    if "tightened-by-property" in rule:
        reasons.append(f"a property says {rule['tightened-by-property']}")
    if not rule["can-be-lowered"]:
        reasons.append("cannot be lowered")
    return ", ".join(reasons)
