"""`icekeel policy`: how strictly rules are held for a table, through a running server."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from app.cli.client import ServerTable
from app.cli.options import Code, Form, takes
from app.cli.output import show_rows

app = typer.Typer(name="policy", help="Severities of the rules for a table: get, set.")
Severity = Annotated[
    Literal["off", "warn", "error", "default"], typer.Argument(help="default takes an earlier setting back")
]
Everywhere = Annotated[bool, typer.Option("--namespace", help="set it for every table of the table's namespace")]


@app.command("get")
@takes(ServerTable)
def get(table: ServerTable, form: Form = "text") -> None:
    """Show how strictly each rule is held for a table."""
    _show(form, table.evolution("GET", "policy"))


@app.command("set")
@takes(ServerTable)
def change(
    table: ServerTable, code: Code, severity: Severity, namespace: Everywhere = False, form: Form = "text"
) -> None:
    """Hold a rule more or less strictly for a table or its namespace."""
    held = None if severity == "default" else severity
    body = {"code": code, "severity": held, "scope": "namespace" if namespace else "table"}
    answer = table.evolution("PUT", "policy", body)
    answer["rules"] = [rule for rule in answer["rules"] if rule["code"] == code.upper()]
    _show(form, answer)


def _show(form: str, answer: Any) -> None:
    rows = [[rule["code"], rule["severity"], rule["rule"], _because(rule)] for rule in answer["rules"]]
    show_rows(form, answer, ("code", "severity", "rule", "because"), rows)


def _because(rule: Any) -> str:
    reasons = []
    if "set-by-policy" in rule:
        reasons.append(f"policy says {rule['set-by-policy']}")
    if "tightened-by-property" in rule:
        reasons.append(f"a property says {rule['tightened-by-property']}")
    if not rule["can-be-lowered"]:
        reasons.append("cannot be lowered")
    return ", ".join(reasons)
