"""Judges a recorded history: was anything lost, doubled, torn or shown out of order?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.history.recording import Call, Found, Version


def faults(calls: Sequence[Call], found: Found) -> list[str]:
    """One line for each contradiction between what clients were told and what there is; empty for a sound history."""
    return [
        *_effects(calls, found),
        *_torn(calls, found),
        *_strangers(calls, found),
        *_logs(found),
        *_snapshots(found),
        *_loads(calls, found),
        *_replays(calls),
        *_names(calls, found),
    ]


def _ids(found: Found, uuid: str) -> list[int]:
    versions = found.versions.get(uuid)
    return [snapshot.snapshot_id for snapshot in versions[-1].snapshots] if versions else []


def _effects(calls: Sequence[Call], found: Found) -> Iterator[str]:
    """Every answered 200 is present, every refusal absent."""
    held = {uuid: set(_ids(found, uuid)) for uuid in found.versions}
    for call in calls:
        for uuid, snapshot in call.effects.items():
            if uuid not in held:
                if call.outcome == "ok":
                    yield f"lost table: {uuid}, to which snapshot {snapshot} was committed"
                continue
            there = snapshot in held[uuid]
            if call.outcome == "ok" and not there:
                yield f"lost commit: snapshot {snapshot} of {uuid} was answered 200 and is not there"
            if call.outcome == "refused" and there:
                yield f"refused and done: snapshot {snapshot} of {uuid}"


def _torn(calls: Sequence[Call], found: Found) -> Iterator[str]:
    held = {uuid: set(_ids(found, uuid)) for uuid in found.versions}
    for call in calls:
        if len(call.effects) > 1:
            there = {snapshot in held[uuid] for uuid, snapshot in call.effects.items() if uuid in held}
            if len(there) > 1:
                yield f"torn transaction: of {dict(call.effects)} only a part is there"


def _strangers(calls: Sequence[Call], found: Found) -> Iterator[str]:
    """Nothing is there that nobody asked for, and nothing twice."""
    asked = {(uuid, snapshot) for call in calls for uuid, snapshot in call.effects.items()}
    for uuid in found.versions:
        for snapshot, times in Counter(_ids(found, uuid)).items():
            if times > 1:
                yield f"duplicate effect: snapshot {snapshot} of {uuid} is there {times} times"
            if (uuid, snapshot) not in asked:
                yield f"stranger: snapshot {snapshot} of {uuid} was never asked for"


def _logs(found: Found) -> Iterator[str]:
    """Versions follow each other one by one; each names its predecessor last; time never runs backwards."""
    for uuid, versions in found.versions.items():
        history = _history(versions)
        if len(set(history)) != len(history):
            yield f"forked log: {uuid} names a file twice"
        numbers = [_number(location) for location in history]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            yield f"forked log: versions of {uuid} are {numbers}"
        for version in versions:
            at = history.index(version.location) if version.location in history else -1
            before = tuple(history[max(0, at - len(version.log)) : at]) if at >= 0 else None
            if before != version.log:
                yield f"forked log: {version.location} does not name what came before it"
            if at > 0 and not version.log:
                yield f"forked log: {version.location} has lost its log"
        for older, newer in pairwise(versions):
            if newer.updated_ms < older.updated_ms:
                yield f"time runs backwards: {newer.location}"


def _history(versions: Sequence[Version]) -> list[str]:
    """Every location that the versions and their logs name, oldest first, from the newest version back."""
    by_location = {version.location: version for version in versions}
    newest = versions[-1]
    history = [*newest.log, newest.location]
    while (oldest := by_location.get(history[0])) is not None and oldest.log:
        history = [*oldest.log, *history]
    return history


def _number(location: str) -> int:
    return int(location.rsplit("/", 1)[-1].split("-")[0])


def _snapshots(found: Found) -> Iterator[str]:
    """One branch: each snapshot's parent is the one before it, and sequence numbers go up by one."""
    for uuid, versions in found.versions.items():
        for older, newer in pairwise((None, *versions[-1].snapshots)):
            assert newer is not None
            if newer.parent != (None if older is None else older.snapshot_id):
                yield f"broken ancestry: snapshot {newer.snapshot_id} of {uuid} has parent {newer.parent}"
            if newer.sequence != (1 if older is None else older.sequence + 1):
                yield f"broken sequence: snapshot {newer.snapshot_id} of {uuid} has number {newer.sequence}"


def _loads(calls: Sequence[Call], found: Found) -> Iterator[str]:
    """A load shows a prefix of what came to be: all that was acknowledged before it, nothing that began after it."""
    commits: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        for uuid in call.effects:
            commits[uuid].append(call)
    for load in calls:
        if load.seen is None or load.uuid is None:
            continue
        final = _ids(found, load.uuid)
        if list(load.seen) != final[: len(load.seen)]:
            yield f"no prefix: a load of {load.uuid} showed {load.seen[-3:]}"
        shown = set(load.seen)
        for commit in commits[load.uuid]:
            snapshot = commit.effects[load.uuid]
            if commit.outcome == "ok" and commit.ended < load.began and snapshot not in shown:
                yield f"stale read: snapshot {snapshot} of {load.uuid} was acknowledged before the load began"
            if commit.began > load.ended and snapshot in shown:
                yield f"read of the future: snapshot {snapshot} of {load.uuid}"


def _replays(calls: Sequence[Call]) -> Iterator[str]:
    for call in calls:
        told = {answer for answer in call.answers if answer is not None}
        if len(told) > 1:
            yield f"replay differs: {call.kind} of client {call.client} was answered {sorted(told)}"


def _names(calls: Sequence[Call], found: Found) -> Iterator[str]:
    """Names that one client alone uses are where its own calls, in order, put them."""
    possible: dict[str, set[str | None]] = {}
    for call in sorted(calls, key=lambda call: (call.client, call.began)):
        if call.name is None:
            continue
        at = possible.setdefault(call.name, {None})
        if call.kind == "create":
            after: set[str | None] = {call.uuid}
        elif call.kind in ("drop", "rename"):
            after = {None}
        else:
            continue
        if call.kind == "rename" and call.to_name is not None and call.outcome != "refused":
            there = possible.setdefault(call.to_name, {None})
            possible[call.to_name] = at if call.outcome == "ok" else at | there
        if call.outcome == "ok":
            possible[call.name] = after
        elif call.outcome == "unknown":
            possible[call.name] = at | after
    for name, uuids in possible.items():
        if found.names.get(name) not in uuids:
            yield f"wrong name: {name} leads to {found.names.get(name)}, not to one of {sorted(map(str, uuids))}"
    for name in found.names.keys() - possible.keys():
        yield f"wrong name: nobody made {name}"
