"""What the use cases return: plain values that the edge renders, and pages of listings with their opaque tokens.
`metadata` is always a JSON document as served, a large one in chunks. Nothing here knows HTTP."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import msgspec

from app.catalog.context import Limits
from app.errors import BadRequest
from app.iceberg.json.chunked_text import Text
from app.ports import Levels, Page, Warehouse
from app.rules import Finding

Snapshots = Literal["all", "refs"]

Item = TypeVar("Item")


def version_tag(metadata_location: str, snapshots: Snapshots, config: Mapping[str, str]) -> str:
    """A tag of one version of a table in one representation. It changes with anything a client keeps with the table."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(msgspec.json.encode([metadata_location, snapshots, sorted(config.items())]))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """`metadata_location` and `tag` are None for a staged table, which nobody can load yet."""

    metadata_location: str | None
    metadata: bytes | Text
    config: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class NotModified:
    """The caller holds the version of this tag, which is the current one."""

    tag: str


@dataclass(frozen=True, slots=True)
class Committed:
    """`findings` are the warnings and waived faults of an accepted commit."""

    metadata_location: str
    metadata: bytes | Text
    tag: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedView:
    metadata_location: str
    metadata: bytes | Text
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A namespace with its properties, a computed `location` included when none is set."""

    levels: Levels
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PropertiesResult:
    """`missing` holds requested removals that were not set."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """`next_token` None means there is nothing more."""

    items: tuple[Item, ...]
    next_token: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """What a client is told about a warehouse; endpoints and lifetimes are the API's to add."""

    warehouse: Warehouse
    defaults: Mapping[str, str]
    overrides: Mapping[str, str]


T = TypeVar("T")
_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class PageRequest:
    """`token` None asks for everything, "" for the first page; `size` None leaves the size to the server."""

    token: str | None = None
    size: int | None = None


EVERYTHING = PageRequest()


async def listed(
    limits: Limits,
    page: PageRequest,
    listing: tuple[object, ...],
    read: Callable[[str | None, int | None], Awaitable[Page[T]]],
) -> Listed[T]:
    """One page of `listing` (operation, warehouse, namespace) by `read(after, limit)`; BadRequest on a bad token."""
    if page.size is not None and page.size < 1:
        raise BadRequest(f"Invalid page size: {page.size}")
    if page.token is None:
        return Listed((await read(None, None)).items)
    size = min(page.size or limits.page_size, limits.page_size_max)
    found = await read(_position(listing, page.token) if page.token else None, size)
    return Listed(found.items, None if found.after is None else _token(listing, found.after))


def _token(listing: tuple[object, ...], after: str) -> str:
    position = after.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_digest(listing, position) + position).decode().rstrip("=")


def _position(listing: tuple[object, ...], token: str) -> str:
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        digest, position = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        if digest == _digest(listing, position):
            return position.decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        pass
    raise BadRequest("Invalid page token: it was not handed out by this listing")


def _digest(listing: tuple[object, ...], position: bytes) -> bytes:
    # A check against mix-ups, not against forgery: a position reveals nothing that the listing would not.
    return hashlib.blake2b(msgspec.json.encode(listing) + b"\0" + position, digest_size=_DIGEST_BYTES).digest()
