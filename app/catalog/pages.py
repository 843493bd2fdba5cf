"""Pages of a listing: the pagination contract of the protocol, with opaque tokens.

No token asks for everything in one answer; an empty token for the first page. A token holds the keyset position of
the last item and is bound to one listing: what another listing or nobody has handed out is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.catalog.context import Limits
from app.catalog.results import Listed
from app.errors import BadRequest
from app.ports import Page

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
