"""Printing for people or machines."""

from __future__ import annotations

import json
from collections.abc import Sequence


def show(form: str, value: object, text: str) -> None:
    """`value` as JSON when `form` is json, else `text`."""
    print(json.dumps(value, indent=2, ensure_ascii=False) if form == "json" else text)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the last one ragged."""
    if not rows:
        return ""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )
