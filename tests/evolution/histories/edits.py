"""Changes of a schema, as edits of its JSON fields: legal by construction, or anything at all.

An edit returns the fields of the new schema and its identifier fields, or None where there is nothing to edit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from app.spec.datetimes import format_timestamp
from app.spec.schema import Schema, schema_to_json
from app.spec.types import ListType, MapType, StructType, Type, parse_type
from app.spec.values import parse_value
from tests.evolution.histories.drawing import (
    NULL_ONLY,
    Draw,
    any_field,
    any_type,
    chance,
    default_for,
    primitive,
)
from tests.evolution.histories.world import World
from tests.evolution.tables import Json, field

ANCHOR = 1
"""A column that legal edits leave alone, so that files always have rows."""

Edited = tuple[list[Json], list[int]]


class Slot(msgspec.Struct):
    """A field, element, key or value in JSON form. `holder[key]` is its type, `holder[need]` whether it is required."""

    field_id: int
    holder: Json
    role: str
    in_key: bool
    siblings: list[Json]
    parent: int | None

    @property
    def type_key(self) -> str:
        return {"field": "type", "element": "element", "key": "key", "value": "value"}[self.role]

    @property
    def kind(self) -> Any:
        return self.holder[self.type_key]

    @property
    def need_key(self) -> str:
        return {"field": "required", "element": "element-required", "value": "value-required", "key": ""}[self.role]

    @property
    def required(self) -> bool:
        return self.role == "key" or bool(self.holder[self.need_key])


class Editor:
    """The current schema of a world, open for edits."""

    def __init__(self, world: World, fields: list[Json] | None = None, next_id: int | None = None) -> None:
        self.world = world
        self.draw: Draw = world.draw
        self.version = world.table.format_version
        document = schema_to_json(world.table.schema)
        self.fields: list[Json] = copy.deepcopy(document["fields"]) if fields is None else fields
        self.identifiers: list[int] = list(document.get("identifier-field-ids", []))
        self._next_id = world.table.last_column_id if next_id is None else next_id

    def new_id(self) -> int:
        self._next_id += 1 if chance(self.draw, 90) else 3
        return self._next_id

    def slots(self) -> list[Slot]:
        """Every place with an id, parents before children."""
        return list(walk(self.fields, None, False))

    def structs(self, *, keys: bool = False) -> list[tuple[int | None, list[Json]]]:
        """The fields of every struct, the top level first; those inside map keys only if asked for."""
        found: list[tuple[int | None, list[Json]]] = [(None, self.fields)]
        found.extend(
            (slot.field_id, slot.kind["fields"])
            for slot in self.slots()
            if isinstance(slot.kind, dict) and slot.kind["type"] == "struct" and (keys or not slot.in_key)
        )
        return found

    def pick(self, wanted: Callable[[Slot], bool]) -> Slot | None:
        found = [slot for slot in self.slots() if wanted(slot)]
        return self.draw.choice(found) if found else None

    def sources(self, *, every: bool = True) -> dict[int, list[str]]:
        """Transform kinds by source id: of every spec, or of the default spec and order alone."""
        found: dict[int, list[str]] = {}
        table = self.world.table
        for spec in table.partition_specs if every else (table.default_spec,):
            for part in spec.fields:
                found.setdefault(part.source_id, []).append(part.transform.kind)
        for order in table.sort_orders if every else (table.default_sort_order,):
            for by in order.fields:
                found.setdefault(by.source_ids[0], []).append("sort")
        return found

    def done(self) -> Edited:
        return self.fields, self.identifiers


def walk(fields: list[Json], parent: int | None, in_key: bool) -> Iterator[Slot]:
    for item in fields:
        slot = Slot(item["id"], item, "field", in_key, fields, parent)
        yield slot
        yield from _inside(slot)


def _inside(slot: Slot) -> Iterator[Slot]:
    kind = slot.kind
    if not isinstance(kind, dict):
        return
    if kind["type"] == "struct":
        yield from walk(kind["fields"], slot.field_id, slot.in_key)
        return
    roles = ("element",) if kind["type"] == "list" else ("key", "value")
    for role in roles:
        inner = Slot(kind[f"{role}-id"], kind, role, slot.in_key or role == "key", [], slot.field_id)
        yield inner
        yield from _inside(inner)


def ids_in(kind: Any) -> set[int]:
    """All ids inside a type."""
    return {slot.field_id for slot in _inside(Slot(0, {"type": kind}, "field", False, [], None))}


def _storable(fields: list[Json]) -> int:
    return sum(item["type"] != "unknown" for item in fields)


# --- legal by construction -------------------------------------------------------------------------------------------


def adds_a_column(editor: Editor) -> Edited | None:
    """Optional, anywhere but in a map key; on version 3 with defaults at times."""
    _, fields = editor.draw.choice(editor.structs())
    added = any_field(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    added["required"] = False
    if editor.version >= 3 and chance(editor.draw, 50):
        _give_defaults(editor, added)
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


def _give_defaults(editor: Editor, added: Json) -> None:
    for key in ("initial-default", "write-default"):
        default = default_for(editor.draw, added["type"])
        if default is not None and chance(editor.draw, 70):
            added[key] = default


def drops_a_column(editor: Editor) -> Edited | None:
    """Nobody's identifier or source, and not the last one of its struct."""
    kept = {ANCHOR, *editor.sources(every=False)}
    kept.update(editor.identifiers)

    def free(slot: Slot) -> bool:
        inside = {slot.field_id, *ids_in(slot.kind)}
        left = _storable(slot.siblings) - (slot.kind != "unknown")
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


# --- anything at all -------------------------------------------------------------------------------------------------


def retypes(editor: Editor) -> Edited | None:
    """Any primitive to any other."""
    slot = editor.pick(lambda slot: isinstance(slot.kind, str))
    if slot is None:
        return None
    slot.holder[slot.type_key] = primitive(editor.draw, 3 if chance(editor.draw, 30) else editor.version)
    _drop_unfit_defaults(slot)
    return editor.done()


def rescales(editor: Editor) -> Edited | None:
    """A decimal to another scale, as PyIceberg lets through."""
    slot = editor.pick(lambda slot: isinstance(slot.kind, str) and slot.kind.startswith("decimal"))
    if slot is None:
        return None
    slot.holder[slot.type_key] = "decimal(12, 2)" if slot.kind == "decimal(12, 4)" else "decimal(12, 4)"
    _drop_unfit_defaults(slot)
    return editor.done()


def reshapes(editor: Editor) -> Edited | None:
    """A new type of any shape under an old id."""
    slot = editor.pick(lambda slot: True)
    if slot is None:
        return None
    kind = any_type(editor.draw, editor.version, editor.new_id, editor.world.fresh_name)
    slot.holder[slot.type_key] = "int" if kind == "unknown" and slot.role != "field" else kind
    _drop_unfit_defaults(slot)
    return editor.done()


def _drop_unfit_defaults(slot: Slot) -> None:
    if slot.role == "field":
        slot.holder.pop("initial-default", None)
        slot.holder.pop("write-default", None)
        if slot.kind == "unknown":
            slot.holder["required"] = False


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
        _give_defaults(editor, added)
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
    _drop_unfit_defaults(slot)
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
        _give_defaults(editor, slot.holder)
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
