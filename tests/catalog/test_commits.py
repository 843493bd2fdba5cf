"""The commit pipeline, one table at a time."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import tables
from app.catalog.results import Committed
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    EvolutionRefused,
    NoSuchNamespace,
    NoSuchTable,
    TooManyRequests,
    ValidationFailed,
)
from app.events import Created, OrderChanged, SchemaChanged, SpecChanged
from tests.catalog.shorthand import (
    CREATE,
    NS,
    add_snapshot,
    append,
    commit,
    committing,
    create,
    create_view,
    document,
    field,
    first_version,
    load,
    metadata,
    namespace,
    schema_json,
    set_properties,
)
from tests.catalog.world import ALICE, HOME, World


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    return world


def uuid_of(world: World, name: str = "t") -> dict[str, str]:
    return {"type": "assert-table-uuid", "uuid": metadata(world, name)["table-uuid"]}


def add_column(*fields: dict[str, object]) -> list[dict[str, object]]:
    old = [field(1, "id", required=True), field(2, "price", "decimal(9,2)")]
    return [
        {"action": "add-schema", "schema": schema_json(*old, *fields)},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def test_what_a_commit_answers_is_what_the_next_load_shows(shop: World) -> None:
    """Same location, bytes and tag, and the file holds them."""
    done, loaded = commit(shop, "t", append(1, None, 1)), load(shop, "t")
    assert (done.metadata_location, done.metadata, done.tag) == (
        loaded.metadata_location,
        loaded.metadata,
        loaded.tag,
    )
    assert Path(done.metadata_location).read_bytes() == done.metadata


def test_each_version_names_its_predecessor(shop: World) -> None:
    """Versions count up in the file name, and the log lists the files before, oldest first."""
    files = [load(shop, "t").metadata_location]
    files += [commit(shop, "t", [set_properties(n=str(number))]).metadata_location for number in range(3)]
    assert [os.path.basename(f)[:6] for f in files] == ["00000-", "00001-", "00002-", "00003-"]
    assert [e["metadata-file"] for e in metadata(shop, "t")["metadata-log"]] == files[:-1]


def test_a_commit_that_changes_nothing_writes_nothing(shop: World) -> None:
    """The present state is answered, with the present location."""
    before = commit(shop, "t", [set_properties(a="1")])
    files = shop.files()
    for updates in ([], [set_properties(a="1")], [{"action": "remove-properties", "removals": ["nope"]}]):
        same = commit(shop, "t", updates)
        assert (same.metadata_location, same.metadata, same.tag) == (
            before.metadata_location,
            before.metadata,
            before.tag,
        )
    assert shop.files() == files


def test_requirements_come_before_updates(shop: World) -> None:
    """A caller with a stale view is told so, even when its updates could never be applied."""
    stale = {"type": "assert-current-schema-id", "current-schema-id": 7}
    with pytest.raises(CommitFailed, match="Requirement failed: current schema changed"):
        commit(shop, "t", [{"action": "set-current-schema", "schema-id": 99}], [stale])
    with pytest.raises(CommitFailed, match="Requirement failed: UUID does not match"):
        commit(shop, "t", [], [{"type": "assert-table-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}])


def test_a_refusal_changes_nothing_and_leaves_no_file(shop: World) -> None:
    """Whatever the reason."""
    before, files = load(shop, "t"), shop.files()
    for updates, kind in (
        ([set_properties(a="1"), {"action": "set-current-schema", "schema-id": 99}], BadRequest),
        ([set_properties(a="1"), {"action": "set-location", "location": "s3://elsewhere/x"}], BadRequest),
        (add_column(field(2, "again")), BadRequest),
    ):
        with pytest.raises(kind):
            commit(shop, "t", updates)
    assert load(shop, "t").metadata == before.metadata and shop.files() == files


def test_a_replacement_never_stores_a_spec_that_java_cannot_bind(shop: World) -> None:
    """With history it is refused with the ways out, without one the old spec goes; later commits find a sound table."""
    fields = [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "day"}]
    created = [{"action": "add-spec", "spec": {"fields": fields}}, {"action": "set-default-spec", "spec-id": -1}]
    dated, replaced = schema_json(field(1, "id", "date")), schema_json(field(1, "id", "string"))
    away = [{"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1}]
    for name in ("never", "written"):
        create(shop, name, schema=dated)
        commit(shop, name, created)
    commit(shop, "written", append(1, None, 1))
    replacement = [
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "add-schema", "schema": replaced},
        {"action": "set-current-schema", "schema-id": -1},
        *away,
    ]
    with pytest.raises(EvolutionRefused, match=r"^ICE511 .*remove-partition-specs"):
        commit(shop, "written", replacement)
    commit(shop, "never", replacement[1:])
    assert [spec["spec-id"] for spec in metadata(shop, "never")["partition-specs"]] == [0]
    assert metadata(shop, "never")["schemas"][-1]["fields"][0]["type"] == "string"


def test_the_engine_refuses_with_code_and_every_finding(shop: World) -> None:
    """A narrowed decimal is unreadable; the message starts with the code, the findings carry the rest."""
    commit(shop, "t", append(1, None, 1))
    narrowed = schema_json(field(1, "id", required=True), field(2, "price", "decimal(5,2)"))
    with pytest.raises(EvolutionRefused, match=r"^ICE\d{3} ") as refused:
        commit(
            shop,
            "t",
            [{"action": "add-schema", "schema": narrowed}, {"action": "set-current-schema", "schema-id": -1}],
        )
    assert refused.value.findings[0].field_id == 2


def test_a_legal_evolution_passes_and_is_journaled(shop: World) -> None:
    """Schema, spec and order changes are kept with their difference by field id; appends are not."""
    commit(shop, "t", append(1, None, 1))
    commit(shop, "t", add_column(field(3, "note", "string")))
    spec = {"fields": [{"source-id": 3, "transform": "identity", "name": "note_part"}]}
    commit(shop, "t", [{"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}])
    order = {
        "order-id": 1,
        "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
    }
    commit(
        shop,
        "t",
        [{"action": "add-sort-order", "sort-order": order}, {"action": "set-default-sort-order", "sort-order-id": -1}],
    )
    entries = [e.event for e in reversed(shop.run(shop.store.journal(table_uuid=metadata(shop, "t")["table-uuid"])))]
    kinds = [type(event) for event in entries]
    assert kinds == [Created, SchemaChanged, SpecChanged, OrderChanged, SchemaChanged, SpecChanged, OrderChanged]
    changed = entries[4]
    assert isinstance(changed, SchemaChanged)
    assert (changed.from_schema_id, changed.to_schema_id, changed.last_column_id) == (0, 1, 3)
    assert (changed.by, changed.client, changed.namespace, changed.name) == ("alice", "pyiceberg 0.12.0", NS, "t")
    assert [c["field-id"] for c in changed.changes] == [3]


def test_a_commit_to_what_is_not_there(shop: World) -> None:
    """A missing table, a missing namespace and a view are all NoSuchTable."""
    create_view(shop, "v")
    for levels, name in ((NS, "x"), (("nope",), "t"), (NS, "v")):
        with pytest.raises(NoSuchTable):
            shop.run(committing(shop, name, [set_properties(a="1")], levels=levels))


def test_completing_a_staged_create_takes_the_staged_identity(shop: World) -> None:
    """uuid, ids and location are the client's; the log is empty; the snapshot of a CTAS is in."""
    staged = document(create(shop, "u", stage=True, spec={"fields": []}).metadata)
    done = document(commit(shop, "u", [*first_version(staged), *append(1, None, 1)], [CREATE]).metadata)
    for key in ("table-uuid", "location", "schemas", "last-column-id", "partition-specs", "sort-orders", "properties"):
        assert done[key] == staged[key], key
    assert done["metadata-log"] == [] and done["current-snapshot-id"] == 1
    assert load(shop, "u").metadata_location.startswith(staged["location"] + "/metadata/00000-")


def test_a_staged_create_that_came_too_late(shop: World) -> None:
    """409 in the words that clients match, for a table; a view of that name says so; a missing namespace too."""
    staged = document(create(shop, "u", stage=True).metadata)
    create(shop, "u")
    files = shop.files()
    with pytest.raises(CommitFailed, match=r"^Requirement failed: table already exists$"):
        commit(shop, "u", first_version(staged), [CREATE])
    create_view(shop, "w")
    files = shop.files()
    with pytest.raises(AlreadyExists, match=r"^View with same name already exists: shop\.w$"):
        commit(shop, "w", first_version(staged), [CREATE])
    with pytest.raises(NoSuchNamespace):
        commit(shop, "u", first_version(staged), [CREATE], levels=("nope",))
    with pytest.raises(NoSuchTable):
        commit(shop, "x", first_version(staged))
    assert shop.files() == files


def test_a_completed_stage_is_checked_like_a_create(shop: World) -> None:
    """Name, location and overlap are looked at again: nobody has to have staged here."""
    staged = document(create(shop, "u", stage=True).metadata)
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        commit(shop, "u", first_version({**staged, "location": "/elsewhere"}), [CREATE])
    with pytest.raises(ValidationFailed):
        commit(shop, "u", first_version({**staged, "location": metadata(shop, "t")["location"]}), [CREATE])
    with pytest.raises(BadRequest):
        commit(shop, "..", first_version(staged), [CREATE])


def test_of_racing_stage_completions_one_wins(shop: World) -> None:
    """In one process and across two; the losers leave no file."""
    other = shop.run(shop.second())
    staged = [document(create(shop, "u", stage=True).metadata) for _ in range(8)]
    files = shop.files()

    async def race() -> list[object]:
        tries = [
            committing(world, "u", first_version(one), [CREATE])
            for world, one in zip((shop, other) * 4, staged, strict=True)
        ]
        return list(await asyncio.gather(*tries, return_exceptions=True))

    results = shop.run(race())
    assert sum(isinstance(r, Committed) for r in results) == 1
    assert all(isinstance(r, (Committed, CommitFailed)) for r in results)
    assert len(shop.files()) == len(files) + 1


def test_parallel_commits_all_take_effect(shop: World) -> None:
    """Forty writers in two processes: every accepted property is there, each file names its real predecessor."""
    other = shop.run(shop.second())
    shop.ctx = replace(shop.ctx, limits=replace(shop.ctx.limits, commit_attempts=60))
    other.ctx = replace(other.ctx, limits=replace(other.ctx.limits, commit_attempts=60))
    required = uuid_of(shop)

    async def race() -> list[object]:
        tries = [
            committing(world, "t", [set_properties(**{f"k{n}": str(n)})], [required])
            for n, world in zip(range(40), (shop, other) * 20, strict=True)
        ]
        return list(await asyncio.gather(*tries, return_exceptions=True))

    results = shop.run(race())
    assert all(isinstance(r, Committed) for r in results)
    final = metadata(shop, "t")
    assert {f"k{n}": str(n) for n in range(40)}.items() <= final["properties"].items()
    log = [e["metadata-file"] for e in final["metadata-log"]] + [load(shop, "t").metadata_location]
    assert len(log) == len(set(log)) == 41 == len([f for f in shop.files() if "/metadata/" in f])
    assert [e["timestamp-ms"] for e in final["metadata-log"]] == sorted(
        e["timestamp-ms"] for e in final["metadata-log"]
    )


def test_of_two_first_appends_one_is_refused(shop: World) -> None:
    """`assert-ref-snapshot-id main null` holds for the first writer only."""
    empty = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}

    async def race() -> list[object]:
        tries = (committing(shop, "t", append(n, None, 1), [empty]) for n in (1, 2))
        return list(await asyncio.gather(*tries, return_exceptions=True))

    first, second = shop.run(race())
    assert isinstance(first, Committed)
    assert isinstance(second, CommitFailed) and "main was created concurrently" in second.message


def test_a_spent_sequence_number_is_a_conflict(shop: World) -> None:
    """Not a bad request: a refresh cures it. A parentless snapshot may have any."""
    commit(shop, "t", append(1, None, 5))
    with pytest.raises(CommitFailed):
        commit(shop, "t", [add_snapshot(2, 1, 5)])
    commit(shop, "t", [add_snapshot(3, None, 2)])


def test_a_full_queue_turns_a_commit_away_untouched(shop: World) -> None:
    """With room for one waiter, the third writer is told to come back, and nothing of its commit is stored."""
    shop.ctx = replace(shop.ctx, limits=replace(shop.ctx.limits, queue_length=1))

    async def race() -> list[object]:
        tries = (committing(shop, "t", [set_properties(**{f"k{n}": "1"})]) for n in range(3))
        return list(await asyncio.gather(*tries, return_exceptions=True))

    results = shop.run(race())
    assert [type(r).__name__ for r in results] == ["Committed", "Committed", "TooManyRequests"]
    assert isinstance(results[2], TooManyRequests) and results[2].retry_after_s >= 1
    assert "k2" not in metadata(shop, "t")["properties"]


def test_moving_a_table_is_checked(shop: World) -> None:
    """Outside is refused, another table's place is refused, a free place is taken and used for the next file."""
    create(shop, "u", location=f"{shop.warehouse}/u")
    with pytest.raises(ValidationFailed):
        commit(shop, "t", [{"action": "set-location", "location": f"{shop.warehouse}/u/inner"}])
    done = commit(shop, "t", [{"action": "set-location", "location": f"{shop.warehouse}/moved/"}])
    assert document(done.metadata)["location"] == f"{shop.warehouse}/moved"
    assert done.metadata_location.startswith(f"{shop.warehouse}/moved/metadata/00001-")
    assert commit(shop, "t", [set_properties(a="1")]).metadata_location.startswith(f"{shop.warehouse}/moved/metadata/")


def test_path_properties_are_checked_when_they_come(shop: World) -> None:
    """Inside is fine and used; outside is refused by name."""
    inside = f"{shop.warehouse}/meta"
    done = commit(shop, "t", [{"action": "set-properties", "updates": {"write.metadata.path": inside}}])
    assert done.metadata_location.startswith(f"{inside}/00001-")
    with pytest.raises(BadRequest, match=r"write\.data\.path"):
        commit(shop, "t", [{"action": "set-properties", "updates": {"write.data.path": "/elsewhere"}}])


def test_gzip_files_carry_their_name_and_load_as_json(shop: World) -> None:
    """The answer is JSON, the file is gzip and says so, and another process reads it."""
    compress = {"action": "set-properties", "updates": {"write.metadata.compression-codec": "gzip"}}
    done = commit(shop, "t", [compress])
    assert done.metadata_location.endswith(".gz.metadata.json")
    assert Path(done.metadata_location).read_bytes()[:2] == b"\x1f\x8b"
    other = shop.run(shop.second())
    loaded = shop.run(tables.load_table(other.ctx, ALICE, HOME, NS, "t"))
    assert getattr(loaded, "metadata", b"") == done.metadata


def test_trimmed_metadata_files_go_only_when_asked(shop: World) -> None:
    """With deletion on, files that fell off the log are removed after the commit; the log keeps its three."""
    for number in range(3):
        commit(shop, "t", [set_properties(**{"n": str(number), "write.metadata.previous-versions-max": "3"})])
    for number in range(3, 6):
        commit(shop, "t", [set_properties(n=str(number))])
    assert len(shop.files()) == 7
    commit(shop, "t", [set_properties(**{"write.metadata.delete-after-commit.enabled": "true"})])
    commit(shop, "t", [set_properties(n="8")])
    shop.run(shop.ctx.caches.tasks.drain())
    kept = [e["metadata-file"] for e in metadata(shop, "t")["metadata-log"]]
    assert len(kept) == 3 and all(os.path.exists(f) for f in kept)
    assert len(shop.files()) == 9 - 2


def test_a_log_that_names_foreign_files_deletes_none_of_them(shop: World) -> None:
    """Only files where the table keeps its own metadata are ever trimmed."""
    create(shop, "victim")
    victim = load(shop, "victim").metadata_location
    current = load(shop, "t").metadata_location
    doc = metadata(shop, "t")
    doc["metadata-log"] = [{"timestamp-ms": doc["last-updated-ms"], "metadata-file": victim}]
    doc["properties"] |= {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    shop.run(tables.unregister_table(shop.ctx, ALICE, HOME, NS, "t"))
    Path(current).write_text(json.dumps(doc))
    shop.run(tables.register_table(shop.ctx, ALICE, HOME, NS, "t", current))
    commit(shop, "t", [set_properties(a="1")])
    shop.run(shop.ctx.caches.tasks.drain())
    assert os.path.exists(victim)


def test_clients_are_seen_without_a_write_on_the_way(shop: World) -> None:
    """Who loads and who commits reaches the store when observations are flushed."""
    commit(shop, "t", [set_properties(a="1")])
    load(shop, "t")
    uuid = metadata(shop, "t")["table-uuid"]
    assert shop.run(shop.store.sightings(uuid)) == ()
    shop.run(shop.ctx.caches.usage.flush(shop.store))
    seen = shop.run(shop.store.sightings(uuid))
    assert {(s.client, s.client_version, s.action) for s in seen} == {
        ("pyiceberg", "0.12.0", "load"),
        ("pyiceberg", "0.12.0", "commit"),
    }


def test_a_late_writer_whose_schema_was_widened_since_gets_a_conflict(shop: World) -> None:
    """A refresh cures it, so it is no refusal for good; nothing has changed, and the message names the rule."""
    commit(shop, "t", append(1, None, 1))
    wider = schema_json(field(1, "id", required=True), field(2, "price", "decimal(12,2)"))
    commit(
        shop,
        "t",
        [{"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1}],
    )
    commit(shop, "t", append(2, 1, 2, **{"schema-id": 1}))
    before = metadata(shop, "t")
    with pytest.raises(CommitFailed, match=r"ICE509 snapshot-schema-outdated.*Refresh the table"):
        commit(shop, "t", append(3, 2, 3, **{"schema-id": 0}))
    assert metadata(shop, "t") == before
    commit(shop, "t", append(3, 2, 3, **{"schema-id": 1}))


def test_a_late_writer_with_another_fault_is_refused_for_good(shop: World) -> None:
    """A new attempt would meet the other fault again."""
    commit(shop, "t", append(1, None, 1))
    wider = schema_json(field(1, "id", required=True), field(2, "price", "decimal(12,2)"))
    commit(
        shop,
        "t",
        [{"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1}],
    )
    commit(shop, "t", append(2, 1, 2, **{"schema-id": 1}))
    reserved = schema_json(*wider["fields"], field(2147483600, "x"))
    late = [{"action": "add-schema", "schema": reserved}, add_snapshot(3, 2, 3)]
    with pytest.raises(EvolutionRefused) as refused:
        commit(shop, "t", late)
    assert {found.code for found in refused.value.findings if found.refuses} == {"ICE101", "ICE509"}
