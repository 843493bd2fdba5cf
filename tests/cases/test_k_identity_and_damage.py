"""Group K of the public cases: requests that contradict themselves, damaged files, and a disk that went away."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends import LOCAL_ONLY
from tests.cases.shorthand import schema
from tests.cases.views import create_view, view_path
from tests.cases.wire import Catalog, error_of, local_path, ok, set_properties
from tests.server import Server

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")
UNCACHED = {"DOCUMENT_CACHE": "0"}


def post(catalog: Catalog, path: str, body: Json) -> httpx.Response:
    return catalog.http.post(path, json=body)


@pytest.mark.parametrize("identifier", [
    {"namespace": ["other"], "name": "t"}, {"namespace": "text", "name": "t"}, {"namespace": ["x"]}, {"name": "t"},
    {"namespace": ["x"], "name": 5}, {"namespace": [1], "name": "t"}, [], "t", 5, {},
])  # fmt: skip
def test_a_commit_says_once_what_it_is_for(catalog: Catalog, ns: Namespace, identifier: Json) -> None:
    """An identifier that is not the path's, or is none: 400, for tables, checks and views, and nothing is changed."""
    table = catalog.create(ns, SIMPLE)
    ok(create_view(catalog, ns, "v", "select 1"))
    body = {"identifier": identifier, "requirements": [], "updates": [set_properties(a="1")]}
    error_of(post(catalog, table.path, body), 400, "BadRequestException")
    assert "a" not in table.metadata()["properties"]
    error_of(post(catalog, f"/icekeel{table.path}/evolution/check", body), 400)
    error_of(post(catalog, view_path(catalog, ns, "v"), body), 400)


def test_a_commit_that_says_it_right_or_not_at_all(catalog: Catalog, ns: Namespace) -> None:
    """The path's own identifier, null, and none."""
    table = catalog.create(ns, SIMPLE)
    for number, identifier in enumerate(({"namespace": list(ns), "name": table.name}, None)):
        body = {"identifier": identifier, "requirements": [], "updates": [set_properties(a=str(number))]}
        ok(post(catalog, table.path, body))
    assert table.commit([set_properties(a="2")])["properties"]["a"] == "2"


def test_a_damaged_file_is_a_fault_of_the_server(tmp_path: Path) -> None:
    """500 on load and 503 on commit, by name and without an invitation to try again; the writer keeps its files."""
    with Server(tmp_path / "home", settings=UNCACHED) as server, server.client() as http:
        catalog = Catalog(http, server.warehouse)
        ns = catalog.namespace()
        table = catalog.create(ns, SIMPLE)
        file = local_path(table.location_of_metadata())
        whole = file.read_bytes()
        foreign = whole.replace(table.metadata()["table-uuid"].encode(), str(uuid.uuid4()).encode())
        for content in (whole[:80], b"", b"\xff\xfe\x00", foreign):
            file.write_bytes(content)
            error = error_of(table.get(), 500, "CorruptMetadataException")
            assert file.name in error["message"] and "$" in error["message"]
            refused = table.post([], [set_properties(a="1")])
            assert file.name in error_of(refused, 503, "ServiceUnavailableException")["message"]
            assert "retry-after" not in refused.headers
        file.write_bytes(whole[:80])
        error_of(catalog.post_register(ns, "other", str(file)), 400)
        file.write_bytes(whole)
        assert table.commit([set_properties(a="1")])["properties"]["a"] == "1"


@LOCAL_ONLY
def test_a_disk_that_went_away(tmp_path: Path) -> None:
    """503 for create, commit and load, not ready and why; nothing is made in its place, and all is well afterwards."""
    with Server(tmp_path / "home", settings=UNCACHED) as server, server.client() as http:
        catalog = Catalog(http, server.warehouse)
        ns = catalog.namespace()
        table = catalog.create(ns, SIMPLE)
        away = server.warehouse.rename(tmp_path / "away")
        for answer in (
            catalog.post_create(ns, "new", SIMPLE), table.get(), table.post([], [set_properties(a="1")]),
            http.get("/health/ready"),
        ):  # fmt: skip
            assert "is not there" in error_of(answer, 503, "ServiceUnavailableException")["message"]
        assert not server.warehouse.exists()
        away.rename(server.warehouse)
        assert ok(http.get("/health/ready")) and table.commit([set_properties(a="1")])
        catalog.create(ns, SIMPLE)


def test_purging_one_table_leaves_anothers_data_path(catalog: Catalog, ns: Namespace) -> None:
    """A table above another one's write.data.path is refused; statistics that name its files do not delete them."""
    here = f"{catalog.warehouse}/area-{uuid.uuid4().hex[:8]}"
    catalog.create(ns, SIMPLE, location=f"{here}/meta/b", properties={"write.data.path": f"{here}/data/b"})
    data = Path(here) / "data" / "b" / "part.parquet"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"x")
    error_of(catalog.post_create(ns, "c", SIMPLE, location=f"{here}/data"), 400)
    thief = catalog.create(ns, SIMPLE)
    statistics = {
        "snapshot-id": 1, "statistics-path": str(data), "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }  # fmt: skip
    thief.commit([{"action": "set-statistics", "statistics": statistics}])
    folder = local_path(thief.metadata()["location"])
    assert catalog.drop(thief, purgeRequested="true").status_code == 204
    deadline = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists() and data.exists()


def test_registering_over_a_table_is_judged_by_lineage(catalog: Catalog, ns: Namespace) -> None:
    """A file of the same table that no lineage speaks for is refused as a commit would be; one whose log names the
    present version is taken, with what the rules say in the header."""
    table = catalog.create(ns, schema("1:a int"))
    table.append(1)
    doc = table.metadata()
    doc["schemas"][0]["fields"][0]["type"] = "string"
    file = catalog.write_metadata(doc, f"00009-{uuid.uuid4()}.metadata.json")
    error_of(catalog.post_register(ns, table.name, file, overwrite=True), 400, "SchemaEvolutionException")
    doc["metadata-log"].append({"timestamp-ms": doc["last-updated-ms"], "metadata-file": table.location_of_metadata()})
    file = catalog.write_metadata(doc, f"00009-{uuid.uuid4()}.metadata.json")
    answer = catalog.post_register(ns, table.name, file, overwrite=True)
    ok(answer)
    assert answer.headers["icekeel-findings"]
