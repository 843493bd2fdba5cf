"""Group G of the public cases: loading (O-39, O-40)."""

from __future__ import annotations

from typing import Any

import httpx

from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, Table, error_of, ok, set_properties, set_ref

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


def tag_of(table: Table, **query: str) -> str:
    return str(table.get(None, **query).headers["ETag"])


def revisit(table: Table, tags: str, status: int, **query: str) -> httpx.Response:
    answer = table.get({"If-None-Match": tags}, **query)
    assert answer.status_code == status, answer.text[:300]
    if status == 304:
        assert answer.content == b""
        assert answer.headers["ETag"]
    return answer


# --- O-39 ---------------------------------------------------------------------------------------------------------


def test_o39_a_tag_belongs_to_one_representation(catalog: Catalog, ns: Namespace) -> None:
    """The full and the short form have different tags, and neither unlocks the other."""
    table = catalog.create(ns, SIMPLE)
    table.append(1, None, 1)
    table.append(2, 1, 2)
    full, short = tag_of(table), tag_of(table, snapshots="refs")
    assert full != short
    assert tag_of(table, snapshots="all") == full
    assert revisit(table, full, 304).headers["ETag"] == full
    assert revisit(table, short, 304, snapshots="refs").headers["ETag"] == short
    revisit(table, short, 200)
    revisit(table, full, 200, snapshots="refs")


def test_o39_forms_of_the_header(catalog: Catalog, ns: Namespace) -> None:
    """Lists, weak tags and `*` are understood; garbage is no match."""
    table = catalog.create(ns, SIMPLE)
    tag = tag_of(table)
    strong = tag.removeprefix("W/")
    for same in (f'"x", {tag}', f"W/{strong}", strong, "*", f'"y" ,{tag}'):
        revisit(table, same, 304)
    for other in ('"x"', "x", "", '"', "W/", strong.strip('"') + "0"):
        revisit(table, other, 200)


def test_o39_a_change_gives_a_new_tag(catalog: Catalog, ns: Namespace) -> None:
    """After a commit, and after drop and re-create, the old tag is stale; the tag of create and commit is good."""
    created = catalog.post_create(ns, "t", SIMPLE)
    table = catalog.table(ns, "t")
    first = created.headers["ETag"]
    revisit(table, first, 304)
    answer = table.post([], [set_properties(a="1")])
    second = answer.headers["ETag"]
    assert second != first
    revisit(table, first, 200)
    revisit(table, second, 304)
    assert catalog.drop(table).status_code == 204
    error_of(table.get({"If-None-Match": second}), 404)
    catalog.create(ns, SIMPLE, name="t")
    revisit(table, second, 200)
    revisit(table, first, 200)


def test_o39_head_and_delegation(catalog: Catalog, ns: Namespace) -> None:
    """HEAD has no body; a client that asks for credentials gets a body that its tag fits."""
    table = catalog.create(ns, SIMPLE)
    assert catalog.http.head(table.path).status_code == 204
    asked = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    answer = table.get(asked)
    again = table.get({**asked, "If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    plain = table.get()
    if answer.json() != plain.json():
        assert answer.headers["ETag"] != plain.headers["ETag"]


# --- O-40 ---------------------------------------------------------------------------------------------------------


def test_o40_the_short_form_hides_and_removes_nothing(catalog: Catalog, ns: Namespace) -> None:
    """refs holds what refs point to and the rest of the document as it is; nothing is lost by loading it."""
    table = catalog.create(ns, SIMPLE)
    for number in range(1, 6):
        table.append(number, number - 1 or None, number)
    table.commit([set_ref("k", 2, "tag"), set_ref("b", 4)])
    short, full = table.load(snapshots="refs"), table.load(snapshots="all")
    assert sorted(s["snapshot-id"] for s in short["metadata"]["snapshots"]) == [2, 4, 5]
    assert short["metadata-location"] == full["metadata-location"]
    rest = {k: v for k, v in full["metadata"].items() if k != "snapshots"}
    assert {k: v for k, v in short["metadata"].items() if k != "snapshots"} == rest
    table.commit([set_properties(a="1")])
    assert [s["snapshot-id"] for s in table.metadata()["snapshots"]] == [1, 2, 3, 4, 5]
    error_of(table.get(snapshots="foo"), 400)


def test_o40_no_refs_no_snapshots(catalog: Catalog, ns: Namespace) -> None:
    """A table without refs has an empty short form that still parses as metadata."""
    table = catalog.create(ns, SIMPLE)
    assert ok(table.get(snapshots="refs"))["metadata"]["snapshots"] == []
