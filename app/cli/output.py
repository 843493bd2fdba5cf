"""Printing for people or machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence


def add_format(command: argparse.ArgumentParser) -> None:
    """The option that `show` obeys."""
    command.add_argument(
        "--format", choices=("text", "json"), default="text", help="text for people, json for machines"
    )


def show(form: str, value: object, text: str) -> None:
    """`value` as JSON when `form` is json, else `text`."""
    print(as_json(value) if form == "json" else text)


def as_json(value: object) -> str:
    """Indented, so that a line changes where a value does."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the last one ragged."""
    if not rows:
        return ""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )
