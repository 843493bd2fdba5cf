"""Commits that write data files: appends and replacements of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.iceberg.partition import PartitionSpec
from app.iceberg.schema import Schema, parse_schema, schema_to_json
from app.iceberg.snapshot import Snapshot
from tests.evolution.histories.drawing import any_field, chance, storable
from tests.evolution.histories.editor import Editor
from tests.evolution.histories.schema_acts import schema_updates
from tests.evolution.histories.truth import Written
from tests.evolution.histories.wild_edits import WILD
from tests.evolution.histories.world import Outcome, Unwarranted, World
from tests.evolution.tables import NOW, Json, remove_ref, schema, set_ref, struct


def appends(world: World) -> Outcome | None:
    """To main or another branch, under the current schema; at times a new file takes the place of all others."""
    name = world.draw.choice(["main", "main", *world.branches()])
    parent = world.branches().get(name)
    if parent is None and name != "main":
        return None
    return write(world, name, parent, world.table.schema, legal=True, overwrite=chance(world.draw, 10))


def appends_late(world: World) -> Outcome | None:
    """A writer that knew an older schema, current since the last write, commits only now."""
    branches = world.branches()
    schema_id = world.draw.choice([i for i in world.trail if i in world.table.schemas])
    written = world.table.schemas.get(schema_id)
    assert written is not None
    name = world.draw.choice(["main", *branches])
    outcome = write(world, name, branches.get(name), written, legal=False)
    assert_warranted(world, outcome)
    return outcome


def assert_warranted(world: World, outcome: Outcome | None) -> None:
    """Of a late writer: its schema was current while the parent was the head, so it reads all behind it. Only where
    schemas were removed meanwhile can nobody tell."""
    for found in () if outcome is None else outcome.refused_by:
        if found.code in ("ICE509", "ICE510") and "removed since: nothing tells" not in found.message:
            raise Unwarranted(f"late writer: {found.message}\n{world.story()}")


def appends_without_schema_id(world: World) -> Outcome | None:
    """As writers of version 1 did. Their snapshots are read with whatever schema is current."""
    if world.replaced:
        return None
    world.nameless = True
    return write(world, "main", world.branches().get("main"), world.table.schema, legal=True, named=False)


def write(
    world: World,
    branch: str,
    parent: Written | None,
    written: Schema,
    *,
    legal: bool,
    overwrite: bool = False,
    named: bool = True,
    before: Sequence[Json] = (),
    replaces: bool = False,
    act: str = "appends",
    fresh: bool = False,
) -> Outcome | None:
    if not storable(written):
        return None
    spec = _unpartitioned(world) if fresh else world.table.default_spec
    file = world.file(written, spec)
    files = (file,) if parent is None or overwrite else (*parent.files, file)
    ancestry = () if parent is None else (*parent.ancestry, parent)
    snapshot = Written(world.fresh_snapshot_id(), written, named, ancestry, files, frozenset({file.number}))
    sent = sent_snapshot(world, snapshot, parent)
    updates = [*before, {"action": "add-snapshot", "snapshot": sent}, set_ref(branch, snapshot.snapshot_id)]
    outcome = world.commit(f"{act} to {branch}", updates, legal=legal, written=[snapshot], replaces=replaces)
    if outcome.accepted:
        take_assigned_schema(world, snapshot)
    return outcome


def sent_snapshot(world: World, snapshot: Written, parent: Written | None) -> Json:
    table = world.table
    version = table.format_version
    sent: Json = {
        "snapshot-id": snapshot.snapshot_id,
        "timestamp-ms": NOW,
        "manifest-list": f"s3://lake/t/metadata/snap-{snapshot.snapshot_id}.avro",
        "summary": {"operation": "append"},
        "sequence-number": 0 if version == 1 else table.last_sequence_number + 1,
    }
    if snapshot.names_schema:
        sent["schema-id"] = snapshot.schema.schema_id
    if parent is not None:
        sent["parent-snapshot-id"] = parent.snapshot_id
    if version >= 3:
        sent.update({"first-row-id": table.next_row_id, "added-rows": len(snapshot.files[-1].rows)})
    return sent


def take_assigned_schema(world: World, snapshot: Written) -> None:
    """The server may have numbered the schema of a replacement differently."""
    listed: Snapshot | None = world.table.snapshots.get(snapshot.snapshot_id)
    if listed is not None and listed.schema_id is not None:
        found = world.table.schemas.get(listed.schema_id)
        assert found is not None
        snapshot.schema = found


def replaces(world: World) -> Outcome | None:
    """CREATE OR REPLACE TABLE, with or without rows: names keep their ids, whatever they are now."""
    return _replace(world, legal=not set(world.branches()) - {"main"})


def _replace(world: World, *, legal: bool) -> Outcome | None:
    if world.nameless:
        return None
    table = world.table
    editor = Editor(world, fields=[])
    known = {table.schema.name_of(field_id): field_id for field_id in table.schema.by_id}
    fields = [
        any_field(world.draw, table.format_version, editor.new_id, world.fresh_name)
        for _ in range(world.draw.randint(1, 4))
    ]
    if all(column["type"] == "unknown" for column in fields):
        fields[0]["type"] = "int"
    _take_names(world, fields, schema_to_json(table.schema)["fields"])
    _keep_ids(struct(*fields), known, "")
    updates: list[Json] = [remove_ref("main")] if "main" in table.refs else []
    schema_id = client_number(world, parse_schema(schema(*fields)))
    updates += schema_updates((fields, []), schema_id)
    updates += [
        {"action": "add-spec", "spec": {"spec-id": _unpartitioned(world).spec_id, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    if chance(world.draw, 50):
        return world.commit("replaces", updates, legal=legal, replaces=legal)
    written = parse_schema(schema(*fields, schema_id=schema_id))
    return write(
        world,
        "main",
        None,
        written,
        legal=legal,
        before=updates,
        replaces=legal,
        act="replaces and writes",
        fresh=True,
    )


def _unpartitioned(world: World) -> PartitionSpec:
    """The spec without fields, under the id that the table or a client gives it."""
    specs = world.table.partition_specs
    known = next((spec for spec in specs if not spec.fields), None)
    return PartitionSpec(max(spec.spec_id for spec in specs) + 1, ()) if known is None else known


def client_number(world: World, sent: Schema) -> int:
    """The id that a client gives the schema, from what it knows; the server may give another."""
    known = world.table.schemas.same_as(sent)
    return max(world.table.schemas) + 1 if known is None else known


def _take_names(world: World, fields: Sequence[Json], old: Sequence[Json]) -> None:
    """Give some of the new fields names of old ones, inside structs too."""
    names = [item["name"] for item in old]
    for item, name in zip(fields, world.draw.sample(names, min(len(names), len(fields))), strict=False):
        item["name"] = name
        was = next(other["type"] for other in old if other["name"] == name)
        if _is_struct(item["type"]) and _is_struct(was):
            _take_names(world, item["type"]["fields"], was["fields"])


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, dict) and kind["type"] == "struct"


def _keep_ids(kind: Any, known: Mapping[str, int], path: str) -> None:
    """The ids that a client keeps: those of equal full names, whatever they are now."""
    if _is_struct(kind):
        for item in kind["fields"]:
            name = f"{path}{item['name']}"
            item["id"] = known.get(name, item["id"])
            _keep_ids(item["type"], known, f"{name}.")
    elif isinstance(kind, dict):
        for role in ("element",) if kind["type"] == "list" else ("key", "value"):
            kind[f"{role}-id"] = known.get(f"{path}{role}", kind[f"{role}-id"])
            _keep_ids(kind[role], known, f"{path}{role}.")


def replaces_amid_branches(world: World) -> Outcome | None:
    """The same while another branch holds old files."""
    return _replace(world, legal=False) if set(world.branches()) - {"main"} else None


def replaces_and_points_back(world: World) -> Outcome | None:
    """A replacement that puts main back to where it was."""
    main = world.branches().get("main")
    if main is None or world.nameless:
        return None
    editor = Editor(world)
    edit = world.draw.choice(WILD)
    if edit(editor) is None:
        return None
    updates = [remove_ref("main"), *schema_updates(editor.done()), set_ref("main", main.snapshot_id)]
    return world.commit("replaces and points back", updates, legal=False)
