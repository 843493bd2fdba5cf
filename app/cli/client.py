"""A small client of a running server, for commands that act through its API."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from app.errors import BadRequest, IcekeelError, Unavailable

DEFAULT_URI = "http://127.0.0.1:8181"
_TIMEOUT_S = 60


class Refused(IcekeelError):
    """The server answered with an error; its message is the server's."""


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--uri",
        default=os.environ.get("ICEKEEL_URI", DEFAULT_URI),
        help=f"server (default: ICEKEEL_URI or {DEFAULT_URI})",
    )
    command.add_argument(
        "--token", default=os.environ.get("ICEKEEL_TOKEN"), help="bearer token (default: ICEKEEL_TOKEN)"
    )
    command.add_argument("--warehouse", default="default", help="warehouse name (default: default)")
    command.add_argument("--format", choices=("text", "json"), default="text")


def call(given: argparse.Namespace, method: str, path: str, body: object = None) -> Any:
    """The decoded answer; Refused with the server's message, Unavailable when it cannot be reached."""
    headers = {"Accept": "application/json", "User-Agent": "icekeel-cli"}
    if given.token:
        headers["Authorization"] = f"Bearer {given.token}"
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    request = Request(given.uri.rstrip("/") + path, data=data, headers=headers, method=method)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
            text = answer.read()
    except HTTPError as error:
        raise Refused(_message(error)) from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        raise Unavailable(f"Cannot reach {given.uri}: {getattr(error, 'reason', error)}") from None
    return json.loads(text) if text else None


def _message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"


def table_path(warehouse: str, table: str) -> str:
    """The path of a table in our own API, from `namespace.table` or a JSON list of levels and name."""
    *levels, name = split_table(table)
    namespace = "%1F".join(quote(level, safe="") for level in levels)
    return f"/icekeel/v1/{quote(warehouse, safe='')}/namespaces/{namespace}/tables/{quote(name, safe='')}"


def split_table(table: str) -> Sequence[str]:
    """Levels and name. Names that hold dots need the JSON form: `["my.level", "table"]`."""
    parts: Any = table.split(".")
    if table.startswith("["):
        try:
            parts = json.loads(table)
        except ValueError:
            parts = None
    if not isinstance(parts, list) or len(parts) < 2 or not all(isinstance(p, str) and p for p in parts):
        raise BadRequest(f"Not a table: {table}. Write namespace.table, or a JSON list when names hold dots")
    return parts
