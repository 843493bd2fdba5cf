"""Attacks on a live table through another warehouse that may use the same places: none of its files may go."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from app.cli import main
from tests.backends import LOCAL_ONLY
from tests.http.samples import VIEW_VERSION, error, schema
from tests.server import Server

MakeServer = Callable[..., Server]
pytestmark = LOCAL_ONLY

TRIMMING = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
OTHER_UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


class Lake:
    """A server with the warehouses `a` and `b` in one lake, which both may use everywhere, and a namespace in each."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.http = server.client()
        for name in ("a", "b"):
            made = self.http.post("/icekeel/v1/warehouses", json={"name": name, "location": f"{folder}/{name}"})
            assert made.status_code in (200, 201), made.text
            self.ok("POST", f"/v1/{name}/namespaces", {"namespace": ["ns"]})

    def ok(self, method: str, path: str, body: Any = None, **params: str) -> Any:
        answer = self.http.request(method, path, json=body, params=params)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def create(self, warehouse: str, name: str, **body: Any) -> dict[str, Any]:
        made = self.ok(
            "POST", f"/v1/{warehouse}/namespaces/ns/tables", {"name": name, "schema": schema("note"), **body}
        )
        return dict(made)

    def register(self, warehouse: str, name: str, file: str, what: str = "register", **body: Any) -> httpx.Response:
        path = f"/v1/{warehouse}/namespaces/ns/{what}"
        return self.http.post(path, json={"name": name, "metadata-location": file, **body})

    def load(self, warehouse: str, name: str, what: str = "tables") -> dict[str, Any]:
        loaded = self.ok("GET", f"/v1/{warehouse}/namespaces/ns/{what}/{name}")
        assert Path(plain(loaded["metadata-location"])).exists()
        return dict(loaded)

    def commit(self, warehouse: str, name: str, *updates: dict[str, Any]) -> httpx.Response:
        body = {"requirements": [], "updates": list(updates)}
        return self.http.post(f"/v1/{warehouse}/namespaces/ns/tables/{name}", json=body)

    def set(self, warehouse: str, name: str, **properties: str) -> None:
        answer = self.commit(warehouse, name, {"action": "set-properties", "updates": properties})
        assert answer.status_code == 200, answer.text

    def drop(self, warehouse: str, name: str, *, purge: bool = True) -> httpx.Response:
        path = f"/v1/{warehouse}/namespaces/ns/tables/{name}"
        return self.http.delete(path, params={"purgeRequested": str(purge).lower()})

    def purge(self, warehouse: str, name: str) -> None:
        """Drop with purge, and wait until the worker has done with it."""
        assert self.drop(warehouse, name).status_code == 204
        deadline = time.monotonic() + 20
        while self._jobs():
            assert time.monotonic() < deadline, "the purge did not end"
            time.sleep(0.02)

    def _jobs(self) -> int:
        with closing(sqlite3.connect(self.server.home / "icekeel.db")) as db:
            return int(db.execute("SELECT count(*) FROM purge_job").fetchone()[0])

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}

    def collect(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """`icekeel gc --delete` three days later."""
        past = time.time() - 3 * 24 * 3600
        for path in self.folder.rglob("*"):
            os.utime(path, (past, past))
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ICEKEEL_ALLOWED_LOCATIONS", str(self.folder))
            main(["gc", "--home", str(self.server.home), "--format", "json", "--delete"])
        return dict(json.loads(capsys.readouterr().out))


def plain(location: str) -> str:
    return urlsplit(location).path


@pytest.fixture(params=[None, "a token of some length"], ids=["open", "token"])
def lake(request: pytest.FixtureRequest, make_server: MakeServer, tmp_path: Path) -> Iterator[Lake]:
    folder = tmp_path / "lake"
    folder.mkdir()
    made = Lake(make_server(settings={"ALLOWED_LOCATIONS": str(folder)}, token=request.param), folder)
    yield made
    made.http.close()


def spellings(lake: Lake, location: str) -> list[str]:
    """One place on a disk, as different clients write it; the last goes through a symbolic link."""
    path = plain(location)
    link = lake.folder / "link"
    if not link.exists():
        link.symlink_to(lake.folder / "a")
    through = path.replace(f"{lake.folder}/a", str(link))
    return [path, f"{path}/", f"file:{path}", f"file://{path}/", path.replace("/ns/", "//ns//"), through]


def history(lake: Lake, warehouse: str, name: str, commits: int = 4, **properties: str) -> None:
    for number in range(commits):
        lake.set(warehouse, name, n=str(number), **properties)


# --- old metadata files ----------------------------------------------------------------------------------------------


def test_a_registered_copy_that_trims_leaves_the_other_warehouses_current_file(lake: Lake) -> None:
    """One commit in B expires the file that A's pointer names: it stays, and so does everything else of A."""
    lake.create("a", "t")
    history(lake, "a", "t", 2)
    before = lake.files()
    assert lake.register("b", "t", lake.load("a", "t")["metadata-location"]).status_code == 200
    history(lake, "b", "t", **TRIMMING)
    time.sleep(0.3)
    assert lake.load("a", "t")["metadata"]["properties"]["n"] == "1"
    assert lake.load("b", "t")["metadata"]["properties"]["n"] == "3"
    assert before <= lake.files()


def test_the_owner_that_trims_leaves_what_the_copy_names(lake: Lake) -> None:
    """Its current file, and what stands in its metadata log."""
    lake.create("a", "t", properties={"write.metadata.previous-versions-max": "1"})
    history(lake, "a", "t", 2)
    lake.register("b", "t", lake.load("a", "t")["metadata-location"])
    named = lake.load("b", "t")
    history(lake, "a", "t", **TRIMMING)
    time.sleep(0.3)
    assert lake.load("b", "t")["metadata-location"] == named["metadata-location"]
    for entry in named["metadata"]["metadata-log"]:
        assert Path(plain(entry["metadata-file"])).exists()


def test_a_copy_that_moved_away_still_keeps_what_it_left(lake: Lake) -> None:
    """Its log and its data lie where it was: the former location stays its own."""
    lake.create("a", "t")
    history(lake, "a", "t", 2)
    lake.register("b", "t", lake.load("a", "t")["metadata-location"])
    moved = lake.commit("b", "t", {"action": "set-location", "location": f"{lake.folder}/b/elsewhere"})
    assert moved.status_code == 200, moved.text
    kept = [plain(entry["metadata-file"]) for entry in lake.load("b", "t")["metadata"]["metadata-log"]]
    history(lake, "a", "t", **TRIMMING)
    lake.purge("a", "t")
    assert len(kept) == 3 and all(Path(file).exists() for file in kept)
    lake.load("b", "t")


def test_a_file_that_was_edited_to_lie_elsewhere_keeps_what_its_log_names(lake: Lake) -> None:
    """Location of its own, but a log and a manifest list in A's folder: A may neither trim nor purge these."""
    lake.create("a", "t")
    history(lake, "a", "t", 2)
    doc = dict(lake.load("a", "t")["metadata"])
    there = [plain(entry["metadata-file"]) for entry in doc["metadata-log"]]
    doc |= {"location": f"{lake.folder}/b/apart", "table-uuid": OTHER_UUID}
    file = lake.folder / "b" / "00001-apart.metadata.json"
    file.write_text(json.dumps(doc))
    assert lake.register("b", "apart", str(file)).status_code == 200
    history(lake, "a", "t", **TRIMMING)
    lake.purge("a", "t")
    assert len(there) == 2 and all(Path(each).exists() for each in there)


def test_a_table_alone_trims_as_it_asks(lake: Lake) -> None:
    """The protection costs nobody else: what only this table may name goes."""
    location = plain(lake.create("a", "t", properties=TRIMMING)["metadata"]["location"])
    history(lake, "a", "t", 6)
    deadline = time.monotonic() + 10
    while len(list(Path(location).rglob("*.metadata.json"))) > 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    lake.load("a", "t")


# --- purge -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["a", "b"])
def test_dropping_one_of_two_names_with_purge_deletes_nothing(lake: Lake, victim: str) -> None:
    """Whichever of the two is purged; data files included. When the other goes as well, everything does."""
    location = plain(lake.create("a", "t")["metadata"]["location"])
    (Path(location) / "data").mkdir()
    (Path(location) / "data" / "part.parquet").write_text("rows")
    lake.register("b", "t", lake.load("a", "t")["metadata-location"])
    before = lake.files()
    other = "b" if victim == "a" else "a"
    lake.purge(victim, "t")
    assert lake.files() == before
    assert f"is shared with {other}.ns.t, which is in use" in lake.server.output()
    lake.load(other, "t")
    lake.purge(other, "t")
    assert not Path(location).exists()


def test_a_copy_under_another_spelling_is_not_emptied_by_a_purge(lake: Lake) -> None:
    """Of the same place or one around it: slashes, schemes and links make no second place."""
    made = lake.create("a", "t")
    before = lake.files()
    places = [*spellings(lake, made["metadata"]["location"]), *spellings(lake, f"{lake.folder}/a/ns/")]
    for number, location in enumerate(places):
        uuid = f"{OTHER_UUID[:-2]}{number:02}"
        file = lake.folder / "b" / f"00000-{uuid}.metadata.json"
        file.write_text(json.dumps(dict(made["metadata"]) | {"location": location, "table-uuid": uuid}))
        assert lake.register("b", f"x{number}", str(file)).status_code == 200
        lake.purge("b", f"x{number}")
        lake.load("a", "t")
    assert before <= lake.files()


def test_a_location_around_another_warehouse_is_not_registered(lake: Lake) -> None:
    """Though no table lies in that warehouse any more: nothing could be created there, and a purge would empty it."""
    doc = dict(lake.create("a", "t")["metadata"]) | {"location": str(lake.folder), "table-uuid": OTHER_UUID}
    assert lake.drop("a", "t", purge=False).status_code == 204
    file = lake.folder / "b" / "00000-around.metadata.json"
    file.write_text(json.dumps(doc))
    assert "holds other tables" in error(lake.register("b", "around", str(file)))["message"]
    lake.create("a", "still")


def test_percent_signs_are_letters(lake: Lake) -> None:
    """`t%20x` and `t x` are two places, as in every engine's file layer: a purge of one leaves the other."""
    for name, folder in (("escaped", "t%20x"), ("blank", "t x")):
        lake.create("b", name, location=f"{lake.folder}/shared/{folder}")
    lake.purge("b", "escaped")
    assert not (lake.folder / "shared" / "t%20x").exists()
    lake.load("b", "blank")
    climbing = lake.http.post(
        "/v1/b/namespaces/ns/tables",
        json={"name": "c", "schema": schema(), "location": f"{lake.folder}/b/%2e%2e/a/ns/x"},
    )
    assert error(climbing)["code"] == 400


# --- gc.enabled ------------------------------------------------------------------------------------------------------


def test_gc_enabled_false_refuses_a_purge(lake: Lake) -> None:
    """With 400 and the ways out; the table is there as before, and a plain drop leaves its files."""
    lake.create("a", "t", properties={"gc.enabled": "false"})
    refused = error(lake.drop("a", "t"))
    assert refused["code"] == 400 and "gc.enabled is false" in refused["message"]
    lake.load("a", "t")
    before = lake.files()
    assert lake.drop("a", "t", purge=False).status_code == 204
    time.sleep(0.2)
    assert lake.files() == before


def test_gc_enabled_false_keeps_old_metadata_files(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a commit nor `icekeel gc` removes any."""
    location = plain(lake.create("a", "t", properties={"gc.enabled": "FALSE", **TRIMMING})["metadata"]["location"])
    history(lake, "a", "t", 4)
    stray = Path(location) / "metadata" / f"00003-{OTHER_UUID}.metadata.json"
    stray.write_text("{}")
    time.sleep(0.3)
    told = lake.collect(capsys)
    assert told["deleted"] == 0 and "gc.enabled is false" in json.dumps(told["kept"])
    assert len(list(Path(location).rglob("*.metadata.json"))) == 6


# --- garbage ---------------------------------------------------------------------------------------------------------


def test_gc_judges_nothing_where_two_tables_have_files(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy that went its own way has versions in A's folder that no log of A names; all of them stay."""
    lake.create("a", "t")
    history(lake, "a", "t", 2)
    lake.register("b", "t", lake.load("a", "t")["metadata-location"])
    lake.set("b", "t", **{"write.metadata.previous-versions-max": "1"})
    history(lake, "b", "t")
    history(lake, "a", "t")
    before = lake.files()
    told = lake.collect(capsys)
    assert told["deleted"] == 0 and lake.files() == before
    assert any("b.ns.t may have files there too" in each["reason"] for each in told["kept"])


def test_gc_leaves_first_versions_behind_a_link_to_the_other_warehouse(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    """B's table is spelled through a link into A's folder, where no table of A is."""
    made = lake.create("b", "t", location=f"{spellings(lake, f'{lake.folder}/a')[-1]}/guest")
    assert Path(plain(made["metadata-location"])).resolve().is_relative_to(lake.folder / "a")
    lake.collect(capsys)
    lake.load("b", "t")


# --- claims ----------------------------------------------------------------------------------------------------------


def test_no_second_table_in_a_place_of_another_warehouse(lake: Lake) -> None:
    """At, above and below; by create, by a completed stage, by set-location, by a path property, by a view."""
    location = lake.create("a", "t")["metadata"]["location"]
    lake.create("b", "mine")
    before = lake.files()
    places = (location, f"{location}/data/x", f"{lake.folder}/a/ns/")
    for there in (spelled for place in places for spelled in spellings(lake, place)):
        new = {"name": "x", "schema": schema("note"), "location": there}
        view = {"name": "x", "schema": schema(), "location": there, "view-version": VIEW_VERSION, "properties": {}}
        completed = [
            {"action": "assign-uuid", "uuid": OTHER_UUID},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": schema("note")},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": there},
        ]
        answers = [
            lake.http.post("/v1/b/namespaces/ns/tables", json=new),
            lake.http.post(
                "/v1/b/namespaces/ns/tables/x",
                json={"requirements": [{"type": "assert-create"}], "updates": completed},
            ),
            lake.http.post("/v1/b/namespaces/ns/views", json=view),
            lake.commit("b", "mine", {"action": "set-location", "location": there}),
            lake.commit("b", "mine", {"action": "set-properties", "updates": {"write.data.path": there}}),
            lake.commit("b", "mine", {"action": "set-properties", "updates": {"write.metadata.path": there}}),
        ]
        for answer in answers:
            assert error(answer)["code"] == 400, answer.text
            assert "overlaps table ns.t of warehouse a at" in answer.text
    assert lake.files() == before


def test_no_table_around_another_warehouse(lake: Lake) -> None:
    """Also one that holds no table yet: what will be made there is not this table's."""
    for place in (str(lake.folder), f"file://{lake.folder}/a/", f"{lake.folder}/a"):
        new = {"name": "x", "schema": schema("note"), "location": place}
        answer = lake.http.post("/v1/b/namespaces/ns/tables", json=new)
        assert error(answer)["code"] == 400 and "holds other tables" in answer.text


def test_no_warehouse_behind_a_link_to_another(lake: Lake) -> None:
    """A link to a warehouse's folder, or into it, is that warehouse's place."""
    (lake.folder / "alias").symlink_to(lake.folder / "a")
    for place in (f"{lake.folder}/alias", f"{lake.folder}/alias/ns"):
        answer = lake.http.post("/icekeel/v1/warehouses", json={"name": "c", "location": place})
        assert error(answer)["code"] == 400 and "overlaps warehouse a" in answer.text


def test_a_uuid_is_one_table_within_a_warehouse_and_may_be_in_many(lake: Lake) -> None:
    """A second name in the same warehouse is a conflict that says which one has it; nothing changes."""
    lake.create("a", "t")
    file = lake.load("a", "t")["metadata-location"]
    taken = error(lake.register("a", "again", file))
    assert (taken["code"], taken["type"]) == (409, "AlreadyExistsException")
    assert "already belongs to t in this warehouse" in taken["message"]
    assert lake.http.get("/v1/a/namespaces/ns/tables/again").status_code == 404
    assert lake.register("b", "again", file).status_code == 200
    assert error(lake.register("b", "thrice", file))["code"] == 409


# --- views -----------------------------------------------------------------------------------------------------------


def test_files_of_a_view_are_nobody_elses(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Registered in B, replaced and dropped there, with a purged table around it and gc: A's view loads on."""
    view = {"name": "v", "schema": schema(), "view-version": VIEW_VERSION, "properties": {}}
    made = lake.ok("POST", "/v1/a/namespaces/ns/views", view)
    file, location = made["metadata-location"], plain(made["metadata"]["location"])
    assert lake.register("b", "v", file, "register-view").status_code == 200
    assert error(lake.register("a", "w", file, "register-view"))["code"] == 409
    lake.ok("POST", "/v1/b/namespaces/ns/views/v", {
        "requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "1", **TRIMMING}}],
    })  # fmt: skip
    assert lake.http.delete("/v1/b/namespaces/ns/views/v").status_code == 204
    lake.load("a", "v", "views")
    doc = dict(lake.create("b", "t")["metadata"]) | {"location": location, "table-uuid": OTHER_UUID}
    around = lake.folder / "b" / "00000-around.metadata.json"
    around.write_text(json.dumps(doc))
    assert lake.register("b", "around", str(around)).status_code == 200
    lake.purge("b", "around")
    lake.collect(capsys)
    lake.load("a", "v", "views")
