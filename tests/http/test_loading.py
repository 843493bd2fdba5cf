"""Conditional loads, representations, and headers as Java reads them."""

from __future__ import annotations

import json
import socket
import time

import httpx
import pytest

from tests.http import wire
from tests.http.samples import error, namespace, set_property, table
from tests.server import Server


def test_etag_is_spelt_as_java_looks_it_up(server: Server, http: httpx.Client) -> None:
    """On the raw bytes the header is exactly `ETag`, on loads, creates and commits, and on 304."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    loaded = wire.request(server, "GET", path)
    assert loaded.header("ETag") == made["etag"]
    assert wire.request(server, "GET", path, f"If-None-Match: {made['etag']}").header("ETag") == made["etag"]
    body = b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}'
    committed = wire.request(server, "POST", path, "Content-Type: application/json", body=body)
    assert committed.status == 200 and committed.header("ETag") not in (None, made["etag"])


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', '{}, "x"', "*", '"a" , W/{} ,"b"'])
def test_every_form_of_if_none_match_is_understood(http: httpx.Client, form: str) -> None:
    """Strong, weak, in a list, or any: 304 without a body, the tag repeated."""
    ns = namespace(http)
    made = table(http, ns)
    answer = http.get(
        f"/v1/namespaces/{ns}/tables/{made['name']}", headers={"if-none-match": form.format(made["etag"])}
    )
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", made["etag"])


def test_no_condition_no_304(http: httpx.Client) -> None:
    """Java fails on a 304 that it did not ask for."""
    ns = namespace(http)
    made = table(http, ns)
    assert http.get(f"/v1/namespaces/{ns}/tables/{made['name']}").status_code == 200


def test_representations_have_tags_of_their_own(http: httpx.Client) -> None:
    """The tag of the short form is no excuse for not sending the full one."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    refs = http.get(path, params={"snapshots": "refs"})
    assert refs.headers["etag"] != made["etag"]
    assert http.get(path, headers={"if-none-match": refs.headers["etag"]}).status_code == 200
    assert (
        http.get(path, params={"snapshots": "refs"}, headers={"if-none-match": refs.headers["etag"]}).status_code == 304
    )


def test_a_commit_changes_the_tag(http: httpx.Client) -> None:
    """An old tag is not current any more; the one that the commit gave is."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    committed = set_property(http, ns, made["name"], "k", "v")
    assert http.get(path, headers={"if-none-match": made["etag"]}).status_code == 200
    assert http.get(path, headers={"if-none-match": committed.headers["etag"]}).status_code == 304


def test_an_unknown_representation_is_400(http: httpx.Client) -> None:
    """`snapshots` is all or refs."""
    ns = namespace(http)
    made = table(http, ns)
    assert error(http.get(f"/v1/namespaces/{ns}/tables/{made['name']}?snapshots=foo"))["code"] == 400


def test_a_table_in_a_missing_namespace_is_no_such_table(http: httpx.Client) -> None:
    """Java looks for `ns.tbl.files` in namespace `ns.tbl`; only this type lets it go on."""
    assert error(http.get("/v1/namespaces/nope/tables/t"))["type"] == "NoSuchTableException"


def test_answers_hold_no_nulls(http: httpx.Client) -> None:
    """No `"config": null` and the like; only the page token may be null."""
    ns = namespace(http)
    made = table(http, ns)
    assert None not in made["config"].values()
    loaded = http.get(f"/v1/namespaces/{ns}/tables/{made['name']}").json()
    assert "storage-credentials" not in loaded
    assert http.get(f"/v1/namespaces/{ns}/tables").json()["next-page-token"] is None


def test_large_and_small_answers_follow_each_other_on_one_connection(server: Server) -> None:
    """Requests sent in one go by a client that reads slowly: each answer is whole and in order, and the last closes."""
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns, properties={"long": "x" * 2_000_000})
        path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    ask = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    look = ask.replace(b"GET", b"HEAD", 1)
    requests = [ask, look, ask, ask + f"If-None-Match: {made['etag']}\r\n".encode(), ask + b"Connection: close\r\n"]
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"".join(request + b"\r\n" for request in requests))
        while piece := connection.recv(65536):
            received += piece
            if len(received) < 500_000:
                time.sleep(0.01)
    statuses = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        statuses.append(int(status.split(" ")[1]))
        length = int(headers.get("Content-Length", 0)) if statuses[-1] == 200 else 0
        body, received = received[:length], received[length:]
        if statuses[-1] == 200:
            assert length > 2_000_000 and json.loads(body)["metadata"]["properties"]["long"] == "x" * 2_000_000
    assert statuses == [200, 204, 200, 304, 200]
