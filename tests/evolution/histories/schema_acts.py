"""Commits that change the schema, or go back to an earlier one."""

from __future__ import annotations

from typing import Any

from app.iceberg.schema import Schema, schema_to_json
from tests.evolution.histories.drawing import chance, storable
from tests.evolution.histories.editor import Edited, Editor, walk
from tests.evolution.histories.legal_edits import LEGAL, may_return
from tests.evolution.histories.wild_edits import WILD
from tests.evolution.histories.world import Outcome, World
from tests.evolution.tables import Json, schema, set_schema, upgrade


def schema_updates(edited: Edited, schema_id: int = -1) -> list[Json]:
    fields, identifiers = edited
    sent = schema(*fields, schema_id=schema_id, identifiers=identifiers or None)
    return [{"action": "add-schema", "schema": sent}, set_schema()]


def evolves(world: World) -> Outcome | None:
    """One to three legal edits in one commit."""
    editor = Editor(world)
    names = []
    for _ in range(world.draw.choice((1, 1, 1, 2, 3))):
        edit = world.draw.choice(LEGAL)
        if edit(editor) is not None:
            names.append(edit.__name__)
    if not names:
        return None
    return world.commit(" and ".join(names), schema_updates(editor.done()), legal=True)


def evolves_wildly(world: World) -> Outcome | None:
    """Anything, perhaps with a legal edit beside it."""
    editor = Editor(world)
    edits: list[Any] = [world.draw.choice(WILD)]
    if chance(world.draw, 25):
        edits.append(world.draw.choice((*LEGAL, *WILD)))
    names = [edit.__name__ for edit in edits if edit(editor) is not None]
    if not names:
        return None
    return world.commit(" and ".join(names), schema_updates(editor.done()), legal=False)


def upgrades(world: World) -> Outcome | None:
    version = world.table.format_version
    return world.commit("upgrades", [upgrade(version + 1)], legal=True) if version < 3 else None


def undoes(world: World) -> Outcome | None:
    """Back to a schema that was current since the last write, with the whole history at hand."""
    targets = [schema_id for schema_id in world.trail[:-1] if schema_id in world.table.schemas]
    if not targets or not world.complete():
        return None
    target = world.table.schemas.get(world.draw.choice(targets))
    assert target is not None
    return world.commit("undoes", [set_schema(target.schema_id)], legal=fits(world, target))


def goes_back_to_a_schema(world: World) -> Outcome | None:
    """Any retained schema."""
    others = [i for i in world.table.schemas if i != world.table.current_schema_id]
    if not others:
        return None
    return world.commit("goes back to a schema", [set_schema(world.draw.choice(others))], legal=False)


def goes_back_to_names(world: World) -> Outcome | None:
    """A retained schema that reads whatever the current one reads: only labels, order and nullable columns differ."""
    targets = [
        found
        for i in world.table.schemas
        if i != world.table.current_schema_id
        and (found := world.table.schemas.get(i)) is not None
        and _same_columns(found, world.table.schema)
    ]
    targets = [target for target in targets if fits(world, target) and _may_come_back(world, target)]
    if not targets or world.replaced:
        return None
    return world.commit("goes back to names", [set_schema(world.draw.choice(targets).schema_id)], legal=True)


def _may_come_back(world: World, target: Schema) -> bool:
    return may_return(world, target, set(target.by_id) - set(world.table.schema.by_id))


def _same_columns(target: Schema, current: Schema) -> bool:
    now = {slot.field_id: slot for slot in walk(schema_to_json(current)["fields"], None, False)}
    for slot in walk(schema_to_json(target)["fields"], None, False):
        same = now.get(slot.field_id)
        if same is None:
            inside_a_kept_one = slot.role != "field" and slot.parent in now
            if slot.required or slot.in_key or inside_a_kept_one:
                return False
            continue
        if (slot.parent, slot.role, slot.required) != (same.parent, same.role, same.required):
            return False
        if slot.in_key and slot.holder != same.holder:
            return False
        nested = isinstance(slot.kind, dict) and isinstance(same.kind, dict) and slot.kind["type"] == same.kind["type"]
        if not nested and slot.kind != same.kind:
            return False
        if slot.role == "field" and slot.holder.get("initial-default") != same.holder.get("initial-default"):
            return False
    return True


def fits(world: World, target: Schema) -> bool:
    """Whether files can be written under the schema, and default spec, sort order and all transforms go with it."""
    table = world.table
    if not storable(target):
        return False
    for spec in table.partition_specs:
        for part in spec.fields:
            source = target.by_id.get(part.source_id)
            if source is None:
                if spec is table.default_spec:
                    return False
            elif not part.transform.accepts(source.field_type):
                return False
    return all(field.source_ids[0] in target.by_id for field in table.default_sort_order.fields)
