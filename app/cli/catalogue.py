"""What the program knows about itself, offline: `icekeel rules`, `icekeel explain`, `icekeel openapi`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from app.api.rules import rule_page
from app.cli.output import show, table
from app.evolution.registry import catalogue, manual
from app.main import openapi_document


def add_commands(commands: Any) -> None:
    rules = commands.add_parser("rules", help="list the rules that schema changes are judged by")
    rules.add_argument("--format", choices=("text", "json"), default="text")
    rules.set_defaults(run=_rules)
    explain = commands.add_parser("explain", help="show the manual page of a rule")
    explain.add_argument("code", help="rule code, such as ICE202")
    explain.add_argument("--format", choices=("text", "json"), default="text")
    explain.set_defaults(run=_explain)
    openapi = commands.add_parser("openapi", help="print the OpenAPI document")
    openapi.set_defaults(run=_openapi)


def _rules(given: argparse.Namespace) -> int:
    entries = catalogue()
    rows = [[str(e["code"]), str(e["severity"]), str(e["rule"]), str(e["summary"])] for e in entries]
    show(given.format, {"rules": entries}, table(rows))
    return 0


def _explain(given: argparse.Namespace) -> int:
    page = rule_page(given.code)
    show(given.format, page, manual(given.code).rstrip())
    return 0


def _openapi(given: argparse.Namespace) -> int:
    print(render(openapi_document()))
    return 0


def render(document: dict[str, object]) -> str:
    """The document as it is checked in: stable, and readable in a diff."""
    return json.dumps(document, indent=1, ensure_ascii=False)
