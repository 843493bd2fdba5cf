"""Answers of the Iceberg routes: documents are spliced in as bytes, never decoded."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.catalog.results import Committed, Listed, LoadedTable, LoadedView, NotModified
from app.edge.answer import NOT_MODIFIED, Answer
from app.iceberg.json.chunked_text import Deflated, Text
from app.ports import Levels
from app.rules import Finding

_encode = msgspec.json.Encoder().encode
_FINDINGS_HEADER = "Icekeel-Findings"
_HEADER_BYTES = 4000
_VARY = ("Vary", "Accept-Encoding")


def json_answer(value: object, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    return Answer(200, _encode(value), headers)


def table_answer(table: LoadedTable | NotModified) -> Answer:
    """LoadTableResult, or 304 with the tag alone; made once for each version."""
    made: Answer | None = table.rendered
    if made is None:
        made = table.rendered = _table_answer(table)
    return made


def _table_answer(table: LoadedTable | NotModified) -> Answer:
    if isinstance(table, NotModified):
        return Answer(NOT_MODIFIED, headers=[("ETag", table.etag), _VARY])
    headers = [] if table.etag is None else [("ETag", table.etag)]
    headers.extend(findings_headers(table.findings))
    location = b'"metadata-location":' + _encode(table.metadata_location) + b"," if table.metadata_location else b""
    before = b"{" + location + b'"metadata":'
    return _document_answer(before, table.metadata, b',"config":' + _encode(table.config) + b"}", headers)


def commit_answer(table: Committed) -> Answer:
    before = b'{"metadata-location":' + _encode(table.metadata_location) + b',"metadata":'
    headers = [("ETag", table.etag), *findings_headers(table.findings)]
    return _document_answer(before, table.metadata, b"}", headers)


def view_answer(view: LoadedView) -> Answer:
    before = b'{"metadata-location":' + _encode(view.metadata_location) + b',"metadata":'
    return _document_answer(before, view.metadata, b',"config":' + _encode(view.config) + b"}", [])


def _document_answer(
    before: bytes, document: bytes | Text | Deflated, after: bytes, headers: list[tuple[str, str]]
) -> Answer:
    """A document between what comes before and after it; compressed if the document is."""
    if isinstance(document, bytes):
        return Answer(200, (before, document, after), headers)
    if isinstance(document, Text):
        return Answer(200, (before, *document.pieces, after), [*headers, _VARY])
    return Answer(200, document.member(before, after), [*headers, ("Content-Encoding", "gzip"), _VARY])


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
