"""A small client of a running server, for commands that act through its API."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from app.cli.codes import FOUND
from app.cli.options import DEFAULT_URI, Table, Token, Uri, Warehouse
from app.errors import BadRequest, IcekeelError, Unavailable

_TIMEOUT_S = 60

Value = dict[str, Any]
Query = Mapping[str, str] | None


class Refused(IcekeelError):
    """The server answered with an error; its message is the server's, `status` the HTTP status."""

    exit_code = FOUND

    @property
    def final(self) -> bool:
        """Whether the server has judged the request, rather than could not get that far."""
        return self.context.get("status") in (400, 409, 422)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server, as the options of a command name it."""

    uri: Uri = DEFAULT_URI
    token: Token = None

    def call(self, method: str, path: str, body: object = None, query: Query = None) -> Value:
        """The decoded answer, {} for an empty one; Refused with the server's message, Unavailable when it cannot be
        reached.
        """
        headers = {"Accept": "application/json", "User-Agent": "icekeel-cli"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            answer = httpx.request(
                method,
                self.uri.rstrip("/") + path,
                json=body,
                params=query,
                headers=headers,
                timeout=_TIMEOUT_S,
                follow_redirects=True,
                # No proxy of the environment; certificates that the machine trusts.
                trust_env=False,
                verify=ssl.create_default_context(),
            )
            if answer.is_success:
                value: Value = answer.json() if answer.content else {}
                return value
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise Unavailable(f"Cannot reach {self.uri}: {error or type(error).__name__}") from None
        raise Refused(_message(answer), status=answer.status_code)


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason_phrase}"


@dataclass(frozen=True, kw_only=True)
class ServerTable(Server):
    """A table of a running server: `table` is `namespace.table`, or a JSON list of levels and name."""

    table: Table
    warehouse: Warehouse = "default"

    def load(self) -> Value:
        """The table in the Iceberg protocol."""
        return self.call("GET", f"/v1/{self._path()}")

    def evolution(self, method: str, what: str, body: object = None, query: Query = None) -> Value:
        """A call of the table's `evolution/` resources in our own API."""
        return self.call(method, f"/icekeel/v1/{self._path()}/evolution/{what}", body, query)

    def _path(self) -> str:
        *levels, name = (quote(part, safe="") for part in split_table(self.table))
        return f"{quote(self.warehouse, safe='')}/namespaces/{'%1F'.join(levels)}/tables/{name}"


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
