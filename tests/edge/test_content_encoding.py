"""Which codings a client takes, and which documents are sent as gzip."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from app.catalog.metadata_cache import MetadataCache
from app.edge.content_encoding import accepts_gzip, encoded
from app.iceberg.json.chunked_text import Chunk, Deflated, Text

LARGE = Text([Chunk(json.dumps({"x": "y" * 100_000}).encode())])


def accepting(*lines: str) -> bool:
    headers = [(b"accept-encoding", line.encode("latin-1")) for line in lines]
    return accepts_gzip(Request({"type": "http", "headers": headers}))


@pytest.mark.parametrize(
    "header",
    [
        "gzip",
        "GZip",
        "x-gzip",
        "gzip, x-gzip, deflate",
        "deflate, gzip;q=1.0, *;q=0.5",
        "br;q=1.0 ,gzip ; q=0.001",
        "*",
        "*;q=0.1, identity;q=0",
        "identity;q=0.5, *;q=0.5",
        "gzip;q=0, x-gzip",
        "gzip;Q=.5, gzip",
    ],
)
def test_headers_that_allow_gzip(header: str) -> None:
    """By name, by its old name, by `*`, with any weight above zero."""
    assert accepting(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "identity",
        "deflate, br, zstd",
        "gzip;q=0",
        "gzip;q=0.000",
        "gzip;q=0, *",
        "*;q=0",
        "*;q=0, deflate",
        "gzip;q=2",
        "gzip;q=half",
        "gzipped",
        "gzip deflate",
        ";;,,",
    ],
)
def test_headers_that_do_not(header: str) -> None:
    """Not named, refused by a weight of zero, or not to be understood."""
    assert not accepting(header)


def test_no_header_is_no_consent() -> None:
    """A client that says nothing may not know how to unpack; several lines are one list."""
    assert not accepting()
    assert accepting("br", "gzip")
    assert not accepting("*", "gzip;q=0")


@given(st.text(st.characters(max_codepoint=255, exclude_characters="\r\n")))
def test_any_header_is_taken(header: str) -> None:
    """Nothing that a client sends is an error."""
    assert accepting(header) in (True, False)


def coded(document: bytes | Text, *lines: str, cache: MetadataCache | None = None) -> bytes | Text | Deflated:
    headers = [(b"accept-encoding", line.encode("latin-1")) for line in lines]
    request = Request({"type": "http", "headers": headers})
    return asyncio.run(encoded(cache or MetadataCache(), request, document))


def test_a_large_document_is_gzip_for_whom_takes_it() -> None:
    """The same document, packed; plain for everybody else."""
    packed = coded(LARGE, "gzip")
    assert isinstance(packed, Deflated) and gzip.decompress(b"".join(packed.member())) == LARGE.joined()
    assert coded(LARGE) is LARGE


def test_a_small_document_is_not() -> None:
    """Compressing it would cost more than it saves."""
    assert coded(b"{}", "gzip") == b"{}"


def test_a_document_is_compressed_once() -> None:
    """What was compressed for one request serves the next."""
    cache = MetadataCache()
    coded(LARGE, "gzip", cache=cache)
    assert LARGE.pending == 0


def test_a_failure_to_pack_costs_the_packing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that has happened is answered, plain if need be."""

    def broken(_: Text) -> Deflated:
        raise MemoryError

    monkeypatch.setattr(Text, "deflated", broken)
    assert coded(LARGE, "gzip") is LARGE
