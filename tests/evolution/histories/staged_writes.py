"""Snapshots that branches need not reach, and some that no conforming writer makes.

They stand on any parent, under any retained schema, with a branch, a tag or no ref at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import SpecError
from app.iceberg.schema import Schema, parse_schema
from app.iceberg.snapshot import Snapshot
from tests.evolution.histories.drawing import chance, storable
from tests.evolution.histories.editor import Editor
from tests.evolution.histories.schema_acts import schema_updates
from tests.evolution.histories.truth import Written
from tests.evolution.histories.wild_edits import WILD
from tests.evolution.histories.world import Outcome, World
from tests.evolution.histories.writes import assert_warranted, client_number, sent_snapshot, take_assigned_schema
from tests.evolution.tables import Json, remove_ref, schema, set_ref


def stages(world: World) -> Outcome | None:
    """Write, audit, publish: a snapshot of the current schema on one that a branch holds, with a tag or no ref."""
    held = world.on_branches()
    if not held:
        return None
    snapshot = _written(world, world.draw.choice(held), world.table.schema)
    refs = [set_ref("t1", snapshot.snapshot_id, "tag")] if chance(world.draw, 30) else []
    return _add(world, "stages", snapshot, [], refs, legal=True)


def stages_late(world: World) -> Outcome | None:
    """The same under a schema that was current since branches last moved: its writer saw the parent as a head.

    Refused only where schemas were removed meanwhile, so that nobody can tell this from a false claim.
    """
    heads = [*world.branches().values()]
    schema_id = world.draw.choice([i for i in world.trail if i in world.table.schemas])
    written = world.table.schemas.get(schema_id)
    assert written is not None
    if not heads:
        return None
    outcome = _add(world, "stages late", _written(world, world.draw.choice(heads), written), [], [], legal=False)
    assert_warranted(world, outcome)
    return outcome


def writes_anything(world: World) -> Outcome | None:
    """On any retained snapshot, under any retained schema."""
    schemas = [found for i in world.table.schemas if (found := world.table.schemas.get(i)) is not None]
    snapshot = _written(world, _some_parent(world), world.draw.choice(schemas))
    before, after = _around(world, snapshot)
    return _add(world, "writes anything", snapshot, before, after, legal=False)


def evolves_and_writes(world: World) -> Outcome | None:
    """A wild edit that the same commit writes under, on any retained snapshot."""
    editor = Editor(world)
    if world.draw.choice(WILD)(editor) is None:
        return None
    fields, identifiers = editor.done()
    try:
        sent = parse_schema(schema(*fields, identifiers=identifiers or None))
    except SpecError:
        return None  # no client can write under what it cannot read
    schema_id = client_number(world, sent)
    written = sent.with_id(schema_id)
    snapshot = _written(world, _some_parent(world), written)
    before, after = _around(world, snapshot)
    updates = schema_updates((fields, identifiers), schema_id)
    if chance(world.draw, 30):
        updates.pop()  # added, not made current
    return _add(world, "evolves and writes", snapshot, [*before, *updates], after, legal=False)


def _some_parent(world: World) -> Written | None:
    """Not one behind which a snapshot names no schema: what its files are, metadata cannot show."""
    named = (s for s in world.snapshots.values() if all(each.names_schema for each in (*s.ancestry, s)))
    found = [s for s in named if world.retained(s)]
    return world.draw.choice(found) if found and chance(world.draw, 90) else None


def _around(world: World, snapshot: Written) -> tuple[list[Json], list[Json]]:
    """What the commit does beside: main may go first, a ref may come to the snapshot, its parent may be removed."""
    before = [remove_ref("main")] if "main" in world.table.refs and chance(world.draw, 15) else []
    name = world.draw.choice((None, None, "main", "b1", "t1", "t2"))
    after = []
    if name is not None and (not world.nameless or name.startswith("t")):
        after.append(set_ref(name, snapshot.snapshot_id, "tag" if name.startswith("t") else "branch"))
    if snapshot.ancestry and chance(world.draw, 10):
        after.append({"action": "remove-snapshots", "snapshot-ids": [snapshot.ancestry[-1].snapshot_id]})
    return before, after


def _written(world: World, parent: Written | None, written: Schema) -> Written:
    ancestry = () if parent is None else (*parent.ancestry, parent)
    files = () if parent is None else parent.files
    added = (world.file(written, world.table.default_spec),) if storable(written) else ()
    numbers = frozenset(file.number for file in added)
    return Written(world.fresh_snapshot_id(), written, True, ancestry, (*files, *added), numbers)


def _add(
    world: World, act: str, snapshot: Written, before: Sequence[Json], after: Sequence[Json], *, legal: bool
) -> Outcome | None:
    if not snapshot.added:
        return None
    parent = snapshot.ancestry[-1] if snapshot.ancestry else None
    sent = sent_snapshot(world, snapshot, parent)
    updates = [*before, {"action": "add-snapshot", "snapshot": sent}, *after]
    outcome = world.commit(act, updates, legal=legal, written=[snapshot])
    if outcome.accepted:
        listed: Snapshot | None = world.table.snapshots.get(snapshot.snapshot_id)
        if listed is not None:
            take_assigned_schema(world, snapshot)
    return outcome
