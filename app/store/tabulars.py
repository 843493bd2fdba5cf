"""Tables and views in SQL: the pointer, its swap, and the life of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import delete, insert, literal_column, or_, select, update

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
from app.store import policies, purges, usage, waivers
from app.store.json_text import decode_map
from app.store.overlaps import refuse_overlap
from app.store.paths import checked_name, levels_of, location_key, path_of
from app.store.program import Call, Lock, Program, Row
from app.store.schema import namespace, tabular, tabular_root
from app.store.statements import Params, Statement, param

COLUMNS = (
    tabular.c.tabular_id,
    tabular.c.warehouse,
    namespace.c.path,
    tabular.c.name,
    tabular.c.kind,
    tabular.c.uuid,
    tabular.c.location,
    tabular.c.metadata_location,
    tabular.c.version,
    tabular.c.format_version,
    tabular.c.last_column_id,
    tabular.c.current_schema_id,
    tabular.c.field_count,
    tabular.c.created_at_ms,
    tabular.c.updated_at_ms,
    tabular.c.schema_count,
    tabular.c.schema_changed_at_ms,
    tabular.c.metadata_checksum,
    namespace.c.properties,
)
POINTER_COLUMNS = (
    tabular.c.tabular_id,
    tabular.c.kind,
    tabular.c.uuid,
    tabular.c.metadata_location,
    tabular.c.metadata_checksum,
)
JOINED = tabular.join(namespace, tabular.c.namespace_id == namespace.c.namespace_id)
_NAMESPACE_ID = (
    select(namespace.c.namespace_id)
    .where(namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))
    .scalar_subquery()
)
BY_NAME: Final = Statement(
    select(*COLUMNS)
    .select_from(JOINED)
    .where(
        namespace.c.warehouse == param("warehouse"),
        namespace.c.path == param("path"),
        tabular.c.name == param("name"),
    )
)
POINTER: Final = Statement(
    select(*POINTER_COLUMNS)
    .select_from(JOINED)
    .where(
        namespace.c.warehouse == param("warehouse"),
        namespace.c.path == param("path"),
        tabular.c.name == param("name"),
    )
)
BY_ID: Final = Statement(select(*COLUMNS).select_from(JOINED).where(tabular.c.tabular_id == param("id")))
# The namespace is a scalar subquery, not a join: either planner then walks the index in name order up to the limit.
NAMES: Final = Statement(
    select(tabular.c.name)
    .where(tabular.c.namespace_id == _NAMESPACE_ID, tabular.c.kind == param("kind"), tabular.c.name > param("after"))
    .order_by(tabular.c.name)
    .limit(param("limit"))
)
ROOTS_OF: Final = Statement(select(tabular_root.c.root_key).where(tabular_root.c.tabular_id == param("id")))
_ADD_ROOT: Final = Statement(
    insert(tabular_root).from_select(
        ["tabular_id", "warehouse", "root_key", "root"],
        select(tabular.c.tabular_id, tabular.c.warehouse, param("root_key"), param("root")).where(
            tabular.c.uuid == param("uuid"), tabular.c.warehouse == param("warehouse")
        ),
    )
)
_FORGET_ROOTS: Final = Statement(delete(tabular_root).where(tabular_root.c.tabular_id == param("id")))
_taken = tabular.alias("taken")
_same_uuid = tabular.alias("same_uuid")
_TARGET: Final = Statement(
    select(
        namespace.c.namespace_id,
        select(_taken.c.kind)
        .where(_taken.c.namespace_id == namespace.c.namespace_id, _taken.c.name == param("name"))
        .scalar_subquery(),
        select(_same_uuid.c.name)
        .where(
            # Clients write them in either case.
            or_(*(_same_uuid.c.uuid == param(name) for name in ("uuid", "uuid_lower", "uuid_upper"))),
            _same_uuid.c.warehouse == param("warehouse"),
        )
        .limit(literal_column("1"))
        .scalar_subquery(),
    ).where(namespace.c.warehouse == param("warehouse"), namespace.c.path == param("path"))
)
_INSERT: Final = Statement(
    insert(tabular)
    .inline()
    .values(
        warehouse=param("warehouse"),
        namespace_id=param("namespace_id"),
        name=param("name"),
        kind=param("kind"),
        uuid=param("uuid"),
        location=param("location"),
        location_key=param("location_key"),
        metadata_location=param("metadata_location"),
        version=literal_column("1"),
        format_version=param("format_version"),
        last_column_id=param("last_column_id"),
        current_schema_id=param("current_schema_id"),
        field_count=param("field_count"),
        schema_count=param("schema_count"),
        schema_changed_at_ms=param("schema_changed_at_ms"),
        metadata_checksum=param("checksum"),
        created_at_ms=param("now_ms"),
        updated_at_ms=param("now_ms"),
    )
)
_MOVED = {
    "metadata_location": param("metadata_location"),
    "version": tabular.c.version + literal_column("1"),
    "format_version": param("format_version"),
    "last_column_id": param("last_column_id"),
    "current_schema_id": param("current_schema_id"),
    "field_count": param("field_count"),
    "schema_count": param("schema_count"),
    "schema_changed_at_ms": param("schema_changed_at_ms"),
    "metadata_checksum": param("checksum"),
    "updated_at_ms": param("now_ms"),
}
_EXPECTED = (tabular.c.tabular_id == param("id"), tabular.c.metadata_location == param("expected"))
swap_in_place = (
    update(tabular)
    .where(*_EXPECTED, tabular.c.uuid == param("uuid"), tabular.c.location == param("location"))
    .values(**_MOVED)
)
SWAP: Final = Statement(swap_in_place)
"""The swap of a commit that keeps UUID and location: one statement, one indexed row, no indexed column changed."""
_SWAP_ELSEWHERE: Final = Statement(
    update(tabular)
    .where(*_EXPECTED)
    .values(**_MOVED, uuid=param("uuid"), location=param("location"), location_key=param("location_key"))
)
_HOLD: Final = Statement(
    select(tabular.c.warehouse, tabular.c.uuid, tabular.c.location_key, tabular.c.location)
    .where(*_EXPECTED)
    .with_for_update()
)
_UUID_HOLDER: Final = Statement(
    select(tabular.c.tabular_id, tabular.c.name).where(
        tabular.c.uuid == param("uuid"), tabular.c.warehouse == param("warehouse")
    )
)
_DELETE: Final = Statement(delete(tabular).where(*_EXPECTED))
_SOURCE: Final = Statement(
    select(tabular.c.tabular_id, tabular.c.uuid)
    .where(tabular.c.namespace_id == _NAMESPACE_ID, tabular.c.name == param("name"), tabular.c.kind == param("kind"))
    .with_for_update(key_share=True)
)
_RENAME: Final = Statement(
    update(tabular)
    .where(tabular.c.tabular_id == param("id"))
    .values(namespace_id=param("namespace_id"), name=param("name"), updated_at_ms=param("now_ms"))
)
_IDENTITY: Final = Statement(select(tabular.c.warehouse, tabular.c.uuid).where(*_EXPECTED).with_for_update())

PLACE: Final = ("warehouse", "path", "name")
"""The parameters of BY_NAME and POINTER, in their order."""


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
        checksum,
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
        checksum=checksum,
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
            "checksum": op.checksum,
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
        "checksum": op.checksum,
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
    yield from usage.forget_table(uuid)


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
