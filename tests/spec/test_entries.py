"""Append-only sequences that share structure."""

from __future__ import annotations

import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.spec.entries import LOOSE_LIMIT
from app.spec.snapshot import Snapshot, Snapshots, snapshot_from_json
from tests.spec.documents import snapshot


def entry(snapshot_id: int) -> Snapshot:
    return snapshot_from_json(snapshot(snapshot_id), "$")


def ids(snapshots: Snapshots) -> list[int]:
    return [item.snapshot_id for item in snapshots]


def written(snapshots: Snapshots) -> list[int]:
    return [item["snapshot-id"] for item in msgspec.json.decode(b"".join(snapshots.render()))]


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
    assert [item.snapshot_id for item in other.since(base)] == [1, 3]


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
    for snapshot_id in range(1, LOOSE_LIMIT + 20):
        made = made.append(entry(snapshot_id))
        if snapshot_id % 50 == 0 or snapshot_id > LOOSE_LIMIT:
            assert written(made) == list(range(snapshot_id + 1))


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
