"""One walk through every resource: what each operation takes and gives."""

from __future__ import annotations

import re
import uuid

import httpx
import pytest

from tests.cases.wire import local_path
from tests.http.samples import VIEW_VERSION, error, fresh, namespace, schema, set_property, table

SET = {"action": "set-properties", "updates": {"a": "1"}}
BRANCH = {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1}


def test_namespace_properties(http: httpx.Client) -> None:
    """Set, removed and missing are told apart; a key in both lists is 422."""
    name = namespace(http)
    path = f"/v1/namespaces/{name}/properties"
    assert http.post(path, json={"updates": {"a": "1", "b": "2"}}).json() == {
        "updated": ["a", "b"],
        "removed": [],
        "missing": [],
    }
    assert http.post(path, json={"removals": ["a", "zz"], "updates": None}).json() == {
        "updated": [], "removed": ["a"], "missing": ["zz"],
    }  # fmt: skip
    both = http.post(path, json={"removals": ["b"], "updates": {"b": "3"}})
    assert error(both)["type"] == "UnprocessableEntityException" and both.status_code == 422
    assert http.get(f"/v1/namespaces/{name}").json()["properties"]["b"] == "2"


def test_namespace_errors(http: httpx.Client) -> None:
    """Taken 409, missing 404, not empty 409, each by its type; one above that is missing is made."""
    name = namespace(http)
    assert error(http.post("/v1/namespaces", json={"namespace": [name]}))["type"] == "AlreadyExistsException"
    assert error(http.get("/v1/namespaces/nope"))["type"] == "NoSuchNamespaceException"
    assert http.post("/v1/namespaces", json={"namespace": [f"{name}-above", "x"]}).status_code == 200
    assert http.head(f"/v1/namespaces/{name}-above").status_code == 204
    table(http, name)
    full = http.delete(f"/v1/namespaces/{name}")
    assert error(full)["type"] == "NamespaceNotEmptyException" and full.status_code == 409


def test_create_with_every_optional_member_null(http: httpx.Client) -> None:
    """Java writes explicit nulls; they count as absent."""
    ns = namespace(http)
    made = table(
        http,
        ns,
        location=None,
        **{"partition-spec": None, "write-order": None, "stage-create": None, "properties": None},
    )
    assert made["metadata-location"].startswith(made["metadata"]["location"])


def test_create_with_everything(http: httpx.Client) -> None:
    """Spec, order and properties are taken, ids follow their columns."""
    ns = namespace(http)
    made = table(
        http,
        ns,
        **{
            "partition-spec": {
                "spec-id": 0,
                "fields": [{"source-id": 1, "transform": "bucket[4]", "name": "id_bucket"}],
            },
            "write-order": {
                "order-id": 1,
                "fields": [{"source-id": 2, "transform": "identity", "direction": "desc", "null-order": "nulls-last"}],
            },
            "properties": {"format-version": "3", "k": "v"},
        },
    )["metadata"]
    assert made["format-version"] == 3 and made["properties"]["k"] == "v"
    assert made["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert made["sort-orders"][0]["fields"][0]["source-id"] == 2


def test_a_staged_table_is_invisible_until_committed(http: httpx.Client) -> None:
    """The staged uuid and location are taken; metadata-location is absent before."""
    ns, name = namespace(http), fresh("staged")
    body = {"name": name, "schema": schema("note"), "stage-create": True}
    staged = http.post(f"/v1/namespaces/{ns}/tables", json=body)
    assert staged.status_code == 200 and "metadata-location" not in staged.json() and "etag" not in staged.headers
    path = f"/v1/namespaces/{ns}/tables/{name}"
    assert http.head(path).status_code == 404
    metadata = staged.json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    created = http.post(path, json={"requirements": [{"type": "assert-create"}], "updates": updates})
    assert created.status_code == 200, created.text
    assert created.json()["metadata"]["table-uuid"] == metadata["table-uuid"]
    again = http.post(path, json={"requirements": [{"type": "assert-create"}], "updates": updates})
    assert error(again)["type"] == "CommitFailedException" and again.status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"requirements": [], "updates": [SET, {"action": "frobnicate"}]},
        {"requirements": [{"type": "assert-moon-phase"}], "updates": [SET]},
        {"requirements": [], "updates": [{"updates": {"a": "1"}}]},
        {"requirements": [], "updates": [{"action": "add-view-version", "view-version": VIEW_VERSION}]},
        {"requirements": [], "updates": {"action": "set-properties"}},
        {"requirements": {}, "updates": []},
        {"requirements": []},
        {"requirements": [], "updates": ["x"]},
        {"requirements": [], "updates": [{**BRANCH, "snapshot-id": 2**70}]},
        {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": ["1"]}]},
    ],
)  # fmt: skip
def test_what_is_not_understood_is_400_and_stores_nothing(http: httpx.Client, body: dict[str, object]) -> None:
    """Half a commit is never stored."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    assert error(http.post(path, json=body))["code"] == 400
    assert http.get(path).json()["metadata-location"] == made["metadata-location"]


def test_legacy_property_keys_are_read(http: httpx.Client) -> None:
    """Old Java clients wrote `updated` and `removed`."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    http.post(path, json={"requirements": [], "updates": [{"action": "set-properties", "updated": {"old": "1"}}]})
    assert http.get(path).json()["metadata"]["properties"]["old"] == "1"
    http.post(path, json={"requirements": [], "updates": [{"action": "remove-properties", "removed": ["old"]}]})
    assert "old" not in http.get(path).json()["metadata"].get("properties", {})


def test_a_missed_requirement_is_409(http: httpx.Client) -> None:
    """With the wording that the reference suite matches."""
    ns = namespace(http)
    made = table(http, ns)
    body = {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}], "updates": []}
    failed = error(http.post(f"/v1/namespaces/{ns}/tables/{made['name']}", json=body))
    assert failed["type"] == "CommitFailedException" and "Requirement failed: UUID does not match" in failed["message"]


@pytest.mark.parametrize(
    ("flag", "kept"),
    [
        ("", True),
        ("?purgeRequested=false", True),
        ("?purgeRequested=False", True),
        ("?purgeRequested=true", False),
        ("?purgeRequested=True", False),
        ("?purgeRequested=TRUE", False),
    ],
)
def test_only_a_true_purge_flag_removes_files(http: httpx.Client, flag: str, kept: bool) -> None:
    """In any letter case; a plain drop leaves every file."""
    ns = namespace(http)
    made = table(http, ns)
    file = local_path(made["metadata-location"])
    assert http.delete(f"/v1/namespaces/{ns}/tables/{made['name']}{flag}").status_code == 204
    if kept:
        assert file.exists()
        registered = http.post(
            f"/v1/namespaces/{ns}/register", json={"name": made["name"], "metadata-location": made["metadata-location"]}
        )
        assert registered.status_code == 200
        assert registered.json()["metadata-location"] == made["metadata-location"]


def test_a_strange_purge_flag_is_400(http: httpx.Client) -> None:
    """Nothing is dropped on a misunderstanding."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    assert error(http.delete(f"{path}?purgeRequested=maybe"))["code"] == 400
    assert http.head(path).status_code == 204


def test_unregister_gives_the_last_state(http: httpx.Client) -> None:
    """Location and metadata of the last commit; afterwards the name is free and the file is there."""
    ns = namespace(http)
    made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    last = set_property(http, ns, made["name"], "k", "v").json()
    gone = http.post(f"{path}/unregister")
    assert gone.status_code == 200 and gone.json() == last
    assert error(http.post(f"{path}/unregister"))["type"] == "NoSuchTableException"
    body = {"name": made["name"], "metadata-location": last["metadata-location"]}
    assert http.post(f"/v1/namespaces/{ns}/register", json=body).json()["metadata"] == last["metadata"]
    assert error(http.post(f"/v1/namespaces/{ns}/register", json=body))["code"] == 409
    assert http.post(f"/v1/namespaces/{ns}/register", json={**body, "overwrite": True}).status_code == 200


def test_rename_errors(http: httpx.Client) -> None:
    """Taken 409, missing source 404 of the table, missing target 404 of the namespace."""
    ns = namespace(http)
    a, b = table(http, ns)["name"], table(http, ns)["name"]

    def rename(source: list[str], target: list[str]) -> httpx.Response:
        ends = [{"namespace": end[:-1], "name": end[-1]} for end in (source, target)]
        return http.post("/v1/tables/rename", json={"source": ends[0], "destination": ends[1]})

    taken = rename([ns, a], [ns, b])
    assert (
        taken.status_code == 409
        and error(taken)["message"] == f"Cannot rename {ns}.{a} to {ns}.{b}. Table already exists"
    )
    assert error(rename([ns, "nope"], [ns, "x"]))["type"] == "NoSuchTableException"
    assert error(rename([ns, a], ["nope", "x"]))["type"] == "NoSuchNamespaceException"
    assert error(http.post("/v1/tables/rename", json={"source": {"name": "x"}, "destination": {}}))["code"] == 400
    moved = rename([ns, a], [ns, "fresh"])
    assert (moved.status_code, moved.content) == (204, b"")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (
            b'{"report-type":"scan-report","table-name":"t","snapshot-id":1,"filter":true,"schema-id":0,"metrics":{}}',
            204,
        ),
        (
            b'{"report-type":"commit-report","table-name":"t","snapshot-id":1,"sequence-number":1,"operation":"append","metrics":{}}',
            204,
        ),
        (b'{"report-type":"future-report","whatever":{"deep":[1,2,{"x":null}]}}', 204),
        (b'{"report-type":"scan-report","filter":' + b'{"type":"not","child":' * 50 + b"true" + b"}" * 50 + b"}", 204),
        (b'{"report-type":"scan-report","pad":"' + b"x" * 2_000_000 + b'"}', 204),
        (b'{"metrics":{"total-planning-duration":NaN}}', 400),
        (b"", 400),
        (b"[]", 400),
    ],
    ids=["scan", "commit", "future", "deep", "2MB", "nan", "empty", "list"],
)
def test_metrics_reports(http: httpx.Client, body: bytes, status: int) -> None:
    """Any report that is JSON is taken; what is none is 400."""
    ns = namespace(http)
    made = table(http, ns)
    answer = http.post(
        f"/v1/namespaces/{ns}/tables/{made['name']}/metrics", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status, answer.text


def test_metrics_of_a_missing_table_are_404(http: httpx.Client) -> None:
    """The table is looked up."""
    assert (
        error(http.post("/v1/namespaces/a/tables/nope/metrics", json={"report-type": "x"}))["type"]
        == "NoSuchTableException"
    )


def test_a_view_lives_its_whole_life(http: httpx.Client) -> None:
    """Created, loaded, asked for, listed, replaced, renamed, dropped, registered again."""
    ns, name = namespace(http), fresh("v")
    made = http.post(
        f"/v1/namespaces/{ns}/views", json={"name": name, "schema": schema(), "view-version": VIEW_VERSION}
    )
    assert made.status_code == 200, made.text
    path = f"/v1/namespaces/{ns}/views/{name}"
    assert http.get(path).json() == made.json()
    assert (http.head(path).status_code, http.head(f"{path}x").status_code) == (204, 404)
    assert http.get(f"/v1/namespaces/{ns}/views").json()["identifiers"] == [{"namespace": [ns], "name": name}]
    assert error(http.get(f"/v1/namespaces/{ns}/tables/{name}"))["type"] == "NoSuchTableException"
    new = {**VIEW_VERSION, "version-id": 2, "representations": [{"type": "sql", "sql": "select 2", "dialect": "spark"}]}
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": made.json()["metadata"]["view-uuid"]}],
        "updates": [
            {"action": "add-view-version", "view-version": new},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    replaced = http.post(path, json=body)
    assert replaced.status_code == 200 and replaced.json()["metadata"]["current-version-id"] == 2
    ends = {"source": {"namespace": [ns], "name": name}, "destination": {"namespace": [ns], "name": f"{name}2"}}
    assert http.post("/v1/views/rename", json=ends).status_code == 204
    assert http.delete(f"{path}2").status_code == 204
    assert error(http.get(f"{path}2"))["type"] == "NoSuchViewException"
    registered = http.post(
        f"/v1/namespaces/{ns}/register-view",
        json={"name": name, "metadata-location": replaced.json()["metadata-location"]},
    )
    assert registered.json()["metadata"] == replaced.json()["metadata"]


def test_tables_and_views_share_one_name_space(http: httpx.Client) -> None:
    """A name is taken for both kinds alike."""
    ns, name = namespace(http), fresh("both")
    assert (
        http.post(
            f"/v1/namespaces/{ns}/views", json={"name": name, "schema": schema(), "view-version": VIEW_VERSION}
        ).status_code
        == 200
    )
    taken = error(http.post(f"/v1/namespaces/{ns}/tables", json={"name": name, "schema": schema()}))
    assert (taken["code"], taken["message"]) == (409, f"View with same name already exists: {ns}.{name}")


def test_a_view_with_two_texts_for_one_dialect_is_an_illegal_argument(http: httpx.Client) -> None:
    """By the type that the reference suite expects."""
    ns = namespace(http)
    twice = {**VIEW_VERSION, "representations": VIEW_VERSION["representations"] * 2}
    made = http.post(f"/v1/namespaces/{ns}/views", json={"name": "v", "schema": schema(), "view-version": twice})
    assert error(made)["type"] == "IllegalArgumentException" and made.status_code == 400


def test_a_table_update_sent_to_a_view_is_400(http: httpx.Client) -> None:
    """Each kind knows its own updates."""
    ns, name = namespace(http), fresh("v")
    http.post(f"/v1/namespaces/{ns}/views", json={"name": name, "schema": schema(), "view-version": VIEW_VERSION})
    body = {"updates": [{"action": "set-current-schema", "schema-id": 0}]}
    assert error(http.post(f"/v1/namespaces/{ns}/views/{name}", json=body))["code"] == 400


def test_a_transaction_is_all_or_nothing(http: httpx.Client) -> None:
    """One missed requirement, and no table has changed."""
    ns = namespace(http)
    a, b = table(http, ns), table(http, ns)

    def change(made: dict[str, object], value: str, *requirements: object) -> dict[str, object]:
        return {
            "identifier": {"namespace": [ns], "name": made["name"]},
            "requirements": list(requirements),
            "updates": [{"action": "set-properties", "updates": {"k": value}}],
        }

    def value_of(made: dict[str, object]) -> str | None:
        loaded = http.get(f"/v1/namespaces/{ns}/tables/{made['name']}").json()
        found: str | None = loaded["metadata"].get("properties", {}).get("k")
        return found

    done = http.post("/v1/transactions/commit", json={"table-changes": [change(a, "1"), change(b, "1")]})
    assert (done.status_code, done.content) == (204, b"")
    wrong = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    failed = http.post("/v1/transactions/commit", json={"table-changes": [change(a, "2"), change(b, "2", wrong)]})
    assert error(failed)["type"] == "CommitFailedException"
    assert (value_of(a), value_of(b)) == ("1", "1")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"table-changes": []},
        {"table-changes": [{}]},
        {"table-changes": [{"identifier": {"namespace": ["a"], "name": "b"}, "requirements": []}]},
        {"table-changes": "x"},
    ],
)
def test_a_malformed_transaction_is_400(http: httpx.Client, body: object) -> None:
    """Every entry needs identifier and updates, and there must be one."""
    assert error(http.post("/v1/transactions/commit", json=body))["code"] == 400


def test_pages(http: httpx.Client) -> None:
    """Absent token: everything. Empty token: the first page. Tokens end with null."""
    ns = namespace(http)
    names = [table(http, ns, f"t{number}")["name"] for number in range(7)]

    def listed(query: str) -> tuple[list[str], str | None]:
        page = http.get(f"/v1/namespaces/{ns}/tables{query}").json()
        return [entry["name"] for entry in page["identifiers"]], page["next-page-token"]

    assert listed("") == (names, None)
    assert listed("?pageSize=3") == (names, None)
    assert listed("?pageToken=&pageSize=7") == (names, None)
    seen, token, pages = [], "", 0
    while True:
        page, following = listed(f"?pageToken={token}&pageSize=3")
        seen += page
        pages += 1
        if following is None:
            break
        token = following
    assert (seen, pages) == (names, 3)
    assert error(http.get(f"/v1/namespaces/{namespace(http)}/tables?pageToken={token}&pageSize=3"))["code"] == 400


def test_an_idempotency_key_gives_one_effect(http: httpx.Client) -> None:
    """The same request again is answered alike; another request under the key is 422; a key must be a UUID."""
    name, key = fresh("idem"), str(uuid.uuid4())
    body = {"namespace": [name]}
    first = http.post("/v1/namespaces", json=body, headers={"idempotency-key": key})
    again = http.post("/v1/namespaces", json=body, headers={"idempotency-key": key.upper()})
    assert (first.status_code, again.status_code, again.json()) == (200, 200, first.json())
    other = http.post("/v1/namespaces", json={"namespace": [fresh("idem")]}, headers={"idempotency-key": key})
    assert error(other)["type"] == "UnprocessableEntityException"
    assert error(http.post("/v1/namespaces", json=body, headers={"idempotency-key": "mine"}))["code"] == 400
    assert (
        http.delete(f"/v1/namespaces/{name}", headers={"idempotency-key": (drop := str(uuid.uuid4()))}).status_code
        == 204
    )
    assert http.delete(f"/v1/namespaces/{name}", headers={"idempotency-key": drop}).status_code == 204


def test_rules_have_pages(http: httpx.Client) -> None:
    """Every listed rule can be explained, in any letter case."""
    rules = http.get("/icekeel/v1/rules").json()["rules"]
    assert rules and [rule["code"] for rule in rules] == sorted(rule["code"] for rule in rules)
    page = http.get(f"/icekeel/v1/rules/{rules[0]['code'].lower()}").json()
    assert page["code"] == rules[0]["code"] and "Why it matters" in page["manual"]
    assert error(http.get("/icekeel/v1/rules/ICE000"))["code"] == 404


def test_metrics_are_prometheus_text(http: httpx.Client) -> None:
    """Routes by template, never by path."""
    http.get("/v1/config")
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'icekeel_http_requests_total{method="GET",route="/v1/config",status="200"}' in answer.text
    assert fresh("never") not in answer.text


def test_documentation_is_self_contained(http: httpx.Client) -> None:
    """The page loads its script and style from this server alone, and they are there."""
    page = http.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) >= 2 and not [place for place in loaded if "//" in place]
    for place in loaded:
        assert http.get(f"/{place}").status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert http.get("/openapi.json").json()["info"]["title"] == "Icekeel"
    assert error(http.get("/docs/other.js"))["code"] == 404


def test_a_misspelt_member_of_our_own_api_is_refused(http: httpx.Client) -> None:
    """Ignoring it would claim to have changed what was never asked for; the answer lists what there is."""
    fault = error(http.patch("/icekeel/v1/warehouses/default", json={"options": {"s3.region": "eu-west-1"}}))
    assert fault["code"] == 400
    assert "'options'" in fault["message"] and "storage" in fault["message"]
    ns = namespace(http)
    own = f"/icekeel/v1/default/namespaces/{ns}/tables/{table(http, ns)['name']}/evolution"
    assert error(http.post(f"{own}/plan", json={"operations": [], "operation": []}))["code"] == 400
    assert error(http.post(f"{own}/waivers", json={"code": "ICE202", "reason": "x", "expires": 1}))["code"] == 400


def test_an_empty_namespace_is_one_that_does_not_exist(http: httpx.Client) -> None:
    """Spark asks for it after `p.snapshots`, and takes no other 404 for "there is no such table"."""
    for path in ("/v1/namespaces//tables/p", "/v1/default/namespaces//tables/p"):
        assert error(http.get(path))["type"] == "NoSuchNamespaceException"
