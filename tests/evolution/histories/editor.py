"""A schema open for edits: its JSON fields and every place with an id in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from app.iceberg.schema import schema_to_json
from tests.evolution.histories.drawing import (
    Draw,
    chance,
    default_for,
)
from tests.evolution.histories.world import World
from tests.evolution.tables import Json

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
        yield from inside_of(slot)


def inside_of(slot: Slot) -> Iterator[Slot]:
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
        yield from inside_of(inner)


def ids_in(kind: Any) -> set[int]:
    """All ids inside a type."""
    return {slot.field_id for slot in inside_of(Slot(0, {"type": kind}, "field", False, [], None))}


def stored_columns(fields: list[Json]) -> int:
    return sum(item["type"] != "unknown" for item in fields)


def give_defaults(editor: Editor, added: Json) -> None:
    for key in ("initial-default", "write-default"):
        default = default_for(editor.draw, added["type"])
        if default is not None and chance(editor.draw, 70):
            added[key] = default


def drop_unfit_defaults(slot: Slot) -> None:
    if slot.role == "field":
        slot.holder.pop("initial-default", None)
        slot.holder.pop("write-default", None)
        if slot.kind == "unknown":
            slot.holder["required"] = False
