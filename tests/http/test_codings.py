"""Large documents over HTTP: gzip for clients that take it, with tags and `Vary` as RFC 9110 wants them."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.http import wire
from tests.http.samples import namespace, set_property, table
from tests.iceberg.documents import snapshot
from tests.server import Server

LARGE = 1_500
"""Snapshots of a table whose document is well above the size from which compression pays."""


def add(first: int, count: int = 1) -> dict[str, Any]:
    """A commit of that many snapshots."""
    updates: list[dict[str, Any]] = [
        {"action": "add-snapshot", "snapshot": snapshot(n, n - 1 or None, n, at=1_600_000_000_000 + n)}
        for n in range(first, first + count)
    ]
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first + count - 1}
    return {"requirements": [], "updates": [*updates, main]}


@pytest.fixture(scope="module")
def path(server: Server) -> str:
    """The path of a large table, one for all tests: they may append to it."""
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns, properties={"write.metadata.compression-codec": "gzip"})
        where = f"/v1/namespaces/{ns}/tables/{made['name']}"
        assert http.post(where, json=add(1, LARGE)).status_code == 200
    return where


def plain(server: Server, path: str) -> wire.Raw:
    return wire.request(server, "GET", path)


def packed(server: Server, path: str, *headers: str) -> wire.Raw:
    return wire.request(server, "GET", path, "Accept-Encoding: gzip, deflate", *headers)


def test_a_large_load_is_one_gzip_member_of_the_plain_answer(server: Server, path: str) -> None:
    """Seen on the wire: the same JSON, a tenth of the bytes, nothing behind the member, checksum and size right."""
    whole, small = plain(server, path), packed(server, path)
    assert whole.header("Content-Encoding") is None and small.header("Content-Encoding") == "gzip"
    assert small.header("Content-Type") == whole.header("Content-Type") == "application/json"
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert unpacker.decompress(small.body) == gzip.decompress(small.body) == whole.body
    assert unpacker.eof and not unpacker.unused_data
    assert int.from_bytes(small.body[-8:-4], "little") == zlib.crc32(whole.body)
    assert int.from_bytes(small.body[-4:], "little") == len(whole.body)
    assert len(small.body) == int(small.header("Content-Length") or 0) < len(whole.body) / 8
    assert len(json.loads(whole.body)["metadata"]["snapshots"]) >= LARGE


def test_answers_that_could_differ_say_so(server: Server, path: str) -> None:
    """`Vary` is on both codings and on 304; the tags differ, as strong tags of different bytes must."""
    whole, small = plain(server, path), packed(server, path)
    for answer in (whole, small, packed(server, path, f"If-None-Match: {small.header('ETag')}")):
        assert answer.header("Vary") == "Accept-Encoding"
    assert whole.header("ETag") not in (None, small.header("ETag"))


@pytest.mark.parametrize("accept", ["identity", "gzip;q=0", "br", "*;q=0", "gzip;q=0, *"])
def test_whoever_refuses_gzip_gets_none(server: Server, path: str, accept: str) -> None:
    """Plain is always understood, so it is never a 406."""
    answer = wire.request(server, "GET", path, f"Accept-Encoding: {accept}")
    assert (answer.status, answer.header("Content-Encoding")) == (200, None)
    assert answer.body == plain(server, path).body


@pytest.mark.parametrize("holds", ["", "Accept-Encoding: gzip"])
@pytest.mark.parametrize("asks", ["", "Accept-Encoding: gzip"])
def test_a_copy_in_either_coding_is_current(server: Server, path: str, holds: str, asks: str) -> None:
    """304 for the tag that the client was given, repeated as the client has it; 200 once the table has changed."""
    tag = wire.request(server, "GET", path, *filter(None, [holds])).header("ETag")
    condition = [f"If-None-Match: {tag}", *filter(None, [asks])]
    unchanged = wire.request(server, "GET", path, *condition)
    assert (unchanged.status, unchanged.body, unchanged.header("ETag")) == (304, b"", tag)
    with server.client() as http:
        last = len(http.get(path).json()["metadata"]["snapshots"])
        assert http.post(path, json=add(last + 1)).status_code == 200
    assert wire.request(server, "GET", path, *condition).status == 200


def test_a_commit_answers_alike(server: Server, path: str) -> None:
    """The answer of a commit is gzip too, and its tag is that of the next load in gzip."""
    last = len(json.loads(plain(server, path).body)["metadata"]["snapshots"])
    body = json.dumps(add(last + 1)).encode()
    headers = ("Content-Type: application/json", "Accept-Encoding: gzip")
    done = wire.request(server, "POST", path, *headers, body=body)
    assert (done.status, done.header("Content-Encoding"), done.header("Vary")) == (200, "gzip", "Accept-Encoding")
    loaded = packed(server, path)
    assert done.header("ETag") == loaded.header("ETag")
    assert json.loads(gzip.decompress(done.body))["metadata"] == json.loads(gzip.decompress(loaded.body))["metadata"]


def test_registering_a_large_file_answers_alike(server: Server, http: httpx.Client, path: str) -> None:
    """A client that unpacks by itself, as all do, sees nothing but JSON."""
    made = http.get(path).json()
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    where = path.rsplit("/tables/", 1)[0]
    assert http.post(f"{path}/unregister").headers["content-encoding"] == "gzip"
    try:
        done = http.post(f"{where}/register", json=body)
        assert (done.status_code, done.headers["content-encoding"]) == (200, "gzip")
        assert done.json()["metadata"] == made["metadata"]
        http.post(f"{where}/tables/again/unregister")
    finally:
        back = {"name": path.rsplit("/", 1)[1], "metadata-location": made["metadata-location"]}
        assert http.post(f"{where}/register", json=back).status_code == 200


@LOCAL_ONLY
def test_the_metadata_file_is_the_same_text(server: Server, http: httpx.Client, path: str) -> None:
    """With the gzip codec the file is one member as well, and unpacks to what is served."""
    answer = http.get(path)
    file = Path(answer.json()["metadata-location"].removeprefix("file://"))
    assert file.name.endswith(".gz.metadata.json")
    assert gzip.decompress(file.read_bytes()) in answer.content


def test_small_answers_stay_as_they_are(server: Server, http: httpx.Client) -> None:
    """No coding, no `Vary`, one tag."""
    ns = namespace(http)
    made = table(http, ns)
    small = packed(server, f"/v1/namespaces/{ns}/tables/{made['name']}")
    assert small.header("Content-Encoding") is None and small.header("Vary") is None
    assert small.header("ETag") == made["etag"]
    assert "content-encoding" not in set_property(http, ns, made["name"], "a", "1").headers


def test_head_has_no_body_and_no_coding(server: Server, path: str) -> None:
    """It never looks at the document."""
    answer = wire.request(server, "HEAD", path, "Accept-Encoding: gzip")
    assert (answer.status, answer.body, answer.header("Content-Encoding")) == (204, b"", None)
