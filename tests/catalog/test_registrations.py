"""Register and unregister."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.catalog import strictness, tables, views
from app.catalog.results import Committed, LoadedTable
from app.errors import (
    AlreadyExists,
    BadRequest,
    EvolutionRefused,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    PayloadTooLarge,
    UuidInUse,
    ValidationFailed,
)
from app.events import Created, Dropped, SchemaChanged, WaiverUsed
from app.rules import Severity
from tests.catalog.shorthand import (
    NS,
    Json,
    append,
    commit,
    create,
    create_view,
    document,
    field,
    load,
    metadata,
    namespace,
    schema_json,
    set_properties,
)
from tests.catalog.world import ALICE, HOME, World

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture
def shop(world: World) -> World:
    namespace(world)
    create(world, "t")
    commit(world, "t", append(1, None, 1))
    return world


def register(
    world: World, name: str, location: str, *, overwrite: bool = False, levels: tuple[str, ...] = NS
) -> LoadedTable:
    return world.run(tables.register_table(world.ctx, ALICE, HOME, levels, name, location, overwrite=overwrite))


def unregister(world: World, name: str) -> Committed:
    return world.run(tables.unregister_table(world.ctx, ALICE, HOME, NS, name))


def test_a_dropped_table_comes_back_with_its_whole_history(shop: World) -> None:
    """The answer names the file exactly as given, and no new file is written."""
    before = load(shop, "t")
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "t"))
    files = shop.files()
    spelled = f"file:{before.metadata_location}"
    back = register(shop, "t2", spelled)
    assert back.metadata_location == spelled == load(shop, "t2").metadata_location
    assert back.metadata == before.metadata and shop.files() == files
    done = commit(shop, "t2", [set_properties(a="1")])
    assert document(done.metadata)["metadata-log"][-1]["metadata-file"] == spelled


def test_a_taken_name_is_refused_by_kind(shop: World) -> None:
    """Without overwrite for a table; always for a view."""
    where = load(shop, "t").metadata_location
    create_view(shop, "v")
    with pytest.raises(AlreadyExists, match=r"^Table already exists: shop\.t$"):
        register(shop, "t", where)
    for overwrite in (False, True):
        with pytest.raises(AlreadyExists, match="View with same name already exists"):
            register(shop, "v", where, overwrite=overwrite)


def test_overwrite_moves_the_pointer_of_the_same_table(shop: World) -> None:
    """Back to an older version in one step; times and file stay as they were."""
    old = load(shop, "t")
    commit(shop, "t", [set_properties(a="1")])
    files = shop.files()
    back = register(shop, "t", old.metadata_location, overwrite=True)
    assert back.metadata == old.metadata == load(shop, "t").metadata
    assert shop.files() == files
    assert "a" not in metadata(shop, "t")["properties"]
    assert register(shop, "t", old.metadata_location, overwrite=True).metadata == old.metadata


def beside(world: World, *, log: list[str] | None = None) -> str:
    """A file of the table beside its versions, whose column became a string although data is there; `log` is what its
    metadata log names."""
    doc = metadata(world, "t")
    column = doc["schemas"][0]["fields"][0] | {"type": "string"}
    doc["schemas"].append(doc["schemas"][0] | {"schema-id": 1, "fields": [column]})
    doc["current-schema-id"] = 1
    doc["metadata-log"] = [{"timestamp-ms": doc["last-updated-ms"], "metadata-file": file} for file in log or ()]
    path = world.warehouse / "beside.metadata.json"
    path.write_text(json.dumps(doc))
    return str(path)


def registered(world: World) -> Created:
    """The newest journal row about a registration."""
    events = [entry.event for entry in world.run(world.store.journal(warehouse=HOME))]
    return next(event for event in events if isinstance(event, Created) and event.registered)


def test_a_file_of_no_lineage_is_refused_for_what_a_commit_is_refused_for(shop: World) -> None:
    """The pointer stays; without a fault, or where the policy lowers the rule, the same registration passes."""
    before = load(shop, "t").metadata_location
    with pytest.raises(EvolutionRefused, match="ICE201"):
        register(shop, "t", beside(shop), overwrite=True)
    assert load(shop, "t").metadata_location == before
    for code in ("ICE201", "ICE503"):
        shop.run(strictness.set_policy(shop.ctx, ALICE, HOME, NS, "t", code, Severity.WARN))
    assert register(shop, "t", beside(shop), overwrite=True).metadata_location != before
    assert registered(shop).relation is None


def test_a_waiver_lets_a_file_of_no_lineage_pass_once(shop: World) -> None:
    """It is used up as by a commit, and the journal tells."""
    for code in ("ICE201", "ICE503"):
        shop.run(strictness.grant_waiver(shop.ctx, ALICE, HOME, NS, "t", code, "restored by hand", 60_000))
    register(shop, "t", beside(shop), overwrite=True)
    events = [entry.event for entry in shop.run(shop.store.journal(warehouse=HOME))]
    assert any(isinstance(event, WaiverUsed) for event in events)


def test_a_file_that_descends_from_the_present_version_is_taken_with_warnings(shop: World) -> None:
    """Its log names the present file: the findings are warnings, in the answer and in the journal."""
    present = load(shop, "t").metadata_location
    done = register(shop, "t", beside(shop, log=[present]), overwrite=True)
    assert done.findings and not any(finding.severity is Severity.ERROR for finding in done.findings)
    row = registered(shop)
    assert row.relation == "descends" and len(row.findings) == len(done.findings)


def test_a_descendant_is_known_when_its_log_was_trimmed(shop: World) -> None:
    """The oldest file that a log names has a log too."""
    present = load(shop, "t").metadata_location
    between = Path(beside(shop, log=[present])).rename(shop.warehouse / "between.metadata.json")
    register(shop, "t", beside(shop, log=[str(between)]), overwrite=True)
    assert registered(shop).relation == "descends"


def test_an_older_version_is_taken_with_warnings(shop: World) -> None:
    """A restore: whatever changed since is undone, findings or not, and back again."""
    old = load(shop, "t").metadata_location
    register(shop, "t", beside(shop, log=[old]), overwrite=True)
    done = register(shop, "t", old, overwrite=True)
    assert not any(finding.refuses for finding in done.findings) and registered(shop).relation == "restores"


@pytest.mark.parametrize("content", [None, b"", b'{"format-version":2,"lo'])
def test_a_table_whose_file_is_missing_or_damaged_is_repaired(shop: World, content: bytes | None) -> None:
    """There is nothing to judge against, so any file of the same uuid is taken, also while this server still holds
    the document."""
    good, present = beside(shop), Path(load(shop, "t").metadata_location)
    present.unlink()
    if content is not None:
        present.write_bytes(content)
    assert register(shop, "t", good, overwrite=True).findings == ()
    assert registered(shop).relation == "repairs"


def test_overwrite_with_another_table_is_refused(shop: World) -> None:
    """Another uuid is another table: drop first."""
    create(shop, "u")
    with pytest.raises(AlreadyExists, match="another table"):
        register(shop, "t", load(shop, "u").metadata_location, overwrite=True)


def test_overwrite_of_a_free_name_registers(shop: World) -> None:
    """Overwrite is permission, not demand."""
    where = load(shop, "t").metadata_location
    unregister(shop, "t")
    assert register(shop, "new", where, overwrite=True).metadata_location == where


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"not json",
        b"\xff\xfe",
        b"\x1f\x8b broken",
        b'{"format-version": 99}',
        b'{"format-version": 2}',
    ],
)
def test_a_file_that_is_no_table_is_a_bad_request(shop: World, content: bytes) -> None:
    """Never a crash, and nothing is registered; the message names the file."""
    bad = shop.warehouse / "bad.metadata.json"
    bad.write_bytes(content)
    with pytest.raises(BadRequest, match=r"bad\.metadata\.json"):
        register(shop, "x", str(bad))
    with pytest.raises(NoSuchTable):
        load(shop, "x")


def days_of(kind: str, where: Path) -> Json:
    """A table of column 1 whose spec 0, kept beside the default one, is day of it."""
    return {
        "format-version": 2,
        "table-uuid": "0b0b0b0b-0000-4000-8000-000000000029",
        "location": str(where),
        "last-sequence-number": 3,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [schema_json(field(1, "c", kind))],
        "current-schema-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "day"}]},
            {"spec-id": 1, "fields": []},
        ],
        "default-spec-id": 1,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }


def test_a_file_with_a_retained_spec_that_java_cannot_bind_is_a_bad_request(shop: World) -> None:
    """The message names the spec and its place; with a type that the transform takes the file is registered."""
    file = shop.warehouse / "x" / "v.metadata.json"
    file.parent.mkdir()
    file.write_text(json.dumps(days_of("long", file.parent)))
    with pytest.raises(BadRequest, match=r"Partition spec 0.*long for transform: day.*partition-specs\[0\]"):
        register(shop, "x", str(file))
    file.write_text(json.dumps(days_of("timestamp", file.parent)))
    assert register(shop, "x", str(file)).metadata_location == str(file)


def test_a_truncated_file_is_a_bad_request(shop: World) -> None:
    """Cut anywhere, a real document is refused."""
    whole = Path(load(shop, "t").metadata_location).read_bytes()
    bad = shop.warehouse / "cut.metadata.json"
    for cut in range(1, len(whole), 97):
        bad.write_bytes(whole[:cut])
        with pytest.raises(BadRequest):
            register(shop, "x", str(bad))


def test_no_file_no_namespace_no_permission(shop: World) -> None:
    """NotFound, NoSuchNamespace, and a bad request that names the setting; in that order of checks reversed."""
    where = load(shop, "t").metadata_location
    with pytest.raises(NotFound, match="Failed to open input stream for file"):
        register(shop, "x", where + ".gone")
    with pytest.raises(NoSuchNamespace):
        register(shop, "x", where, levels=("nope",))
    for foreign in ("/etc/passwd", "s3://other/x.metadata.json", "relative.json", f"{shop.warehouse}/../catalog.db"):
        with pytest.raises(BadRequest, match="location"):
            register(shop, "x", foreign)


def test_a_table_that_lies_elsewhere_is_refused(shop: World) -> None:
    """The file is inside, but the table it describes is not: the server could not commit to it."""
    doc = metadata(shop, "t") | {"location": "s3://elsewhere/t"}
    bad = shop.warehouse / "far.metadata.json"
    bad.write_text(json.dumps(doc))
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        register(shop, "x", str(bad))


def test_a_file_written_anew_is_read_anew(shop: World) -> None:
    """Registering never trusts what was read under that name before."""
    where = load(shop, "t").metadata_location
    unregister(shop, "t")
    doc = json.loads(Path(where).read_bytes())
    doc["properties"]["fresh"] = "yes"
    Path(where).write_text(json.dumps(doc))
    register(shop, "t", where)
    assert metadata(shop, "t")["properties"]["fresh"] == "yes"


@pytest.mark.parametrize("name", ["x.gz.metadata.json", "x.metadata.json.gz", "x.metadata.json"])
def test_gzip_files_under_any_name(shop: World, name: str) -> None:
    """Both historic names, and gzip bytes under a plain one; a commit writes a file whose name tells its encoding."""
    data = Path(load(shop, "t").metadata_location).read_bytes()
    unregister(shop, "t")
    packed = shop.warehouse / name
    packed.write_bytes(gzip.compress(data))
    got = register(shop, "z", str(packed))
    assert got.metadata == data and got.metadata_location == str(packed)
    written = Path(commit(shop, "z", [set_properties(a="1")]).metadata_location)
    assert written.read_bytes()[:2] == (b"\x1f\x8b" if ".gz." in written.name else b'{"')


def test_a_uuid_lives_under_one_name_only(shop: World) -> None:
    """Two names for one table would overwrite each other's files: a conflict, in any case of the uuid."""
    where = load(shop, "t").metadata_location
    with pytest.raises(UuidInUse, match="already belongs to t in this warehouse"):
        register(shop, "copy", where)
    doc = metadata(shop, "t")
    shouted = shop.warehouse / "shouted.metadata.json"
    shouted.write_text(json.dumps(doc | {"table-uuid": doc["table-uuid"].upper()}))
    with pytest.raises(UuidInUse):
        register(shop, "copy", str(shouted))


def test_unregister_leaves_files_and_answers_the_last_version(shop: World) -> None:
    """Later commits here find no table."""
    before, files = load(shop, "t"), shop.files()
    gone = unregister(shop, "t")
    assert (gone.metadata_location, gone.metadata) == (before.metadata_location, before.metadata)
    assert shop.files() == files
    with pytest.raises(NoSuchTable):
        commit(shop, "t", [set_properties(a="1")])
    with pytest.raises(NoSuchTable):
        unregister(shop, "t")


def test_the_journal_tells_both(shop: World) -> None:
    """Registered and dropped, with the schema that came in."""
    uuid = metadata(shop, "t")["table-uuid"]
    where = unregister(shop, "t").metadata_location
    register(shop, "t", where)
    newest = [e.event for e in shop.run(shop.store.journal(table_uuid=uuid))]
    assert any(isinstance(e, Created) and e.registered for e in newest)
    assert any(isinstance(e, Dropped) and not e.purge for e in newest)
    assert any(isinstance(e, SchemaChanged) and e.metadata_location == where for e in newest)


def test_a_view_comes_back_too(shop: World) -> None:
    """register-view: the given location in the answer, every refusal by kind."""
    made = create_view(shop, "v")
    with pytest.raises(AlreadyExists, match="View already exists"):
        shop.run(views.register_view(shop.ctx, ALICE, HOME, NS, "v", made.metadata_location))
    with pytest.raises(AlreadyExists, match="Table with same name already exists"):
        shop.run(views.register_view(shop.ctx, ALICE, HOME, NS, "t", made.metadata_location))
    shop.run(views.drop_view(shop.ctx, ALICE, HOME, NS, "v"))
    back = shop.run(views.register_view(shop.ctx, ALICE, HOME, NS, "w", made.metadata_location))
    assert (back.metadata_location, back.metadata) == (made.metadata_location, made.metadata)
    with pytest.raises(BadRequest):
        shop.run(views.register_view(shop.ctx, ALICE, HOME, NS, "x", load(shop, "t").metadata_location))
    with pytest.raises(BadRequest):
        register(shop, "x", made.metadata_location)


def listing(world: World, *files: str) -> str:
    """A copy of the table's file, of another uuid, whose log names `files`."""
    doc = metadata(world, "t")
    doc["table-uuid"] = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    doc["metadata-log"] = [{"timestamp-ms": doc["last-updated-ms"], "metadata-file": file} for file in files]
    path = world.warehouse / "listing.metadata.json"
    path.write_text(json.dumps(doc))
    return str(path)


def test_what_a_registered_file_names_elsewhere_is_its_place(shop: World) -> None:
    """A folder called `metadata` as a whole, in any other one the file alone; what lies beside it is free."""
    root = shop.warehouse
    named = (f"{root}/old/metadata/00001-x.metadata.json", f"{root}/many/00002-x.metadata.json", "s3://elsewhere/x")
    register(shop, "copy", listing(shop, *named))
    owners = shop.store.locations_overlapping
    assert shop.run(owners(f"{root}/old/metadata/other")) == ("default.shop.copy",)
    assert shop.run(owners(named[1])) == ("default.shop.copy",)
    assert shop.run(owners(f"{root}/many/other")) == () and shop.run(owners("s3://elsewhere/x")) == ()


def test_many_named_files_are_their_folders_and_too_many_folders_are_refused(shop: World) -> None:
    """Every place is a row: a thousand are allowed."""
    files = [f"{shop.warehouse}/many/{number}.metadata.json" for number in range(1_001)]
    register(shop, "copy", listing(shop, *files))
    assert shop.run(shop.store.locations_overlapping(f"{shop.warehouse}/many/other")) == ("default.shop.copy",)
    shop.run(tables.drop_table(shop.ctx, ALICE, HOME, NS, "copy"))
    with pytest.raises(BadRequest, match="1001 folders outside the table's location"):
        register(shop, "copy", listing(shop, *[f"{shop.warehouse}/{number}/metadata/x" for number in range(1_001)]))


def outside(world: World, name: str, **more: Json) -> str:
    """A metadata file of version 3 that somebody else wrote, with these members in place of its own; None removes."""
    doc = {
        "format-version": 3,
        "table-uuid": "0b0b0b0b-0000-4000-8000-000000000006",
        "location": f"{world.warehouse}/outside/{name}",
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [schema_json(field(1, "a", "int"), field(2, "b", "int"))],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "next-row-id": 0,
    }
    doc |= {key.replace("_", "-"): value for key, value in more.items()}
    return put(world, name, json.dumps(doc).encode())


def put(world: World, name: str, data: bytes) -> str:
    file = world.warehouse / "outside" / name / "v1.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return str(file)


BY_A = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}


@pytest.mark.parametrize(
    ("odd", "place"),
    [
        ({"sort_orders": [{"fields": []}]}, r"\$\.sort-orders\[0\]"),
        ({"sort_orders": [{"fields": [BY_A]}], "default_sort_order_id": 1}, r"\$\.sort-orders\[0\]"),
        ({"sort_orders": [{"order-id": 0, "fields": [BY_A]}]}, r"\$\.sort-orders\[0\]"),
        ({"schemas": [schema_json(field(1, "a", "int") | {"initial-default": "34"})]}, r"\$\.schemas\[0\]"),
        ({"table_uuid": "xx"}, r"\$\.table-uuid"),
        ({"last_updated_ms": -(2**63)}, r"\$\.last-updated-ms"),
    ],
)
def test_what_other_readers_could_not_load_is_not_registered(shop: World, odd: Json, place: str) -> None:
    """The refusal gives the place, and the name stays free."""
    with pytest.raises(BadRequest, match=place):
        register(shop, "odd", outside(shop, "odd", **odd))
    with pytest.raises(NoSuchTable):
        load(shop, "odd")


def test_a_file_in_zstd_registers(shop: World) -> None:
    """Its property may ask for zstd; the next version is written plain."""
    key = "write.metadata.compression-codec"
    plain = Path(outside(shop, "packed", properties={key: "zstd"}))
    packed = plain.with_name("v1.zstd.metadata.json")
    packed.write_bytes(zstd.compress(plain.read_bytes()))
    assert register(shop, "packed", str(packed)).metadata_location == str(packed)
    done = commit(shop, "packed", [set_properties(a="1")])
    assert document(done.metadata)["properties"] == {key: "zstd", "a": "1"}
    assert json.loads(Path(done.metadata_location).read_bytes())


def test_a_small_file_in_zstd_cannot_unpack_to_much(shop: World) -> None:
    """The limit of gzip holds."""
    bomb = put(shop, "bomb", zstd.compress(b" " * 100_000_000))
    with pytest.raises(PayloadTooLarge, match="unpacks to more than"):
        register(shop, "bomb", bomb)


def elsewhere(world: World, **changes: Any) -> str:
    """A file of another uuid than the table's, with these members changed."""
    doc = metadata(world, "t") | {"table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c2", "metadata-log": []} | changes
    path = world.warehouse / "elsewhere.metadata.json"
    path.write_text(json.dumps(doc))
    return str(path)


def test_a_file_cannot_claim_the_folder_of_others(shop: World) -> None:
    """Not the warehouse's, not a namespace's: as location, as path property, as a file that it names. Creates go on."""
    here = str(shop.warehouse)
    log = [{"timestamp-ms": 1, "metadata-file": f"{here}/shop"}]
    for claim in (
        {"location": here},
        {"location": f"{here}/shop/"},
        {"properties": {"write.data.path": here}},
        {"metadata-log": log},
    ):
        with pytest.raises(ValidationFailed, match="holds other tables"):
            register(shop, "x", elsewhere(shop, **claim))
    create(shop, "still")


def test_a_view_cannot_claim_the_folder_of_others(shop: World) -> None:
    """As a table cannot."""
    made = create_view(shop, "v")
    path = shop.warehouse / "view.metadata.json"
    path.write_text(json.dumps(document(made.metadata) | {"location": str(shop.warehouse), "view-uuid": "0" * 8}))
    with pytest.raises(ValidationFailed, match="holds other tables"):
        shop.run(views.register_view(shop.ctx, ALICE, HOME, NS, "w", str(path)))


def test_a_table_that_already_has_a_shared_folder_can_be_restored(shop: World) -> None:
    """An overwrite claims nothing that the table has not."""
    made = create(shop, "inner", location=f"{shop.warehouse}/later")
    namespace(shop, ("later",))
    commit(shop, "inner", [set_properties(a="1")])
    assert made.metadata_location is not None
    register(shop, "inner", made.metadata_location, overwrite=True)
