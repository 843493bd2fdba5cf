"""What `ports.Objects` promises, on a local disk, on a real S3 and, among the engine tests, on Azure's emulator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import ObjectExists, ObjectMissing, PayloadTooLarge
from app.objects import WarehouseObjects
from app.ports import Objects, ObjectStat, Warehouse

T = TypeVar("T")
_numbers = count()


@dataclass(frozen=True)
class Place:
    """A fresh prefix of a warehouse."""

    objects: Objects
    root: str

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def create(self, name: str, data: bytes = b"x") -> str:
        run(self.objects.create(self.at(name), data))
        return self.at(name)

    def listed(self, prefix: str) -> dict[str, ObjectStat]:
        async def collect() -> list[ObjectStat]:
            return [found async for found in self.objects.list(prefix)]

        found = run(collect())
        by_location = {one.location: one for one in found}
        assert len(by_location) == len(found), "an object was listed twice"
        return by_location


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


@pytest.fixture(scope="module", params=["disk", "s3", pytest.param("adls", marks=pytest.mark.engines)])
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    allowed: list[str] = []
    if request.param == "disk":
        record = Warehouse(name="disk", location=str(tmp_path_factory.mktemp("warehouse")))
    elif request.param == "adls":
        emulator = request.getfixturevalue("azure")
        emulator.create_container("contract")
        allowed.append(emulator.endpoint.removesuffix(f"/{emulator.account}"))
        record = Warehouse(
            name="adls",
            location=f"abfss://contract@{emulator.account}.dfs.core.windows.net/wh",
            storage={"adls.endpoint": emulator.endpoint},
            secrets={"adls.account-key": emulator.key},
        )
    else:
        server = request.getfixturevalue("s3")
        allowed.append(server.endpoint)
        record = Warehouse(
            name="s3",
            location="s3://contract/wh",
            storage={"s3.endpoint": server.endpoint, "s3.region": "us-east-1"},
            secrets={"s3.access-key-id": server.access_key, "s3.secret-access-key": server.secret_key},
        )
    stores = WarehouseObjects(allowed_endpoints=allowed)
    yield Place(stores.of(record), record.location)
    run(stores.close())


@pytest.fixture
def place(warehouse: Place) -> Place:
    return Place(warehouse.objects, f"{warehouse.root}/case{next(_numbers)}")


@pytest.mark.parametrize("size", [0, 1, 50_000, 7_000_000])
def test_a_created_object_reads_back_byte_for_byte(place: Place, size: int) -> None:
    """What create acknowledged, read returns: nothing, one byte, and more than a multipart threshold alike."""
    data = bytes(range(251)) * (size // 251 + 1)
    location = place.create("metadata/00000.json", data[:size])
    assert run(place.objects.read(location)) == data[:size]


def test_create_never_replaces_an_object(place: Place) -> None:
    """The second create of a name fails with ObjectExists and the first content stays."""
    location = place.create("a", b"first")
    with pytest.raises(ObjectExists):
        run(place.objects.create(location, b"second"))
    assert run(place.objects.read(location)) == b"first"


def test_of_racing_creates_exactly_one_wins(place: Place) -> None:
    """Eight creators of one name: one succeeds, seven get ObjectExists, and the content is the winner's."""
    contents = [f"writer {number}".encode() * 1000 for number in range(8)]

    def attempt(data: bytes) -> bytes | None:
        try:
            run(place.objects.create(place.at("raced"), data))
        except ObjectExists:
            return None
        return data

    with ThreadPoolExecutor(8) as threads:
        winners = [data for data in threads.map(attempt, contents) if data is not None]
    assert len(winners) == 1
    assert run(place.objects.read(place.at("raced"))) == winners[0]


def test_a_missing_object_is_named_in_the_failure(place: Place) -> None:
    """Reading what is not there raises ObjectMissing with the location as it was asked for."""
    with pytest.raises(ObjectMissing) as caught:
        run(place.objects.read(place.at("nothing")))
    assert caught.value.location == place.at("nothing")
    with pytest.raises(ObjectMissing):
        run(place.objects.read_range(place.at("nothing"), 0, 1))
    with pytest.raises(ObjectMissing):
        run(place.objects.read_range(place.at("nothing"), 0, 0))


def test_a_prefix_is_not_an_object(place: Place) -> None:
    """What merely holds objects below it can neither be read nor has it a stat."""
    place.create("folder/file")
    assert run(place.objects.stat(place.at("folder"))) is None
    with pytest.raises(ObjectMissing):
        run(place.objects.read(place.at("folder")))


def test_stat_tells_size_and_time(place: Place) -> None:
    """Size in bytes and modification time in epoch milliseconds; None for what is not there."""
    before = time.time() * 1000
    location = place.create("a", b"12345")
    found = run(place.objects.stat(location))
    assert found is not None
    assert (found.location, found.size) == (location, 5)
    assert before - 5_000 <= found.modified_ms <= time.time() * 1000 + 5_000
    assert run(place.objects.stat(place.at("b"))) is None


def test_read_refuses_more_than_the_limit(place: Place) -> None:
    """An object as long as the limit is read; one byte more is PayloadTooLarge."""
    location = place.create("a", b"12345")
    assert run(place.objects.read(location, limit=5)) == b"12345"
    with pytest.raises(PayloadTooLarge):
        run(place.objects.read(location, limit=4))


@given(start=st.integers(0, 30), length=st.integers(0, 30))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_range_is_a_slice(warehouse: Place, start: int, length: int) -> None:
    """read_range returns what slicing the whole would: shorter at the end, empty beyond it."""
    data = b"0123456789abcdefghij"
    location = f"{warehouse.root}/range/sliced"
    if run(warehouse.objects.stat(location)) is None:
        run(warehouse.objects.create(location, data))
    assert run(warehouse.objects.read_range(location, start, length)) == data[start : start + length]


def test_delete_is_idempotent(place: Place) -> None:
    """A deleted object is gone, deleting it again is fine, and its name may be used again."""
    location = place.create("a")
    run(place.objects.delete(location))
    assert run(place.objects.stat(location)) is None
    run(place.objects.delete(location))
    run(place.objects.delete(place.at("never/was")))
    place.create("a", b"new")
    assert run(place.objects.read(location)) == b"new"


def test_list_finds_everything_below_a_prefix_and_nothing_beside_it(place: Place) -> None:
    """Objects at every depth below `t`; none of `t2`, `t-old` or an object named `t.json`."""
    inside = {place.create("t/a", b"1"), place.create("t/data/b", b"22"), place.create("t/data/x/y/z/c", b"333")}
    for beside in ("t2/a", "t-old/a", "t.json", "s/t/a"):
        place.create(beside)
    found = place.listed(place.at("t"))
    assert set(found) == inside
    assert found[place.at("t/data/b")].size == 2
    assert found[place.at("t/data/b")].modified_ms > 1_600_000_000_000


def test_list_takes_a_trailing_slash(place: Place) -> None:
    """`t/` and `t` list the same locations, without doubled slashes."""
    place.create("t/a")
    assert place.listed(place.at("t/")).keys() == place.listed(place.at("t")).keys() == {place.at("t/a")}


def test_list_of_a_missing_prefix_is_empty(place: Place) -> None:
    """A prefix that nothing was ever written under lists nothing and does not fail."""
    assert place.listed(place.at("never")) == {}


def test_list_goes_on_beyond_one_page(place: Place) -> None:
    """More objects than a page of any store holds are all listed, each once."""
    names = {place.at(f"many/{number:05}") for number in range(1100)}

    async def fill() -> None:
        for batch in range(0, 1100, 100):
            todo = sorted(names)[batch : batch + 100]
            await asyncio.gather(*(place.objects.create(name, b"") for name in todo))

    run(fill())
    assert place.listed(place.at("many")).keys() == names


@pytest.mark.parametrize(
    "name",
    [
        "with blank",
        "day=2024-01-01",
        "a%2Fb",
        "a%20b",
        "per%cent",
        "a+b&c",
        "日本/é",
        "q'uo\"te",
        "~!*()",
        ".hidden",
        "a=b=c,d;e@f",
    ],
)
def test_names_are_taken_literally(place: Place, name: str) -> None:
    """Partition folders carry blanks, percent signs and any script: no name is decoded, encoded or folded."""
    location = place.create(f"names/{name}/file", name.encode())
    assert run(place.objects.read(location)) == name.encode()
    assert place.listed(place.at("names")).keys() == {location}
    run(place.objects.delete(location))
    assert place.listed(place.at("names")) == {}


def test_every_spelling_of_a_location_is_the_same_object(place: Place) -> None:
    """`s3` is `s3a`, `/x` is `file:///x`, `abfss` is `abfs`: one object, and lists answer in the spelling asked."""
    location = place.create("spelled/a", b"same")
    if location.startswith("s3://"):
        others = [location.replace("s3://", f"{scheme}://") for scheme in ("s3a", "s3n")]
    elif location.startswith("abfss://"):
        others = [location.replace("abfss://", f"{scheme}://") for scheme in ("abfs", "wasbs")]
    else:
        others = [f"file:{location}", f"file://{location}", f"file://localhost{location}"]
    for other in others:
        assert run(place.objects.read(other)) == b"same"
        with pytest.raises(ObjectExists):
            run(place.objects.create(other, b"other"))
        assert place.listed(other.removesuffix("/a")).keys() == {other}


def test_prepare_makes_a_place_to_write_into(place: Place) -> None:
    """prepare is repeatable, leaves no object behind, and objects can be created below it."""
    folder = place.at("ns/t/metadata")
    run(place.objects.prepare(folder))
    run(place.objects.prepare(folder))
    assert place.listed(place.root) == {}
    place.create("ns/t/metadata/00000.json")


def test_removing_empty_folders_takes_no_object_along(place: Place) -> None:
    """Objects survive remove_empty_folders, and it does not fail on what is missing or full."""
    kept = place.create("t/data/kept")
    run(place.objects.prepare(place.at("t/empty/deep")))
    run(place.objects.remove_empty_folders(place.at("t")))
    run(place.objects.remove_empty_folders(place.at("never")))
    assert place.listed(place.at("t")).keys() == {kept}


def test_looking_into_a_folder_goes_one_level_deep(place: Place) -> None:
    """Folders and objects directly below, none of what lies deeper, nothing for what is missing."""
    top = place.create("look/a", b"12")
    place.create("look/sub/b")
    place.create("look/sub/deep/c")
    place.create("looking/d")
    found = run(place.objects.look(place.at("look")))
    assert found.folders == (place.at("look/sub"),)
    assert [(one.location, one.size, one.leftover) for one in found.objects] == [(top, 2, False)]
    assert run(place.objects.look(place.at("look/sub"))).folders == (place.at("look/sub/deep"),)
    missing = run(place.objects.look(place.at("nowhere")))
    assert missing.folders == () and missing.objects == ()
