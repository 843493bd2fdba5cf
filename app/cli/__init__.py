"""The command line: `icekeel COMMAND`. Exit codes: 0 fine, 1 findings or refusal, 2 could not do it."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from app import __version__
from app.cli.codes import COULD_NOT
from app.errors import IcekeelError

# Each command's module and its line in the help. Only the module of the command that is run gets loaded: a server's
# worth of imports costs a second, and asking for a rule's page needs none of them.
COMMANDS = {
    "serve": ("app.cli.serving", "Serve the catalog."),
    "db": ("app.cli.database", "Database schema: upgrade, current, check."),
    "rules": ("app.cli.catalogue", "List the rules that schema changes are judged by."),
    "explain": ("app.cli.catalogue", "Show the manual page of a rule."),
    "policy": ("app.cli.policies", "Severities of the rules for a table: get, set."),
    "check": ("app.cli.checks", "Tell whether a schema change would be accepted."),
    "schema": ("app.cli.schemas", "Schemas of tables: plan, apply, log, diff, show, column."),
    "waive": ("app.cli.waivers", "Let one commit break one rule: grant, list, revoke."),
    "warehouse": ("app.cli.warehouses", "Warehouses: list, show, create, change, drop."),
    "connect": ("app.cli.connect", "Print how an engine connects to a running server."),
    "gc": ("app.cli.garbage", "Find metadata files that no table ever named, and delete them when told to."),
    "openapi": ("app.cli.document", "Print the OpenAPI document."),
}


class _Program(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except IcekeelError as error:
            print(f"icekeel: {error.message}", file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", COULD_NOT)) from None
        except BrokenPipeError:
            # The reader of our output (head, less) has left; that is its right.
            sys.stderr.close()
            raise typer.Exit from None


def program(chosen: str | None) -> typer.Typer:
    """The chosen command, or every command by name and line."""
    # Plain help and errors: boxes end up in logs, and rich would be loaded to draw them.
    top = typer.Typer(cls=_Program, add_completion=False, rich_markup_mode=None)
    top.callback()(_program)
    if chosen in COMMANDS:
        top.add_typer(_load(COMMANDS[chosen][0]).app)
    else:
        for name, (_, text) in COMMANDS.items():
            top.command(name, short_help=text)(_program)
    return top


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"icekeel {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Icekeel, an Apache Iceberg REST catalog."""


def _load(module: str) -> Any:
    """Import a command. What is imported stays: looking for garbage in it would be a sixth of a server's start."""
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code; what goes wrong is told on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        get_command(program(given[0] if given else None)).main(given, prog_name="icekeel")
    except SystemExit as left:
        return int(left.code or 0)
    return 0
