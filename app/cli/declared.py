"""Tables declared in files: a folder of them in a git repository is the schema of a lake as code.

A file holds one table: `{"table": "sales.orders", "fields": [...]}`, with `renamed-from` where a column had another
name. Without `table`, folders are levels and the file is the table: `tables/sales/orders.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.cli.client import Refused
from app.cli.codes import COULD_NOT, FINE, FOUND
from app.cli.options import Strict
from app.cli.output import progress, show
from app.cli.subjects import Place, ServedTable, json_file
from app.cli.verdicts import change_line, exit_code, failure, github_lines, verdict_text
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


@dataclass(frozen=True, kw_only=True)
class Files(Place):
    """The files that the options of a command name, and where their tables are."""

    file: Annotated[list[str], typer.Option("-f", "--file", metavar="FILE", help="table files or folders")]
    # A shell makes `-f tables/*.json` one option and many arguments.
    more: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="more table files or folders")] = None
    root: Annotated[
        str, typer.Option(metavar="DIR", help="folder below which the path of a single file names its table")
    ] = "tables"
    strict: Strict = False

    def declarations(self) -> list[Declaration]:
        """Every table file in the given files and folders. NotFound when there is none: nothing is not clean.

        In a folder, paths below it name the tables; the path of a single file does so below `root`.
        """
        paths = [*self.file, *(self.more or ())]
        found: list[Declaration] = []
        for path in map(Path, paths):
            if path.is_dir():
                files = sorted(file for file in path.rglob("*.json") if file.is_file())
                found.extend(_declaration(file, file.relative_to(path)) for file in files)
            else:
                below = path.relative_to(self.root) if path.is_relative_to(self.root) else Path(path.name)
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


def plan(files: Files, form: str) -> int:
    """Show what `apply` would do; the exit code is 1 when anything would be refused."""
    return _print(form, _each(_planned, files, "planning"))


def apply(files: Files, form: str) -> int:
    """Plan every file first, and apply only when all of them are compatible."""
    if files.metadata:
        raise BadRequest("A metadata file cannot be applied to: leave --metadata out")
    first = _each(_planned, files, "planning")
    if any(result.code != FINE for result in first):
        code = _print(form, first)
        print("icekeel: nothing was applied", file=sys.stderr)
        return code
    return _print(form, _each(_applied, files, "applying"))


def _each(act: Callable[[Files, Declaration], Result], files: Files, doing: str) -> list[Result]:
    return [_caught(act, files, one) for one in progress(files.declarations(), doing)]


def _planned(files: Files, one: Declaration) -> Result:
    made = files.table(one.table).plan(one.body)
    code = exit_code(made, strict=files.strict)
    text = verdict_text(one.table, made) if made["updates"] or code != FINE else f"{one.table}: up to date"
    value = {"file": one.file, "table": one.table, **made}
    return Result(code, value, text, tuple(github_lines(one.file, one.table, made)))


def _applied(files: Files, one: Declaration) -> Result:
    about = files.table(one.table)
    assert isinstance(about, ServedTable)
    made = about.plan(one.body)
    if not made["updates"]:
        return Result(FINE, {"file": one.file, "table": one.table, "changes": []}, f"{one.table}: up to date", ())
    done = about.apply({**one.body, "plan-hash": made["plan-hash"]})
    lines = [f"{one.table}: schema {done['schema-id']}", *(f"  {change_line(change)}" for change in done["changes"])]
    return Result(FINE, {"file": one.file, "table": one.table, **done}, "\n".join(lines), ())


def _caught(act: Callable[[Files, Declaration], Result], files: Files, one: Declaration) -> Result:
    try:
        return act(files, one)
    except IcekeelError as fault:
        refused = isinstance(fault, Refused) and fault.final
        value = {"file": one.file, "table": one.table, "verdict": "incompatible" if refused else "not-checked"}
        return Result(
            FOUND if refused else COULD_NOT,
            {**value, "reason": fault.message},
            f"{one.table}: {'refused' if refused else 'was not checked'}: {fault.message}",
            (failure(one.file, one.table, fault.message),),
        )


def _print(form: str, results: list[Result]) -> int:
    if form == "github":
        print("\n".join(note for result in results for note in result.notes))
    else:
        show(form, {"tables": [result.value for result in results]}, "\n".join(result.text for result in results))
    return max(result.code for result in results)
