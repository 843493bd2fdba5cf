"""Check, plan, apply, history and standings on the wire."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.http.samples import error, namespace, schema, table

Json = dict[str, Any]
ADD = {"op": "add", "path": "more", "type": "string"}


class Table:
    """A new table with `id` and `note`, and its `evolution/` resource."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.ns = namespace(http)
        self.name = table(http, self.ns)["name"]
        self.path = f"/icekeel/v1/default/namespaces/{self.ns}/tables/{self.name}/evolution"

    def post(self, what: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(f"{self.path}/{what}", json=body, headers=headers)

    def get(self, what: str) -> httpx.Response:
        return self.http.get(f"{self.path}/{what}")


@pytest.fixture
def orders(http: httpx.Client) -> Table:
    return Table(http)


def test_a_check_answers_200_whatever_the_verdict(orders: Table) -> None:
    """The verdict is the answer, not the status; nothing is changed."""
    assert orders.post("check", {"operations": [ADD]}).json()["verdict"] == "compatible"
    wrong = orders.post("check", {"operations": [{"op": "drop", "path": "nope"}]})
    assert (wrong.status_code, wrong.json()["verdict"]) == (200, "incompatible")
    stale = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 7}], "updates": []}
    assert orders.post("check", stale).json()["verdict"] == "not-checked"
    assert len(orders.get("history").json()["entries"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"updates": [], "operations": [ADD]},
        {"updates": [{"action": "nonsense"}]},
        {"operations": [{"op": "nonsense"}]},
        {"schema": schema("a"), "fields": []},
        {"fields": [{"name": "a", "type": "nonsense"}]},
        {"arrow-ipc-schema": "AAAA"},
    ],
)
def test_a_body_that_cannot_be_understood_is_400(orders: Table, body: Json) -> None:
    """In the one envelope."""
    answer = orders.post("check", body)
    assert answer.status_code == 400
    error(answer)


def test_applying_answers_what_was_committed(orders: Table) -> None:
    """With its ids, and as the table now loads."""
    done = orders.post("apply", {"operations": [ADD], "base-schema-id": 0}).json()
    assert done["assigned-ids"] == {"more": 3} and done["schema-id"] == 1 and done["last-column-id"] == 3
    loaded = orders.http.get(f"/v1/namespaces/{orders.ns}/tables/{orders.name}").json()
    assert loaded["metadata-location"] == done["metadata-location"]
    assert loaded["metadata"]["current-schema-id"] == 1


def test_a_conflict_is_409_and_tells_who(orders: Table) -> None:
    """Type and wording of a failed commit, which engines may retry."""
    rename = {"op": "rename", "path": "note", "to": "remark"}
    orders.post("apply", {"operations": [rename]}, **{"User-Agent": "Ann/1.0"})
    answer = orders.post("apply", {"operations": [{"op": "drop", "path": "note"}], "base-schema-id": 0})
    failed = error(answer)
    assert (answer.status_code, failed["type"]) == (409, "CommitFailedException")
    assert "column remark (field 2) was renamed from note to remark by anonymous (ann 1.0) at 20" in failed["message"]


def test_a_key_makes_a_repeated_apply_harmless(orders: Table) -> None:
    """The same answer, once more."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = orders.post("apply", {"operations": [ADD]}, **key)
    again = orders.post("apply", {"operations": [ADD]}, **key)
    assert first.status_code == 200 and first.json() == again.json()
    assert len(orders.get("history").json()["entries"]) == 2


def test_warnings_of_an_applied_change_are_told_twice(orders: Table) -> None:
    """In the body, and in the header that commits of engines carry."""
    done = orders.post("apply", {"operations": [{"op": "add", "path": "NOTE", "type": "string"}]})
    assert done.status_code == 200
    assert {finding["code"] for finding in done.json()["findings"]} == {"ICE702"}
    assert "ICE702" in done.headers["icekeel-findings"]


def test_history_is_filtered_and_paged(orders: Table) -> None:
    """By age, kind and column; a page at a time."""
    orders.post("apply", {"operations": [ADD]})
    orders.post("apply", {"operations": [{"op": "drop", "path": "more"}]})
    assert [e["to-schema-id"] for e in orders.get("history?since=1h&change=dropped").json()["entries"]] == [0]
    assert orders.get("history?until=2020-01-01").json() == {"entries": []}
    assert len(orders.get("history?field-id=3").json()["entries"]) == 2
    page = orders.get("history?limit=2").json()
    rest = orders.get(f"history?pageToken={page['next-page-token']}").json()
    assert len(page["entries"]) == 2 and len(rest["entries"]) == 1 and "next-page-token" not in rest
    whole = orders.http.get(f"/icekeel/v1/default/namespaces/{orders.ns}/evolution/history").json()
    assert len(whole["entries"]) == 3


@pytest.mark.parametrize(
    "query", ["since=yesterday", "limit=0", "limit=5000", "field-id=x", "pageToken=zzz", "until=0d", "change=bogus"]
)
def test_a_query_that_makes_no_sense_is_400(orders: Table, query: str) -> None:
    """With the name of the parameter or of what was wrong."""
    answer = orders.get(f"history?{query}")
    assert answer.status_code == 400
    error(answer)


def test_the_life_of_a_column(orders: Table) -> None:
    """A present one, a dropped one, one that never was; nonsense is 400."""
    orders.post("apply", {"operations": [{"op": "drop", "path": "note"}]})
    life = orders.get("columns/2").json()
    assert (life["state"], life["definition"]["path"], life["schema-ids"]) == ("dropped", "note", [0])
    assert orders.get("columns/1").json()["state"] == "current"
    assert orders.get("columns/99").json()["state"] == "never-assigned"
    assert orders.get("columns/two").status_code == 400


@pytest.mark.parametrize("what", ["check", "plan", "apply"])
def test_a_table_that_is_not_there_is_404(orders: Table, what: str) -> None:
    """As everywhere."""
    answer = orders.http.post(
        f"/icekeel/v1/default/namespaces/{orders.ns}/tables/nope/evolution/{what}", json={"operations": [ADD]}
    )
    assert (answer.status_code, error(answer)["type"]) == (404, "NoSuchTableException")


def test_tables_are_listed_by_their_schemas(orders: Table) -> None:
    """Of one namespace, with the numbers that the metrics show for the leaders."""
    orders.post("apply", {"operations": [ADD, {"op": "drop", "path": "note"}]})
    listed = orders.http.get(f"/icekeel/v1/default/tables?sort=retired-ids&namespace={orders.ns}").json()
    (row,) = listed["tables"]
    assert (row["name"], row["last-column-id"], row["field-count"], row["retired-ids"]) == (orders.name, 3, 2, 1)
    assert row["schema-count"] == 2 and row["schema-changed-at-ms"] > 0
    assert listed["next-page-token"] is None
    assert orders.http.get("/icekeel/v1/default/tables?sort=name").status_code == 400
    assert "# TYPE icekeel_table_retired_ids gauge" in orders.http.get("/metrics").text
