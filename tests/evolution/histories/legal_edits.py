"""Changes of a schema that are legal by construction.

An edit returns the fields of the new schema and its identifier fields, or None where there is nothing to edit.
"""

from __future__ import annotations

import copy
from typing import Any

from app.iceberg.datetimes import format_timestamp
from app.iceberg.schema import Schema, schema_to_json
from app.iceberg.types import ListType, MapType, StructType, Type, parse_type
from app.iceberg.values import parse_value
from tests.evolution.histories.drawing import (
    NULL_ONLY,
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
    give_defaults,
    ids_in,
    stored_columns,
    walk,
)
from tests.evolution.histories.world import World
from tests.evolution.tables import field


def adds_a_column(editor: Editor) -> Edited | None:
    """Optional, anywhere but in a map key; on version 3 with defaults at times."""
    _, fields = editor.draw.choice(editor.structs())
    added = any_field(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    added["required"] = False
    if editor.version >= 3 and chance(editor.draw, 50):
        give_defaults(editor, added)
    fields.insert(editor.draw.randint(0, len(fields)), added)
    return editor.done()


def adds_a_required_column(editor: Editor) -> Edited | None:
    """With both defaults."""
    if editor.version < 3:
        return None
    kind = primitive(editor.draw, 2)
    _, fields = editor.draw.choice(editor.structs())
    added = field(editor.new_id(), editor.world.fresh_name(), kind, True)
    added["initial-default"] = default_for(editor.draw, kind)
    added["write-default"] = default_for(editor.draw, kind)
    fields.append(added)
    return editor.done()


def drops_a_column(editor: Editor) -> Edited | None:
    """Nobody's identifier or source, and not the last one of its struct."""
    kept = {ANCHOR, *editor.sources(every=False)}
    kept.update(editor.identifiers)

    def free(slot: Slot) -> bool:
        inside = {slot.field_id, *ids_in(slot.kind)}
        left = stored_columns(slot.siblings) - (slot.kind != "unknown")
        return slot.role == "field" and not slot.in_key and not inside & kept and left > 0

    slot = editor.pick(free)
    if slot is None:
        return None
    slot.siblings.remove(slot.holder)
    return editor.done()


def renames_a_column(editor: Editor) -> Edited | None:
    slot = editor.pick(lambda slot: slot.role == "field" and not slot.in_key)
    if slot is None:
        return None
    slot.holder["name"] = editor.world.fresh_name()
    return editor.done()


def reorders(editor: Editor) -> Edited | None:
    _, fields = editor.draw.choice(editor.structs())
    editor.draw.shuffle(fields)
    if fields:
        editor.draw.choice(fields)["doc"] = f"doc {editor.draw.randrange(1000)}"
    return editor.done()


def promotes(editor: Editor) -> Edited | None:
    """Along the table of the format version, as far as partition transforms allow."""
    sources = editor.sources()
    found = [(slot, to) for slot in editor.slots() if not slot.in_key for to in _targets(editor, slot, sources)]
    if not found:
        return None
    slot, to = editor.draw.choice(found)
    if to == "any":
        to = any_type(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
        to = "string" if to == "unknown" else to
    if slot.role == "field":
        for key in ("initial-default", "write-default"):
            if slot.holder.get(key) is not None:
                slot.holder[key] = _promoted_default(slot.kind, to, slot.holder[key])
    slot.holder[slot.type_key] = to
    return editor.done()


def _targets(editor: Editor, slot: Slot, sources: dict[int, list[str]]) -> list[str]:
    used = sources.get(slot.field_id, [])
    match slot.kind:
        case "int":
            return ["long"]
        case "float":
            return ["double"]
        case "decimal(9, 2)":
            return ["decimal(12, 2)", "decimal(38, 2)"]
        case "date" if editor.version >= 3 and not {"identity", "bucket"} & set(used):
            return ["timestamp", "timestamp_ns"]
        case "unknown" if editor.version >= 3 and not used:
            return ["any"]
    return []


def _promoted_default(before: Any, after: Any, default: Any) -> Any:
    if before != "date":
        return default
    days = parse_value(parse_type("date"), default)
    scale, digits = (1_000_000, 6) if after == "timestamp" else (1_000_000_000, 9)
    return format_timestamp(days * 86400 * scale, digits=digits, zoned=False)


def relaxes(editor: Editor) -> Edited | None:
    """Required to optional, at any depth."""
    held = set(editor.identifiers)
    slot = editor.pick(
        lambda slot: slot.required and not slot.in_key and not {slot.field_id, *ids_in(slot.kind)} & held
    )
    if slot is None:
        return None
    slot.holder[slot.need_key] = False
    return editor.done()


def changes_a_write_default(editor: Editor) -> Edited | None:
    if editor.version < 3:
        return None
    slot = editor.pick(
        lambda slot: slot.role == "field" and not slot.in_key and default_for(editor.draw, slot.kind) is not None
    )
    if slot is None:
        return None
    slot.holder["write-default"] = default_for(editor.draw, slot.kind)
    if not slot.required and chance(editor.draw, 30):
        del slot.holder["write-default"]
    return editor.done()


def changes_identifiers(editor: Editor) -> Edited | None:
    barred = ("float", "double", *NULL_ONLY)
    fit = [f["id"] for f in editor.fields if f["required"] and isinstance(f["type"], str) and f["type"] not in barred]
    if not fit:
        return None
    editor.identifiers = editor.draw.sample(fit, editor.draw.randint(0, min(2, len(fit))))
    return editor.done()


def restores_a_column(editor: Editor) -> Edited | None:
    """A nullable column that was dropped comes back as its youngest schema had it, under the same parent."""
    present = {slot.field_id for slot in editor.slots()}
    places = dict(editor.structs())
    found = []
    known: set[int] = set()
    schemas = editor.world.table.schemas
    for schema_id in sorted(schemas, reverse=True):
        schema = schemas.get(schema_id)
        assert schema is not None
        for slot in walk(copy.deepcopy(schema_to_json(schema)["fields"]), None, False):
            if slot.field_id in known:
                continue
            known.add(slot.field_id)
            inside = {slot.field_id, *ids_in(slot.kind)}
            fits = slot.role == "field" and not slot.in_key and slot.parent in places and not inside & present
            if fits and not slot.required and may_return(editor.world, schema, inside):
                found.append(slot)
    if not found:
        return None
    slot = editor.draw.choice(found)
    siblings = places[slot.parent]
    if any(item["name"] == slot.holder["name"] for item in siblings):
        slot.holder["name"] = editor.world.fresh_name()
    siblings.append(slot.holder)
    return editor.done()


def may_return(world: World, schema: Schema, ids: set[int]) -> bool:
    """Whether dropped fields may come back as this schema has them: files that branches reach, or may reach where the
    history has gaps, were written under definitions that it reads, and no definition was removed."""
    if world.complete():
        others = [snapshot.schema for snapshot in world.on_branches()]
    elif max(world.table.schemas) + 1 > len(world.table.schemas):
        return not ids
    else:
        others = [found for i in world.table.schemas if (found := world.table.schemas.get(i)) is not None]
    return all(_reads(schema, other, i) for other in others for i in ids & set(schema.by_id))


_WIDER = {
    "long": ("int",),
    "double": ("float",),
    "decimal(12, 2)": ("decimal(9, 2)",),
    "decimal(38, 2)": ("decimal(9, 2)", "decimal(12, 2)"),
}


def _reads(new: Schema, old: Schema, field_id: int) -> bool:
    """Whether one field of the new schema reads files of the old one."""
    after, before, parent = new.by_id[field_id], old.by_id.get(field_id), new.parents[field_id]
    if before is None:
        return after.optional or (parent is not None and parent not in old.by_id)
    if parent != old.parents[field_id] or after.initial_default != before.initial_default:
        return False
    if after.required and not before.required:
        return False
    kind, was = _shape(after.field_type), _shape(before.field_type)
    return kind == was or was in _WIDER.get(kind, ())


def _shape(kind: Type) -> str:
    match kind:
        case StructType():
            return "struct"
        case ListType():
            return f"list {kind.element_id}"
        case MapType():
            return f"map {kind.key_id} {kind.value_id}"
    return str(kind)


LEGAL = (
    adds_a_column,
    adds_a_column,
    adds_a_required_column,
    drops_a_column,
    renames_a_column,
    reorders,
    promotes,
    promotes,
    relaxes,
    changes_a_write_default,
    changes_identifiers,
    restores_a_column,
)
