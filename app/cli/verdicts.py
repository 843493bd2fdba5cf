"""Verdicts and changes in words, as GitHub annotations, and as exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.cli.codes import COULD_NOT, FINE, FOUND

Value = Mapping[str, Any]

_HONOURS = {"no": "does not read initial-default", "unknown": "is not known to read initial-default"}
_SIGNS = {"added": "+", "restored": "+", "dropped": "-"}


def exit_code(checked: Value, *, strict: bool = False) -> int:
    """0 only for what was checked and found compatible (with `strict`: and nothing was reported)."""
    verdict = checked.get("verdict")
    if verdict == "compatible":
        return FOUND if strict and checked["findings"] else FINE
    return FOUND if verdict == "incompatible" else COULD_NOT


def verdict_text(name: str, checked: Value) -> str:
    """The verdict, what changes, every finding, and what old files return."""
    head = f"{name}: {checked['verdict']}"
    if checked.get("reason"):
        head += f": {checked['reason']}"
    lines = [head, *(f"  {change_line(change)}" for change in checked["changes"])]
    lines += [f"  note: {note}" for note in checked.get("notes", ())]
    lines += [f"  {finding['severity']:5} {finding['message']}" for finding in checked["findings"]]
    lines += [f"  {line}" for line in _readings(checked.get("reads", ()))]
    lines += [
        f"  client {one['client']} {one['version']} {_HONOURS[one['honours-initial-default']]}"
        for one in checked.get("clients-without-defaults", ())
    ]
    return "\n".join(lines)


def _readings(reads: Sequence[Value]) -> Iterator[str]:
    for one in reads:
        told = []
        for column in one["columns"]:
            text = f"{column['path']}: {column['returns']}"
            if "stored-as" in column:
                text += f" (stored as {column['stored-as']})"
            elif "value" in column:
                text += f" {column['value']!r}"
            told.append(text)
        written = "" if one["snapshots"] else " (no retained snapshot)"
        yield f"files of schema {one['schema-id']}{written} return {', '.join(told)}"


def change_line(change: Value) -> str:
    """`+ column note (field 7): optional string`."""
    kind = change["change"]
    where = f"field {change['field-id']}"
    if "path" in change:
        where = f"{change['path']} ({where})"
    sign = _SIGNS.get(kind, "~")
    before, after = change.get("before"), change.get("after")
    if kind in _SIGNS:
        told = f": {after if before is None else before}"
        return f"{sign} {where}{told}{' (restored)' if kind == 'restored' else ''}"
    if before is None and after is None:
        return f"{sign} {where} {kind}"
    return f"{sign} {where} {kind}: {_shown(before)} -> {_shown(after)}"


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def github_lines(file: str, name: str, checked: Value) -> list[str]:
    """GitHub workflow commands: one per finding, one for a verdict without findings that is not clean."""
    lines = [
        _annotation("error" if finding["severity"] == "error" else "warning", file, finding["code"], finding["message"])
        for finding in checked["findings"]
        if "waived-by" not in finding
    ]
    if checked["verdict"] != "compatible" and (checked.get("reason") or not lines):
        lines.append(_annotation("error", file, checked["verdict"], f"{name}: {checked.get('reason', 'refused')}"))
    return lines or [f"{name}: compatible"]


def failure(file: str, name: str, message: str) -> str:
    """The annotation of a comparison that could not be made."""
    return _annotation("error", file, "not-checked", f"{name}: {message}")


def _annotation(level: str, file: str, title: str, message: str) -> str:
    text = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    place = file.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} file={place},title={title}::{text}"


def moment(at_ms: int | None) -> str:
    """A time of the journal, in UTC."""
    if at_ms is None:
        return "unknown time"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
