"""`icekeel check`: would this schema, or this commit, be accepted?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from app.cli.output import as_json
from app.cli.subjects import add_subject, json_file, subject
from app.cli.verdicts import COULD_NOT, exit_code, failure, github_lines, verdict_text
from app.errors import BadRequest, IcekeelError

FORMATS = ("text", "json", "github")


def configure(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file",
        help="a schema (Iceberg JSON, or a list of fields), a commit with updates, or operations; - for standard input",
    )
    command.add_argument("--table", help="namespace.table, or a JSON list of levels and name")
    command.add_argument(
        "--match", choices=("name", "id"), help="how columns are matched (default: by id where all have one)"
    )
    command.add_argument("--strict", action="store_true", help="exit 1 for warnings too")
    command.epilog = "Exit codes: 0 compatible, 1 incompatible, 2 could not be checked."
    add_subject(command, formats=FORMATS)
    command.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    name = given.table or given.metadata or given.file
    try:
        about = subject(given)
        name = about.name
        checked = about.check(_body(json_file(given.file), given.match))
    except IcekeelError as fault:
        # Whatever kept us from an answer is no answer: never 0, never 1.
        if given.format == "github":
            print(failure(given.file, name, fault.message))
        elif given.format == "json":
            print(as_json({"verdict": "not-checked", "reason": fault.message, "findings": [], "changes": []}))
        else:
            print(f"icekeel: {name} was not checked: {fault.message}", file=sys.stderr)
        return COULD_NOT
    if given.format == "json":
        print(as_json(checked))
    elif given.format == "github":
        print("\n".join(github_lines(given.file, name, checked)))
    else:
        print(verdict_text(name, checked))
    return exit_code(checked, strict=given.strict)


def _body(value: Any, match: str | None) -> Mapping[str, Any]:
    """What a file holds, as the body of a check."""
    if isinstance(value, list):
        body: dict[str, Any] = {"fields": value}
    elif not isinstance(value, dict):
        raise BadRequest("The file must hold a JSON object or a list of fields")
    elif any(key in value for key in ("updates", "operations", "schema", "arrow-ipc-schema")):
        body = dict(value)
    else:
        body = {"schema": {key: item for key, item in value.items() if key != "identifier-fields"}}
        if "identifier-fields" in value:
            body["identifier-fields"] = value["identifier-fields"]
    if match is not None:
        body["match"] = match
    return body
