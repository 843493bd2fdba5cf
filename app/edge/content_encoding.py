"""Content codings of answers (RFC 9110 8.4, 12.5.3): large documents go out as gzip where the client takes it."""

from __future__ import annotations

import logging
import re

from starlette.requests import Request

from app.catalog.metadata_cache import MetadataCache
from app.iceberg.json.chunked_text import Deflated, Text

log = logging.getLogger(__name__)

_ELEMENT = re.compile(r"\s*([^\s;,]+)\s*(?:;\s*[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?")
_NAMES = frozenset({"gzip", "x-gzip"})


def accepts_gzip(request: Request) -> bool:
    """Whether the answer may be gzip. Without the header it may not: such a client might not know how to unpack it."""
    lines = request.headers.getlist("accept-encoding")
    return bool(lines) and _takes_gzip(",".join(lines))


def _takes_gzip(header: str) -> bool:
    """A weight of zero refuses, `*` stands for what is not named, and what cannot be understood is not there."""
    any_other = False
    named: bool | None = None
    for element in header.split(","):
        found = _ELEMENT.fullmatch(element)
        if found is None:
            continue
        takes = float(found.group(2) or 1) > 0
        coding = found.group(1).lower()
        if coding in _NAMES:
            named = takes or bool(named)
        elif coding == "*":
            any_other = takes
    return any_other if named is None else named


async def encoded(cache: MetadataCache, request: Request, document: bytes | Text) -> bytes | Text | Deflated:
    """The document as gzip when it is large and the client takes that; else as it is."""
    if not isinstance(document, Text) or not accepts_gzip(request):
        return document
    try:
        return await cache.deflated(document)
    except Exception:
        # The plain answer is as good, and after a commit nothing may turn an answer into an error.
        log.exception("a document could not be compressed; it is sent as it is")
        return document
