"""The checker itself: a sound history passes, and every kind of planted fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.history.checker import faults
from tests.history.recording import Call, Found, Snapshot, Version

A, B, OWN = "uuid-a", "uuid-b", "uuid-own"
History = tuple[list[Call], Found]


def version(uuid: str, number: int, snapshots: tuple[int, ...]) -> Version:
    return Version(
        location=at(uuid, number),
        number=number,
        log=tuple(at(uuid, older) for older in range(number)),
        snapshots=tuple(
            Snapshot(each, None if index == 0 else snapshots[index - 1], index + 1)
            for index, each in enumerate(snapshots)
        ),
        updated_ms=1000 + number,
    )


def at(uuid: str, number: int) -> str:
    return f"s3://b/{uuid}/metadata/{number:05d}-x.metadata.json"


def commit(began: int, outcome: str = "ok", **effects: int) -> Call:
    named = {A if name == "a" else B: snapshot for name, snapshot in effects.items()}
    answers = (at(A, 1), at(A, 1)) if outcome == "ok" else ()
    return Call(1, "commit", began, began + 5, outcome, named, answers=answers)  # type: ignore[arg-type]


def load(began: int, *seen: int) -> Call:
    return Call(2, "load", began, began + 5, "ok", uuid=A, seen=seen)


def sound() -> History:
    """Two tables and three commits, one of them to both; one refused; one that nobody heard the end of; two names."""
    calls = [
        Call(3, "create", 1, 2, "ok", uuid=OWN, name="mine"),
        Call(3, "rename", 3, 4, "ok", name="mine", to_name="ours"),
        Call(3, "create", 5, 6, "ok", uuid="uuid-gone", name="gone"),
        Call(3, "drop", 7, 8, "ok", name="gone"),
        commit(10, a=1),
        load(20, 1),
        commit(30, a=2, b=3),
        commit(40, "refused", a=9),
        commit(50, "unknown", a=4),
        load(60, 1, 2),
        load(70, 1, 2, 4),
    ]
    versions = {
        A: (version(A, 0, ()), version(A, 1, (1,)), version(A, 2, (1, 2)), version(A, 3, (1, 2, 4))),
        B: (version(B, 0, ()), version(B, 1, (3,))),
    }
    return calls, Found(versions, {"ours": OWN})


def test_a_sound_history_has_no_fault() -> None:
    """An outcome that nobody heard may have happened or not."""
    calls, found = sound()
    assert faults(calls, found) == []
    without = {**found.versions, A: found.versions[A][:3]}
    assert faults([call for call in calls if call.seen != (1, 2, 4)], Found(without, found.names)) == []


def test_a_chain_read_in_jumps_is_sound() -> None:
    """Long histories are read only where a log begins; the logs in between tell the rest."""
    jumps = tuple(
        replace(version(A, n, ()), log=tuple(at(A, o) for o in range(max(0, n - 4), n))) for n in (0, 2, 6, 10)
    )
    assert faults([], Found({A: jumps}, {})) == []


def newest(found: Found, uuid: str, **changes: object) -> Found:
    versions = found.versions[uuid]
    last = replace(versions[-1], **changes)  # type: ignore[arg-type]
    return Found({**found.versions, uuid: (*versions[:-1], last)}, found.names)


def lost(calls: list[Call], found: Found) -> History:
    return [c for c in calls if c.seen is None], newest(found, B, snapshots=())


def refused_and_done(calls: list[Call], found: Found) -> History:
    return [replace(c, outcome="refused") if c.effects == {A: 1} else c for c in calls], found


def torn(calls: list[Call], found: Found) -> History:
    return [replace(c, outcome="unknown") if len(c.effects) == 2 else c for c in calls], newest(found, B, snapshots=())


def doubled(calls: list[Call], found: Found) -> History:
    return calls, newest(found, B, snapshots=(Snapshot(3, None, 1), Snapshot(3, 3, 2)))


def stranger(calls: list[Call], found: Found) -> History:
    return calls, newest(found, B, snapshots=(Snapshot(3, None, 1), Snapshot(77, 3, 2)))


def forked(calls: list[Call], found: Found) -> History:
    return calls, newest(found, A, log=(at(A, 0), at(A, 1), "s3://b/other/00002-y.metadata.json"))


def skipped(calls: list[Call], found: Found) -> History:
    return calls, newest(found, A, log=(at(A, 0), at(A, 1)))


def forgot(calls: list[Call], found: Found) -> History:
    versions = found.versions[A]
    return calls, Found({**found.versions, A: (versions[0], replace(versions[1], log=()), *versions[2:])}, found.names)


def backwards(calls: list[Call], found: Found) -> History:
    return calls, newest(found, A, updated_ms=1)


def rebased(calls: list[Call], found: Found) -> History:
    return calls, newest(found, A, snapshots=(Snapshot(1, None, 1), Snapshot(2, 1, 2), Snapshot(4, 1, 3)))


def renumbered(calls: list[Call], found: Found) -> History:
    return calls, newest(found, A, snapshots=(Snapshot(1, None, 1), Snapshot(2, 1, 2), Snapshot(4, 2, 2)))


def stale(calls: list[Call], found: Found) -> History:
    return [*calls, load(100, 1)], found


def future(calls: list[Call], found: Found) -> History:
    return [*calls, load(11, 1, 2)], found


def reordered(calls: list[Call], found: Found) -> History:
    return [*calls, load(100, 2, 1, 4)], found


def replayed_otherwise(calls: list[Call], found: Found) -> History:
    return [replace(c, answers=(at(A, 1), at(A, 2))) if c.effects == {A: 1} else c for c in calls], found


def risen(calls: list[Call], found: Found) -> History:
    return calls, Found(found.versions, {**found.names, "gone": "uuid-gone"})


def not_renamed(calls: list[Call], found: Found) -> History:
    return calls, Found(found.versions, {"mine": OWN})


def table_gone(calls: list[Call], found: Found) -> History:
    return [c for c in calls if c.seen is None], Found({A: found.versions[A]}, found.names)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (lost, "lost commit"),
        (table_gone, "lost table"),
        (refused_and_done, "refused and done"),
        (torn, "torn transaction"),
        (doubled, "duplicate effect"),
        (stranger, "stranger"),
        (forked, "forked log"),
        (skipped, "forked log"),
        (forgot, "forked log"),
        (backwards, "time runs backwards"),
        (rebased, "broken ancestry"),
        (renumbered, "broken sequence"),
        (stale, "stale read"),
        (future, "read of the future"),
        (reordered, "no prefix"),
        (replayed_otherwise, "replay differs"),
        (risen, "wrong name"),
        (not_renamed, "wrong name"),
    ],
)
def test_a_planted_fault_is_found(plant: Callable[[list[Call], Found], History], told: str) -> None:
    """By its own name."""
    assert any(line.startswith(told) for line in faults(*plant(*sound())))
