"""`icekeel waive`: permission for one commit to break one rule, through a running server."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from app.cli.client import ServerTable
from app.cli.options import Code, Form, takes
from app.cli.output import show, show_rows
from app.cli.verdicts import moment
from app.errors import BadRequest

_UNITS_S = {"m": 60, "h": 3600, "d": 86400}

app = typer.Typer(name="waive", help="Let one commit break one rule: grant, list, revoke.")


@app.command("grant")
@takes(ServerTable)
def grant(
    table: ServerTable,
    code: Code,
    reason: Annotated[str, typer.Option(help="why; it is kept in the journal")],
    expires: Annotated[str, typer.Option(help="for how long: 30m, 24h or 7d")] = "24h",
    form: Form = "text",
) -> None:
    """Allow one commit to break a rule."""
    body = {"code": code, "reason": reason, "expires-in-seconds": duration_s(expires)}
    answer = table.evolution("POST", "waivers", body)
    until = moment(answer["expires-at-ms"])
    show(form, answer, f"{answer['waiver-id']}: one commit may break {answer['code']} until {until}")


@app.command("list")
@takes(ServerTable)
def waivers(table: ServerTable, form: Form = "text") -> None:
    """List the waivers of a table."""
    answer = table.evolution("GET", "waivers")
    rows = [[w["waiver-id"], w["code"], _state(w), f"{w['reason']} ({w['granted-by']})"] for w in answer["waivers"]]
    show_rows(form, answer, ("waiver", "code", "state", "reason"), rows, none="no waivers")


@app.command("revoke")
@takes(ServerTable)
def revoke(
    table: ServerTable,
    waiver: Annotated[str, typer.Argument(metavar="WAIVER", help="waiver id, as `icekeel waive list` shows it")],
    form: Form = "text",
) -> None:
    """Take a waiver back."""
    table.evolution("DELETE", "waivers", query={"waiver-id": waiver})
    show(form, {"revoked": waiver}, f"{waiver}: revoked")


def _state(waiver: Any) -> str:
    if waiver.get("used-at-ms") is not None:
        return f"used {moment(waiver['used-at-ms'])}"
    return f"until {moment(waiver['expires-at-ms'])}"


def duration_s(text: str) -> int:
    """`30m`, `24h` or `7d` as seconds; BadRequest."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if found is None:
        raise BadRequest(f"Not a duration: {text} (write 30m, 24h or 7d)")
    return int(found.group(1)) * _UNITS_S[found.group(2)]
