"""The cache of documents."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from app.catalog.documents import TABLE, Document, Documents, Form, read_afresh
from app.errors import CorruptMetadata, NotFound, PayloadTooLarge, SpecError
from app.ports import Objects
from app.spec.table import TableMetadata, parse_table_metadata, render_table_metadata
from tests.catalog.shorthand import create, create_view, namespace
from tests.catalog.world import HOME, World

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
    where, documents = table(world), Documents()
    first = world.run(documents.table(objects, where, LIMIT))
    Path(where).unlink()
    assert world.run(documents.table(objects, where, LIMIT)) is first


def test_many_who_ask_at_once_share_one_reading(world: World, objects: Objects) -> None:
    """A cold document that a hundred clients want is read and parsed once; one that leaves disturbs nobody."""
    where, documents = table(world), Documents()

    async def ask() -> list[Document[TableMetadata]]:
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
    documents = Documents(limit=2 * size)
    for place in (places[0], places[1], places[0], places[2]):
        world.run(documents.table(objects, place, LIMIT))
    assert [p in documents for p in places] == [True, False, True]
    assert 0 < documents.held_bytes <= documents.limit
    for place in places:
        documents.forget(place)
    assert documents.held_bytes == 0 and len(documents) == 0


def test_a_document_beyond_the_bound_is_served_but_not_kept(world: World, objects: Objects) -> None:
    """One huge table does not empty the cache for all others."""
    where, documents = table(world), Documents(limit=10)
    assert world.run(documents.table(objects, where, LIMIT)).data == Path(where).read_bytes()
    assert len(documents) == 0


def test_the_short_form_is_charged_too(world: World, objects: Objects) -> None:
    """And counted once, however often it is asked for."""
    where, documents = table(world), Documents()
    whole = world.run(documents.table(objects, where, LIMIT))
    before = documents.held_bytes
    short = world.run(documents.refs_only(objects, where, LIMIT))
    assert world.run(documents.refs_only(objects, where, LIMIT)) is short
    assert documents.held_bytes == before + len(short) == whole.size


def test_a_table_is_no_view(world: World, objects: Objects) -> None:
    """Asked for as the other kind, a held document is read again and refused."""
    where = table(world)
    seen = create_view(world, "v").metadata_location
    documents = Documents()
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
    monkeypatch.setattr("app.catalog.documents.HEAVY_BYTES", 10)
    where = table(world)
    threads: list[Any] = []

    def parse(data: bytes) -> TableMetadata:
        threads.append(threading.current_thread())
        return parse_table_metadata(data)

    got: Document[TableMetadata] = world.run(read_afresh(objects, where, LIMIT, Form(parse, render_table_metadata)))
    assert got.data == Path(where).read_bytes()
    assert threads != [threading.main_thread()]
