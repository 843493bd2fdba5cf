"""The command line: `icekeel COMMAND`. Exit codes: 0 fine, 1 findings or refusal, 2 could not do it."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from app import __version__
from app.errors import IcekeelError

COULD_NOT = 2
INTERRUPTED = 130

# Each command's module and its line in the help. Only the module of the command that is run gets loaded: a server's
# worth of imports costs a second, and asking for a rule's page needs none of them.
COMMANDS = {
    "serve": ("app.cli.serving", "serve the catalog"),
    "db": ("app.cli.database", "database schema: upgrade, current, check"),
    "rules": ("app.cli.catalogue", "list the rules that schema changes are judged by"),
    "explain": ("app.cli.manual", "show the manual page of a rule"),
    "policy": ("app.cli.policies", "severities of the rules for a table: get, set"),
    "check": ("app.cli.checks", "tell whether a schema change would be accepted"),
    "schema": ("app.cli.schemas", "schemas of tables: plan, apply, log, diff, show, column"),
    "waive": ("app.cli.waivers", "let one commit break one rule: grant, list, revoke"),
    "warehouse": ("app.cli.warehouses", "warehouses: list, show, create, change, drop"),
    "connect": ("app.cli.connect", "print how an engine connects to a running server"),
    "gc": ("app.cli.garbage", "find metadata files that no table ever named, and delete them when told to"),
    "openapi": ("app.cli.document", "print the OpenAPI document"),
}


def parser(chosen: str | None) -> argparse.ArgumentParser:
    """Every command by name, and the options of the chosen one."""
    top = argparse.ArgumentParser(prog="icekeel", description="Icekeel, an Apache Iceberg REST catalog.")
    top.add_argument("--version", action="version", version=f"icekeel {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            _load(module).configure(command)
    return top


def _load(module: str) -> Any:
    """Import a command. What is imported stays: looking for garbage in it would be a sixth of a server's start."""
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code; what goes wrong is told in one line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in given if not word.startswith("-")), None)
    try:
        parsed = parser(chosen).parse_args(given)
        code: int = parsed.run(parsed)
        return code
    except IcekeelError as error:
        print(f"icekeel: {error.message}", file=sys.stderr)
        return COULD_NOT
    except BrokenPipeError:
        # The reader of our output (head, less) has left; that is its right.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
