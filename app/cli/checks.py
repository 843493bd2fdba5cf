"""`icekeel check`: would this schema, or this commit, be accepted?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from app.cli.codes import COULD_NOT
from app.cli.options import ReportForm, Strict, takes
from app.cli.output import as_json, show
from app.cli.subjects import Place, json_file
from app.cli.verdicts import exit_code, failure, github_lines, verdict_text
from app.errors import BadRequest, IcekeelError

app = typer.Typer()


@app.command("check", epilog="Exit codes: 0 compatible, 1 incompatible, 2 could not be checked.")
@takes(Place)
def check(
    place: Place,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="a schema (Iceberg JSON, or a list of fields), a commit with updates, or operations; - for standard "
            "input",
        ),
    ],
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="namespace.table, or a JSON list of levels and name")
    ] = None,
    match: Annotated[
        Literal["name", "id"] | None, typer.Option(help="how columns are matched (default: by id where all have one)")
    ] = None,
    strict: Strict = False,
    form: ReportForm = "text",
) -> None:
    """Tell whether a schema change would be accepted."""
    name = table or place.metadata or file
    try:
        about = place.table(table)
        name = about.name
        checked = about.check(_body(json_file(file), match))
    except IcekeelError as fault:
        # Whatever kept us from an answer is no answer: never 0, never 1.
        if form == "github":
            print(failure(file, name, fault.message))
        elif form == "json":
            print(as_json({"verdict": "not-checked", "reason": fault.message, "findings": [], "changes": []}))
        else:
            print(f"icekeel: {name} was not checked: {fault.message}", file=sys.stderr)
        raise typer.Exit(COULD_NOT) from None
    if form == "github":
        print("\n".join(github_lines(file, name, checked)))
    else:
        show(form, checked, verdict_text(name, checked))
    raise typer.Exit(exit_code(checked, strict=strict))


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
