"""Printing for people or machines. Tables, colours and progress are for a terminal; pipes get plain lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.progress import track
from rich.status import Status
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

T = TypeVar("T")


class _Verdicts(RegexHighlighter):
    """Colours for severities, verdicts and signs of changes, where they begin a line or end its head."""

    highlights = (
        r"(?m)^ *(?P<good>\+ .*)$",
        r"(?m)^ *(?P<bad>- .*)$",
        r"(?m)^ *(?P<bad>error)\b",
        r"(?m)^ *(?P<doubt>warn)\b",
        r"(?m)^[^ ]+: (?P<good>compatible)\b",
        r"(?m)^[^ ]+: (?P<bad>incompatible|refused)\b",
        r"(?m)^[^ ]+: (?P<doubt>not-checked|was not checked)\b",
    )


_WORDS = _Verdicts()
_THEME = Theme({"good": "green", "bad": "red", "doubt": "yellow"})


def show(form: str, value: object, text: str) -> None:
    """`value` as JSON when `form` is json, else `text`, coloured on a terminal."""
    if form == "json":
        print(as_json(value))
    elif sys.stdout.isatty():
        Console(theme=_THEME, highlighter=_WORDS).print(text, markup=False, emoji=False, soft_wrap=True)
    else:
        print(text)


def show_rows(form: str, value: object, columns: Sequence[str], rows: Sequence[Sequence[str]], none: str = "") -> None:
    """`value` as JSON when `form` is json, else a table with a head on a terminal, and lines without one elsewhere.

    `none` is told where there are no rows.
    """
    if form == "json" or not rows or not sys.stdout.isatty():
        show(form, value, lines(rows) or none)
        return
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(_WORDS(Text(cell)) for cell in row))
    Console(theme=_THEME).print(table)


def as_json(value: object) -> str:
    """Indented, so that a line changes where a value does."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def lines(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the last one ragged."""
    if not rows:
        return ""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def progress(items: Sequence[T], doing: str) -> Iterable[T]:
    """The items, under a bar on standard error where that is a terminal and there are several."""
    quiet = len(items) < 2 or not sys.stderr.isatty()
    return track(items, doing, console=Console(stderr=True), transient=True, disable=quiet)


def busy(doing: str) -> Status:
    """A spinner on standard error, of which nothing is seen but on a terminal."""
    return Status(doing, console=Console(stderr=True))
