"""`icekeel warehouse`: the warehouses of a running server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.cli.client import call, to_server
from app.cli.output import show, table
from app.errors import BadRequest

ALL = "/icekeel/v1/warehouses"


def configure(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    to_server(actions.add_parser("list", help="list every warehouse"), _list)
    for name, run, text in (
        ("show", _show, "show one warehouse"),
        ("create", _create, "create a warehouse"),
        ("change", _change, "change a warehouse"),
        ("drop", _drop, "drop an empty warehouse; its files stay"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("name", help="warehouse name: a-z, 0-9, _ and -")
        if name == "create":
            action.add_argument("location", help="where its tables go: s3://, gs://, abfss://, file:// or a path")
        if name == "change":
            action.add_argument("--location", help="where new tables go from now on")
        if name in ("create", "change"):
            _add_contents(action)
        to_server(action, run)


def _add_contents(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--allow", action="append", metavar="LOCATION", help="a place that its tables may use beside it; repeatable"
    )
    action.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE",
        help="default property of new tables; NAME= takes it away; repeatable",
    )  # fmt: skip
    action.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE",
        help="storage option, such as s3.region=eu-west-1; NAME= takes it away; repeatable",
    )  # fmt: skip
    action.add_argument(
        "--options-file", metavar="FILE",
        help="storage options as a JSON object, - for standard input: the way for keys, which others could see on a "
        "command line; a change of the endpoint, or to hand out keys, needs them again",
    )  # fmt: skip


def _list(given: argparse.Namespace) -> None:
    answer = call(given, "GET", ALL)
    rows = [[w["name"], w["location"], _about(w)] for w in answer["warehouses"]]
    show(given.format, answer, table(rows))


def _show(given: argparse.Namespace) -> None:
    _print(given, call(given, "GET", _path(given)))


def _create(given: argparse.Namespace) -> None:
    body = {"name": given.name, "location": given.location, **_contents(given)}
    _print(given, call(given, "POST", ALL, body))


def _change(given: argparse.Namespace) -> None:
    body = _contents(given)
    if given.location is not None:
        body["location"] = given.location
    if not body:
        raise BadRequest("Nothing to change: give --location, --allow, --property, --option or --options-file")
    _print(given, call(given, "PATCH", _path(given), body))


def _drop(given: argparse.Namespace) -> None:
    call(given, "DELETE", _path(given))
    show(given.format, {"dropped": given.name}, f"{given.name}: dropped")


def _path(given: argparse.Namespace) -> str:
    return f"{ALL}/{quote(given.name, safe='')}"


def _contents(given: argparse.Namespace) -> dict[str, Any]:
    creating = given.action == "create"
    body: dict[str, Any] = {}
    if given.allow is not None:
        body["allowed-locations"] = given.allow
    if properties := pairs(given.property, removing=not creating):
        body["properties"] = properties
    options = {**_file(given.options_file), **pairs(given.option, removing=not creating)}
    if options:
        body["storage"] = options
    return body


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


def _print(given: argparse.Namespace, answer: Any) -> None:
    rows = [["location", answer["location"]]]
    rows += [["allowed", place] for place in answer["allowed-locations"]]
    rows += [["property", f"{name}={value}"] for name, value in answer["properties"].items()]
    rows += [["option", f"{name}={value}"] for name, value in answer["storage"].items()]
    rows += [["secret", f"{name}=***"] for name in answer["secret-options"]]
    show(given.format, answer, f"{answer['name']} (version {answer['version']})\n{table(rows)}")


def _about(warehouse: Any) -> str:
    return ", ".join(sorted([*warehouse["storage"], *warehouse["secret-options"]]))
