"""The cache of documents."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.metadata_cache import TABLE, CachedMetadata, Form, Holdings, MetadataCache, read_afresh
from app.errors import CorruptMetadata, NotFound, PayloadTooLarge, SpecError
from app.iceberg.json.chunked_text import Chunk, Deflated, Text
from app.iceberg.table import TableMetadata, parse_table_metadata, render_table_metadata
from app.ports import Objects
from tests.catalog.shorthand import commit, create, create_view, load, namespace
from tests.catalog.world import HOME, World
from tests.iceberg.documents import snapshot

LIMIT = 1 << 20


@pytest.fixture
def objects(world: World) -> Objects:
    namespace(world)
    home = world.run(world.store.warehouse(HOME))
    assert home is not None
    return world.ctx.objects.of(home)


def table(world: World, name: str = "t") -> str:
    where = create(world, name).metadata_location
    assert where is not None
    return where


def test_a_document_is_read_once(world: World, objects: Objects) -> None:
    """The second asking finds it in memory, even when the file is gone."""
    where, documents = table(world), MetadataCache()
    first = world.run(documents.table(objects, where, LIMIT))
    Path(where).unlink()
    assert world.run(documents.table(objects, where, LIMIT)) is first


def test_a_document_of_another_table_is_read_anew(world: World, objects: Objects) -> None:
    """Its owner wrote the file anew, and another server registered it: what is held is not what the pointer means."""
    where, documents = table(world), MetadataCache()
    first = world.run(documents.table(objects, where, LIMIT))
    new = "00000000-0000-4000-8000-000000000001"
    Path(where).write_text(json.dumps(json.loads(Path(where).read_text()) | {"table-uuid": new}))
    assert documents.held_table(where, new) is None
    second = world.run(documents.table(objects, where, LIMIT, uuid=new))
    assert second.metadata.table_uuid == new
    assert documents.held_table(where, new) is second
    with pytest.raises(CorruptMetadata, match="belongs to"):
        world.run(documents.table(objects, where, LIMIT, uuid=first.metadata.table_uuid))


def test_many_who_ask_at_once_share_one_reading(world: World, objects: Objects) -> None:
    """A cold document that a hundred clients want is read and parsed once; one that leaves disturbs nobody."""
    where, documents = table(world), MetadataCache()

    async def ask() -> list[CachedMetadata[TableMetadata]]:
        tasks = [asyncio.ensure_future(documents.table(objects, where, LIMIT)) for _ in range(50)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return list(await asyncio.gather(*tasks[1:]))

    got = world.run(ask())
    assert len({id(document) for document in got}) == 1


def test_the_oldest_makes_room(world: World, objects: Objects) -> None:
    """The bound is in bytes, charged for text and parsed form; what is used stays."""
    places = [table(world, name) for name in ("a", "b", "c")]
    size = 2 * max(Path(p).stat().st_size for p in places)
    documents = MetadataCache(limit=2 * size)
    for place in (places[0], places[1], places[0], places[2]):
        world.run(documents.table(objects, place, LIMIT))
    assert [p in documents for p in places] == [True, False, True]
    assert 0 < documents.held_bytes <= documents.limit
    for place in places:
        documents.forget(place)
    assert documents.held_bytes == 0 and len(documents) == 0


def test_a_document_beyond_the_bound_is_served_but_not_kept(world: World, objects: Objects) -> None:
    """One huge table does not empty the cache for all others."""
    where, documents = table(world), MetadataCache(limit=10)
    assert world.run(documents.table(objects, where, LIMIT)).data == Path(where).read_bytes()
    assert len(documents) == 0


def test_the_short_form_is_charged_too(world: World, objects: Objects) -> None:
    """And counted once, however often it is asked for."""
    where, documents = table(world), MetadataCache()
    whole = world.run(documents.table(objects, where, LIMIT))
    before = documents.held_bytes
    short = world.run(documents.refs_only(objects, where, LIMIT))
    assert world.run(documents.refs_only(objects, where, LIMIT)) is short
    assert documents.held_bytes == before + len(short) == whole.size


def test_a_table_is_no_view(world: World, objects: Objects) -> None:
    """Asked for as the other kind, a held document is read again and refused."""
    where = table(world)
    seen = create_view(world, "v").metadata_location
    documents = MetadataCache()
    world.run(documents.table(objects, where, LIMIT))
    world.run(documents.view(objects, seen, LIMIT))
    with pytest.raises(CorruptMetadata):
        world.run(documents.view(objects, where, LIMIT))
    with pytest.raises(CorruptMetadata):
        world.run(documents.table(objects, seen, LIMIT))


def test_failures_name_the_file(world: World, objects: Objects) -> None:
    """Gone, damaged, too large: each by its kind."""
    bad = world.warehouse / "x.metadata.json"
    bad.write_bytes(b'{"format-version": 2, "location": 5}')
    with pytest.raises(SpecError, match=r"x\.metadata\.json"):
        world.run(read_afresh(objects, str(bad), LIMIT, TABLE))
    with pytest.raises(PayloadTooLarge):
        world.run(read_afresh(objects, str(bad), 5, TABLE))
    with pytest.raises(NotFound, match="Failed to open input stream for file"):
        world.run(read_afresh(objects, str(bad) + "x", LIMIT, TABLE))


def test_nulls_are_served_and_written_as_absent(world: World, objects: Objects) -> None:
    """Clients refuse explicit nulls nearly everywhere; a file that has none is served byte for byte."""
    where = table(world)
    plain = json.loads(Path(where).read_bytes())
    spaced = json.dumps(plain, indent=1).encode()
    foreign = world.warehouse / "foreign.metadata.json"
    foreign.write_bytes(spaced)
    assert world.run(read_afresh(objects, str(foreign), LIMIT, TABLE)).data == spaced
    fields = plain["schemas"][0]["fields"]
    holed = plain | {"refs": None, "statistics": None, "schemas": [{**plain["schemas"][0], "fields": fields}]}
    fields[0]["doc"] = None
    foreign.write_text(json.dumps(holed))
    got = world.run(read_afresh(objects, str(foreign), LIMIT, TABLE))
    assert b":null" not in got.data
    served = json.loads(got.data)
    assert served["refs"] == {} and served["schemas"][0]["fields"][0].keys() == {"id", "name", "type", "required"}
    assert parse_table_metadata(got.data).schema == got.metadata.schema


def test_a_heavy_document_is_parsed_beside_the_loop(
    world: World, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests run on while a large document is read."""
    monkeypatch.setattr("app.catalog.metadata_cache.HEAVY_BYTES", 10)
    where = table(world)
    threads: list[Any] = []

    def parse(data: bytes) -> TableMetadata:
        threads.append(threading.current_thread())
        return parse_table_metadata(data)

    got: CachedMetadata[TableMetadata] = world.run(
        read_afresh(objects, where, LIMIT, Form(parse, render_table_metadata))
    )
    assert got.data == Path(where).read_bytes()
    assert threads != [threading.main_thread()]


def charged(documents: MetadataCache) -> int:
    """What the cache should hold: each entry's own bytes, and each chunk once."""
    entries = list(documents._entries.values())
    chunks = {chunk for entry in entries for text in entry.shared for chunk in text.chunks}
    return sum(entry.own for entry in entries) + sum(chunk.cost for chunk in chunks)


def append(first: int, count: int) -> list[dict[str, Any]]:
    """Updates that add snapshots and point main to the last."""
    return [
        *({"action": "add-snapshot", "snapshot": snapshot(n, None, n, at=1_800_000_000_000 + n)}
          for n in range(first, first + count)),
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first + count - 1},
    ]  # fmt: skip


def deflate(world: World, *, packed: bool, **more: Any) -> None:
    """Load the table, and compress what was loaded if it is to be sent so."""
    text = load(world, "t", **more).metadata
    if packed and isinstance(text, Text):
        world.run(world.ctx.caches.documents.deflated(text))


@pytest.mark.parametrize("packed", [False, True])
def test_versions_of_a_large_table_share_their_chunks(world: World, packed: bool) -> None:
    """Thirty versions cost as much as a few, are charged exactly, and leave nothing behind."""
    documents = world.ctx.caches.documents
    namespace(world)
    create(world, "t")
    commit(world, "t", append(1, 3_000))
    one = world.ctx.caches.documents.held_bytes
    for number in range(3_001, 3_031):
        commit(world, "t", append(number, 1))
        deflate(world, packed=packed)
        assert documents.held_bytes == charged(documents)
    assert len(documents) > 30
    assert documents.held_bytes < 6 * one
    commit(world, "t", [{"action": "remove-snapshots", "snapshot-ids": list(range(1, 2_000))}])
    deflate(world, packed=packed)
    deflate(world, packed=packed, snapshots="refs")
    assert documents.held_bytes == charged(documents)
    for location in list(documents._entries):
        documents.forget(location)
        assert documents.held_bytes == charged(documents)
    assert documents.held_bytes == 0


def test_the_bound_holds_while_texts_are_compressed(world: World) -> None:
    """What compression adds is charged when it is made, and older versions make room."""
    documents = world.ctx.caches.documents
    namespace(world)
    create(world, "t")
    commit(world, "t", append(1, 1_000))
    documents.limit = 2 * documents.held_bytes
    for number in range(1_001, 1_011):
        commit(world, "t", append(number, 1))
        deflate(world, packed=True)
        assert documents.held_bytes == charged(documents) <= documents.limit
    assert len(documents) >= 1


def test_many_who_want_it_compressed_share_one_compression(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread when it is heavy; one that leaves disturbs nobody."""
    monkeypatch.setattr("app.catalog.metadata_cache.HEAVY_BYTES", 10)
    threads: list[threading.Thread] = []
    deflate = Text.deflated

    def seen(text: Text) -> Deflated:
        threads.append(threading.current_thread())
        return deflate(text)

    monkeypatch.setattr(Text, "deflated", seen)
    text, documents = Text.of(b"x" * 100_000), MetadataCache()

    async def ask() -> list[Deflated]:
        tasks = [asyncio.ensure_future(documents.deflated(text)) for _ in range(20)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return list(await asyncio.gather(*tasks[1:]))

    got = world.run(ask())
    assert len({id(deflated) for deflated in got}) == 1
    assert len(threads) == 1 and threads != [threading.main_thread()]
    assert world.run(documents.deflated(text)) is got[0]
    assert threads[1:] == [threading.main_thread()]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["x.metadata.json", "x.gz.metadata.json"])
def test_a_large_file_is_served_byte_for_byte(world: World, objects: Objects, name: str, indent: int | None) -> None:
    """Whoever wrote it and however it is laid out, in chunks that spell it."""
    plain = json.loads(Path(table(world)).read_bytes())
    log = [{"timestamp-ms": plain["last-updated-ms"], "snapshot-id": n} for n in range(1, 1_000)]
    listed = [snapshot(n, None, n, at=plain["last-updated-ms"]) for n in range(1, 1_000)]
    large = json.dumps(plain | {"snapshots": listed, "last-sequence-number": 1_000, "snapshot-log": log}, indent=indent)
    file = world.warehouse / name
    file.write_bytes(gzip.compress(large.encode()) if ".gz" in name else large.encode())
    got = world.run(read_afresh(objects, str(file), LIMIT, TABLE))
    assert isinstance(got.text, Text) and got.data.decode() == large
    assert gzip.decompress(b"".join(got.text.deflated().member())).decode() == large


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (b'{"a":null}', True),
        (b'{"a": \n\t null }', True),
        (b'{"a":' + b" " * 1_000 + b"null}", True),
        (b'{"current-snapshot-id":null}', False),
        (b'{"current-snapshot-id": null,"b":null}', True),
        (b'{"a":"null","null":1,"b":"is null"}', False),
        (b'{"a":[null]}', False),
        (b"{}", False),
    ],
)
def test_members_that_are_null_are_found(world: World, text: bytes, holds: bool) -> None:
    """Whatever stands around them; nulls in lists and names are something else."""
    seen: list[bytes] = []

    def parse(data: bytes) -> Any:
        seen.append(data)
        return None

    Form(parse, lambda _: b"rendered").document(text)
    assert (seen == [text]) != holds


@given(st.lists(st.tuples(st.sampled_from(["hold", "release", "deflate"]), st.integers(0, 9))))
def test_each_held_chunk_counts_once_at_its_present_weight(steps: list[tuple[str, int]]) -> None:
    """However texts overlap, come, go and are compressed; and nothing is left when all are gone."""
    chunks = [Chunk(b"x" * (10 + 90 * at)) for at in range(6)]
    texts = [Text(chunks[at % 4 : at % 4 + 1 + at % 3]) for at in range(10)]
    holdings, held = Holdings(), dict.fromkeys(range(10), 0)
    for step, at in steps:
        if step == "hold":
            holdings.hold(texts[at])
            held[at] += 1
        elif step == "deflate":
            texts[at].deflated()
            holdings.weigh(texts[at])
        elif held[at]:
            holdings.release(texts[at])
            held[at] -= 1
        alive = {chunk for at, times in held.items() if times for chunk in texts[at].chunks}
        assert holdings.bytes == sum(chunk.cost for chunk in alive)
        assert len(holdings) == len(alive)
    for at, times in held.items():
        for _ in range(times):
            holdings.release(texts[at])
    assert (holdings.bytes, len(holdings)) == (0, 0)
