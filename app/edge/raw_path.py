"""Request paths as they came over the wire: split on `/` first, decode afterwards.

Servers hand applications a decoded path, in which an encoded slash inside a name looks like a separator. Routing here
works on the undecoded text, so `%2F`, `%2E` and `%1F` stay inside their segment until the endpoint decodes it.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import BadRequest

# Words that follow /v1/ when no warehouse is named. No warehouse may be called like this.
_ALIASED = frozenset({"namespaces", "tables", "views", "transactions"})
_SEPARATOR = re.compile("%1[Ff]")
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_ABSOLUTE = re.compile(rb"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")

_QUERY_FIELDS = 64


def decode_segment(raw: str) -> str:
    """One path segment, percent-decoded once; `+` is a blank because Java clients write form encoding into paths.

    BadRequest for a broken escape and for bytes that are not UTF-8.
    """
    if "%" not in raw and "+" not in raw:
        return raw
    if _BAD_PERCENT.search(raw):
        raise BadRequest(f"Malformed percent-encoding in path segment: {raw}")
    try:
        return unquote_to_bytes(raw.replace("+", " ")).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"Path segment is not UTF-8: {raw}") from None


def decode_levels(raw: str) -> tuple[str, ...]:
    """A namespace segment: levels are separated by an encoded unit separator, each level is encoded by itself."""
    return tuple(decode_segment(level) for level in _SEPARATOR.split(raw))


def decode_query(raw: bytes) -> dict[str, str]:
    """Query parameters by name.

    BadRequest for more than 64 of them, for a name with two different values, of which a proxy may have read the other
    one, and for what is not UTF-8.
    """
    if not raw:
        return {}
    if raw.count(b"&") >= _QUERY_FIELDS:
        raise BadRequest(f"Query string has more than {_QUERY_FIELDS} parameters")
    try:
        fields = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("Query string is not well-formed UTF-8") from None
    found: dict[str, str] = {}
    for name, value in fields:
        if found.setdefault(name, value) != value:
            raise BadRequest(f"Query parameter {name!a} was given more than once, with different values")
    return found


def routed(raw_path: bytes, default_warehouse: str) -> str:
    """The path to route on: undecoded, in origin form, with the default warehouse where `/v1/` names none."""
    if not raw_path.startswith(b"/"):
        raw_path = _ABSOLUTE.sub(b"", raw_path) or b"/"
    try:
        path = raw_path.decode("ascii")
    except UnicodeDecodeError:
        raise BadRequest("Request path holds bytes that must be percent-encoded") from None
    if not path.startswith("/"):
        raise BadRequest(f"Request path must start with a slash: {path}")
    if path.startswith("//"):
        # A client whose base address ends in a slash.
        path = f"/{path.lstrip('/')}"
    if path.startswith("/v1/"):
        head, _, _ = path[4:].partition("/")
        if head in _ALIASED:
            return f"/v1/{default_warehouse}{path[3:]}"
    return path


class RawPath:
    """Routes on the undecoded path: `path_params` then hold raw segments, read with `decode_segment`."""

    def __init__(self, app: ASGIApp, *, default_warehouse: str) -> None:
        self._app = app
        self._default = default_warehouse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = routed(scope.get("raw_path") or scope["path"].encode(), self._default)
            scope["path"] = path
        await self._app(scope, receive, send)
