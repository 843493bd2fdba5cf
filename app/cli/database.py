"""`icekeel db`: the database schema."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.output import show
from app.main import migrate, schema_state
from app.settings import read_settings


def add_commands(commands: Any) -> None:
    db = commands.add_parser("db", help="database schema: upgrade, current, check")
    actions = db.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, run, text in (
        ("upgrade", _upgrade, "bring the database to the schema of this server"),
        ("current", _current, "print the schema the database stands at"),
        ("check", _check, "exit 1 unless the database has the schema of this server"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("--home", help="folder of the embedded database (default: ICEKEEL_HOME or ~/.icekeel)")
        action.add_argument("--format", choices=("text", "json"), default="text")
        action.set_defaults(run=run)


def _upgrade(given: argparse.Namespace) -> int:
    settings = read_settings({"home": given.home})
    if settings.embedded:
        settings.home.mkdir(parents=True, exist_ok=True)
    migrate(settings.database)
    return _current(given)


def _current(given: argparse.Namespace) -> int:
    state = schema_state(read_settings({"home": given.home}).database)
    show(given.format, {"current": state.current, "head": state.head, "status": state.status}, _line(state))
    return 0


def _check(given: argparse.Namespace) -> int:
    _current(given)
    return 0 if schema_state(read_settings({"home": given.home}).database).status == "current" else 1


def _line(state: Any) -> str:
    return f"{state.current or '(empty)'}: {state.status} (this server speaks {state.head})"
