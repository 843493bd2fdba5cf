"""Our OpenAPI document beside the Iceberg project's own, and what the comparison of two documents tells."""

from __future__ import annotations

from typing import Any

import pytest

from app.main import openapi_document
from tests.upstream import Document, compare_operations, faults, settle, upstream

_NOT_IMPLEMENTED = "Not implemented, and so not among the endpoints of /v1/config; clients do without."
_ANY_TIME = "The server answers it wherever it meets the fault; clients treat statuses they do not know as failures."
_SEVERAL = "The table spec has transforms of several columns from format version 3 on."
_OLD_TABLES = "Format version 1, which upstream's shapes leave out, allows snapshots without it."
_TOLERANT = "Java and PyIceberg leave it out or send null, and it has one meaning: nothing asked for."
_HEAD = "HTTP allows no body in an answer to HEAD."
_BARE = "Upstream's example of the same answer is wrapped in `error`, and clients read only the wrapped form."
_REPORTS = "Reports of kinds and members that this server does not know are taken, so one open shape is declared."
_ONE_TEXT = "Read as one header text, whatever it lists: this server delegates no access."

DECLARED: dict[str, str] = {
    **{
        f"operation {name} only upstream": _NOT_IMPLEMENTED
        for name in (
            "cancelPlanning",
            "fetchPlanningResult",
            "fetchScanTasks",
            "getToken",
            "listFunctions",
            "loadCredentials",
            "loadFunction",
            "planTableScan",
            "signRequest",
        )
    },
    "*: status 408 only here": _ANY_TIME,
    "*: status 413 only here": _ANY_TIME,
    "*: status 415 only here": _ANY_TIME,
    "*: status 422 only here": "An idempotency key came back with another request.",
    "*: status 429 only here": "A full queue of writers; upstream's 503 would say that the outcome is unknown.",
    "createNamespace: status 404 only here": "The warehouse that the prefix names does not exist.",
    "viewExists: status 403 only here": "Upstream forgets it here alone.",
    "*: status 500 only here": "Upstream declares it within 5XX.",
    "*: status default only here": "Any other failure has the same envelope; upstream has 5XX for it.",
    "*: status 5XX only upstream": "Declared as 500, 503 and default.",
    "*: status 419 only upstream": "A token does not expire; a wrong one is a 401.",
    "*: status 406 only upstream": "Every server supports the operation.",
    "*: status 502 only upstream": "Sent by gateways, of which this server is none.",
    "*: status 504 only upstream": "Sent by gateways, of which this server is none.",
    "*: may be null": "In requests a null is an absent member, and one shape declares requests and answers.",
    "CommitTableRequest: required identifier only here": "Upstream says so in words: in a transaction it is a must.",
    "CommitTableRequest: required requirements only upstream": _TOLERANT,
    "CreateViewRequest: required properties only upstream": _TOLERANT,
    "AssertRefSnapshotId: required snapshot-id only upstream": _TOLERANT,
    "createView: parameter header idempotency-key only here": "Java sends it; upstream forgets it here alone.",
    "SQLViewRepresentation.type: value sql only here": "The view spec knows no other type of representation.",
    "Type: alternative string*": "Upstream lists `variant` beside the primitive types for code generators.",
    "PrimitiveTypeValue: is any JSON": "Defaults of structs, lists and maps are no primitive values.",
    "PartitionField: member source-ids only here": _SEVERAL,
    "PartitionField: required source-id only upstream": _SEVERAL,
    "SortField: member source-ids only here": _SEVERAL,
    "SortField: required source-id only upstream": _SEVERAL,
    "Snapshot: member key-id only here": "The table spec has it from format version 3 on.",
    "Snapshot: required manifest-list only upstream": _OLD_TABLES,
    "Snapshot: required summary only upstream": _OLD_TABLES,
    "Snapshot.summary: required operation only upstream": _OLD_TABLES,
    "ErrorModel: member findings only here": "The findings of a refused schema change; clients ignore it.",
    "ErrorModel: member stack only upstream": "Stack traces go to the log.",
    **{f"ErrorModel: member {name} only upstream": _BARE for name in ("code", "message", "type")},
    "ErrorModel: member error only here": _BARE,
    "LoadTableResult: member remote-signing-config only upstream": _NOT_IMPLEMENTED,
    "LoadTableResult: member storage-credentials only upstream": _NOT_IMPLEMENTED,
    "* header x-iceberg-access-delegation: is string, not array": _ONE_TEXT,
    "namespaceExists: body of * only upstream": _HEAD,
    "tableExists: body of * only upstream": _HEAD,
    "viewExists: body of 503 only upstream": _HEAD,
    "ReportMetricsRequest: alternative object*": _REPORTS,
}
"""Deliberate differences of our OpenAPI document, each with its reason. One that is no more fails the test."""


def test_the_openapi_document_is_upstreams_but_for_listed_deviations() -> None:
    """Ids, verbs, paths, parameters, statuses, members, required members and enums of every operation under `/v1`."""
    theirs = upstream()
    settle(compare_operations(Document(openapi_document()), theirs, "/v1/"), DECLARED)


_MEMBERS = {"id": {"type": "integer"}, "name": {"type": "string"}}
_NODE = {"type": "object", "required": ["id"], "properties": _MEMBERS}


def _document(node: dict[str, Any], **operation: Any) -> Document:
    """A document of one operation, whose request is the component Node."""
    request = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    said = {"operationId": "put", "requestBody": request, "responses": {"204": {}}, **operation}
    return Document({"paths": {"/v1/x": {"post": said}}, "components": {"schemas": {"Node": node}}})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({**_NODE, "required": ["id", "name"]}, "Node: required name only here"),
        ({**_NODE, "required": []}, "Node: required id only upstream"),
        ({**_NODE, "properties": {"id": {"type": "integer"}}}, "Node: member name only upstream"),
        ({**_NODE, "properties": {**_MEMBERS, "id": {"type": "string"}}}, "Node.id: is string, not integer"),
        (
            {**_NODE, "properties": {**_MEMBERS, "name": {"const": "a", "type": "string"}}},
            "Node.name: value a only here",
        ),
        ({**_NODE, "properties": {**_MEMBERS, "name": {"type": ["string", "null"]}}}, "Node.name: may be null"),
    ],
)
def test_a_changed_request_is_told_by_its_member(changed: dict[str, Any], told: str) -> None:
    """One difference, named by the upstream component."""
    assert list(compare_operations(_document(changed), _document(_NODE), "/v1/")) == [told]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"operationId": "post"}, ["operation post only here", "operation put only upstream"]),
        ({"responses": {"200": {}}}, ["put: status 200 only here", "put: status 204 only upstream"]),
        (
            {"parameters": [{"in": "query", "name": "a", "schema": {}}]},
            ["put: parameter query a only here"],
        ),
    ],
)
def test_a_changed_operation_is_told(changed: dict[str, Any], told: list[str]) -> None:
    """Ids, statuses and parameters, both ways."""
    assert list(compare_operations(_document(_NODE, **changed), _document(_NODE), "/v1/")) == told


def test_a_deviation_without_its_difference_fails() -> None:
    """The list shrinks with the differences."""
    settle(["a: b"], {"a: *": "why"})
    with pytest.raises(AssertionError, match="listed as deviations, but as upstream:\nc: d"):
        settle(["a: b"], {"a: *": "why", "c: d": "why"})


def test_a_difference_without_a_reason_fails() -> None:
    """Nothing deviates by accident."""
    with pytest.raises(AssertionError, match="not a listed deviation:\na: b"):
        settle(["a: b"], {})


def test_a_body_that_violates_the_upstream_schema_is_told_by_place() -> None:
    """Wrong types, missing members, and members that upstream does not know."""
    body = {"identifiers": [{"namespace": ["a"], "name": "t"}, {"namespace": "a", "title": "t"}]}
    found = list(faults("listTables", "200", body))
    assert sorted(found) == [
        "TableIdentifier: member title only here",
        'listTables 200 identifiers.1.namespace: "a" is not of type "array"',
        'listTables 200 identifiers.1: "name" is a required property',
    ]
