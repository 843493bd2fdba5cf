"""`icekeel waive`: permission for one commit to break one rule, through a running server."""

from __future__ import annotations

import argparse
import re
import time
from typing import Any
from urllib.parse import quote

from app.cli.client import add_action, call, evolution_path
from app.cli.output import show, table
from app.errors import BadRequest

_UNITS_S = {"m": 60, "h": 3600, "d": 86400}


def configure(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    grant = add_action(actions, "grant", _grant, "allow one commit to break a rule")
    grant.add_argument("code", help="rule code, such as ICE202")
    grant.add_argument("--reason", required=True, help="why; it is kept in the journal")
    grant.add_argument("--expires", default="24h", help="for how long: 30m, 24h or 7d (default: 24h)")
    add_action(actions, "list", _list, "list the waivers of a table")
    revoke = add_action(actions, "revoke", _revoke, "take a waiver back")
    revoke.add_argument("waiver", help="waiver id, as `icekeel waive list` shows it")


def _grant(given: argparse.Namespace) -> None:
    body = {"code": given.code, "reason": given.reason, "expires-in-seconds": duration_s(given.expires)}
    answer = call(given, "POST", evolution_path(given, "waivers"), body)
    until = _time(answer["expires-at-ms"])
    show(given.format, answer, f"{answer['waiver-id']}: one commit may break {answer['code']} until {until}")


def _list(given: argparse.Namespace) -> None:
    answer = call(given, "GET", evolution_path(given, "waivers"))
    rows = [[w["waiver-id"], w["code"], _state(w), f"{w['reason']} ({w['granted-by']})"] for w in answer["waivers"]]
    show(given.format, answer, table(rows) or "no waivers")


def _revoke(given: argparse.Namespace) -> None:
    call(given, "DELETE", f"{evolution_path(given, 'waivers')}?waiver-id={quote(given.waiver, safe='')}")
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
    return int(found.group(1)) * _UNITS_S[found.group(2)]
