"""Tables declared in files: a folder of them in a git repository is the schema of a lake as code.

A file holds one table: `{"table": "sales.orders", "fields": [...]}`, with `renamed-from` where a column had another
name. Without `table`, folders are levels and the file is the table: `tables/sales/orders.json`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.cli.client import Refused
from app.cli.output import as_json
from app.cli.subjects import ServedTable, json_file, subject
from app.cli.verdicts import COULD_NOT, FINE, FOUND, change_line, exit_code, failure, github_lines, verdict_text
from app.errors import BadRequest, IcekeelError, NotFound

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One table file: the table's name, and the operations that make the table what the file says."""

    file: str
    table: str
    body: Value


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one file: `code` as an exit code, `value` for machines, `text` for people, `notes` for GitHub."""

    code: int
    value: Value
    text: str
    notes: tuple[str, ...]


def declarations(paths: list[str], root: str) -> list[Declaration]:
    """Every table file in the given files and folders. NotFound when there is none: nothing is not clean.

    In a folder, paths below it name the tables; the path of a single file does so below `root`.
    """
    found: list[Declaration] = []
    for path in map(Path, paths):
        if path.is_dir():
            files = sorted(file for file in path.rglob("*.json") if file.is_file())
            found.extend(_declaration(file, file.relative_to(path)) for file in files)
        else:
            below = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
            found.append(_declaration(path, below))
    if not found:
        raise NotFound(f"No table files (*.json) in {', '.join(paths)}")
    return found


def _declaration(file: Path, place: Path) -> Declaration:
    value = json_file(str(file))
    if not isinstance(value, dict):
        raise BadRequest(f"{file}: a table file holds a JSON object")
    table = value.get("table")
    if table is None:
        if len(place.parts) < 2:
            raise BadRequest(f'{file}: say which table it is: "table": "namespace.name"')
        table = _name([*place.parts[:-1], place.stem])
    elif isinstance(table, list):
        table = _name(table)
    elif not isinstance(table, str):
        raise BadRequest(f"{file}: table must be a name or a list of levels and name")
    operation = {key: item for key, item in value.items() if key not in ("table", "tag-before-drop", "doc")}
    body: dict[str, Any] = {"operations": [{"match": "name", **operation, "op": "declare"}]}
    if "tag-before-drop" in value:
        body["tag-before-drop"] = value["tag-before-drop"]
    return Declaration(str(file), table, body)


def _name(parts: list[Any]) -> str:
    """As commands take it: dotted, or a JSON list where a part holds a dot itself."""
    if all(isinstance(part, str) and "." not in part for part in parts):
        return ".".join(parts)
    return msgspec.json.encode(parts).decode()


def plan(given: argparse.Namespace) -> int:
    """Show what `apply` would do; exit 1 when anything would be refused."""
    return _each(given, _planned)


def apply(given: argparse.Namespace) -> int:
    """Plan every file first, and apply only when all of them are compatible."""
    if given.metadata:
        raise BadRequest("A metadata file cannot be applied to: leave --metadata out")
    first = [_caught(one, given, _planned) for one in declarations(given.file, given.root)]
    if any(result.code != FINE for result in first):
        _print(given.format, first)
        print("icekeel: nothing was applied", file=sys.stderr)
        return max(result.code for result in first)
    return _each(given, _applied)


def _each(given: argparse.Namespace, act: Callable[[argparse.Namespace, Declaration], Result]) -> int:
    results = [_caught(one, given, act) for one in declarations(given.file, given.root)]
    _print(given.format, results)
    return max(result.code for result in results)


def _planned(given: argparse.Namespace, one: Declaration) -> Result:
    made = subject(given, one.table).plan(one.body)
    code = exit_code(made, strict=given.strict)
    text = verdict_text(one.table, made) if made["updates"] or code != FINE else f"{one.table}: up to date"
    value = {"file": one.file, "table": one.table, **made}
    return Result(code, value, text, tuple(github_lines(one.file, one.table, made)))


def _applied(given: argparse.Namespace, one: Declaration) -> Result:
    about = subject(given, one.table)
    assert isinstance(about, ServedTable)
    made = about.plan(one.body)
    if not made["updates"]:
        return Result(FINE, {"file": one.file, "table": one.table, "changes": []}, f"{one.table}: up to date", ())
    body = {**one.body, "plan-hash": made["plan-hash"]}
    done = about.apply(body)
    lines = [f"{one.table}: schema {done['schema-id']}", *(f"  {change_line(change)}" for change in done["changes"])]
    return Result(FINE, {"file": one.file, "table": one.table, **done}, "\n".join(lines), ())


def _caught(
    one: Declaration, given: argparse.Namespace, act: Callable[[argparse.Namespace, Declaration], Result]
) -> Result:
    try:
        return act(given, one)
    except IcekeelError as fault:
        refused = isinstance(fault, Refused) and fault.final
        value = {"file": one.file, "table": one.table, "verdict": "incompatible" if refused else "not-checked"}
        return Result(
            FOUND if refused else COULD_NOT,
            {**value, "reason": fault.message},
            f"{one.table}: {'refused' if refused else 'was not checked'}: {fault.message}",
            (failure(one.file, one.table, fault.message),),
        )


def _print(form: str, results: list[Result]) -> None:
    if form == "json":
        print(as_json({"tables": [result.value for result in results]}))
    elif form == "github":
        print("\n".join(note for result in results for note in result.notes))
    else:
        print("\n".join(result.text for result in results))
