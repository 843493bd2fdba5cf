"""Append-only sequences that share structure."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.iceberg.json import append_log
from app.iceberg.json.append_log import sealed_text
from app.iceberg.json.chunked_text import Chunk, Text, joined
from app.iceberg.json.codec import encode
from app.iceberg.snapshot import Snapshot, Snapshots, parse_snapshots, snapshot_from_json
from tests.iceberg.documents import snapshot


def entry(snapshot_id: int) -> Snapshot:
    return snapshot_from_json(snapshot(snapshot_id), "$")


def ids(snapshots: Snapshots) -> list[int]:
    return [item.snapshot_id for item in snapshots]


def written(snapshots: Snapshots) -> list[int]:
    return [item["snapshot-id"] for item in msgspec.json.decode(joined(snapshots.parts()))]


@pytest.fixture(scope="module", autouse=True)
def small_chunks() -> Iterator[None]:
    """Sizes at which a few entries seal, merge and fill chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append_log, "LOOSE_LIMIT", 6)
        patch.setattr(append_log, "_LOOSE_BYTES", 600)
        patch.setattr(append_log, "CHUNK_BYTES", 2_000)
        patch.setattr(append_log, "_SMALL_BYTES", 1_000)
        yield


@given(st.lists(st.tuples(st.sampled_from(["append", "remove", "render"]), st.integers(0, 30), st.integers(0, 9))))
def test_every_version_stays_what_it_was(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is appended to or removed from whichever version, each version keeps its own entries."""
    versions: list[tuple[Snapshots, list[int]]] = [(Snapshots(), [])]
    for step, which, snapshot_id in steps:
        base, model = versions[which % len(versions)]
        if step == "append" and snapshot_id not in model:
            versions.append((base.append(entry(snapshot_id)), [*model, snapshot_id]))
        elif step == "remove":
            versions.append((base.remove([snapshot_id]), [item for item in model if item != snapshot_id]))
        else:
            assert written(base) == model
    for made, model in versions:
        assert ids(made) == written(made) == model
        assert len(made) == len(model)
        assert [made.get(item) is not None for item in range(10)] == [item in model for item in range(10)]


def test_an_append_at_the_tip_copies_nothing() -> None:
    """The longer version shares its tape with the shorter one."""
    base = Snapshots([entry(1), entry(2)])
    longer = base.append(entry(3))
    assert longer._tape is base._tape
    assert [item.snapshot_id for item in longer.since(base)] == [3]


def test_a_second_append_to_one_version_copies() -> None:
    """Two commits on one base do not see each other."""
    base = Snapshots([entry(1)])
    one, other = base.append(entry(2)), base.append(entry(3))
    assert (ids(one), ids(other)) == ([1, 2], [1, 3])
    assert 3 not in one
    assert 2 not in other
    assert [item.snapshot_id for item in other.since(base)] == [3]
    assert [item.snapshot_id for item in other.since(one)] == [1, 3]


def test_threads_that_append_to_one_version_do_not_see_each_other() -> None:
    """However two threads interleave, each gets exactly its own entry."""
    base = Snapshots(entry(item) for item in range(10))
    results: dict[int, Snapshots] = {}
    barrier = threading.Barrier(8)

    def run(snapshot_id: int) -> None:
        barrier.wait()
        results[snapshot_id] = base.append(entry(snapshot_id))

    threads = [threading.Thread(target=run, args=(100 + at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for snapshot_id, made in results.items():
        assert ids(made) == [*range(10), snapshot_id]
        assert [item in made for item in results] == [item == snapshot_id for item in results]


def test_text_stays_right_across_the_joining_limit() -> None:
    """Rendering after each of many appends gives every entry once and in order."""
    made = Snapshots([entry(0)])
    for snapshot_id in range(1, 80):
        made = made.append(entry(snapshot_id))
        assert written(made) == list(range(snapshot_id + 1))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 15)),
        st.tuples(st.just("after"), st.integers(0, 25)),
        st.tuples(st.just("remove"), st.integers(0, 2**40 - 1)),
        st.tuples(st.just("look"), st.integers(0, 99)),
    ),
    max_size=25,
)


def packed(snapshots: Snapshots) -> bytes:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    out = unpacker.decompress(b"".join(Text.composed(snapshots.parts()).deflated().member()))
    assert unpacker.eof and not unpacker.unused_data
    return out


@given(STEPS, st.booleans())
def test_chunks_spell_the_entries(steps: list[tuple[str, int]], stored: bool) -> None:
    """After any appends and removals the text, plain and compressed, is that of the entries, in old versions too."""
    made, number = Snapshots(), 0
    if stored:
        made, number = parse_snapshots(msgspec.Raw(encode([snapshot(n) for n in range(40)])), "$"), 40
    versions = [made]
    for step, argument in steps:
        if step == "append":
            for _ in range(argument):
                made, number = made.append(entry(number)), number + 1
        elif step == "after":
            made = made.after(argument)
        elif step == "remove":
            made = made.remove({item.snapshot_id for at, item in enumerate(made) if argument >> (at % 40) & 1})
        else:
            made = versions[argument % len(versions)]
        versions.append(made)
        assert packed(made) == joined(made.parts()) == b"[" + b",".join(item.raw for item in made) + b"]"
    for version in versions:
        assert joined(version.parts()) == b"[" + b",".join(item.raw for item in version) + b"]"


def chunks(snapshots: Snapshots) -> list[Chunk]:
    return [part for part in snapshots.parts() if isinstance(part, Chunk)]


def test_an_append_touches_the_end_alone() -> None:
    """However long the past is, all but a few small chunks at the end are those of the version before."""
    made = parse_snapshots(msgspec.Raw(encode([snapshot(n) for n in range(500)])), "$")
    for number in range(500, 700):
        before = chunks(made)
        made = made.append(entry(number))
        after = chunks(made)
        kept = sum(1 for one, other in zip(before, after, strict=False) if one is other)
        assert kept >= len(before) - 4
        assert made.loose <= append_log.LOOSE_LIMIT + 1
    whole = sum(map(len, chunks(made)))
    assert len(chunks(made)) <= whole // append_log._SMALL_BYTES + 4


def test_an_expiry_at_the_front_rebuilds_one_chunk() -> None:
    """The chunks behind the cut stay the same; those before it are gone."""
    made = parse_snapshots(msgspec.Raw(encode([snapshot(n) for n in range(500)])), "$")
    before = chunks(made)
    after = chunks(made.remove(set(range(100))))
    shared = [chunk for chunk in after if chunk in before]
    assert shared == before[len(before) - len(shared) :]
    assert len(after) - len(shared) <= 1
    assert len(shared) >= 0.7 * len(before)


def test_when_most_is_gone_the_document_is_let_go() -> None:
    """What is left holds no view into the text that it was read from, yet keeps what was compressed."""
    made = parse_snapshots(msgspec.Raw(encode([snapshot(n) for n in range(500)])), "$")
    for chunk in chunks(made):
        chunk.deflated()
    after = chunks(made.remove(set(range(400))))
    assert all(isinstance(chunk.body, bytes) for chunk in after)
    assert any(chunk.segment is not None for chunk in after)


def test_text_with_white_space_between_is_not_cut() -> None:
    """Entries keep their bytes; the text between them is written anew."""
    raw = msgspec.Raw(b"[" + b" ,\n ".join(encode(snapshot(n)) for n in range(50)) + b"]")
    made = parse_snapshots(raw, "$")
    assert sealed_text(raw, list(made)) == []
    assert written(made) == list(range(50))


def test_keeping_everything_is_the_same_sequence() -> None:
    """A removal of ids that are not listed costs no copy."""
    base = Snapshots([entry(1)])
    assert base.remove([5]) is base


def test_an_index_outside_is_an_error() -> None:
    """A version does not reach into the entries that a later one appended."""
    base = Snapshots([entry(1)])
    base.append(entry(2))
    with pytest.raises(IndexError):
        base[1]
    assert base[-1].snapshot_id == base[0].snapshot_id == 1
    assert base.last is base[0]
    assert Snapshots().last is None
