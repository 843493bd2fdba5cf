"""Group H of the public cases: locations, register, drop, rename (O-41 to O-43)."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cases.shorthand import schema
from tests.cases.views import create_view
from tests.cases.wire import Catalog, Table, error_of, local_path, ok, set_properties

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")


def area(catalog: Catalog) -> str:
    """A fresh folder inside the warehouse, as a location."""
    return f"file://{catalog.warehouse}/area-{uuid.uuid4().hex[:8]}"


def wait_until_gone(folder: Path, pattern: str, seconds: float = 20.0) -> None:
    """The purge worker runs by itself: wait until no file of the pattern is left."""
    deadline = time.monotonic() + seconds
    while list(folder.rglob(pattern)):
        assert time.monotonic() < deadline, list(folder.rglob(pattern))
        time.sleep(0.05)


# --- O-41 ---------------------------------------------------------------------------------------------------------


def test_o41_trailing_slashes_are_stripped(catalog: Catalog, ns: Namespace) -> None:
    """Stored without one, no `//` in file names; set-location too."""
    here = area(catalog)
    table = catalog.create(ns, SIMPLE, location=f"{here}/t/")
    assert table.metadata()["location"] == f"{here}/t"
    assert "//" not in table.location_of_metadata().removeprefix("file://")
    moved = table.commit([{"action": "set-location", "location": f"{here}/t9/"}])
    assert moved["location"] == f"{here}/t9"


def test_o41_a_sibling_with_the_same_prefix(catalog: Catalog, ns: Namespace) -> None:
    """`t` and `t2` do not overlap, and purging the one leaves the other."""
    here = area(catalog)
    one = catalog.create(ns, SIMPLE, location=f"{here}/t")
    two = catalog.create(ns, SIMPLE, location=f"{here}/t2")
    for table in (one, two):
        data = local_path(table.metadata()["location"]) / "data"
        data.mkdir()
        (data / "part.parquet").write_bytes(b"x")
    assert catalog.drop(one, purgeRequested="true").status_code == 204
    wait_until_gone(local_path(f"{here}/t"), "*.metadata.json")
    assert (local_path(f"{here}/t2") / "data" / "part.parquet").exists()
    assert two.commit([set_properties(a="1")])


def test_o41_a_data_path_inside_the_own_location(catalog: Catalog, ns: Namespace) -> None:
    """A table does not overlap with itself."""
    here = area(catalog)
    table = catalog.create(ns, SIMPLE, location=f"{here}/t")
    table.commit([set_properties(**{"write.data.path": f"{here}/t/alt"})])


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_o41_overlaps_are_refused_alike(catalog: Catalog, ns: Namespace, slash: str) -> None:
    """Inside, above, equal, and in another spelling of the same place: 400, with and without a trailing slash."""
    here = area(catalog)
    catalog.create(ns, SIMPLE, location=f"{here}/t")
    bare = here.removeprefix("file://")
    for place in (f"{here}/t/inner", here, f"{here}/t", f"file:{bare}/t", f"{bare}/t/x", f"file://{catalog.warehouse}"):
        error_of(catalog.post_create(ns, "other", SIMPLE, location=place + slash), 400)
    mover = catalog.create(ns, SIMPLE)
    mover.refuse([{"action": "set-location", "location": f"{here}/t/inner{slash}"}])


@pytest.mark.parametrize(
    "place",
    [
        "relative/path",
        "/etc/icekeel-x",
        "file:///etc/icekeel-x",
        "s3://bucket/x",
        "x",
        "file:///",
        "{wh}/../outside",
        "{wh}/a/%2e%2e/%2e%2e/out",
        "http://127.0.0.1/x",
    ],
)
def test_o41_places_outside_the_warehouse(catalog: Catalog, ns: Namespace, place: str) -> None:
    """Relative, foreign and tricky locations are 400 and nothing is made there."""
    chosen = place.replace("{wh}", f"file://{catalog.warehouse}")
    error_of(catalog.post_create(ns, "t", SIMPLE, location=chosen), 400)
    error_of(catalog.table(ns, "t").get(), 404)
    assert not Path("/etc/icekeel-x").exists()
    assert not (catalog.warehouse.parent / "outside").exists()


# --- O-42 ---------------------------------------------------------------------------------------------------------


def rename(
    catalog: Catalog, source: tuple[Namespace, str], target: tuple[Namespace, str], kind: str = "tables"
) -> httpx.Response:
    return catalog.http.post(
        f"{catalog.base}/{kind}/rename",
        json={
            "source": {"namespace": list(source[0]), "name": source[1]},
            "destination": {"namespace": list(target[0]), "name": target[1]},
        },
    )


def test_o42_rename_errors(catalog: Catalog, ns: Namespace) -> None:
    """A taken name is 409, whoever has it; a missing source or namespace is 404 of its own type."""
    catalog.create(ns, SIMPLE, name="a")
    catalog.create(ns, SIMPLE, name="b")
    assert create_view(catalog, ns, "v", "select 1").status_code == 200
    error_of(rename(catalog, (ns, "a"), (ns, "b")), 409, "AlreadyExistsException")
    error_of(rename(catalog, (ns, "a"), (ns, "v")), 409, "AlreadyExistsException")
    error_of(rename(catalog, (ns, "v"), (ns, "a"), "views"), 409, "AlreadyExistsException")
    error_of(rename(catalog, (ns, "missing"), (ns, "c")), 404, "NoSuchTableException")
    error_of(rename(catalog, (ns, "a"), (("nope",), "a")), 404, "NoSuchNamespaceException")
    error_of(rename(catalog, (ns, "v"), (ns, "c")), 404, "NoSuchTableException")


def test_o42_rename_into_another_namespace(catalog: Catalog, ns: Namespace) -> None:
    """204 without a body; UUID and location stay, the old name is 404."""
    table = catalog.create(ns, SIMPLE)
    before = table.metadata()
    other = catalog.namespace()
    answer = rename(catalog, (ns, table.name), (other, "moved"))
    assert (answer.status_code, answer.content) == (204, b"")
    assert catalog.table(other, "moved").metadata() == before
    error_of(table.get(), 404, "NoSuchTableException")
    assert catalog.table(other, "moved").commit([set_properties(a="1")])


def test_o42_two_renames_to_one_name(catalog: Catalog, ns: Namespace) -> None:
    """One 204 and one 409, and the loser still has its old name."""
    for number in range(10):
        tables = [catalog.create(ns, SIMPLE) for _ in range(2)]
        target = f"goal{number}"
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(rename, catalog, (ns, t.name), (ns, target)) for t in tables]
            codes = [job.result().status_code for job in jobs]
        assert sorted(codes) == [204, 409]
        assert tables[codes.index(409)].get().status_code == 200


# --- O-43 ---------------------------------------------------------------------------------------------------------


def test_o43_register_and_overwrite(catalog: Catalog, ns: Namespace) -> None:
    """A taken name is 409; with overwrite the pointer is swapped to the given file, and no file is written."""
    table = catalog.create(ns, SIMPLE)
    old = table.load()
    table.commit([set_properties(a="1")])
    error_of(catalog.post_register(ns, table.name, old["metadata-location"]), 409, "AlreadyExistsException")
    folder = local_path(old["metadata"]["location"]) / "metadata"
    before = set(folder.iterdir())
    answer = ok(catalog.post_register(ns, table.name, old["metadata-location"], overwrite=True))
    assert answer["metadata-location"] == old["metadata-location"]
    assert table.load() == {**table.load(), "metadata": old["metadata"], "metadata-location": old["metadata-location"]}
    assert set(folder.iterdir()) == before


def test_o43_overwrite_with_another_uuid(catalog: Catalog, ns: Namespace) -> None:
    """It is refused, or it replaces the table as a whole; never a mixture."""
    table, other = catalog.create(ns, SIMPLE), catalog.create(ns, SIMPLE)
    foreign = other.load()
    catalog.drop(other)
    before = table.load()
    answer = catalog.post_register(ns, table.name, foreign["metadata-location"], overwrite=True)
    if answer.status_code == 200:
        assert table.metadata() == foreign["metadata"]
    else:
        error_of(answer, (400, 409))
        assert table.load() == before


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"not json",
        b'{"format-version": 2, "table-uuid": "x"',
        b"",
        b"[]",
        b"{}",
        b"\x1f\x8b broken gzip",
        b"\xff\xfe\x00",
    ],
)
def test_o43_files_that_cannot_be_registered(catalog: Catalog, ns: Namespace, data: bytes | None) -> None:
    """Missing, not JSON, truncated: 400 or 404, never 500, and nothing is registered."""
    document = catalog.document(SIMPLE)
    location = f"{document['location']}/metadata/00000-x.metadata.json"
    if data is not None:
        catalog.write_metadata(document, "00000-x.metadata.json", data)
    error_of(catalog.post_register(ns, "t", location), (400, 404))
    error_of(catalog.table(ns, "t").get(), 404)


def test_o43_register_outside_the_warehouse(catalog: Catalog, ns: Namespace, tmp_path: Path) -> None:
    """The server reads no file that it was not given: 400 that does not tell whether the file exists."""
    secret = tmp_path / "x.metadata.json"
    secret.write_text("{}")
    answers = [
        error_of(catalog.post_register(ns, "t", f"file://{path}"), 400)["message"].replace(str(path), "")
        for path in (secret, tmp_path / "y.metadata.json")
    ]
    assert answers[0] == answers[1]


def loaded_with_data(catalog: Catalog, ns: Namespace) -> tuple[Table, Json]:
    table = catalog.create(ns, SIMPLE)
    data = local_path(table.metadata()["location"]) / "data"
    data.mkdir()
    (data / "part.parquet").write_bytes(b"x")
    return table, table.load()


@pytest.mark.parametrize("query", [{}, {"purgeRequested": "false"}, {"purgeRequested": "False"}])
def test_o43_a_plain_drop_keeps_every_file(catalog: Catalog, ns: Namespace, query: dict[str, str]) -> None:
    """The table can be registered again with its full history."""
    table, loaded = loaded_with_data(catalog, ns)
    assert catalog.drop(table, **query).status_code == 204
    time.sleep(0.3)
    assert (local_path(loaded["metadata"]["location"]) / "data" / "part.parquet").exists()
    again = ok(catalog.post_register(ns, table.name, loaded["metadata-location"]))
    assert again["metadata"] == loaded["metadata"]


@pytest.mark.parametrize("spelling", ["true", "True", "TRUE"])
def test_o43_a_purge_removes_metadata(catalog: Catalog, ns: Namespace, spelling: str) -> None:
    """204 at once; the metadata files go, and a second drop is 404."""
    table, loaded = loaded_with_data(catalog, ns)
    assert catalog.drop(table, purgeRequested=spelling).status_code == 204
    error_of(table.get(), 404)
    error_of(catalog.drop(table), 404, "NoSuchTableException")
    wait_until_gone(local_path(loaded["metadata"]["location"]), "*.metadata.json")


def test_o43_an_impossible_purge_flag(catalog: Catalog, ns: Namespace) -> None:
    """400, and the table stays."""
    table = catalog.create(ns, SIMPLE)
    error_of(catalog.drop(table, purgeRequested="perhaps"), 400)
    assert table.get().status_code == 200
