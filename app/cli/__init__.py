"""The command line: `icekeel COMMAND`. Exit codes: 0 fine, 1 findings or refusal, 2 could not do it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app import __version__
from app.cli import catalogue, database, policies, serving
from app.errors import IcekeelError

COULD_NOT = 2


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    top = argparse.ArgumentParser(
        prog="icekeel", description=__doc__.split(":", 1)[0] + " of Icekeel, an Apache Iceberg REST catalog."
    )
    top.add_argument("--version", action="version", version=f"icekeel {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for part in (serving, database, catalogue, policies):
        part.add_commands(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code; what goes wrong is told in one line."""
    given = parser().parse_args(arguments)
    try:
        code: int = given.run(given)
        return code
    except IcekeelError as error:
        print(f"icekeel: {error.message}", file=sys.stderr)
        return COULD_NOT
    except BrokenPipeError:
        # The reader of our output (head, less) has left; that is its right.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
