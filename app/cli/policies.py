"""`icekeel policy` and `icekeel waive`: how strictly rules are held for a table, through a running server."""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import Any
from urllib.parse import quote

from app.cli.client import Refused, add_options, call, table_path
from app.cli.output import show, table
from app.errors import BadRequest

REFUSED = 1
_UNITS = {"m": 60, "h": 3600, "d": 86400}


def add_commands(commands: Any) -> None:
    policy = commands.add_parser("policy", help="severities of the rules for a table: get, set")
    actions = policy.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add(actions, "get", _get, "show how strictly each rule is held for a table")
    change = _add(actions, "set", _set, "hold a rule more or less strictly for a table or its namespace")
    change.add_argument("code", help="rule code, such as ICE202")
    change.add_argument(
        "severity", choices=("off", "warn", "error", "default"), help="default takes an earlier setting back"
    )
    change.add_argument("--namespace", action="store_true", help="set it for every table of the table's namespace")
    waive = commands.add_parser("waive", help="let one commit break one rule: grant, list, revoke")
    actions = waive.add_subparsers(dest="action", required=True, metavar="ACTION")
    grant = _add(actions, "grant", _grant, "allow one commit to break a rule")
    grant.add_argument("code", help="rule code, such as ICE202")
    grant.add_argument("--reason", required=True, help="why; it is kept in the journal")
    grant.add_argument("--expires", default="24h", help="for how long: 30m, 24h or 7d (default: 24h)")
    _add(actions, "list", _list, "list the waivers of a table")
    revoke = _add(actions, "revoke", _revoke, "take a waiver back")
    revoke.add_argument("waiver", help="waiver id, as `icekeel waive list` shows it")


def _add(actions: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=text)
    action.add_argument("table", help="namespace.table, or a JSON list of levels and name")
    add_options(action)
    action.set_defaults(run=lambda given: _answered(run, given))
    return action


def _answered(run: Any, given: argparse.Namespace) -> int:
    try:
        run(given)
    except Refused as refused:
        print(f"icekeel: {refused.message}", file=sys.stderr)
        return REFUSED
    return 0


def _policy(given: argparse.Namespace) -> str:
    return f"{table_path(given.warehouse, given.table)}/evolution/policy"


def _waivers(given: argparse.Namespace) -> str:
    return f"{table_path(given.warehouse, given.table)}/evolution/waivers"


def _get(given: argparse.Namespace) -> None:
    _show_policy(given, call(given, "GET", _policy(given)))


def _set(given: argparse.Namespace) -> None:
    severity = None if given.severity == "default" else given.severity
    body = {"code": given.code.upper(), "severity": severity, "scope": "namespace" if given.namespace else "table"}
    answer = call(given, "PUT", _policy(given), body)
    answer["rules"] = [rule for rule in answer["rules"] if rule["code"] == given.code.upper()]
    _show_policy(given, answer)


def _show_policy(given: argparse.Namespace, answer: Any) -> None:
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


def _grant(given: argparse.Namespace) -> None:
    body = {"code": given.code.upper(), "reason": given.reason, "expires-in-seconds": duration_s(given.expires)}
    answer = call(given, "POST", _waivers(given), body)
    show(
        given.format,
        answer,
        f"{answer['waiver-id']}: one commit may break {answer['code']} until {_time(answer['expires-at-ms'])}",
    )


def _list(given: argparse.Namespace) -> None:
    answer = call(given, "GET", _waivers(given))
    rows = [[w["waiver-id"], w["code"], _state(w), f"{w['reason']} ({w['granted-by']})"] for w in answer["waivers"]]
    show(given.format, answer, table(rows) or "no waivers")


def _revoke(given: argparse.Namespace) -> None:
    call(given, "DELETE", f"{_waivers(given)}?waiver-id={quote(given.waiver, safe='')}")
    show(given.format, {"revoked": given.waiver}, f"{given.waiver}: revoked")


def _state(waiver: Any) -> str:
    if waiver.get("used-at-ms") is not None:
        return f"used {_time(waiver['used-at-ms'])}"
    return f"until {_time(waiver['expires-at-ms'])}"


def _time(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(milliseconds / 1000))


def duration_s(text: str) -> int:
    """`30m`, `24h` or `7d` as seconds; BadRequest."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if found is None:
        raise BadRequest(f"Not a duration: {text} (write 30m, 24h or 7d)")
    return int(found.group(1)) * _UNITS[found.group(2)]
