"""Content codings of answers (RFC 9110 8.4): large documents go out as gzip where the client takes it."""

from __future__ import annotations

import logging
from dataclasses import replace

from app.catalog import etags
from app.catalog.context import Context
from app.catalog.results import Committed, LoadedTable
from app.iceberg.json.chunked_text import Deflated, Text

log = logging.getLogger(__name__)


def is_large(answer: LoadedTable | Committed) -> bool:
    """Whether `loaded` or `committed` would send it as gzip."""
    return isinstance(answer.metadata, Text)


async def loaded(ctx: Context, answer: LoadedTable) -> LoadedTable:
    """The answer as gzip when its document is large, under a tag of its own; else as it is."""
    deflated = await _deflated(ctx, answer.metadata)
    if deflated is None:
        return answer
    tag = None if answer.etag is None else etags.of_gzip(answer.etag)
    return replace(answer, metadata=deflated, etag=tag, rendered=None)


async def committed(ctx: Context, answer: Committed) -> Committed:
    """As `loaded`."""
    deflated = await _deflated(ctx, answer.metadata)
    return answer if deflated is None else replace(answer, metadata=deflated, etag=etags.of_gzip(answer.etag))


async def _deflated(ctx: Context, metadata: bytes | Text | Deflated) -> Deflated | None:
    if not isinstance(metadata, Text):
        return None
    try:
        return await ctx.caches.documents.deflated(metadata)
    except Exception:
        # The plain answer is as good, and after a commit nothing may turn an answer into an error.
        log.exception("a document could not be compressed; it is sent as it is")
        return None
