"""`icekeel db`: the database schema."""

from __future__ import annotations

import argparse

from app.cli.output import add_format, show
from app.main import migrate, schema_state
from app.settings import Settings, read_settings

BEHIND = 1


def configure(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, run, text in (
        ("upgrade", _upgrade, "bring the database to the schema of this server"),
        ("current", _current, "print the schema the database stands at"),
        ("check", _check, "exit 1 unless the database has the schema of this server"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("--home", help="folder of the embedded database (default: ICEKEEL_HOME or ~/.icekeel)")
        add_format(action)
        action.set_defaults(run=run)


def _upgrade(given: argparse.Namespace) -> int:
    settings = _settings(given)
    settings.make_home()
    migrate(settings.database)
    return _current(given)


def _current(given: argparse.Namespace) -> int:
    _tell(given)
    return 0


def _check(given: argparse.Namespace) -> int:
    return 0 if _tell(given) == "current" else BEHIND


def _tell(given: argparse.Namespace) -> str:
    state = schema_state(_settings(given).database)
    value = {"current": state.current, "head": state.head, "status": state.status}
    show(given.format, value, f"{state.current or '(empty)'}: {state.status} (this server speaks {state.head})")
    return state.status


def _settings(given: argparse.Namespace) -> Settings:
    return read_settings({"home": given.home})
