"""Group I of the public cases: views (O-44)."""

from __future__ import annotations

from typing import Any

from tests.cases.shorthand import schema
from tests.cases.views import create_view, replace_view, view_path, view_version
from tests.cases.wire import Catalog, error_of, now_ms, ok

Json = Any
Namespace = tuple[str, ...]


def change(catalog: Catalog, ns: Namespace, *updates: Json) -> Json:
    metadata = ok(replace_view(catalog, ns, "v", updates))["metadata"]
    assert ok(catalog.http.get(view_path(catalog, ns, "v")))["metadata"] == metadata
    return metadata


def test_o44_going_back_to_an_earlier_text(catalog: Catalog, ns: Namespace) -> None:
    """Two versions, not three; the log rises 1, 2, 1 and ends near now; only a new current version is logged."""
    assert create_view(catalog, ns, "v", "select a").status_code == 200
    use_last = {"action": "set-current-view-version", "view-version-id": -1}
    began = now_ms()
    for number, sql in ((2, "select b"), (3, "select a")):
        change(catalog, ns, {"action": "add-view-version", "view-version": view_version(sql, number)}, use_last)
    metadata = change(catalog, ns, {"action": "set-properties", "updates": {"k": "v"}})
    assert sorted(v["version-id"] for v in metadata["versions"]) == [1, 2]
    log = metadata["version-log"]
    assert [entry["version-id"] for entry in log] == [1, 2, 1]
    assert [entry["timestamp-ms"] for entry in log] == sorted(entry["timestamp-ms"] for entry in log)
    assert log[-1]["timestamp-ms"] >= began
    metadata = change(catalog, ns, {"action": "set-current-view-version", "view-version-id": 2})
    assert [entry["version-id"] for entry in metadata["version-log"]] == [1, 2, 1, 2]
    assert metadata["current-version-id"] == 2
    assert metadata["properties"]["k"] == "v"


def test_o44_versions_that_do_not_exist(catalog: Catalog, ns: Namespace) -> None:
    """An unknown version and -1 without an added one are 400; a table's action is too."""
    assert create_view(catalog, ns, "v", "select a").status_code == 200
    for update in (
        {"action": "set-current-view-version", "view-version-id": 7},
        {"action": "set-current-view-version", "view-version-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
    ):
        error_of(replace_view(catalog, ns, "v", [update]), 400)


def test_o44_a_view_without_properties_and_names_in_common(catalog: Catalog, ns: Namespace) -> None:
    """Properties may be missing (O-21); table and view names are one space in both directions."""
    assert create_view(catalog, ns, "v", "select a").json()["metadata"].get("properties", {}) == {}
    error = error_of(catalog.post_create(ns, "v", schema("1:id long")), 409, "AlreadyExistsException")
    assert "View with same name already exists" in error["message"]
    catalog.create(ns, schema("1:id long"), name="t")
    error = error_of(create_view(catalog, ns, "t", "select a"), 409, "AlreadyExistsException")
    assert "Table with same name already exists" in error["message"]
    error_of(catalog.http.get(view_path(catalog, ns, "t")), 404, "NoSuchViewException")
    error_of(catalog.table(ns, "v").get(), 404, "NoSuchTableException")
