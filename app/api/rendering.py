"""Answers of the Iceberg routes: documents are spliced in as bytes, never decoded."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.requests import Request

from app.catalog.results import Committed, Listed, LoadedTable, LoadedView
from app.edge.answer import Answer
from app.edge.content_encoding import encoded
from app.edge.etags import written
from app.iceberg.json.chunked_text import Deflated, Text
from app.ports import Levels
from app.rules import Finding

_encode = msgspec.json.Encoder().encode
_FINDINGS_HEADER = "Icekeel-Findings"
_HEADER_BYTES = 4000
_VARY = ("Vary", "Accept-Encoding")


def json_answer(value: object, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    return Answer(200, _encode(value), headers)


async def table_answer(request: Request, table: LoadedTable) -> Answer:
    """LoadTableResult with the findings of the change that made it."""
    location = b'"metadata-location":' + _encode(table.metadata_location) + b"," if table.metadata_location else b""
    before, after = b"{" + location + b'"metadata":', b',"config":' + _encode(table.config) + b"}"
    return await _versioned(request, before, table.metadata, after, table.tag, table.findings)


async def commit_answer(request: Request, table: Committed) -> Answer:
    """CommitTableResponse."""
    before = b'{"metadata-location":' + _encode(table.metadata_location) + b',"metadata":'
    return await _versioned(request, before, table.metadata, b"}", table.tag, table.findings)


async def _versioned(
    request: Request,
    before: bytes,
    metadata: bytes | Text,
    after: bytes,
    tag: str | None,
    findings: Sequence[Finding],
) -> Answer:
    """A document between what comes before and after it, as gzip if it is large and the client takes that."""
    document = await encoded(request.app.state.catalog.caches.documents, request, metadata)
    packed = isinstance(document, Deflated)
    headers = [] if tag is None else [("ETag", written(tag, gzip=packed))]
    headers.extend(findings_headers(findings))
    if isinstance(document, bytes):
        return Answer(200, (before, document, after), headers)
    if isinstance(document, Text):
        return Answer(200, (before, *document.pieces, after), [*headers, _VARY])
    return Answer(200, document.member(before, after), [*headers, ("Content-Encoding", "gzip"), _VARY])


def view_answer(view: LoadedView) -> Answer:
    """LoadViewResult."""
    before = b'{"metadata-location":' + _encode(view.metadata_location) + b',"metadata":'
    pieces = (view.metadata,) if isinstance(view.metadata, bytes) else view.metadata.pieces
    return Answer(200, (before, *pieces, b',"config":' + _encode(view.config) + b"}"))


def count_commit(request: Request, kind: str) -> None:
    """Count a commit that was answered with success."""
    request.app.state.metrics.commits.labels(kind).inc()


def identifiers_answer(levels: Levels, listed: Listed[str]) -> Answer:
    """A page of tables or views; `next-page-token` is null at the end, an empty one would make clients loop."""
    names = _encode(listed.items)
    if not listed.items or b"\\" in names:
        identifiers = [{"namespace": levels, "name": name} for name in listed.items]
        return json_answer({"identifiers": identifiers, "next-page-token": listed.next_token})
    # Nothing is escaped, so `","` stands between two names and nowhere else: a third of the cost of a thousand objects.
    begin = b'{"namespace":' + _encode(levels) + b',"name":"'
    identifiers_json = begin + names[2:-2].replace(b'","', b'"},' + begin)
    token = _encode(listed.next_token)
    return Answer(200, b'{"identifiers":[' + identifiers_json + b'"}],"next-page-token":' + token + b"}")


def findings_headers(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """The warnings of an accepted change as one JSON array in a header, cut to what every client takes."""
    if not findings:
        return []
    shown: list[dict[str, object]] = []
    for finding in findings:
        entry: dict[str, object] = {
            "code": finding.code,
            "severity": finding.severity.value,
            "message": finding.message,
        }
        if finding.waived_by is not None:
            entry["waived-by"] = finding.waived_by
        if len(_ascii([*shown, entry])) > _HEADER_BYTES:
            break
        shown.append(entry)
    return [(_FINDINGS_HEADER, _ascii(shown))]


def _ascii(value: object) -> str:
    """JSON in pure ASCII, as header values must be."""
    text = _encode(value).decode("utf-8")
    return "".join(c if c < "\x7f" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
