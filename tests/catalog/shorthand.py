"""Requests in few words, written as the JSON that clients send."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Sequence
from typing import Any

from app.catalog import commits, namespaces, tables, views
from app.catalog.context import Caller
from app.catalog.results import Committed, LoadedTable, LoadedView
from app.iceberg.partition import parse_unbound_partition_spec
from app.iceberg.requirement import parse_table_requirements, parse_view_requirements
from app.iceberg.schema import parse_schema
from app.iceberg.update import parse_table_updates, parse_view_updates
from app.iceberg.view import view_version_from_json
from tests.catalog.world import ALICE, HOME, World

NS = ("shop",)
Json = dict[str, Any]

CREATE: Json = {"type": "assert-create"}


def field(field_id: int, name: str, kind: Any = "long", required: bool = False) -> Json:
    return {"id": field_id, "name": name, "type": kind, "required": required}


def schema_json(*fields: Json, schema_id: int = 0) -> Json:
    return {"type": "struct", "schema-id": schema_id, "fields": list(fields)}


ORDERS = schema_json(field(7, "id", required=True), field(9, "price", "decimal(9,2)"))


def request(
    name: str,
    schema: Json = ORDERS,
    *,
    location: str | None = None,
    stage: bool = False,
    spec: Json | None = None,
    **properties: str,
) -> tables.TableRequest:
    return tables.TableRequest(
        name=name,
        schema=parse_schema(schema),
        spec=None if spec is None else parse_unbound_partition_spec(spec, "$"),
        location=location,
        stage=stage,
        properties={key.replace("_", "-"): value for key, value in properties.items()},
    )


def namespace(world: World, levels: tuple[str, ...] = NS) -> None:
    world.run(namespaces.create_namespace(world.ctx, ALICE, HOME, levels, {}))


def create(world: World, name: str, levels: tuple[str, ...] = NS, caller: Caller = ALICE, **more: Any) -> LoadedTable:
    return world.run(tables.create_table(world.ctx, caller, HOME, levels, request(name, **more)))


def load(world: World, name: str, levels: tuple[str, ...] = NS, **more: Any) -> Any:
    return world.run(loading(world, name, levels, **more))


def loading(world: World, name: str, levels: tuple[str, ...] = NS, **more: Any) -> Coroutine[Any, Any, Any]:
    return tables.load_table(world.ctx, ALICE, HOME, levels, name, **more)


def metadata(world: World, name: str, levels: tuple[str, ...] = NS) -> Json:
    return document(load(world, name, levels).metadata)


def document(data: bytes) -> Json:
    decoded: Json = json.loads(data)
    return decoded


def committing(
    world: World,
    name: str,
    updates: Sequence[Json],
    requirements: Sequence[Json] = (),
    levels: tuple[str, ...] = NS,
    caller: Caller = ALICE,
) -> Coroutine[Any, Any, Committed]:
    return commits.commit_table(
        world.ctx,
        caller,
        HOME,
        levels,
        name,
        parse_table_requirements(list(requirements)),
        parse_table_updates(list(updates)),
    )


def commit(
    world: World, name: str, updates: Sequence[Json], requirements: Sequence[Json] = (), **more: Any
) -> Committed:
    return world.run(committing(world, name, updates, requirements, **more))


def change(
    name: str, updates: Sequence[Json], requirements: Sequence[Json] = (), levels: tuple[str, ...] = NS
) -> commits.TableChange:
    return commits.TableChange(
        levels, name, parse_table_requirements(list(requirements)), parse_table_updates(list(updates))
    )


def transact(world: World, *changes: commits.TableChange, caller: Caller = ALICE) -> None:
    world.run(commits.commit_transaction(world.ctx, caller, HOME, changes))


def set_properties(**properties: str) -> Json:
    return {"action": "set-properties", "updates": properties}


def add_snapshot(snapshot_id: int, parent: int | None, sequence: int, **more: Any) -> Json:
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": 1_800_000_000_000 + sequence,
        "manifest-list": f"file:///nowhere/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    return {"action": "add-snapshot", "snapshot": snapshot}


def set_main(snapshot_id: int) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}


def append(snapshot_id: int, parent: int | None, sequence: int, **more: Any) -> list[Json]:
    return [add_snapshot(snapshot_id, parent, sequence, **more), set_main(snapshot_id)]


def first_version(staged: Json, **properties: str) -> list[Json]:
    """The updates by which a client completes a staged create."""
    return [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": staged["format-version"]},
        {"action": "add-schema", "schema": staged["schemas"][0], "last-column-id": staged["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
        {"action": "set-properties", "updates": {**staged["properties"], **properties}},
    ]


def view_version(sql: str, version_id: int = 1, schema_id: int = 0, dialect: str = "spark") -> Json:
    return {
        "version-id": version_id,
        "timestamp-ms": 1_800_000_000_000,
        "schema-id": schema_id,
        "summary": {"engine-name": "test"},
        "default-namespace": list(NS),
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
    }


def create_view(
    world: World, name: str, sql: str = "select 1", levels: tuple[str, ...] = NS, caller: Caller = ALICE, **more: Any
) -> LoadedView:
    wanted = views.ViewRequest(
        name=name,
        schema=parse_schema(schema_json(field(1, "one"))),
        view_version=view_version_from_json(view_version(sql), "$"),
        **more,
    )
    return world.run(views.create_view(world.ctx, caller, HOME, levels, wanted))


def replace_view(
    world: World, name: str, updates: Sequence[Json], requirements: Sequence[Json] = (), caller: Caller = ALICE
) -> LoadedView:
    return world.run(
        views.replace_view(
            world.ctx,
            caller,
            HOME,
            NS,
            name,
            parse_view_requirements(list(requirements)),
            parse_view_updates(list(updates)),
        )
    )


def keyed(number: int, fingerprint: str = "f") -> Caller:
    """Alice with an Idempotency-Key."""
    return Caller(
        principal="alice", client="pyiceberg", client_version="0.12.0", key=f"0190-{number}", fingerprint=fingerprint
    )
