"""`icekeel rules` and `icekeel explain`: the rules and their manual pages, offline."""

from __future__ import annotations

import typer

from app.cli.options import Code, Form
from app.cli.output import show, show_rows
from app.evolution.engine.registry import RULES, catalogue, entry, manual

app = typer.Typer()


@app.command("rules")
def rules(form: Form = "text") -> None:
    """List the rules that schema changes are judged by."""
    entries = catalogue()
    rows = [[str(e["code"]), str(e["severity"]), str(e["rule"]), str(e["summary"])] for e in entries]
    show_rows(form, {"rules": entries}, ("code", "severity", "rule", "summary"), rows)


@app.command("explain")
def explain(code: Code, form: Form = "text") -> None:
    """Show the manual page of a rule."""
    text = manual(code)
    rule = RULES.get(code)
    assert rule is not None
    show(form, {**entry(rule), "manual": rule.manual}, text.rstrip())
