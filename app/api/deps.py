"""Typed parameters that path operations share; what each one means stands in its declaration.

Path parameters arrive as they stand on the wire and are decoded here: an encoded slash stays inside its segment.
Every dependency is a coroutine: FastAPI would run a plain function in a thread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BeforeValidator

from app.catalog.context import Caller, Context
from app.catalog.metadata_cache import aside
from app.catalog.results import PageRequest
from app.edge.callers import client_of
from app.edge.guard import PRINCIPAL
from app.edge.raw_path import decode_levels, decode_segment
from app.errors import BadRequest

Parsed = TypeVar("Parsed")

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_PREFIX = "Warehouse name, as `/v1/config` hands it out. Paths without it reach the default warehouse."
_NAMESPACE = (
    "Levels of the namespace joined by the unit separator (0x1F, written `%1F`), each level percent-encoded by itself."
)
_KEY = "A UUID for this change. The same key and request again gives the same outcome, without a second effect."

RawPrefix = Annotated[str, Path(description=_PREFIX)]
RawWarehouse = Annotated[str, Path(description="Warehouse name.")]
RawNamespace = Annotated[str, Path(description=_NAMESPACE)]
RawTable = Annotated[str, Path(description="Table name, percent-encoded as one segment.")]
RawView = Annotated[str, Path(description="View name, percent-encoded as one segment.")]
Delegation = Annotated[
    str | None,
    Header(
        alias="X-Iceberg-Access-Delegation",
        description="Ways of access delegation the client knows. This server signs and vends nothing, whatever is "
        "asked for.",
    ),
]
ReferencedBy = Annotated[
    str | None,
    Query(
        alias="referenced-by",
        description="Views through which this is reached, outermost first, comma-separated. Accepted and not used yet.",
    ),
]


async def catalog(request: Request) -> Context:
    found: Context = request.app.state.catalog
    return found


async def prefix(prefix: RawPrefix) -> str:
    return decode_segment(prefix)


async def warehouse(warehouse: RawWarehouse) -> str:
    return decode_segment(warehouse)


async def levels(namespace: RawNamespace) -> tuple[str, ...]:
    return decode_levels(namespace)


async def table(table: RawTable) -> str:
    return decode_segment(table)


async def view(view: RawView) -> str:
    return decode_segment(view)


def _plain(value: Any) -> Any:
    """Digits alone: pydantic takes `1_0`, `1.0` and blanks for a number too."""
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        raise ValueError
    return value


Whole = Annotated[int, BeforeValidator(_plain)]
"""An integer of the query."""


async def page(
    token: Annotated[
        str | None,
        Query(
            alias="pageToken",
            description="Absent: everything in one answer. Empty: the first page. Else the `next-page-token` of the "
            "page before.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        Query(
            alias="pageSize",
            ge=1,
            le=2**63 - 1,
            description="Most entries of a page; an upper bound that the server may lower.",
        ),
    ] = None,
) -> PageRequest:
    return PageRequest(token, size)


async def reader(request: Request) -> Caller:
    return caller_of(request)


async def writer(
    request: Request,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", description=_KEY, json_schema_extra={"format": "uuid"})
    ] = None,
) -> Caller:
    """Who asks. With a key, also a digest of method, path, query and body, for which the key stands."""
    body = await request.body()
    if key is None:
        return caller_of(request)
    if not _UUID.fullmatch(key):
        raise BadRequest("Invalid Idempotency-Key: it must be a UUID in its 36-character form")
    scope, digest = request.scope, hashlib.blake2b(digest_size=32)
    for part in (scope["method"].encode(), scope["path"].encode(), scope["query_string"], body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return caller_of(request, key.lower(), digest.hexdigest())


def caller_of(request: Request, key: str | None = None, fingerprint: str = "") -> Caller:
    """Who asks, from the headers of the request; lean routes call it themselves."""
    agent = version = b""
    for header, value in request.scope["headers"]:
        if header == b"user-agent":
            agent = agent or value
        elif header == b"x-client-version":
            version = version or value
    return Caller(request.scope[PRINCIPAL], *_known_client(agent, version), key, fingerprint)


async def parsed(request: Request, parse: Callable[[Any, str], Parsed], value: Any, path: str) -> Parsed:
    """What `parse` makes of a part of the body, in a thread when the body is large."""
    return await aside(len(await request.body()), parse, value, path)


@lru_cache(maxsize=512)
def _known_client(agent: bytes, version: bytes) -> tuple[str, str]:
    return client_of(agent.decode("latin-1"), version.decode("latin-1"))


Catalog = Annotated[Context, Depends(catalog)]
Prefix = Annotated[str, Depends(prefix)]
WarehouseName = Annotated[str, Depends(warehouse)]
Levels = Annotated[tuple[str, ...], Depends(levels)]
TableName = Annotated[str, Depends(table)]
ViewName = Annotated[str, Depends(view)]
Page = Annotated[PageRequest, Depends(page)]
Reader = Annotated[Caller, Depends(reader)]
Writer = Annotated[Caller, Depends(writer)]
