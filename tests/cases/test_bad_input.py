"""Whatever a client sends, the answer is the Iceberg envelope with the right code, never a 500, never half a change."""

from __future__ import annotations

import copy
import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases.shorthand import schema
from tests.cases.views import view_version
from tests.cases.wire import (
    Catalog,
    Table,
    add_order,
    add_snapshot,
    add_spec,
    assert_ref,
    error_of,
    evolve,
    ok,
    partition,
    set_properties,
    set_ref,
    snapshot,
    sort,
    unique,
)
from tests.server import Server

Json = Any
Namespace = tuple[str, ...]
COLUMNS = schema("1:id long!, 2:v string, 3:s struct<4:a int, 5:l list<6: string>>")
JSON_HEADERS = {"Content-Type": "application/json"}
CODES = {400, 404, 409, 413, 422}

FULL = bool(os.environ.get("FULL"))
quick = settings(
    max_examples=5000 if FULL else 120,
    deadline=None,
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def judged(answer: httpx.Response, *fine: int) -> bool:
    """True for a success; otherwise the answer must be a proper refusal."""
    if answer.status_code in fine:
        return True
    error_of(answer, CODES)
    return False


def whole(table: Table) -> Json:
    """The table as served and as stored, which must agree."""
    loaded = table.load()
    assert loaded["metadata"] == table.stored()
    return loaded


def post(table: Table, content: bytes) -> httpx.Response:
    return table.catalog.http.post(table.path, content=content, headers=JSON_HEADERS)


def refused_bytes(table: Table, content: bytes, codes: set[int] | None = None) -> None:
    """These bytes are refused as a commit and leave the table as it was."""
    before = whole(table)
    error_of(post(table, content), codes or {400})
    assert whole(table) == before


@pytest.fixture
def table(catalog: Catalog, ns: Namespace) -> Table:
    return catalog.create(ns, COLUMNS)


# --- documents to spoil -------------------------------------------------------------------------------------------


def commit_body(location: str, table_uuid: str) -> Json:
    """One commit with most kinds of updates and requirements."""
    grown = copy.deepcopy(COLUMNS)
    grown["fields"].append({"id": 7, "name": "extra", "required": False, "type": "decimal(9,2)", "doc": "d"})
    return {
        "identifier": {"namespace": ["x"], "name": "t"},
        "requirements": [
            {"type": "assert-table-uuid", "uuid": table_uuid},
            assert_ref("main", None),
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 6},
            {"type": "assert-default-spec-id", "default-spec-id": 0},
        ],
        "updates": [
            *evolve(grown),
            *add_spec(partition(1, "bucket[4]", "b"), partition(2, "truncate[2]", "t")),
            *add_order(sort(1)),
            add_snapshot(snapshot(location, 5, None, 1)),
            set_ref("main", 5),
            set_ref("k", 5, "tag", **{"max-ref-age-ms": 1000}),
            set_properties(a="1"),
            {"action": "remove-properties", "removals": ["z"]},
            {
                "action": "set-statistics",
                "statistics": {
                    "snapshot-id": 5,
                    "statistics-path": f"{location}/metadata/s.puffin",
                    "file-size-in-bytes": 1,
                    "file-footer-size-in-bytes": 1,
                    "blob-metadata": [
                        {"type": "t", "snapshot-id": 5, "sequence-number": 1, "fields": [1], "properties": {"p": "q"}}
                    ],
                },
            },
            {"action": "upgrade-format-version", "format-version": 3},
        ],
    }


def create_body(name: str) -> Json:
    return {
        "name": name,
        "schema": {**COLUMNS, "identifier-field-ids": [1]},
        "location": None,
        "partition-spec": {"spec-id": 0, "fields": [partition(4, "identity", "p", **{"field-id": 1000})]},
        "write-order": {"order-id": 1, "fields": [sort(1)]},
        "stage-create": False,
        "properties": {"format-version": "3", "k": "v"},
    }


def view_body(name: str) -> Json:
    return {
        "name": name,
        "schema": schema("1:id long", schema_id=0),
        "view-version": view_version("select 1"),
        "properties": {"k": "v"},
    }


def places(part: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node of a JSON document."""
    yield path
    if isinstance(part, dict):
        for key, value in part.items():
            yield from places(value, (*path, key))
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from places(value, (*path, index))


def with_node(document: Json, path: tuple[Any, ...], value: Json, *, remove: bool) -> Json:
    """A copy with one node replaced or removed."""
    if not path:
        return value
    out = copy.deepcopy(document)
    holder = out
    for step in path[:-1]:
        holder = holder[step]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return out


EDGES: st.SearchStrategy[Json] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**53 + 1,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        10**30,
        1.5,
        -0.0,
        1e308,
        1e-320,
        "",
        "x",
        "1",
        "true",
        "null",
        "\x00",
        "..",
        "a/b",
        "\ud800",
        "é" * 300,
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"type": "struct", "fields": []},
        "struct",
        "decimal(0,0)",
        "decimal(99,1)",
        "fixed[-1]",
        "bucket[0]",
        "bucket[99999999999]",
        "truncate[-1]",
        "list",
        "file:///etc/passwd",
        "00000000-0000-0000-0000-000000000000",
    ]
)
VALUES: st.SearchStrategy[Json] = EDGES | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoiled(draw: st.DrawFn, document: Json) -> bytes:
    """The document with one or two nodes replaced or removed, as JSON text."""
    out = document
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(places(out))))
        remove = bool(path) and draw(st.booleans())
        out = with_node(out, path, draw(VALUES), remove=remove)
    return json.dumps(out).encode()


# --- spoiled documents --------------------------------------------------------------------------------------------


@quick
@given(st.data())
def test_spoiled_commits(catalog: Catalog, data: st.DataObject) -> None:
    """A commit with a spoiled node is applied whole or refused whole, and the table loads afterwards."""
    levels = ("spoiled",)
    if catalog.http.head(catalog.namespace_path(levels)).status_code == 404:
        catalog.namespace(*levels)
    target = catalog.create(levels, COLUMNS)
    before = whole(target)
    metadata = before["metadata"]
    content = data.draw(spoiled(commit_body(metadata["location"], metadata["table-uuid"])))
    if judged(post(target, content), 200):
        assert whole(target)["metadata"]["table-uuid"] == metadata["table-uuid"]
        document = target.stored()
        assert document["format-version"] in (2, 3)
        assert all(
            ref["snapshot-id"] in {s["snapshot-id"] for s in document["snapshots"]} for ref in document["refs"].values()
        )
    else:
        assert whole(target) == before


@quick
@given(st.data())
def test_spoiled_creates(catalog: Catalog, data: st.DataObject) -> None:
    """A spoiled create makes a table that loads, or makes nothing."""
    levels = catalog.namespace()
    content = data.draw(spoiled(create_body("t")))
    answer = catalog.http.post(f"{catalog.namespace_path(levels)}/tables", content=content, headers=JSON_HEADERS)
    listed = f"{catalog.namespace_path(levels)}/tables"
    made = judged(answer, 200) and answer.json().get("metadata-location") is not None
    names = [item["name"] for item in ok(catalog.http.get(listed))["identifiers"]]
    if made:
        assert len(names) == 1
        whole(catalog.table(levels, names[0]))
    else:
        assert names == []


@quick
@given(st.data())
def test_spoiled_metadata_files(catalog: Catalog, data: st.DataObject) -> None:
    """A spoiled metadata file is registered and then loads and takes commits, or is refused."""
    levels = catalog.namespace()
    document = catalog.document(
        [COLUMNS, COLUMNS],
        snapshots=[snapshot("", 1), snapshot("", 2, 1, 2)],
        main=2,
        refs={"k": {"snapshot-id": 1, "type": "tag"}},
        properties={"a": "b"},
    )
    location = catalog.write_metadata(document, data=data.draw(spoiled(document)))
    answer = catalog.post_register(levels, "t", location)
    if judged(answer, 200):
        target = catalog.table(levels, "t")
        whole(target)
        if judged(target.post([], [set_properties(again="1")]), 200):
            assert whole(target)["metadata"]["properties"]["again"] == "1"


@quick
@given(st.data())
def test_spoiled_small_bodies(catalog: Catalog, data: st.DataObject) -> None:
    """Namespaces, renames, registers, transactions, views and properties take a spoiled body without a 500."""
    levels = catalog.namespace()
    space = catalog.namespace_path(levels)
    bodies: list[tuple[str, Json]] = [
        (f"{catalog.base}/namespaces", {"namespace": [unique("n"), "m"], "properties": {"a": "b"}}),
        (f"{space}/properties", {"removals": ["a"], "updates": {"b": "c"}}),
        (
            f"{catalog.base}/tables/rename",
            {
                "source": {"namespace": list(levels), "name": "t"},
                "destination": {"namespace": list(levels), "name": "u"},
            },
        ),
        (f"{space}/register", {"name": "t", "metadata-location": "file:///no/x.metadata.json", "overwrite": False}),
        (
            f"{catalog.base}/transactions/commit",
            {
                "table-changes": [
                    {"identifier": {"namespace": list(levels), "name": "t"}, "requirements": [], "updates": []}
                ]
            },
        ),
        (f"{space}/views", view_body("v")),
    ]
    path, body = data.draw(st.sampled_from(bodies))
    judged(catalog.http.post(path, content=data.draw(spoiled(body)), headers=JSON_HEADERS), 200, 204)


@quick
@given(st.data())
def test_cut_and_flipped_bytes(catalog: Catalog, data: st.DataObject) -> None:
    """A cut body is 400; one with a changed byte is applied whole or refused whole."""
    levels = ("flipped",)
    if catalog.http.head(catalog.namespace_path(levels)).status_code == 404:
        catalog.namespace(*levels)
    target = catalog.create(levels, COLUMNS)
    before = whole(target)
    metadata = before["metadata"]
    good = json.dumps(commit_body(metadata["location"], metadata["table-uuid"])).encode()
    at = data.draw(st.integers(0, len(good) - 1))
    refused_bytes(target, good[:at])
    changed = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    if not judged(post(target, changed), 200):
        assert whole(target) == before


# --- hand-written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"\x00",
        b"\xef\xbb\xbf",
        b"not json",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 500 + b"]" * 500,
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":NaN}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":Infinity}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":1}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":null}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"\xff":"x"}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"\xc3("}}]}',
        b'{"requirements":[],"updates":[]} trailing',
        b'{"requirements":[],"updates":[]}{}',
        b"{'requirements':[],'updates':[]}",
        b'{"requirements":[],"updates":[],}',
        b'{"updates":"x"}',
        b'{"requirements":[{"type":"assert-current-schema-id","current-schema-id":1e400}],"updates":[]}',
        b'{"requirements":[{"type":"assert-current-schema-id","current-schema-id":0.5}],"updates":[]}',
        b'{"requirements":[{"type":"assert-current-schema-id","current-schema-id":"0"}],"updates":[]}',
        b'{"requirements":[{"type":"assert-current-schema-id","current-schema-id":4294967296}],"updates":[]}',
        b'{"requirements":[{"type":"assert-current-schema-id"}],"updates":[]}',
        b'{"requirements":[],"updates":[{"action":"remove-snapshots","snapshot-ids":[9223372036854775808]}]}',
        b'{"requirements":[],"updates":[{"action":"remove-snapshots","snapshot-ids":[true]}]}',
        b'{"requirements":[],"updates":[{"action":"set-current-schema","schema-id":2147483648}]}',
        b'{"requirements":[],"updates":[{"action":"upgrade-format-version","format-version":true}]}',
        b'{"requirements":[],"updates":[{"action":"set-location","location":"../../x"}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"write.metadata.path":"/etc"}}]}',
    ],
    ids=lambda content: content[:70].decode("latin-1"),
)
def test_bodies_that_must_be_refused(table: Table, content: bytes) -> None:
    """400 with the envelope, and the table is as before."""
    refused_bytes(table, content)


def test_a_deep_but_legal_type(catalog: Catalog, table: Table) -> None:
    """A type nested a few hundred levels is stored or refused, and one of a hundred thousand is refused."""
    for levels, codes in ((300, {200, 400}), (100_000, {400})):
        inner = '"string"'
        opened = "".join(
            f'{{"type":"list","element-id":{n},"element-required":false,"element":' for n in range(10, 10 + levels)
        )
        content = (
            '{"requirements":[],"updates":[{"action":"add-schema","schema":{"type":"struct","fields":['
            f'{{"id":9,"name":"deep","required":false,"type":{opened}{inner}{"}" * levels}}}]}}}},'
            '{"action":"set-current-schema","schema-id":-1}]}'
        )
        answer = post(table, content.encode())
        assert answer.status_code in codes, answer.text[:300]
        if answer.status_code != 200:
            error_of(answer, 400)
    assert catalog.http.get("/health/live").status_code == 200


def test_duplicate_keys(table: Table) -> None:
    """Two keys of one name are refused: a proxy may have looked at the other value."""
    for content in (
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1","a":"2"}}]}',
        b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"},"updates":{"b":"3"}}]}',
        b'{"requirements":[],"updates":[],"\\u0075pdates":[{"action":"set-properties","updates":{"b":"3"}}]}',
    ):
        message = error_of(post(table, content), 400)["message"]
        assert "an object has more than one member named" in message
    assert not {"a", "b"} & whole(table)["metadata"]["properties"].keys()


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json; charset=utf-16",
        "nonsense",
    ],
)
def test_content_types_of_web_pages(table: Table, kind: str | None) -> None:
    """What a web page can send without asking is not taken as JSON, or at least changes nothing unasked."""
    body = json.dumps({"requirements": [], "updates": [set_properties(from_a_page="1")]}).encode()
    headers = {"Content-Type": kind} if kind else {}
    answer = table.catalog.http.post(table.path, content=body, headers=headers)
    if kind in {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}:
        error_of(answer, {400, 403, 415})
        assert "from_a_page" not in table.metadata()["properties"]
    elif answer.status_code != 200:
        error_of(answer, {400, 403, 415})


def exchange(server: Server, request: bytes) -> tuple[int, bytes]:
    """Status and body of raw bytes on the wire; (0, b"") when the server just hangs up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        answer = b""
        try:
            raw.sendall(request)
            while piece := raw.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    if not answer:
        return 0, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    "path",
    [
        "/v1/default/namespaces/..%2f..%2fetc%2fpasswd",
        "/v1/default/namespaces/../../../etc/passwd",
        "/v1/default/namespaces/%2e%2e/tables/%2e%2e",
        "//v1//default//namespaces//x",
        "/v1/default/namespaces//tables/t",
        "/v1/default/namespaces/%/tables/t",
        "/v1/default/namespaces/%zz",
        "/v1/default/namespaces/%00/tables/%00",
        "/v1/default/namespaces/%ff%fe",
        "/v1/default/namespaces/%c0%ae%c0%ae",
        "/v1/default/namespaces/%1F%1F",
        "/v1/default/namespaces/a%1F/tables/t",
        "/v1/default/namespaces/" + "n" * 30_000,
        "/v1/default/namespaces/" + "a%1F" * 3000 + "b",
        "/v1/%2e%2e/namespaces",
        "/v1/nope/namespaces",
        "/v1",
        "/v1/",
        "/v1/config?warehouse=%ff",
        "/v1/config?warehouse=" + "w" * 30_000,
        "/v1/config?warehouse=%00",
        "/v1/default/namespaces?pageSize=%ff&pageToken=%ff",
        "/v1/default/namespaces?parent=%1F%1F",
        "/v1/default/namespaces?pageToken=" + "A" * 3000,
        "/v1/default/namespaces?pageToken=&pageSize=1&pageSize=2",
        "/icekeel/v1/rules/..%2f..",
        "/icekeel/v1/rules/ICE%00",
        "/v1/default/namespaces/x/tables/t?snapshots=%ff",
        "/v1/default/namespaces/x/tables/a%2Fb%2Fc%2F..",
        "/v1/default/namespaces/x/tables/%5c..%5c",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/health/..%2fready",
    ],
    ids=lambda path: path[:60],
)
def test_path_tricks(server: Server, path: str) -> None:
    """Every odd path is answered with a success or with the envelope, never with a 5xx or a file."""
    status, body = exchange(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    assert b"root:" not in body
    if status == 200:
        assert json.loads(body) is not None
    else:
        assert 400 <= status < 500, (status, body[:200])
        error = json.loads(body)["error"]
        assert error["code"] == status


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"POST /v1/default/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/default/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v1/default/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Long: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: \xff\xfe\r\n\r\n",
        b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nIdempotency-Key: \xff\r\n\r\n",
    ],
    ids=lambda raw: raw[:50].decode("latin-1"),
)
def test_broken_http(server: Server, catalog: Catalog, request_bytes: bytes) -> None:
    """Broken requests are refused or hung up on; the server goes on answering others."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
        raw.settimeout(2)
        answer = b""
        try:
            raw.sendall(request_bytes)
            while piece := raw.recv(65536):
                answer += piece
        except (ConnectionError, TimeoutError):
            pass
    if answer:
        assert int(answer.split()[1]) < 500, answer[:200]
    assert catalog.http.get("/health/ready").status_code == 200


def test_a_client_that_leaves_in_the_middle(server: Server, table: Table) -> None:
    """A body that never arrives whole changes nothing."""
    before = whole(table)
    body = json.dumps({"requirements": [], "updates": [set_properties(a="1")]}).encode()
    for cut in (0, 1, len(body) - 1):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(
                f"POST {table.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body[:cut]
            )
    assert whole(table) == before
    assert table.commit([set_properties(a="2")])["properties"]["a"] == "2"
