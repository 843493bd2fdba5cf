"""Changes of a schema that may be anything; most are illegal once there is data.

An edit returns the fields of the new schema and its identifier fields, or None where there is nothing to edit.
"""

from __future__ import annotations

import copy

from app.iceberg.schema import schema_to_json
from tests.evolution.histories.drawing import (
    any_field,
    any_type,
    chance,
    default_for,
    primitive,
)
from tests.evolution.histories.editor import (
    ANCHOR,
    Edited,
    Editor,
    Slot,
    drop_unfit_defaults,
    give_defaults,
    ids_in,
    walk,
)
from tests.evolution.tables import field


def retypes(editor: Editor) -> Edited | None:
    """Any primitive to any other."""
    slot = editor.pick(lambda slot: isinstance(slot.kind, str))
    if slot is None:
        return None
    slot.holder[slot.type_key] = primitive(editor.draw, 3 if chance(editor.draw, 30) else editor.version)
    drop_unfit_defaults(slot)
    return editor.done()


def rescales(editor: Editor) -> Edited | None:
    """A decimal to another scale, as PyIceberg lets through."""
    slot = editor.pick(lambda slot: isinstance(slot.kind, str) and slot.kind.startswith("decimal"))
    if slot is None:
        return None
    slot.holder[slot.type_key] = "decimal(12, 2)" if slot.kind == "decimal(12, 4)" else "decimal(12, 4)"
    drop_unfit_defaults(slot)
    return editor.done()


def reshapes(editor: Editor) -> Edited | None:
    """A new type of any shape under an old id."""
    slot = editor.pick(lambda slot: True)
    if slot is None:
        return None
    kind = any_type(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    slot.holder[slot.type_key] = "int" if kind == "unknown" and slot.role != "field" else kind
    drop_unfit_defaults(slot)
    return editor.done()


def requires(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: not slot.required and slot.kind != "unknown")
    if slot is None:
        return None
    slot.holder[slot.need_key] = True
    return editor.done()


def adds_required_without_defaults(editor: Editor) -> Edited | None:
    _, fields = editor.draw.choice(editor.structs(keys=True))
    added = any_field(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    added["required"] = added["type"] != "unknown"
    if editor.version >= 3 and chance(editor.draw, 40):
        default = default_for(editor.draw, added["type"])
        if default is not None:
            added[editor.draw.choice(("initial-default", "write-default"))] = default
    fields.append(added)
    return editor.done()


def takes_a_used_id(editor: Editor) -> Edited | None:
    """An id that was given out before, for whatever column."""
    present = {slot.field_id for slot in editor.slots()}
    free = [field_id for field_id in range(1, editor.world.table.last_column_id + 1) if field_id not in present]
    if not free:
        return None
    _, fields = editor.draw.choice(editor.structs())
    added = any_field(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    added["id"] = editor.draw.choice(free)
    if editor.version >= 3 and chance(editor.draw, 30):
        give_defaults(editor, added)
    fields.append(added)
    return editor.done()


def takes_an_odd_id(editor: Editor) -> Edited | None:
    odd = editor.draw.choice((0, -1, 2_147_483_448, 2_147_483_647))
    editor.fields.append(field(odd, editor.world.fresh_name(), "int"))
    return editor.done()


def moves_to_another_parent(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.role == "field" and slot.field_id != ANCHOR)
    if slot is None:
        return None
    slot.siblings.remove(slot.holder)
    others = [fields for _, fields in editor.structs(keys=True) if fields is not slot.siblings]
    if not others:
        added = field(editor.new_id(), editor.world.fresh_name(), {"type": "struct", "fields": [slot.holder]})
        editor.fields.append(added)
    else:
        editor.draw.choice(others).append(slot.holder)
    return editor.done()


def renumbers_a_collection(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.role != "field")
    if slot is None:
        return None
    slot.holder[f"{slot.role}-id"] = editor.new_id()
    return editor.done()


def changes_inside_a_key(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.in_key)
    if slot is None:
        return None
    if slot.role == "field" and chance(editor.draw, 60):
        if chance(editor.draw, 50):
            slot.siblings.remove(slot.holder)
        else:
            slot.siblings.append(field(editor.new_id(), editor.world.fresh_name(), "int"))
    else:
        slot.holder[slot.type_key] = "long" if slot.kind == "int" else primitive(editor.draw, 2)
    return editor.done()


def promotes_a_source(editor: Editor) -> Edited | None:
    """A date or unknown column that partitions the table."""
    used = editor.sources()
    slot = editor.pick(lambda slot: slot.field_id in used and slot.kind in ("date", "unknown"))
    if slot is None:
        return None
    slot.holder["type"] = editor.draw.choice(("timestamp", "timestamp_ns"))
    drop_unfit_defaults(slot)
    return editor.done()


def changes_an_initial_default(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.role == "field" and default_for(editor.draw, slot.kind) is not None)
    if slot is None:
        return None
    if slot.holder.get("initial-default") is not None and chance(editor.draw, 40):
        del slot.holder["initial-default"]
    else:
        slot.holder["initial-default"] = default_for(editor.draw, slot.kind)
    return editor.done()


def drops_anything(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.role == "field" and slot.field_id != ANCHOR)
    if slot is None:
        return None
    slot.siblings.remove(slot.holder)
    if chance(editor.draw, 50):
        present = {other.field_id for other in editor.slots()}
        editor.identifiers = [field_id for field_id in editor.identifiers if field_id in present]
    return editor.done()


def restores_anything(editor: Editor) -> Edited | None:
    """Any earlier definition of any dropped id, required ones included, perhaps with another default or promoted."""
    present = {slot.field_id for slot in editor.slots()}
    found: list[Slot] = []
    for schema_id in editor.world.table.schemas:
        schema = editor.world.table.schemas.get(schema_id)
        assert schema is not None
        found.extend(
            slot
            for slot in walk(copy.deepcopy(schema_to_json(schema)["fields"]), None, False)
            if slot.role == "field" and not {slot.field_id, *ids_in(slot.kind)} & present
        )
    if not found:
        return None
    slot = editor.draw.choice(found)
    slot.holder["name"] = editor.world.fresh_name()
    places = dict(editor.structs())
    places.get(slot.parent, editor.fields).append(slot.holder)
    if editor.version >= 3 and chance(editor.draw, 30):
        give_defaults(editor, slot.holder)
    return editor.done()


WILD = (
    retypes,
    retypes,
    retypes,
    rescales,
    reshapes,
    requires,
    adds_required_without_defaults,
    takes_a_used_id,
    takes_a_used_id,
    takes_an_odd_id,
    moves_to_another_parent,
    renumbers_a_collection,
    changes_inside_a_key,
    changes_an_initial_default,
    drops_anything,
    restores_anything,
    restores_anything,
    promotes_a_source,
    promotes_a_source,
    promotes_a_source,
)
