"""`app.api.rendering`: documents are spliced, headers are ASCII."""

from __future__ import annotations

import asyncio
import gzip
import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from app.api import rendering
from app.api.rendering import identifiers_answer
from app.catalog.metadata_cache import MetadataCache
from app.catalog.results import Committed, Listed, LoadedTable
from app.edge.answer import Answer
from app.iceberg.json.chunked_text import Chunk, Text
from app.rules import Finding, Severity

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def request(gzip: bool) -> Request:
    """A request of a client that takes gzip or does not, to an application with an empty cache."""
    catalog = SimpleNamespace(caches=SimpleNamespace(documents=MetadataCache()))
    app = SimpleNamespace(state=SimpleNamespace(catalog=catalog))
    return Request({"type": "http", "headers": [(b"accept-encoding", b"gzip")] if gzip else [], "app": app})


def table_answer(table: LoadedTable, *, gzip: bool = False) -> Answer:
    return asyncio.run(rendering.table_answer(request(gzip), table))


def commit_answer(table: Committed, *, gzip: bool = False) -> Answer:
    return asyncio.run(rendering.commit_answer(request(gzip), table))


def finding(message: str) -> Finding:
    return Finding(code="ICE701", rule="r", severity=Severity.WARN, message=message, fix="f", spec="s")


@given(TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=3))
def test_a_loaded_table_is_valid_json(location: str, value: str, config: dict[str, str]) -> None:
    """Whatever location, document and config hold."""
    document = json.dumps({"x": value}).encode()
    answer = table_answer(LoadedTable(location or None, document, config, "tag"))
    body = json.loads(answer.body)
    assert body["metadata"] == {"x": value} and body["config"] == config
    assert body.get("metadata-location", "") == location
    assert (b"ETag", b'"tag"') in answer.raw_headers


@given(TEXT, st.lists(st.binary(max_size=9), min_size=1, max_size=5), st.dictionaries(TEXT, TEXT, max_size=3))
def test_a_large_document_is_spliced_in_chunks(location: str, chunks: list[bytes], config: dict[str, str]) -> None:
    """Plain and as gzip the body is what it would be with the document in one piece."""
    text = Text(map(Chunk, chunks))
    whole = table_answer(LoadedTable(location, text.joined(), config, "t"))
    plain = table_answer(LoadedTable(location, text, config, "t"))
    packed = table_answer(LoadedTable(location, text, config, "t"), gzip=True)
    assert plain.body == whole.body == gzip.decompress(packed.body)
    assert dict(packed.raw_headers)[b"Content-Length"] == b"%d" % len(packed.body)
    assert (b"Content-Encoding", b"gzip") in packed.raw_headers
    assert (b"ETag", b'"t-gzip"') in packed.raw_headers
    for answer in (plain, packed):
        assert (b"Vary", b"Accept-Encoding") in answer.raw_headers
    committed = commit_answer(Committed(location, text, "t"), gzip=True)
    assert gzip.decompress(committed.body) == commit_answer(Committed(location, text.joined(), "t")).body


@given(st.lists(TEXT, max_size=5))
def test_findings_travel_as_ascii_json(messages: list[str]) -> None:
    """Column names of any script, line ends and quotes included, in one header that every client takes."""
    answer = commit_answer(Committed("l", b"{}", "t", tuple(finding(message) for message in messages)))
    headers = dict(answer.raw_headers)
    if not messages:
        assert b"Icekeel-Findings" not in headers
        return
    value = headers[b"Icekeel-Findings"]
    assert value.isascii() and b"\r" not in value and b"\n" not in value
    assert [entry["message"] for entry in json.loads(value)] == messages


def test_the_findings_header_is_bounded() -> None:
    """Clients and proxies cut headers at 8 KB."""
    many = tuple(finding("x" * 300) for _ in range(100))
    value = dict(commit_answer(Committed("l", b"{}", "t", many)).raw_headers)[b"Icekeel-Findings"]
    assert len(value) <= 4000 and len(json.loads(value)) >= 10


NAMES = st.one_of(TEXT, st.text('a",:{}[]\\', max_size=6))


@given(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=6), st.none() | TEXT)
def test_a_listing_names_every_item_in_its_namespace(levels: list[str], names: list[str], token: str | None) -> None:
    """Whatever characters the names hold, quotes and commas included."""
    answer = identifiers_answer(tuple(levels), Listed(tuple(names), token))
    assert json.loads(answer.body) == {
        "identifiers": [{"namespace": levels, "name": name} for name in names],
        "next-page-token": token,
    }
