"""A small client of a running server, for commands that act through its API."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from app.cli.output import add_format
from app.errors import BadRequest, IcekeelError, Unavailable

DEFAULT_URI = "http://127.0.0.1:8181"
REFUSED = 1
_TIMEOUT_S = 60


class Refused(IcekeelError):
    """The server answered with an error; its message is the server's, `status` the HTTP status."""

    @property
    def final(self) -> bool:
        """Whether the server has judged the request, rather than could not get that far."""
        return self.context.get("status") in (400, 409, 422)


def add_action(
    actions: Any, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    """A command about one table of a running server; a refusal of the server is exit code 1."""
    action: argparse.ArgumentParser = actions.add_parser(name, help=text)
    action.add_argument("table", help="namespace.table, or a JSON list of levels and name")
    action.add_argument("--warehouse", default="default", help="warehouse name (default: default)")
    return to_server(action, run)


def to_server(action: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
    """Make `run` a command to a running server; a refusal of the server is exit code 1."""
    uri = os.environ.get("ICEKEEL_URI", DEFAULT_URI)
    action.add_argument("--uri", default=uri, help=f"server (default: ICEKEEL_URI or {DEFAULT_URI})")
    action.add_argument(
        "--token", default=os.environ.get("ICEKEEL_TOKEN"), help="bearer token (default: ICEKEEL_TOKEN)"
    )
    add_format(action)
    action.set_defaults(run=lambda given: _answered(run, given))
    return action


def _answered(run: Callable[[argparse.Namespace], None], given: argparse.Namespace) -> int:
    try:
        run(given)
    except Refused as refused:
        print(f"icekeel: {refused.message}", file=sys.stderr)
        return REFUSED
    return 0


def call(given: argparse.Namespace, method: str, path: str, body: object = None) -> Any:
    """The decoded answer; Refused with the server's message, Unavailable when it cannot be reached."""
    headers = {"Accept": "application/json", "User-Agent": "icekeel-cli"}
    if given.token:
        headers["Authorization"] = f"Bearer {given.token}"
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    if not given.uri.startswith(("http://", "https://")):
        raise Unavailable(f"--uri (ICEKEEL_URI) must be an http:// or https:// URL, not {given.uri!r}")
    try:
        request = Request(given.uri.rstrip("/") + path, data=data, headers=headers, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
            text = answer.read()
    except HTTPError as error:
        raise Refused(_message(error), status=error.code) from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        raise Unavailable(f"Cannot reach {given.uri}: {getattr(error, 'reason', error)}") from None
    return json.loads(text) if text else None


def _message(error: HTTPError) -> str:
    with error:
        try:
            return str(json.loads(error.read())["error"]["message"])
        except (ValueError, KeyError, TypeError):
            return f"{error.code} {error.reason}"


def evolution_path(given: argparse.Namespace, tail: str) -> str:
    """The path of a table's `evolution/` resource in our own API."""
    *levels, name = split_table(given.table)
    namespace = "%1F".join(quote(level, safe="") for level in levels)
    table = f"/icekeel/v1/{quote(given.warehouse, safe='')}/namespaces/{namespace}/tables/{quote(name, safe='')}"
    return f"{table}/evolution/{tail}"


def table_path(given: argparse.Namespace) -> str:
    """The path of a table in the Iceberg protocol."""
    *levels, name = split_table(given.table)
    namespace = "%1F".join(quote(level, safe="") for level in levels)
    return f"/v1/{quote(given.warehouse, safe='')}/namespaces/{namespace}/tables/{quote(name, safe='')}"


def split_table(table: str) -> Sequence[str]:
    """Levels and name of `namespace.table`. Names that hold dots need the JSON form: `["my.level", "table"]`."""
    parts: Any = table.split(".")
    if table.startswith("["):
        try:
            parts = json.loads(table)
        except ValueError:
            parts = None
    if not isinstance(parts, list) or len(parts) < 2 or not all(isinstance(p, str) and p for p in parts):
        raise BadRequest(f"Not a table: {table}. Write namespace.table, or a JSON list when names hold dots")
    return parts
