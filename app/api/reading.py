"""What endpoints read from a request: path segments, query, headers, JSON body, and who is asking."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from starlette.requests import Request

from app.api.models.metadata import Shape
from app.catalog.context import Caller, Context
from app.catalog.documents import aside
from app.catalog.pages import EVERYTHING, PageRequest
from app.catalog.turns import Peer
from app.errors import BadRequest, dotted
from app.spec import codec
from app.spec.amounts import check_amounts
from app.web.bodies import read_body
from app.web.callers import client_of, is_iceberg_java
from app.web.guard import PRINCIPAL
from app.web.metrics import Metrics
from app.web.paths import decode_levels, decode_query, decode_segment

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# Headers that say: this connection is a proxy's.
_OF_PROXIES = frozenset({b"x-forwarded-for", b"x-real-ip", b"forwarded", b"via"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")

Body = dict[str, codec.Json]
P = TypeVar("P")


@lru_cache(maxsize=512)
def _known_client(agent: bytes, version: bytes) -> tuple[str, str]:
    return client_of(agent.decode("latin-1"), version.decode("latin-1"))


def context(request: Request) -> Context:
    found: Context = request.app.state.catalog
    return found


def count(request: Request, name: str, amount: float = 1, **labels: str) -> None:
    """Add to a counter of the process."""
    metrics: Metrics = request.app.state.metrics
    metrics.count(name, amount, **labels)


def warehouse(request: Request) -> str:
    """The warehouse of an Iceberg route."""
    return decode_segment(request.path_params["prefix"])


def levels(request: Request) -> tuple[str, ...]:
    return decode_levels(request.path_params["namespace"])


def segment(request: Request, name: str) -> str:
    """One decoded path segment."""
    return decode_segment(request.path_params[name])


def query(request: Request) -> dict[str, str]:
    return decode_query(request.scope["query_string"])


def page(parameters: dict[str, str]) -> PageRequest:
    """The page that `pageToken` and `pageSize` ask for; BadRequest unless the size is a positive integer."""
    if not parameters:
        return EVERYTHING
    size = parameters.get("pageSize")
    return PageRequest(parameters.get("pageToken"), None if size is None else positive(size, "pageSize"))


def positive(text: str, name: str) -> int:
    """A query value as a positive integer; BadRequest."""
    if _INTEGER.fullmatch(text) and int(text) >= 1:
        return int(text)
    raise BadRequest(f"Invalid {name}: {text!r} is not a positive integer")


def flag(text: str | None, name: str) -> bool:
    """A query value as a boolean, in any letter case (PyIceberg writes Python's); absent is false. BadRequest."""
    lowered = "false" if text is None else text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    raise BadRequest(f"Invalid {name}: {text!r} is neither true nor false")


def caller(request: Request, body: bytes = b"") -> Caller:
    """Who asks. With an Idempotency-Key, also a digest of method, path, query and body, for which the key stands."""
    scope = request.scope
    agent = client_version = b""
    sent_key: bytes | None = None
    peer: Peer | None = scope.get("client")
    for header, value in scope["headers"]:
        if header == b"user-agent":
            agent = agent or value
        elif header == b"x-client-version":
            client_version = client_version or value
        elif header == b"idempotency-key" and sent_key is None:
            sent_key = value
        elif header in _OF_PROXIES:
            # On a proxy's connection come anybody's requests.
            peer = None
    name, version = _known_client(agent, client_version)
    if sent_key is None:
        return Caller(scope[PRINCIPAL], name, version, peer=peer)
    key = sent_key.decode("latin-1")
    if not _UUID.fullmatch(key):
        raise BadRequest("Invalid Idempotency-Key: it must be a UUID in its 36-character form")
    digest = hashlib.blake2b(digest_size=32)
    for part in (scope["method"].encode(), scope["path"].encode(), scope["query_string"], body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return Caller(scope[PRINCIPAL], name, version, key.lower(), digest.hexdigest(), peer)


async def json_body(request: Request) -> tuple[Body, bytes]:
    """The body as a JSON object, and its bytes; BadRequest for anything else, or for more than one request may hold."""
    raw = await text_body(request)
    value = await aside(len(raw), _decoded, raw)
    if type(value) is not dict:
        raise BadRequest(f"The body must be a JSON object, not {codec.describe(value)}")
    return value, raw


def _decoded(raw: bytes) -> codec.Json:
    check_amounts(raw)
    return codec.decode_request(raw)


async def parsed(raw: bytes, parse: Callable[[codec.Json, str], P], value: codec.Json, path: str) -> P:
    """What `parse` makes of a part of the body `raw`, in a thread when the body is large."""
    return await aside(len(raw), parse, value, path)


async def own_body(request: Request, shape: type[Shape]) -> tuple[Body, bytes]:
    """The body of a request of our own API, as `json_body`; BadRequest for a member that its declaration does not have.

    Clients of the Iceberg protocol may send what a later version defines. Here an unknown member is a misspelling, and
    ignoring it would claim to have done what was never asked.
    """
    body, raw = await json_body(request)
    members = shape.__struct_encode_fields__
    for name in body:
        if name not in members:
            raise BadRequest(f"Unknown field: {name!a}. There are {', '.join(sorted(members))}")
    return body, raw


async def text_body(request: Request) -> bytes:
    """The body's bytes as they came.

    Iceberg's Java client can send ISO-8859-1; only from it, bytes that are not UTF-8 are read as that.
    """
    raw = await read_body(request)
    if is_iceberg_java(request.headers.get("x-client-version", "")):
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1").encode("utf-8")
    return raw


async def no_body(request: Request) -> bytes:
    """The bytes of a body that has no meaning for the operation: read, so that they count for the idempotency key."""
    return await read_body(request)


def identifier(value: codec.Json, path: str) -> tuple[tuple[str, ...], str]:
    """`{"namespace": [...], "name": ...}` as levels and name."""
    obj = codec.as_object(value, path)
    namespace = codec.as_str_list(codec.required(obj, "namespace", path), f"{path}.namespace")
    return namespace, codec.required_str(obj, "name", path)


def check_identifier(body: Body, levels: tuple[str, ...], name: str) -> None:
    """BadRequest unless the `identifier` of a commit, which may be absent, is what the path names."""
    value = codec.optional(body, "identifier", None)
    if value is None:
        return
    said = identifier(value, "$.identifier")
    if said != (levels, name):
        raise BadRequest(
            f"Invalid commit: $.identifier is {dotted(*said)}, but the path of the request names {dotted(levels, name)}"
        )


def entity_tags(request: Request) -> str | None:
    """The If-None-Match header; several lines of it are one list."""
    lines = request.headers.getlist("if-none-match")
    return ", ".join(lines) if lines else None
