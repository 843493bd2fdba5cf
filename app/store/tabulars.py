"""Tables and views in SQL: the pointer, its swap, and the life of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.errors import (
    AlreadyExists,
    IcekeelError,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    SwapLost,
    UuidInUse,
    dotted,
)
from app.ports import Columns, CreateTabular, DropTabular, Kind, Levels, RenameTabular, SwapTabular, Tabular
from app.store import observations, policies, purges, waivers
from app.store.json_text import decode_map
from app.store.overlaps import refuse_overlap
from app.store.paths import checked_name, levels_of, location_key, path_of
from app.store.program import Call, Lock, Params, Program, Row, Statement

BY_NAME: Final = Statement("tabulars.BY_NAME")
POINTER: Final = Statement("tabulars.POINTER")
PLACE: Final = ("warehouse", "path", "name")
"""The parameters of BY_NAME and POINTER, in their order."""
BY_ID: Final = Statement("tabulars.BY_ID")
NAMES: Final = Statement("tabulars.NAMES")
ROOTS_OF: Final = Statement("tabulars.ROOTS_OF")
_ADD_ROOT: Final = Statement("tabulars.ADD_ROOT")
_FORGET_ROOTS: Final = Statement("tabulars.FORGET_ROOTS")
_TARGET: Final = Statement("tabulars.TARGET")
_INSERT: Final = Statement("tabulars.INSERT")
SWAP: Final = Statement("tabulars.SWAP")
_SWAP_ELSEWHERE: Final = Statement("tabulars.SWAP_ELSEWHERE")
_HOLD: Final = Statement("tabulars.HOLD")
_UUID_HOLDER: Final = Statement("tabulars.UUID_HOLDER")
_DELETE: Final = Statement("tabulars.DELETE")
_SOURCE: Final = Statement("tabulars.SOURCE")
_RENAME: Final = Statement("tabulars.RENAME")


def tabular_of(row: Row) -> Tabular:
    (
        tabular_id,
        warehouse,
        path,
        name,
        kind,
        uuid,
        location,
        metadata_location,
        version,
        format_version,
        last_column_id,
        current_schema_id,
        field_count,
        created_at_ms,
        updated_at_ms,
        schema_count,
        schema_changed_at_ms,
        properties,
    ) = row
    return Tabular(
        tabular_id=tabular_id,
        warehouse=warehouse,
        namespace=levels_of(path),
        name=name,
        kind=kind,
        uuid=uuid,
        location=location,
        metadata_location=metadata_location,
        version=version,
        columns=Columns(
            format_version=format_version,
            last_column_id=last_column_id,
            current_schema_id=current_schema_id,
            field_count=field_count,
            schema_count=schema_count,
            schema_changed_at_ms=schema_changed_at_ms,
        ),
        created_at_ms=created_at_ms,
        updated_at_ms=updated_at_ms,
        namespace_properties=decode_map(properties),
    )


def _uuid_taken(uuid: str, name: str) -> UuidInUse:
    return UuidInUse(
        f"UUID {uuid} already belongs to {name} in this warehouse. Drop or unregister that one first, or use another "
        "warehouse.",
        uuid=uuid,
    )


def _name_taken(asked: Kind, existing: Kind, levels: Levels, name: str) -> AlreadyExists:
    if asked != existing:
        return AlreadyExists.same_name(existing, levels, name)
    return AlreadyExists.table(levels, name) if asked == "table" else AlreadyExists.view(levels, name)


def _missing(kind: Kind, levels: Levels, name: str) -> IcekeelError:
    return NoSuchTable.named(levels, name) if kind == "table" else NoSuchView.named(levels, name)


def _columns(columns: Columns) -> dict[str, Any]:
    return {
        "format_version": columns.format_version,
        "last_column_id": columns.last_column_id,
        "current_schema_id": columns.current_schema_id,
        "field_count": columns.field_count,
        "schema_count": columns.schema_count,
        "schema_changed_at_ms": columns.schema_changed_at_ms,
    }


def create(op: CreateTabular) -> Program[None]:
    """The unit holds the location lock already when the location is exclusive or its files were there before."""
    key = location_key(op.location)
    target = {
        "warehouse": op.warehouse,
        "path": path_of(op.namespace),
        "name": checked_name(op.name),
        **_uuids(op.uuid),
    }
    found = yield Call(_TARGET, target)
    if not found.rows:
        raise NoSuchNamespace.named(op.namespace)
    namespace_id, taken_by, uuid_holder = found.rows[0]
    if taken_by is not None:
        raise _name_taken(op.kind, taken_by, op.namespace, op.name)
    if uuid_holder is not None:
        raise _uuid_taken(op.uuid, uuid_holder)
    roots = _keyed(op.roots)
    if op.exclusive_location:
        for place_key, place in {key: op.location, **roots}.items():
            yield from refuse_overlap(op.warehouse, place, place_key, is_location=place_key == key)
    if op.registered:
        yield from purges.refuse_begun((op.location, *op.roots))
    yield Call(
        _INSERT,
        {
            **target,
            **_columns(op.columns),
            "namespace_id": namespace_id,
            "kind": op.kind,
            "location": op.location,
            "location_key": key,
            "metadata_location": op.metadata_location,
            "now_ms": op.now_ms,
        },
    )
    yield from _add_roots(op.warehouse, op.uuid, roots)


def _uuids(uuid: str) -> dict[str, str]:
    return {"uuid": uuid, "uuid_lower": uuid.lower(), "uuid_upper": uuid.upper()}


def _keyed(places: Iterable[str]) -> dict[str, str]:
    """Places by their canonical form."""
    return {location_key(place): place for place in places}


def _add_roots(warehouse: str, uuid: str, roots: Mapping[str, str]) -> Program[None]:
    for key, root in roots.items():
        yield Call(_ADD_ROOT, {"warehouse": warehouse, "uuid": uuid, "root_key": key, "root": root})


def swap_params(op: SwapTabular) -> Params:
    return {
        **_columns(op.columns),
        "id": op.tabular_id,
        "expected": op.expected,
        "metadata_location": op.metadata_location,
        "uuid": op.uuid,
        "location": op.location,
        "now_ms": op.now_ms,
    }


def swap(op: SwapTabular) -> Program[None]:
    """The one-statement swap first; what it does not match is told apart only afterwards."""
    params = swap_params(op)
    if op.roots is None:
        swapped = yield Call(SWAP, params)
        if swapped.touched:
            return
    held = yield Call(_HOLD, {"id": op.tabular_id, "expected": op.expected})
    if not held.rows:
        raise SwapLost("The table moved on or is gone", tabular_id=op.tabular_id, expected=op.expected)
    warehouse, uuid, old_key, old_location = held.rows[0]
    if uuid != op.uuid:
        holder = yield Call(_UUID_HOLDER, {"warehouse": warehouse, "uuid": op.uuid})
        if holder.rows:
            raise _uuid_taken(op.uuid, holder.rows[0][1])
    key = location_key(op.location)
    held_roots = yield Call(ROOTS_OF, {"id": op.tabular_id})
    roots = None if op.roots is None else _keyed(op.roots)
    if op.exclusive_location:
        had = {old_key, *(root_key for (root_key,) in held_roots.rows)}
        # A root may be shared, so one that becomes the location is looked at anew.
        new = {k: place for k, place in (roots or {}).items() if k not in had}
        if key != old_key:
            new[key] = op.location
        if new:
            yield Lock()
        for place_key, place in new.items():
            yield from refuse_overlap(warehouse, place, place_key, op.tabular_id, is_location=place_key == key)
    if op.registered:
        yield from purges.refuse_begun((op.location, *(op.roots or ())))
    moved = yield Call(_SWAP_ELSEWHERE, {**params, "location_key": key})
    if not moved.touched:
        raise SwapLost("The table moved on or is gone", tabular_id=op.tabular_id, expected=op.expected)
    if roots is None:
        return
    if op.keeps_roots:
        if key != old_key:
            roots.setdefault(old_key, old_location)
        roots = {k: place for k, place in roots.items() if (k,) not in map(tuple, held_roots.rows)}
    else:
        yield Call(_FORGET_ROOTS, {"id": op.tabular_id})
    yield from _add_roots(warehouse, op.uuid, roots)


_IDENTITY: Final = Statement("tabulars.IDENTITY")


def drop(op: DropTabular) -> Program[None]:
    """Settings go with the row; waivers and observations too, unless another warehouse still holds the table."""
    expected = {"id": op.tabular_id, "expected": op.expected}
    found = yield Call(_IDENTITY, expected)
    yield Call(_FORGET_ROOTS, {"id": op.tabular_id})
    deleted = yield Call(_DELETE, expected)
    if not found.rows or not deleted.touched:
        raise SwapLost("The table moved on or is gone", tabular_id=op.tabular_id, expected=op.expected)
    warehouse, uuid = found.rows[0]
    yield from policies.forget_table(warehouse, uuid)
    yield from waivers.forget_table(uuid)
    yield from observations.forget_table(uuid)


def rename(op: RenameTabular) -> Program[None]:
    """A rename onto itself changes nothing and succeeds."""
    (from_levels, from_name), (to_levels, to_name) = op.source, op.target
    source_path, target_path = path_of(from_levels), path_of(to_levels)
    source = yield Call(
        _SOURCE,
        {
            "warehouse": op.warehouse,
            "path": source_path,
            "name": checked_name(from_name),
            "kind": op.kind,
        },
    )
    if not source.rows:
        raise _missing(op.kind, from_levels, from_name)
    tabular_id, uuid = source.rows[0]
    if op.source == op.target:
        return
    target = yield Call(
        _TARGET,
        {
            "warehouse": op.warehouse,
            "path": target_path,
            "name": checked_name(to_name),
            **_uuids(uuid),
        },
    )
    if not target.rows:
        raise NoSuchNamespace.named(to_levels)
    namespace_id, taken_by, _ = target.rows[0]
    if taken_by is not None:
        raise AlreadyExists(
            f"Cannot rename {dotted(from_levels, from_name)} to {dotted(to_levels, to_name)}. "
            f"{taken_by.capitalize()} already exists"
        )
    yield Call(_RENAME, {"id": tabular_id, "namespace_id": namespace_id, "name": to_name, "now_ms": op.now_ms})
    if source_path != target_path:
        yield from policies.move_table(op.warehouse, uuid, target_path)
