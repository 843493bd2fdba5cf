"""A story that meets every operation of the protocol, with success and with the failures that clients meet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.http.samples import VIEW_VERSION, schema
from tests.upstream import upstream

BODY_LIMIT = 65_536
"""What the server that the story is told to must have as its BODY_LIMIT."""

_SPEC = {"spec-id": 0, "fields": [{"source-id": 1, "transform": "bucket[4]", "name": "id_bucket"}]}
_ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
_WIDE: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True, "doc": "key"},
        {"id": 2, "name": "price", "type": "decimal(9, 2)", "required": False},
        {"id": 3, "name": "at", "type": "timestamptz_ns", "required": False},
        {
            "id": 4,
            "name": "kind",
            "type": "string",
            "required": False,
            "initial-default": "none",
            "write-default": "none",
        },
        {
            "id": 5,
            "name": "place",
            "required": False,
            "type": {"type": "struct", "fields": [{"id": 6, "name": "lat", "type": "double", "required": False}]},
        },
        {
            "id": 7,
            "name": "tags",
            "required": False,
            "type": {"type": "list", "element-id": 8, "element": "string", "element-required": False},
        },
        {
            "id": 9,
            "name": "counts",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 10,
                "key": "string",
                "value-id": 11,
                "value": "int",
                "value-required": False,
            },
        },
    ],
}
_SNAPSHOT = {
    "snapshot-id": 71,
    "sequence-number": 1,
    "timestamp-ms": 1_800_000_000_000,
    "summary": {"operation": "append", "added-records": "0"},
    "schema-id": 0,
    "first-row-id": 0,
    "added-rows": 0,
}


@dataclass(frozen=True)
class Met:
    """One real answer to an operation."""

    operation: str
    response: httpx.Response

    @property
    def status(self) -> str:
        return str(self.response.status_code)


class Story:
    """Sends operations by their upstream id, and keeps every answer."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.met: list[Met] = []

    def say(self, operation: str, status: int, body: Any = None, path: str = "", **more: Any) -> httpx.Response:
        """Send and keep; AssertionError unless the status is this. `path` fills the variables, divided by spaces."""
        known = upstream().operations[operation]
        url = known.path
        for value in ("default", *path.split()):
            head, _, rest = url.partition("{")
            url = head + value + rest.partition("}")[2] if rest else url
        assert "{" not in url, (operation, url)
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {**({"Content-Type": "application/json"} if content else {}), **more.pop("headers", {})}
        response = self.http.request(known.method, url, content=content, headers=headers, **more)
        assert response.status_code == status, (operation, response.status_code, response.text)
        self.met.append(Met(operation, response))
        return response


def commit(*updates: dict[str, Any], **requirement: Any) -> dict[str, Any]:
    return {"requirements": [requirement] if requirement else [], "updates": list(updates)}


def set_property(value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {"a": value}}


STALE = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
STALE_VIEW = {**STALE, "type": "assert-view-uuid"}


def of_namespaces(story: Story) -> None:
    say = story.say
    say("getConfig", 200)
    say("getConfig", 404, params={"warehouse": "nowhere"})
    for name in ("shop", "other", "empty"):
        say("createNamespace", 200, {"namespace": [name], "properties": {"owner": "me"}})
    say("createNamespace", 200, {"namespace": ["shop", "inner"]})
    say("createNamespace", 409, {"namespace": ["shop"]})
    say("createNamespace", 200, {"namespace": ["made", "inner"]})
    say("createNamespace", 400, {"namespace": "shop"})
    say("createNamespace", 400, b"{")
    say("createNamespace", 415, {"namespace": ["x"]}, headers={"Content-Type": "text/plain"})
    key = {"Idempotency-Key": "018f0000-0000-7000-8000-000000000001"}
    say("createNamespace", 200, {"namespace": ["once"]}, headers=key)
    say("createNamespace", 422, {"namespace": ["twice"]}, headers=key)
    say("listNamespaces", 200)
    say("listNamespaces", 200, params={"parent": "shop"})
    say("listNamespaces", 200, params={"pageToken": "", "pageSize": "1"})
    say("listNamespaces", 404, params={"parent": "nowhere"})
    say("listNamespaces", 400, params={"pageToken": "?", "pageSize": "0"})
    say("loadNamespaceMetadata", 200, path="shop")
    say("loadNamespaceMetadata", 404, path="nowhere")
    say("namespaceExists", 204, path="shop")
    say("namespaceExists", 404, path="nowhere")
    say("updateProperties", 200, {"updates": {"a": "1"}, "removals": ["owner", "b"]}, "shop")
    say("updateProperties", 422, {"updates": {"a": "1"}, "removals": ["a"]}, "shop")
    say("updateProperties", 404, {"updates": {"a": "1"}}, "nowhere")
    say("updateProperties", 400, {"updates": {"a": 1}}, "shop")


def of_tables(story: Story) -> str:
    """The location of the last metadata file of a table that is unregistered at the end."""
    say = story.say
    wide = {"name": "wide", "schema": _WIDE, "partition-spec": _SPEC, "write-order": _ORDER}
    made = say("createTable", 200, {**wide, "properties": {"format-version": "3", "a": "0"}}, "shop")
    say("createTable", 200, {"name": "plain", "schema": schema("note")}, "shop")
    say("createTable", 200, {"name": "staged", "schema": schema("note"), "stage-create": True}, "shop")
    say("createTable", 409, wide, "shop")
    say("createTable", 404, wide, "nowhere")
    say("createTable", 400, {"name": "x", "schema": {"type": "struct"}}, "shop")
    say("createTable", 400, {**wide, "name": "x", "schema": {"type": "struct", "fields": [{"id": 1}]}}, "shop")
    say("createTable", 400, {**wide, "name": "x", "location": "file:///nowhere"}, "shop")
    say("listTables", 200, path="shop")
    say("listTables", 200, path="shop", params={"pageToken": "", "pageSize": "1"})
    say("listTables", 404, path="nowhere")
    say("loadTable", 200, path="shop wide")
    say("loadTable", 200, path="shop wide", params={"snapshots": "refs"})
    say("loadTable", 304, path="shop wide", headers={"If-None-Match": made.headers["etag"]})
    say("loadTable", 404, path="shop nothing")
    say("loadTable", 400, path="shop wide", params={"snapshots": "some"})
    say("tableExists", 204, path="shop wide")
    say("tableExists", 404, path="shop nothing")
    location = made.json()["metadata"]["location"]
    snapshot = {"action": "add-snapshot", "snapshot": {**_SNAPSHOT, "manifest-list": f"{location}/metadata/s.avro"}}
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 71}
    say("updateTable", 200, commit(snapshot, ref, set_property("1")), "shop wide")
    say("updateTable", 200, commit(set_property("2")), "shop wide")
    say("loadTable", 200, path="shop wide")
    say("updateTable", 409, commit(set_property("3"), **STALE), "shop wide")
    say("updateTable", 404, commit(set_property("3")), "shop nothing")
    say("updateTable", 400, commit({"action": "dance"}), "shop wide")
    fields = _WIDE["fields"]
    narrowed = {**_WIDE, "fields": [fields[0], {**fields[1], "type": "string"}, *fields[2:]]}
    current = {"action": "set-current-schema", "schema-id": -1}
    say("updateTable", 400, commit({"action": "add-schema", "schema": narrowed}, current), "shop wide")
    report = {"table-name": "wide", "snapshot-id": 71, "metrics": {}}
    scan = {"filter": True, "schema-id": 0, "projected-field-ids": [], "projected-field-names": []}
    say("reportMetrics", 204, {"report-type": "scan-report", **report, **scan}, "shop wide")
    say("reportMetrics", 404, {"report-type": "scan-report", **report, **scan}, "shop nothing")
    say("reportMetrics", 400, ["scan-report"], "shop wide")
    one = {"identifier": {"namespace": ["shop"], "name": "wide"}, **commit(set_property("4"))}
    say("commitTransaction", 204, {"table-changes": [one]})
    say("commitTransaction", 409, {"table-changes": [{**one, "requirements": [STALE]}]})
    say("commitTransaction", 404, {"table-changes": [{**one, "identifier": {"namespace": ["shop"], "name": "no"}}]})
    say("commitTransaction", 400, {"table-changes": [{**one, "identifier": None}]})
    rename = {"source": {"namespace": ["shop"], "name": "plain"}, "destination": {"namespace": ["other"], "name": "p"}}
    say("renameTable", 409, {**rename, "destination": {"namespace": ["shop"], "name": "wide"}})
    say("renameTable", 204, rename)
    say("renameTable", 404, rename)
    say("renameTable", 400, {"source": rename["source"]})
    gone = say("unregisterTable", 200, path="other p")
    say("unregisterTable", 404, path="other p")
    return str(gone.json()["metadata-location"])


def of_registrations(story: Story, at: str) -> None:
    say = story.say
    register = {"name": "back", "metadata-location": at}
    say("registerTable", 200, register, "other")
    say("registerTable", 409, register, "other")
    say("registerTable", 404, register, "nowhere")
    say("registerTable", 404, {"name": "x", "metadata-location": at + ".gone.metadata.json"}, "other")
    say("registerTable", 400, {"name": "x"}, "other")
    say("dropTable", 204, path="other back", params={"purgeRequested": "true"})
    say("dropTable", 404, path="other back")
    say("dropTable", 400, path="shop wide", params={"purgeRequested": "perhaps"})


def of_views(story: Story) -> None:
    say = story.say
    body = {"name": "v", "schema": schema("note"), "view-version": VIEW_VERSION, "properties": {"comment": "c"}}
    made = say("createView", 200, body, "shop").json()
    say("createView", 409, body, "shop")
    say("createView", 404, body, "nowhere")
    say("createView", 400, {**body, "name": "x", "view-version": {}}, "shop")
    say("listViews", 200, path="shop")
    say("listViews", 200, path="shop", params={"pageToken": "", "pageSize": "1"})
    say("listViews", 404, path="nowhere")
    say("loadView", 200, path="shop v")
    say("loadView", 404, path="shop nothing")
    say("viewExists", 204, path="shop v")
    say("viewExists", 404, path="shop nothing")
    say("replaceView", 200, commit(set_property("1")), "shop v")
    say("replaceView", 409, commit(set_property("1"), **STALE_VIEW), "shop v")
    say("replaceView", 404, commit(set_property("1")), "shop nothing")
    say("replaceView", 400, commit({"action": "dance"}), "shop v")
    say("createTable", 409, {"name": "v", "schema": schema("note")}, "shop")
    rename = {"source": {"namespace": ["shop"], "name": "v"}, "destination": {"namespace": ["other"], "name": "w"}}
    say("renameView", 409, {**rename, "destination": {"namespace": ["shop"], "name": "wide"}})
    say("renameView", 204, rename)
    say("renameView", 404, rename)
    say("renameView", 400, {"source": rename["source"]})
    say("dropView", 204, path="other w")
    say("dropView", 404, path="other w")
    register = {"name": "again", "metadata-location": made["metadata-location"]}
    say("registerView", 200, register, "other")
    say("registerView", 409, register, "other")
    say("registerView", 404, register, "nowhere")
    say("registerView", 400, {"name": "x"}, "other")


def of_ends(story: Story) -> None:
    say = story.say
    say("dropNamespace", 204, path="empty")
    say("dropNamespace", 404, path="empty")
    say("dropNamespace", 409, path="shop")
    say("createNamespace", 413, b" " * (BODY_LIMIT + 1))


def of_strangers(story: Story, operations: Iterable[str]) -> None:
    """Each of the operations with a token that is none."""
    for name in operations:
        path = " ".join(["shop"] + ["wide"] * (upstream().operations[name].path.count("{") - 2))
        story.say(name, 401, path=path, headers={"Authorization": "Bearer wrong"})


def tell(http: httpx.Client, operations: Iterable[str]) -> list[Met]:
    """The answers to a life of namespaces, tables and views, with the mistakes that clients make."""
    story = Story(http)
    of_namespaces(story)
    location = of_tables(story)
    of_registrations(story, location)
    of_views(story)
    of_ends(story)
    of_strangers(story, operations)
    return story.met
