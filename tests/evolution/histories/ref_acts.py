"""Commits about refs, expiry and partitioning."""

from __future__ import annotations

from app.iceberg.transforms import parse_transform
from app.iceberg.types import DateType, PrimitiveType, UnknownType
from tests.evolution.histories.drawing import chance
from tests.evolution.histories.schema_acts import fits
from tests.evolution.histories.world import Outcome, World
from tests.evolution.tables import Json, remove_ref, set_ref, set_schema


def branches_off(world: World) -> Outcome | None:
    """At a snapshot that some branch holds."""
    found = world.on_branches()
    if not found:
        return None
    target = world.draw.choice(found)
    name = world.draw.choice(("b1", "b2"))
    return world.commit(f"branches off to {name}", [set_ref(name, target.snapshot_id)], legal=True)


def tags(world: World) -> Outcome | None:
    """At any snapshot."""
    found = [s for s in world.snapshots.values() if world.retained(s)]
    if not found:
        return None
    name = world.draw.choice(("t1", "t2"))
    return world.commit(f"tags {name}", [set_ref(name, world.draw.choice(found).snapshot_id, "tag")], legal=True)


def drops_a_ref(world: World) -> Outcome | None:
    names = [name for name in world.table.refs if name != "main" or chance(world.draw, 15)]
    if not names:
        return None
    name = world.draw.choice(names)
    return world.commit(f"drops ref {name}", [remove_ref(name)], legal=True)


def rolls_back(world: World) -> Outcome | None:
    """Main, or any branch, to a snapshot that some branch holds."""
    found = world.on_branches()
    if not found:
        return None
    target = world.draw.choice(found)
    return world.commit("rolls back main", [set_ref("main", target.snapshot_id)], legal=True)


def points_a_branch_anywhere(world: World) -> Outcome | None:
    """At any retained snapshot, from before a replacement or from a branch that is gone."""
    found = [s for s in world.snapshots.values() if world.retained(s)]
    if not found or world.nameless:
        return None
    target = world.draw.choice(found)
    updates = [set_ref(world.draw.choice(("main", "b1")), target.snapshot_id)]
    if chance(world.draw, 30) and target.schema.schema_id in world.table.schemas:
        updates.insert(world.draw.randrange(2), set_schema(target.schema.schema_id))
    return world.commit("points a branch anywhere", updates, legal=False)


def rolls_back_with_its_schema(world: World) -> Outcome | None:
    """Main alone is a branch, and comes to a retained snapshot together with that snapshot's schema."""
    found = [s for s in world.snapshots.values() if world.retained(s) and s.names_schema]
    found = [s for s in found if s.schema.schema_id in world.table.schemas and fits(world, s.schema)]
    if not found or set(world.branches()) - {"main"}:
        return None
    target = world.draw.choice(found)
    whole = all(
        world.retained(s) and s.names_schema and s.schema.schema_id in world.table.schemas for s in target.ancestry
    )
    updates = [set_ref("main", target.snapshot_id), set_schema(target.schema.schema_id)]
    return world.commit("rolls back with its schema", updates, legal=whole, replaces=True)


def expires(world: World) -> Outcome | None:
    """Snapshots that no ref points to, and the schemas that nothing needs afterwards, as clean-up does."""
    table = world.table
    held = {ref.snapshot_id for ref in table.refs.values()}
    free = [s.snapshot_id for s in table.snapshots if s.snapshot_id not in held]
    if not free:
        return None
    gone = world.draw.sample(free, world.draw.randint(1, len(free)))
    updates: list[Json] = [{"action": "remove-snapshots", "snapshot-ids": gone}]
    if chance(world.draw, 60):
        needed = {s.schema_id for s in table.snapshots if s.snapshot_id not in gone} | {table.current_schema_id}
        unused = [schema_id for schema_id in table.schemas if schema_id not in needed]
        if unused:
            updates.append({"action": "remove-schemas", "schema-ids": unused})
    return world.commit("expires", updates, legal=True)


def removes_anything(world: World) -> Outcome | None:
    """Schemas or snapshots that may be needed, or partition specs after a look at the manifests."""
    table = world.table
    what = world.draw.randrange(3)
    if what == 0:
        others = [i for i in table.schemas if i != table.current_schema_id]
        updates = [{"action": "remove-schemas", "schema-ids": [world.draw.choice(others)]}] if others else []
    elif what == 1:
        ids = [s.snapshot_id for s in table.snapshots]
        updates = [{"action": "remove-snapshots", "snapshot-ids": [world.draw.choice(ids)]}] if ids else []
    else:
        specs = [spec.spec_id for spec in table.partition_specs if spec is not table.default_spec]
        updates = [{"action": "remove-partition-specs", "spec-ids": [world.draw.choice(specs)]}] if specs else []
    return world.commit("removes anything", updates, legal=False, look=True) if updates else None


TRANSFORMS = ("identity", "bucket[16]", "truncate[2]", "year", "month", "day", "hour")


def repartitions(world: World) -> Outcome | None:
    """By a top-level column, or not at all. Version 1 would need void fields in place of former ones."""
    fields: list[Json] = []
    if world.table.format_version == 1 and any(spec.fields for spec in world.table.partition_specs):
        return None
    fit = [
        (column, name)
        for column in world.table.schema.fields
        for name in TRANSFORMS
        if isinstance(column.field_type, PrimitiveType)
        and not isinstance(column.field_type, UnknownType)
        and parse_transform(name).accepts(column.field_type)
    ]
    if fit and chance(world.draw, 80):
        dates = [entry for entry in fit if isinstance(entry[0].field_type, DateType)]
        column, transform = world.draw.choice(dates if dates and chance(world.draw, 60) else fit)
        fields = [{"source-id": column.field_id, "name": f"p{world.fresh_name()}", "transform": transform}]
    updates: list[Json] = [
        {"action": "add-spec", "spec": {"spec-id": -1, "fields": fields}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    return world.commit("repartitions", updates, legal=True)
