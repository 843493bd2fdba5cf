"""What happens to a table: schema changes, writes, refs, replacements, undos, rollbacks, expiry.

Each act makes one commit and says whether it is legal by construction. Those that are not may turn out legal: then the
reader has the word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.spec.partition import PartitionSpec
from app.spec.schema import Schema, parse_schema, schema_to_json
from app.spec.snapshot import Snapshot
from app.spec.transforms import parse_transform
from app.spec.types import DateType, PrimitiveType, UnknownType
from tests.evolution.histories.drawing import any_field, chance, storable
from tests.evolution.histories.edits import LEGAL, WILD, Edited, Editor, may_return, walk
from tests.evolution.histories.truth import Written
from tests.evolution.histories.world import Outcome, World
from tests.evolution.tables import NOW, Json, remove_ref, schema, set_ref, set_schema, upgrade

Act = Callable[[World], Outcome | None]


def _schema_updates(edited: Edited, schema_id: int = -1) -> list[Json]:
    fields, identifiers = edited
    sent = schema(*fields, schema_id=schema_id, identifiers=identifiers or None)
    return [{"action": "add-schema", "schema": sent}, set_schema()]


# --- schema changes --------------------------------------------------------------------------------------------------


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
    return world.commit(" and ".join(names), _schema_updates(editor.done()), legal=True)


def evolves_wildly(world: World) -> Outcome | None:
    """Anything, perhaps with a legal edit beside it."""
    editor = Editor(world)
    edits: list[Any] = [world.draw.choice(WILD)]
    if chance(world.draw, 25):
        edits.append(world.draw.choice((*LEGAL, *WILD)))
    names = [edit.__name__ for edit in edits if edit(editor) is not None]
    if not names:
        return None
    return world.commit(" and ".join(names), _schema_updates(editor.done()), legal=False)


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
    return world.commit("undoes", [set_schema(target.schema_id)], legal=_fits(world, target))


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
    targets = [target for target in targets if _fits(world, target) and _may_come_back(world, target)]
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
            if slot.required or slot.in_key:
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


def _fits(world: World, target: Schema) -> bool:
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


# --- writes ----------------------------------------------------------------------------------------------------------


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
    return write(world, name, branches.get(name), written, legal=False)


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
    sent = _snapshot(world, snapshot, parent)
    updates = [*before, {"action": "add-snapshot", "snapshot": sent}, set_ref(branch, snapshot.snapshot_id)]
    outcome = world.commit(f"{act} to {branch}", updates, legal=legal, written=[snapshot], replaces=replaces)
    if outcome.accepted:
        _take_assigned_schema(world, snapshot)
    return outcome


def _snapshot(world: World, snapshot: Written, parent: Written | None) -> Json:
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


def _take_assigned_schema(world: World, snapshot: Written) -> None:
    """The server may have numbered the schema of a replacement differently."""
    listed: Snapshot | None = world.table.snapshots.get(snapshot.snapshot_id)
    if listed is not None and listed.schema_id is not None:
        found = world.table.schemas.get(listed.schema_id)
        assert found is not None
        snapshot.schema = found


# --- refs ------------------------------------------------------------------------------------------------------------


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
    found = [s for s in found if s.schema.schema_id in world.table.schemas and _fits(world, s.schema)]
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


# --- partitioning ----------------------------------------------------------------------------------------------------

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
    updates = [
        {"action": "add-spec", "spec": {"spec-id": -1, "fields": fields}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    return world.commit("repartitions", updates, legal=True)


# --- replacement -----------------------------------------------------------------------------------------------------


def replaces(world: World) -> Outcome | None:
    """CREATE OR REPLACE TABLE, with or without rows: names keep their ids, whatever they are now."""
    return _replace(world, legal=not set(world.branches()) - {"main"})


def _replace(world: World, *, legal: bool) -> Outcome | None:
    if world.nameless:
        return None
    table = world.table
    editor = Editor(world, fields=[])
    known = {_name(table.schema, i): i for i in table.schema.by_id}
    count = world.draw.randint(1, 4)
    names = world.draw.sample(list(known), min(len(known), count))
    fields = [any_field(world.draw, table.format_version, editor.new_id, world.fresh_name) for _ in range(count)]
    for column, name in zip(fields, [name for name in names if "." not in name], strict=False):
        column["name"] = name
    editor.fields.extend(fields)
    if all(column["type"] == "unknown" for column in fields):
        fields[0]["type"] = "int"
    _keep_ids(fields, known, "")
    updates: list[Json] = [remove_ref("main")] if "main" in table.refs else []
    schema_id = _client_number(world, parse_schema(schema(*fields)))
    updates += _schema_updates((fields, []), schema_id)
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


def _client_number(world: World, sent: Schema) -> int:
    """The id that a client gives the schema, from what it knows; the server may give another."""
    known = world.table.schemas.same_as(sent)
    return max(world.table.schemas) + 1 if known is None else known


def _name(schema: Schema, field_id: int) -> str:
    return schema.name_of(field_id)


def _keep_ids(fields: list[Json], known: dict[str, int], prefix: str) -> None:
    for item in fields:
        name = prefix + item["name"]
        if name in known:
            item["id"] = known[name]


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
    updates = [remove_ref("main"), *_schema_updates(editor.done()), set_ref("main", main.snapshot_id)]
    return world.commit("replaces and points back", updates, legal=False)


ACTS: Sequence[tuple[int, Act]] = (
    (20, evolves),
    (16, evolves_wildly),
    (20, appends),
    (3, appends_late),
    (1, appends_without_schema_id),
    (2, upgrades),
    (4, undoes),
    (3, goes_back_to_a_schema),
    (3, goes_back_to_names),
    (3, branches_off),
    (2, tags),
    (3, drops_a_ref),
    (3, rolls_back),
    (3, points_a_branch_anywhere),
    (3, rolls_back_with_its_schema),
    (4, expires),
    (3, removes_anything),
    (6, repartitions),
    (4, replaces),
    (1, replaces_amid_branches),
    (1, replaces_and_points_back),
)


def step(world: World) -> tuple[str, Outcome | None]:
    """One random act."""
    total = sum(weight for weight, _ in ACTS)
    at = world.draw.randrange(total)
    for weight, act in ACTS:
        at -= weight
        if at < 0:
            return act.__name__, act(world)
    raise AssertionError


def first_fields(draw: Any, version: int) -> list[Json]:
    """The columns of a new table; the first is the anchor."""
    ids = iter(range(1, 1000))
    names = iter(range(1, 1000))
    anchor = {"id": next(ids), "name": "anchor", "required": chance(draw, 50), "type": "int"}
    fields = [any_field(draw, version, lambda: next(ids), lambda: f"a{next(names)}") for _ in range(draw.randint(1, 4))]
    return [anchor, *fields]
