"""`icekeel warehouse`: the warehouses of a running server."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from app.cli.client import Server
from app.cli.options import Form, takes
from app.cli.output import lines, show, show_rows
from app.errors import BadRequest

ALL = "/icekeel/v1/warehouses"

app = typer.Typer(name="warehouse", help="Warehouses: list, show, create, change, drop.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="warehouse name: a-z, 0-9, _ and -")]


def _pairs_option(name: str, text: str) -> Any:
    return typer.Option(name, metavar="NAME=VALUE", help=f"{text}; NAME= takes it away; repeatable")


@dataclass(frozen=True, kw_only=True)
class Contents(Server):
    """What may be said of a warehouse beside its place, and to which server."""

    allow: Annotated[
        list[str] | None, typer.Option(metavar="LOCATION", help="a place that its tables may use beside it; repeatable")
    ] = None
    properties: Annotated[list[str] | None, _pairs_option("--property", "default property of new tables")] = None
    options: Annotated[list[str] | None, _pairs_option("--option", "storage option, such as s3.region=eu-west-1")] = (
        None
    )
    options_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="storage options as a JSON object, - for standard input: the way for keys, which others could see on "
            "a command line; a change of the endpoint, or to hand out keys, needs them again",
        ),
    ] = None

    def body(self, *, removing: bool) -> dict[str, Any]:
        """The members of a request; BadRequest."""
        body: dict[str, Any] = {}
        if self.allow:
            body["allowed-locations"] = self.allow
        if properties := pairs(self.properties or (), removing=removing):
            body["properties"] = properties
        if options := {**_file(self.options_file), **pairs(self.options or (), removing=removing)}:
            body["storage"] = options
        return body


@app.command("list")
@takes(Server)
def warehouses(server: Server, form: Form = "text") -> None:
    """List every warehouse."""
    answer = server.call("GET", ALL)
    rows = [[w["name"], w["location"], _about(w)] for w in answer["warehouses"]]
    show_rows(form, answer, ("name", "location", "options"), rows)


@app.command("show")
@takes(Server)
def describe(server: Server, name: Name, form: Form = "text") -> None:
    """Show one warehouse."""
    _print(form, server.call("GET", _path(name)))


@app.command("create")
@takes(Contents)
def create(
    contents: Contents,
    name: Name,
    location: Annotated[
        str, typer.Argument(metavar="LOCATION", help="where its tables go: s3://, gs://, abfss://, file:// or a path")
    ],
    form: Form = "text",
) -> None:
    """Create a warehouse."""
    body = {"name": name, "location": location, **contents.body(removing=False)}
    _print(form, contents.call("POST", ALL, body))


@app.command("change")
@takes(Contents)
def change(
    contents: Contents,
    name: Name,
    location: Annotated[str | None, typer.Option(metavar="LOCATION", help="where new tables go from now on")] = None,
    form: Form = "text",
) -> None:
    """Change a warehouse."""
    body = contents.body(removing=True)
    if location is not None:
        body["location"] = location
    if not body:
        raise BadRequest("Nothing to change: give --location, --allow, --property, --option or --options-file")
    _print(form, contents.call("PATCH", _path(name), body))


@app.command("drop")
@takes(Server)
def drop(server: Server, name: Name, form: Form = "text") -> None:
    """Drop an empty warehouse; its files stay."""
    server.call("DELETE", _path(name))
    show(form, {"dropped": name}, f"{name}: dropped")


def _path(name: str) -> str:
    return f"{ALL}/{quote(name, safe='')}"


def pairs(texts: Sequence[str], *, removing: bool) -> dict[str, str | None]:
    """`NAME=VALUE` as a map; with `removing`, an empty value is None. BadRequest."""
    found: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise BadRequest(f"Not NAME=VALUE: {text}")
        found[name] = None if removing and value == "" else value
    return found


def _file(name: str | None) -> dict[str, str | None]:
    if name is None:
        return {}
    try:
        value = json.loads(sys.stdin.read() if name == "-" else Path(name).read_text())
    except (OSError, ValueError) as fault:
        raise BadRequest(f"Cannot read storage options from {name}: {fault}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"Storage options in {name} must be a JSON object")
    return value


def _print(form: str, answer: Any) -> None:
    rows = [["location", answer["location"]]]
    rows += [["allowed", place] for place in answer["allowed-locations"]]
    rows += [["property", f"{name}={value}"] for name, value in answer["properties"].items()]
    rows += [["option", f"{name}={value}"] for name, value in answer["storage"].items()]
    rows += [["secret", f"{name}=***"] for name in answer["secret-options"]]
    show(form, answer, f"{answer['name']} (version {answer['version']})\n{lines(rows)}")


def _about(warehouse: Any) -> str:
    return ", ".join(sorted([*warehouse["storage"], *warehouse["secret-options"]]))
