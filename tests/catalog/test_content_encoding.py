"""Large documents as gzip: tags, failures, and what is shared."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from app.catalog import content_encoding, metadata_cache
from app.catalog.etags import of_gzip
from app.catalog.results import Committed, LoadedTable, NotModified
from app.iceberg.json.chunked_text import Deflated, Text
from tests.catalog.shorthand import commit, create, load, namespace
from tests.catalog.world import World

COMPRESS = {"write.metadata.compression-codec": "gzip"}


@pytest.fixture
def shop(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Where every document is large."""
    monkeypatch.setattr(metadata_cache, "LARGE_BYTES", 1)
    namespace(world)
    create(world, "t")
    return world


def set_properties(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


def plain(answer: LoadedTable | Committed) -> bytes:
    """The document of an answer, whatever it is coded in."""
    metadata = answer.metadata
    if isinstance(metadata, Deflated):
        return gzip.decompress(b"".join(metadata.member()))
    return metadata.joined() if isinstance(metadata, Text) else metadata


def test_a_large_table_is_gzip_for_whom_takes_it(shop: World) -> None:
    """The same document under a tag of its own; both are made once."""
    packed, whole = load(shop, "t", gzip=True), load(shop, "t")
    assert isinstance(packed.metadata, Deflated) and isinstance(whole.metadata, Text)
    assert plain(packed) == plain(whole)
    assert packed.etag == of_gzip(whole.etag) != whole.etag
    assert load(shop, "t", gzip=True) is packed
    assert load(shop, "t") is whole


def test_a_small_table_is_not(world: World) -> None:
    """Compressing it would cost more than it saves."""
    namespace(world)
    create(world, "t")
    assert load(world, "t", gzip=True) is load(world, "t")
    assert isinstance(load(world, "t").metadata, bytes)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_a_tag_is_good_for_either_coding(shop: World, held: bool, asked: bool) -> None:
    """A copy is current however it came and whatever is asked for now; 304 names the tag that the client has."""
    tag = load(shop, "t", gzip=held).etag
    answer = load(shop, "t", gzip=asked, if_none_match=tag)
    assert isinstance(answer, NotModified) and answer.etag == tag
    commit(shop, "t", [set_properties(a="1")])
    assert isinstance(load(shop, "t", gzip=asked, if_none_match=tag), LoadedTable)


def test_the_tag_of_a_commit_is_that_of_the_next_load(shop: World) -> None:
    """In gzip too."""
    done = shop.run(content_encoding.committed(shop.ctx, commit(shop, "t", [set_properties(a="1")])))
    assert done.etag == load(shop, "t", gzip=True).etag
    assert plain(done) == plain(load(shop, "t"))


def test_representations_are_packed_each(shop: World) -> None:
    """The short form as well, under another tag."""
    short, full = load(shop, "t", gzip=True, snapshots="refs"), load(shop, "t", gzip=True)
    assert isinstance(short.metadata, Deflated)
    assert short.etag != full.etag and plain(short) == plain(load(shop, "t", snapshots="refs"))


def test_a_failure_to_pack_costs_the_packing_alone(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that has happened is answered, plain if need be."""

    def broken(_: Text) -> Deflated:
        raise MemoryError

    monkeypatch.setattr(Text, "deflated", broken)
    done = commit(shop, "t", [set_properties(a="1")])
    assert shop.run(content_encoding.committed(shop.ctx, done)) is done
    again = load(shop, "t", gzip=True)
    assert isinstance(again.metadata, Text) and again.etag == done.etag


def test_the_file_and_the_answer_are_compressed_once(shop: World) -> None:
    """With the gzip codec the answer is made of what the file was made of."""
    commit(shop, "t", [set_properties(**COMPRESS)])
    done = commit(shop, "t", [set_properties(a="1")])
    assert isinstance(done.metadata, Text) and done.metadata.pending == 0
    with open(done.metadata_location, "rb") as file:
        assert gzip.decompress(file.read()) == plain(done) == plain(load(shop, "t", gzip=True))
    shop.ctx.caches.documents.forget(done.metadata_location)
    assert plain(load(shop, "t", gzip=True)) == plain(done)
