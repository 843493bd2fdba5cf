"""What `ports.Store` promises, on a SQLite file and on PostgreSQL."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from app.errors import (
    AlreadyExists,
    BadRequest,
    BadSettings,
    CommitFailed,
    IcekeelError,
    KeyAlreadyUsed,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    NoSuchWarehouse,
    NotFound,
    SwapLost,
    Unavailable,
    UuidInUse,
    ValidationFailed,
)
from app.events import AnyEvent, Created, PolicyChanged, SchemaChanged
from app.ports import (
    AddWaiver,
    AppendJournal,
    Columns,
    DropWarehouse,
    FinishPurgeJob,
    Levels,
    OutcomeKind,
    Pointer,
    PutWarehouse,
    RecordKey,
    Report,
    RevokeWaiver,
    SetPolicy,
    Sighting,
    Standing,
    Store,
    UpdateNamespace,
    UpdatePurgeJob,
    UseWaiver,
    Warehouse,
    WriteOp,
)
from app.rules import Severity, Waiver
from app.store import open_store, secrets, warehouses
from tests.store.acts import HOUSE, NOW, drop, get, house, key, make, no_space, purge_job, rename, space, swap

pytestmark = pytest.mark.anyio

KEY, OTHER_KEY = bytes(range(32)), bytes(32)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database for this test alone."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    return str(request.getfixturevalue("postgres_server").emptied_database())


@pytest.fixture
async def store(url: str, anyio_backend: str) -> AsyncIterator[Store]:
    """An open store with the warehouse `default` and the namespace `n`."""
    opened = open_store(url, secret_keys=[KEY])
    await opened.open()
    await opened.write([house(), space("n")])
    yield opened
    await opened.close()


async def race(store: Store, *units: Sequence[WriteOp]) -> list[BaseException | None]:
    """Run the units at once; None for each that succeeded, else its error."""
    return list(await asyncio.gather(*(store.write(unit) for unit in units), return_exceptions=True))


async def everything(store: Store, namespace: Levels = ("n",), kind: str = "table") -> tuple[str, ...]:
    page = await store.tabulars(HOUSE, namespace, kind, after=None, limit=None)  # type: ignore[arg-type]
    assert page.after is None
    return page.items


# --- namespaces ----------------------------------------------------------------------------------------------------


async def test_a_namespace_reads_back_as_it_was_created(store: Store) -> None:
    """Levels and properties come back unchanged."""
    await store.write([space("a", owner="me", empty="", text='żółw "x"')])
    found = await store.namespace(HOUSE, ("a",))
    assert found is not None
    assert (found.levels, found.warehouse) == (("a",), HOUSE)
    assert found.properties == {"owner": "me", "empty": "", "text": 'żółw "x"'}


async def test_a_dot_inside_a_level_is_not_a_separator(store: Store) -> None:
    """["a.b"] and ["a", "b"] are different namespaces, each with its own tables."""
    await store.write([space("a.b", which="dotted"), space("a"), space("a", "b", which="nested")])
    await store.write([make("t", namespace=("a.b",)), make("t", namespace=("a", "b"))])
    dotted, nested = await store.namespace(HOUSE, ("a.b",)), await store.namespace(HOUSE, ("a", "b"))
    assert dotted is not None and nested is not None
    assert (dotted.properties["which"], nested.properties["which"]) == ("dotted", "nested")
    assert (await get(store, "t", ("a.b",))).uuid != (await get(store, "t", ("a", "b"))).uuid


async def test_creating_a_namespace_names_what_is_in_the_way(store: Store) -> None:
    """A taken name, a missing parent and a missing warehouse are told apart."""
    with pytest.raises(AlreadyExists, match="Namespace already exists: n"):
        await store.write([space("n")])
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: q"):
        await store.write([space("q", "r")])
    with pytest.raises(NoSuchWarehouse, match="nowhere"):
        await store.write([space("a", warehouse="nowhere")])
    assert await store.namespace(HOUSE, ("q", "r")) is None


async def test_namespaces_of_two_warehouses_do_not_mix(store: Store) -> None:
    """The same levels exist once per warehouse."""
    await store.write([house("other"), space("n", warehouse="other", of="other")])
    ours, theirs = await store.namespace(HOUSE, ("n",)), await store.namespace("other", ("n",))
    assert ours is not None and theirs is not None
    assert (dict(ours.properties), dict(theirs.properties)) == ({}, {"of": "other"})


async def test_children_are_listed_one_level_deep_as_full_paths(store: Store) -> None:
    """Neither grandchildren nor the parent nor a sibling with the same beginning appears."""
    await store.write(
        [
            space("n", "m"),
            space("n", "m", "k"),
            space("n", "z"),
            space("nn"),
            space("n.m"),
            space("nn", "m"),
        ]
    )
    assert (await store.namespaces(HOUSE, ("n",), after=None, limit=None)).items == (("n", "m"), ("n", "z"))
    assert (await store.namespaces(HOUSE, (), after=None, limit=None)).items == (("n",), ("n.m",), ("nn",))
    assert (await store.namespaces(HOUSE, ("n", "z"), after=None, limit=None)).items == ()
    assert (await store.namespaces(HOUSE, ("nope",), after=None, limit=None)).items == ()


@pytest.mark.parametrize("parent", [(), ("n",)])
async def test_children_page_through_without_gap_or_repeat(store: Store, parent: Levels) -> None:
    """Seven children in pages of three are 3 + 3 + 1; a page that holds all has no next position."""
    if not parent:
        await store.write([no_space("n")])
    names = [f"c{i}" for i in range(7)]
    await store.write([space(*parent, name) for name in reversed(names)])
    sizes: list[int] = []
    seen: list[Levels] = []
    after: str | None = None
    while True:
        page = await store.namespaces(HOUSE, parent, after=after, limit=3)
        sizes.append(len(page.items))
        seen += page.items
        if page.after is None:
            break
        assert page.after != after
        after = page.after
    assert sizes == [3, 3, 1]
    assert seen == [(*parent, name) for name in names]
    assert (await store.namespaces(HOUSE, parent, after=None, limit=7)).after is None


async def test_property_changes_add_to_each_other(store: Store) -> None:
    """Updates replace, removals remove, absent removals are ignored; the rest stays; the last one stays removed."""
    await store.write([space("a", x="1", y="2")])

    async def change(removals: tuple[str, ...], **updates: str) -> dict[str, str]:
        await store.write(
            [UpdateNamespace(warehouse=HOUSE, levels=("a",), updates=updates, removals=removals, now_ms=NOW)]
        )
        found = await store.namespace(HOUSE, ("a",))
        assert found is not None
        return dict(found.properties)

    assert await change(("x", "absent"), y="3", z="4") == {"y": "3", "z": "4"}
    assert await change(("y", "z")) == {}
    with pytest.raises(NoSuchNamespace, match="gone"):
        await store.write([UpdateNamespace(warehouse=HOUSE, levels=("gone",), updates={}, removals=(), now_ms=NOW)])


async def test_concurrent_property_changes_are_all_kept(store: Store) -> None:
    """Thirty writers that each set one key leave thirty keys."""
    units: list[list[WriteOp]] = [
        [UpdateNamespace(warehouse=HOUSE, levels=("n",), updates={f"k{i}": str(i)}, removals=(), now_ms=NOW)]
        for i in range(30)
    ]
    assert await race(store, *units) == [None] * 30
    found = await store.namespace(HOUSE, ("n",))
    assert found is not None and found.properties == {f"k{i}": str(i) for i in range(30)}


async def test_only_an_empty_namespace_is_dropped(store: Store) -> None:
    """A table, a view or a child namespace each keep it; what it holds is named."""
    await store.write([space("t"), space("v"), space("p"), space("p", "c")])
    await store.write([make("x", namespace=("t",)), make("y", namespace=("v",), kind="view")])
    for name, holds in (("t", "table x"), ("v", "view y"), ("p", r"namespace p\.c")):
        with pytest.raises(NamespaceNotEmpty, match=f"Namespace {name} is not empty. It contains {holds}"):
            await store.write([no_space(name)])
    with pytest.raises(NoSuchNamespace, match="nope"):
        await store.write([no_space("nope")])
    await store.write([no_space("p", "c"), no_space("p")])
    assert await store.namespace(HOUSE, ("p",)) is None


async def test_a_namespace_is_never_dropped_under_a_table_that_is_being_created(store: Store) -> None:
    """Of drop and create at the same moment exactly one succeeds, and no table is left without a namespace."""
    for i in range(12):
        await store.write([space(f"r{i}")])
        dropped, created = await race(store, [no_space(f"r{i}")], [make("t", namespace=(f"r{i}",))])
        table = await store.tabular(HOUSE, (f"r{i}",), "t")
        if dropped is None:
            assert isinstance(created, NoSuchNamespace) and table is None
        else:
            assert isinstance(dropped, NamespaceNotEmpty) and created is None and table is not None


async def test_a_parent_is_never_dropped_under_a_child_that_is_being_created(store: Store) -> None:
    """Of dropping the parent and creating a child exactly one succeeds."""
    for i in range(12):
        await store.write([space(f"r{i}")])
        dropped, created = await race(store, [no_space(f"r{i}")], [space(f"r{i}", "c")])
        assert (dropped is None) != (created is None)
        assert isinstance(dropped or created, NamespaceNotEmpty | NoSuchNamespace)


# --- names ---------------------------------------------------------------------------------------------------------

NAMES = (
    "a", "A", "b", "B", "Z", "_", "-", "~", "0", "10", "9", "p/q", "c.d", "e f", "e  f", " lead", "%2F", "a+b", "'q'",
    '"d"', "\\", "ß", "SS", "é", "e\u0301", "ﬁ", "\uffff", "\U00010000", "\U0001f600", "ı", "I", "i", "x" * 300, "日本",
)  # fmt: skip


async def test_names_are_compared_exactly(store: Store) -> None:
    """Case, accents, composed forms, blanks and slashes all make a different name, and each can be loaded again."""
    assert unicodedata.normalize("NFC", "e\u0301") == "é", "the list holds both forms on purpose"
    await store.write([make(name) for name in NAMES])
    for name in NAMES:
        assert (await get(store, name)).name == name
    assert await store.tabular(HOUSE, ("N",), "a") is None
    assert await store.tabular(HOUSE, ("n",), "p") is None


async def test_names_are_listed_by_code_point(store: Store) -> None:
    """Both databases order like Python compares strings, whatever their locale, and page in that order."""
    await store.write([make(name) for name in NAMES] + [space(name) for name in NAMES])
    assert list(await everything(store)) == sorted(NAMES)
    spaces = await store.namespaces(HOUSE, (), after=None, limit=None)
    assert [levels[0] for levels in spaces.items] == sorted([*NAMES, "n"])
    paged: list[str] = []
    after: str | None = None
    while True:
        page = await store.tabulars(HOUSE, ("n",), "table", after=after, limit=4)
        paged += page.items
        if page.after is None:
            break
        after = page.after
    assert paged == sorted(NAMES)


@pytest.mark.parametrize("name", ["", "nul\x00", "lone \ud800 surrogate"])
async def test_what_no_database_holds_is_refused_and_never_found(store: Store, name: str) -> None:
    """A bad name is a bad request when written, nothing when read, and never a failure of the server."""
    for unit in ([make(name)], [space(name)], [make("t", namespace=(name,))], [rename("n", name)]):
        with pytest.raises((BadRequest, NoSuchTable)):
            await store.write(unit)
    assert await store.tabular(HOUSE, ("n",), name) is None
    assert await store.namespace(HOUSE, (name,)) is None
    assert await store.namespace(HOUSE, ("n", name)) is None
    assert (await store.tabulars(HOUSE, (name,), "table", after=None, limit=None)).items == ()
    assert (await store.namespaces(HOUSE, (name,), after=None, limit=None)).items == ()


async def test_a_level_that_holds_the_separator_is_not_a_way_into_a_nested_namespace(store: Store) -> None:
    """["a<unit separator>b"] is neither found nor created."""
    await store.write([space("a"), space("a", "b")])
    assert await store.namespace(HOUSE, ("a\x1fb",)) is None
    with pytest.raises(BadRequest):
        await store.write([space("a\x1fb")])


@pytest.mark.parametrize("after", ["\x00", "\ud800"])
async def test_a_position_that_cannot_be_a_name_is_refused(store: Store, after: str) -> None:
    """A garbage page position is a bad request."""
    with pytest.raises(BadRequest):
        await store.tabulars(HOUSE, ("n",), "table", after=after, limit=3)


# --- tables and views ----------------------------------------------------------------------------------------------


async def test_a_table_reads_back_as_it_was_created(store: Store) -> None:
    """Every column comes back, with version 1 and the namespace's own properties, by name and by id."""
    await store.write([space("a", owner="me"), make("t", namespace=("a",), uuid="u1", location="s3a://b/t")])
    table = await get(store, "t", ("a",))
    assert (table.kind, table.uuid, table.location, table.metadata_location) == ("table", "u1", "s3a://b/t", "t-0")
    assert (table.warehouse, table.namespace, table.name, table.version) == (HOUSE, ("a",), "t", 1)
    assert table.columns == Columns(format_version=2, last_column_id=3, current_schema_id=0, field_count=3)
    assert (table.created_at_ms, table.updated_at_ms) == (NOW, NOW)
    assert table.namespace_properties == {"owner": "me"}
    assert await store.tabular_by_id(table.tabular_id) == table


async def test_what_is_not_there_is_none(store: Store) -> None:
    """A missing table, namespace or warehouse is no error when read, and lists are empty."""
    assert await store.tabular(HOUSE, ("n",), "t") is None
    assert await store.tabular(HOUSE, ("nope",), "t") is None
    assert await store.tabular("nope", ("n",), "t") is None
    assert await store.tabular(HOUSE, (), "t") is None
    assert await store.tabular_by_id(12345) is None
    assert await everything(store, ("nope",)) == ()


async def test_a_checksum_stands_and_falls_with_its_pointer(store: Store) -> None:
    """Stored with what is created, replaced by every swap, and gone after one that brings none, alone or with a key."""
    await store.write([make("t", checksum="one")])

    async def sums() -> set[str | None]:
        pointer = await store.pointer(HOUSE, ("n",), "t")
        assert pointer is not None
        return {pointer.checksum, (await get(store, "t")).checksum}

    assert await sums() == {"one"}
    await store.write([swap(await get(store, "t"), "t-1", checksum="two")])
    assert await sums() == {"two"}
    await store.write([swap(await get(store, "t"), "t-2")])
    assert await sums() == {None}
    await store.write([swap(await get(store, "t"), "t-3", location="/moved", checksum="three")])
    assert await sums() == {"three"}


async def test_a_pointer_is_what_the_row_says(store: Store) -> None:
    """The lean read and the whole row agree through creation, commit, rename and drop, for tables and views."""
    await store.write([space("n", "m"), make("t"), make("v", kind="view"), make("deep ż", namespace=("n", "m"))])

    async def agree(name: str, namespace: Levels = ("n",)) -> Pointer:
        row, pointer = await get(store, name, namespace), await store.pointer(HOUSE, namespace, name)
        assert pointer == Pointer(row.tabular_id, row.kind, row.uuid, row.metadata_location, row.checksum)
        return pointer

    assert (await agree("t")).kind == "table"
    assert (await agree("v")).kind == "view"
    assert (await agree("deep ż", ("n", "m"))).metadata_location == "deep ż-0"
    await store.write([swap(await get(store, "t"), "t-1")])
    assert (await agree("t")).metadata_location == "t-1"
    await store.write([rename("t", "s")])
    assert (await agree("s")).metadata_location == "t-1"
    assert await store.pointer(HOUSE, ("n",), "t") is None
    await store.write([drop(await get(store, "s")), make("s", uuid="another")])
    assert (await agree("s")).uuid == "another"


@pytest.mark.parametrize(
    ("warehouse", "namespace", "name"),
    [
        (HOUSE, ("n",), "no"), (HOUSE, (), "t"), (HOUSE, ("",), "t"), (HOUSE, ("n", ""), "t"), ("other", ("n",), "t"),
        (HOUSE, ("n",), "t\x00"), (HOUSE, ("n",), "\ud800"), (HOUSE, ("n\x00",), "t"), (HOUSE, ("\udfff",), "t"),
        (HOUSE, ("n\x1fm",), "t"), (HOUSE, ("n", "m", ""), "t"), (HOUSE, ("n",), ""), (HOUSE, ("N",), "t"),
        (HOUSE, ("n",), "T"),
    ],
)  # fmt: skip
async def test_a_name_that_nothing_has_points_nowhere(
    store: Store, warehouse: str, namespace: Levels, name: str
) -> None:
    """Missing, misspelt and impossible names alike are None in both reads."""
    await store.write([space("n", "m"), make("t"), make("t", namespace=("n", "m"))])
    assert await store.pointer(warehouse, namespace, name) is None
    assert await store.tabular(warehouse, namespace, name) is None


async def test_a_table_needs_its_namespace(store: Store) -> None:
    """NoSuchNamespace when it is missing, also when the warehouse is."""
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: nope"):
        await store.write([make("t", namespace=("nope",))])
    with pytest.raises(NoSuchNamespace):
        await store.write([make("t", warehouse="nope")])


async def test_tables_and_views_share_one_name_space(store: Store) -> None:
    """A taken name is refused in the words that clients match, for each pair of kinds."""
    await store.write([make("t"), make("v", kind="view")])
    for op, message in (
        (make("t", uuid="new", location="/new"), "^Table already exists: n.t$"),
        (make("v", kind="view", uuid="new", location="/new"), "^View already exists: n.v$"),
        (make("t", kind="view", uuid="new", location="/new"), "^Table with same name already exists: n.t$"),
        (make("v", uuid="new", location="/new"), "^View with same name already exists: n.v$"),
    ):
        with pytest.raises(AlreadyExists, match=message):
            await store.write([op])
    assert await everything(store) == ("t",)
    assert await everything(store, kind="view") == ("v",)


async def test_a_uuid_belongs_to_one_table_of_a_warehouse(store: Store) -> None:
    """A second table with it is refused; another warehouse may hold the same table."""
    await store.write([house("other"), space("n", warehouse="other"), make("t", uuid="u"), make("s", uuid="w")])
    with pytest.raises(UuidInUse, match="UUID u already belongs to t"):
        await store.write([make("x", uuid="u")])
    with pytest.raises(UuidInUse, match="UUID u already belongs to t"):
        await store.write([swap(await get(store, "s"), "s-1", uuid="u")])
    await store.write([make("t", uuid="u", warehouse="other")])
    assert (await get(store, "t", warehouse="other")).uuid == "u"


async def test_of_many_creations_of_one_name_exactly_one_wins(store: Store) -> None:
    """Forty clients at once: one table, thirty-nine AlreadyExists, one entry listed."""
    results = await race(store, *([make("t", uuid=f"u{i}", location=f"/w/t{i}")] for i in range(40)))
    assert results.count(None) == 1
    assert all(isinstance(error, AlreadyExists) for error in results if error is not None)
    assert await everything(store) == ("t",)


async def test_of_a_table_and_a_view_of_one_name_exactly_one_wins(store: Store) -> None:
    """The race between kinds ends as the race within one."""
    for i in range(8):
        results = await race(store, [make(f"x{i}")], [make(f"x{i}", kind="view", uuid=f"v{i}", location=f"/v/{i}")])
        assert results.count(None) == 1
        assert sum(isinstance(error, AlreadyExists) for error in results) == 1


async def test_tables_page_through_without_gap_or_repeat(store: Store) -> None:
    """Only the asked kind, in order, exact at the page's edge."""
    await store.write([make(f"t{i}") for i in range(7)] + [make(f"v{i}", kind="view") for i in range(3)])
    first = await store.tabulars(HOUSE, ("n",), "table", after=None, limit=3)
    second = await store.tabulars(HOUSE, ("n",), "table", after=first.after, limit=3)
    third = await store.tabulars(HOUSE, ("n",), "table", after=second.after, limit=3)
    assert (first.items, second.items, third.items) == (("t0", "t1", "t2"), ("t3", "t4", "t5"), ("t6",))
    assert third.after is None
    assert (await store.tabulars(HOUSE, ("n",), "table", after=None, limit=7)).after is None
    assert await everything(store, kind="view") == ("v0", "v1", "v2")


async def test_a_position_outlives_its_item(store: Store) -> None:
    """Paging goes on behind a table that was dropped meanwhile."""
    await store.write([make(f"t{i}") for i in range(4)])
    first = await store.tabulars(HOUSE, ("n",), "table", after=None, limit=2)
    await store.write([drop(await get(store, "t1"))])
    assert (await store.tabulars(HOUSE, ("n",), "table", after=first.after, limit=2)).items == ("t2", "t3")


async def test_a_list_without_limit_is_whole_however_long(store: Store) -> None:
    """More names than fit a page that is read at once."""
    names = [f"t{i:05}" for i in range(2100)]
    await store.write([make(name, exclusive=False) for name in names])
    assert list(await everything(store)) == names


# --- locations -----------------------------------------------------------------------------------------------------

LYING_AT = "s3://bucket/wh/t"
OVERLAPPING = (
    "s3://bucket/wh/t", "s3://bucket/wh/t/", "s3a://bucket/wh/t", "s3n://bucket/wh//t", "s3://bucket/wh/t/inner/deep",
    "s3://bucket/wh", "s3://bucket",
)  # fmt: skip
APART = (
    "s3://bucket/wh/t2", "s3://bucket/wh/t2/inner", "s3://bucket/wh/T", "s3://bucket/wh/t.old", "s3://bucket/wh/t-1",
    "s3://bucket/wh/t0", "s3://bucket2/wh/t", "gs://bucket/wh/t", "s3://bucket/wh/s/t", "/bucket/wh/t",
)  # fmt: skip


@pytest.mark.parametrize("location", OVERLAPPING)
async def test_a_location_at_above_or_below_another_is_refused(store: Store, location: str) -> None:
    """Whatever the spelling; the message names the other table."""
    await store.write([make("t", location=LYING_AT)])
    with pytest.raises(ValidationFailed, match=r"overlaps table n\.t at s3://bucket/wh/t"):
        await store.write([make("x", location=location)])
    with pytest.raises(ValidationFailed, match="overlaps"):
        await store.write([make("x", kind="view", location=location)])
    assert await store.locations_overlapping(location) == ("default.n.t",)
    assert await store.tabular(HOUSE, ("n",), "x") is None


@pytest.mark.parametrize("location", APART)
async def test_a_location_beside_another_is_fine(store: Store, location: str) -> None:
    """Segments are compared whole: a common beginning is not containment."""
    await store.write([make("t", location=LYING_AT)])
    assert await store.locations_overlapping(location) == ()
    await store.write([make("x", location=location)])
    assert (await get(store, "x")).location == location


async def test_the_root_overlaps_everything_local(store: Store) -> None:
    """`/` and `file:///` hold every local table."""
    await store.write([make("t", location="/a/b/c")])
    for root in ("/", "file:///", "file:/"):
        assert await store.locations_overlapping(root) == ("default.n.t",)
        with pytest.raises(ValidationFailed, match="overlaps"):
            await store.write([make("x", location=root)])
    await store.write([drop(await get(store, "t")), make("root", location="/")])
    with pytest.raises(ValidationFailed, match="overlaps"):
        await store.write([make("x", location="file:///somewhere")])


async def test_a_deep_location_is_checked_against_every_ancestor(store: Store) -> None:
    """Sixty segments down, a table at any level above is found."""
    deep = "s3://b/" + "/".join(f"s{i}" for i in range(60))
    await store.write([make("t", location="s3://b/s0/s1")])
    assert await store.locations_overlapping(deep) == ("default.n.t",)
    with pytest.raises(ValidationFailed, match="overlaps"):
        await store.write([make("x", location=deep)])


async def test_a_registered_table_may_overlap(store: Store) -> None:
    """Without `exclusive_location` nothing is compared, but the row counts for those who ask."""
    await store.write([make("t", location="/w/t")])
    await store.write([make("x", location="/w/t/x", exclusive=False)])
    assert await store.locations_overlapping("/w/t") == ("default.n.t", "default.n.x")
    assert await store.locations_overlapping("/w/t/x", besides=(await get(store, "x")).tabular_id) == ("default.n.t",)


@pytest.mark.parametrize("location", OVERLAPPING)
async def test_a_location_of_another_warehouse_is_refused(store: Store, location: str) -> None:
    """Files know no warehouses; the message names the other one, and nobody counts the one who asks."""
    await store.write([house("other"), space("n", warehouse="other"), make("t", location=LYING_AT, roots=("/r",))])
    for unit in (make("x", location=location, warehouse="other"), make("x", location="/r/x", warehouse="other")):
        with pytest.raises(ValidationFailed, match=r"overlaps table n\.t of warehouse default at"):
            await store.write([unit])
    await store.write([make("x", warehouse="other")])
    moved = swap(await get(store, "x", warehouse="other"), "x-1", location=location)
    with pytest.raises(ValidationFailed, match="of warehouse default"):
        await store.write([moved])
    assert await store.locations_overlapping(location) == ("default.n.t",)
    assert await store.locations_overlapping(location, besides=(await get(store, "t")).tabular_id) == ()


async def test_one_table_registered_in_two_warehouses(store: Store) -> None:
    """The same uuid and place: both count for each other, and each may go on where it is."""
    await store.write([house("other"), space("n", warehouse="other"), make("t", location="/w/t", uuid="u")])
    await store.write([make("t", location="/w/t", uuid="u", warehouse="other", exclusive=False, registered=True)])
    theirs = await get(store, "t", warehouse="other")
    assert await store.locations_overlapping("/w/t") == ("default.n.t", "other.n.t")
    assert await store.locations_overlapping("/w/t/x", besides=theirs.tabular_id) == ("default.n.t",)
    await store.write([swap(theirs, "t-1")])
    with pytest.raises(ValidationFailed, match=r"overlaps table n\.t of warehouse default"):
        await store.write([swap(await get(store, "t", warehouse="other"), "t-2", location="/w/t/inner")])


async def test_of_creations_in_two_warehouses_at_one_place_exactly_one_wins(store: Store) -> None:
    """Asked for at the same moment."""
    await store.write([house("other"), space("n", warehouse="other")])
    for i in range(6):
        above = make(f"r{i}", location=f"/race{i}")
        below = make(f"r{i}", location=f"file:/race{i}/x", warehouse="other")
        results = await race(store, [above], [below])
        assert results.count(None) == 1
        assert all(isinstance(error, ValidationFailed) for error in results if error is not None)


@pytest.mark.parametrize("uuid", ["0D4A6B", "0d4a6b"])
async def test_a_uuid_is_one_in_any_case(store: Store, uuid: str) -> None:
    """As clients write it; in another warehouse it is free."""
    await store.write([make("t", uuid="0d4a6b"), house("other"), space("n", warehouse="other")])
    with pytest.raises(UuidInUse):
        await store.write([make("x", uuid=uuid)])
    await store.write([make("x", uuid=uuid, warehouse="other")])


async def test_roots_that_are_kept_stay_beside_new_ones(store: Store) -> None:
    """And a location that was left becomes one, until the table is dropped."""
    await store.write([make("t", location="/w/t", roots=("/r/a",))])
    await store.write([swap(await get(store, "t"), "t-1", location="/w/moved", roots=("/r/b",), keeps_roots=True)])
    await store.write([swap(await get(store, "t"), "t-2", location="/w/moved", roots=("/r/b",), keeps_roots=True)])
    for place in ("/w/t", "/w/moved", "/r/a", "/r/b"):
        assert await store.locations_overlapping(place) == ("default.n.t",)
        with pytest.raises(ValidationFailed, match="overlaps table"):
            await store.write([make("x", location=place)])
    await store.write([drop(await get(store, "t"))])
    assert await store.locations_overlapping("/w/t") == ()


async def test_a_purge_that_has_begun_shuts_out_files_that_are_there(store: Store) -> None:
    """Registered ones, at, above and below, of any warehouse; new tables bring new files, and a waiting job yields."""
    await store.write([house("other"), space("n", warehouse="other"), purge_job("t", at="/w/t")])
    (waiting,) = await store.purge_jobs(1)
    await store.write([make("early", location="/w/t", registered=True, exclusive=False)])
    begin = UpdatePurgeJob(
        job_id=waiting.job_id, progress=b'{"deleted":0}', attempts=0, last_error=None, places=("file:/w/t/",)
    )  # fmt: skip
    with pytest.raises(ValidationFailed, match=r"default\.n\.early"):
        await store.write([begin])
    assert (await store.purge_jobs(1))[0].progress == b"{}"
    await store.write([drop(await get(store, "early")), begin])
    for place in ("/w", "/w/t", "file:///w/t/below"):
        for unit in (
            make("late", location=place, registered=True, exclusive=False, warehouse="other"),
            make("late", location="/l", roots=(place,), registered=True, exclusive=False),
        ):
            with pytest.raises(CommitFailed, match="/w/t is being emptied"):
                await store.write([unit])
    await store.write([make("late", location="/w/t2", registered=True, exclusive=False)])
    moved = swap(await get(store, "late"), "late-1", location="/w/t", roots=(), registered=True, exclusive=False)
    with pytest.raises(CommitFailed, match="is being emptied"):
        await store.write([moved])
    await store.write([FinishPurgeJob(job_id=waiting.job_id), moved])
    with pytest.raises(SwapLost):
        await store.write([msgspec.structs.replace(begin, places=("/elsewhere",))])


async def test_of_a_registration_and_a_purge_that_begins_exactly_one_wins(store: Store) -> None:
    """Asked for at the same moment: never both."""
    for i in range(6):
        await store.write([purge_job(f"t{i}", at=f"/race{i}")])
        (waiting,) = [each for each in await store.purge_jobs(100) if each.location == f"/race{i}"]
        begin = UpdatePurgeJob(
            job_id=waiting.job_id, progress=b'{"deleted":0}', attempts=0, last_error=None, places=(f"/race{i}",)
        )  # fmt: skip
        results = await race(
            store, [begin], [make(f"r{i}", location=f"/race{i}/x", registered=True, exclusive=False)]
        )  # fmt: skip
        assert results.count(None) == 1, results


async def test_of_many_overlapping_creations_exactly_one_wins(store: Store) -> None:
    """Nested locations asked for at the same moment: one table, the others refused."""
    for i in range(4):
        root = f"/race{i}"
        units: list[list[WriteOp]] = [[make(f"r{i}-{depth}", location=root + "/x" * depth)] for depth in range(10)]
        results = await race(store, *units)
        assert results.count(None) == 1
        assert all(isinstance(error, ValidationFailed) for error in results if error is not None)


@pytest.mark.parametrize("place", ["/r", "file:///r/a", "file:/r/a/b"])
async def test_a_root_counts_like_a_location(store: Store, place: str) -> None:
    """At, above and below, for a new location and a move; the table's own are no obstacle."""
    await store.write([make("t", location="/w/t", roots=("/r/a", "/w/t2")), make("s", location="/w/s")])
    for unit in (make("x", location=place), swap(await get(store, "s"), "s-1", location=place)):
        with pytest.raises(ValidationFailed, match=r"overlaps table n\.t at /r/a"):
            await store.write([unit])
    assert await store.locations_overlapping(place) == ("default.n.t",)
    assert await everything(store) == ("s", "t")
    assert (await get(store, "s")).metadata_location == "s-0"
    await store.write([swap(await get(store, "t"), "t-1", location=place, roots=("/w/t", "/r"))])
    assert (await get(store, "t")).location == place


@pytest.mark.parametrize("place", ["/r", "file:///r/a", "file:/r/a/b"])
async def test_roots_may_meet_but_not_a_location(store: Store, place: str) -> None:
    """Engines put a folder per table below a shared data path; a shared root cannot become somebody's location."""
    await store.write([make("t", location="/w/t", roots=("/r/a",)), make("l", location="/l/a")])
    await store.write([make("x", location="/w/x", roots=(place,)), make("s", location="/w/s")])
    await store.write([swap(await get(store, "s"), "s-1", roots=("/elsewhere", place))])
    assert await store.locations_overlapping("/r/a") == ("default.n.s", "default.n.t", "default.n.x")
    with pytest.raises(ValidationFailed, match="overlaps table"):
        await store.write([swap(await get(store, "s"), "s-2", location=place)])
    at_location = place.replace("/r", "/l")
    for unit in (
        make("y", location="/w/y", roots=(at_location,)),
        swap(await get(store, "s"), "s-2", roots=("/elsewhere", at_location)),
    ):
        with pytest.raises(ValidationFailed, match=r"overlaps table n\.l at /l/a"):
            await store.write([unit])


async def test_roots_last_until_they_are_replaced(store: Store) -> None:
    """A swap without any leaves them, a rename too; replaced and dropped ones are free again."""
    await store.write([make("t", location="/w/t", roots=("/r/a",))])
    await store.write([swap(await get(store, "t"), "t-1")])
    await store.write([swap(await get(store, "t"), "t-2", uuid="another")])
    assert await store.locations_overlapping("/r") == ("default.n.t",)
    assert await store.locations_overlapping("/r", besides=(await get(store, "t")).tabular_id) == ()
    await store.write([swap(await get(store, "t"), "t-3", roots=("/r/b",))])
    assert await store.locations_overlapping("/r/a") == ()
    assert await store.locations_overlapping("/r/b/c") == ("default.n.t",)
    await store.write([drop(await get(store, "t"))])
    await store.write([make("x", location="/r")])


async def test_of_a_location_and_a_root_in_one_place_exactly_one_wins(store: Store) -> None:
    """Asked for at the same moment, by creations and by a swap of a table that is there."""
    for i in range(6):
        await store.write([make(f"s{i}", location=f"/w/s{i}")])
        table = await get(store, f"s{i}")
        results = await race(
            store,
            [make(f"a{i}", location=f"/race{i}/x")],
            [swap(table, f"s{i}-1", roots=(f"/race{i}/x/y",))],
        )
        assert results.count(None) == 1
        assert all(isinstance(error, ValidationFailed) for error in results if error is not None)


async def test_a_dropped_table_frees_its_location(store: Store) -> None:
    """Name, UUID and location can be used again, even in the same unit."""
    await store.write([make("t", location="/w/t", uuid="u")])
    await store.write([drop(await get(store, "t")), make("t", location="/w/t/below", uuid="u")])
    assert (await get(store, "t")).location == "/w/t/below"


# --- the swap ------------------------------------------------------------------------------------------------------


async def test_a_swap_moves_the_pointer_and_what_stands_beside_it(store: Store) -> None:
    """Pointer, columns and time are the new ones, the version rises by one; id, UUID and creation time stay."""
    await store.write([make("t")])
    before = await get(store, "t")
    columns = Columns(format_version=3, last_column_id=9, current_schema_id=4, field_count=7)
    await store.write([swap(before, "t-1", columns=columns, now_ms=NOW + 5)])
    after = await get(store, "t")
    assert (after.metadata_location, after.columns, after.version, after.updated_at_ms) == ("t-1", columns, 2, NOW + 5)
    assert (after.tabular_id, after.uuid, after.created_at_ms) == (before.tabular_id, before.uuid, NOW)


async def test_a_swap_from_a_stale_pointer_is_lost(store: Store) -> None:
    """Also when UUID or location would change with it, and when the table is gone."""
    await store.write([make("t")])
    stale = await get(store, "t")
    await store.write([swap(stale, "t-1")])
    for op in (swap(stale, "t-2"), swap(stale, "t-2", location="/elsewhere"), swap(stale, "t-2", uuid="other")):
        with pytest.raises(SwapLost):
            await store.write([op])
    assert (await get(store, "t")).metadata_location == "t-1"
    await store.write([drop(await get(store, "t"))])
    with pytest.raises(SwapLost):
        await store.write([swap(stale, "t-3", expected="t-1")])


async def test_a_recreated_table_is_not_hit_by_an_old_swap(store: Store) -> None:
    """Drop and create again with the same name and pointer: the old table's swap is lost."""
    await store.write([make("t")])
    old = await get(store, "t")
    await store.write([drop(old)])
    await store.write([make("t")])
    assert (await get(store, "t")).tabular_id != old.tabular_id
    with pytest.raises(SwapLost):
        await store.write([swap(old, "t-1")])


async def test_of_many_swaps_from_one_pointer_exactly_one_wins(store: Store) -> None:
    """Forty commits at once: one pointer, thirty-nine SwapLost."""
    await store.write([make("t")])
    table = await get(store, "t")
    results = await race(store, *([swap(table, f"t-{i}")] for i in range(1, 41)))
    assert results.count(None) == 1
    assert all(isinstance(error, SwapLost) for error in results if error is not None)
    after = await get(store, "t")
    assert (after.metadata_location, after.version) == (f"t-{results.index(None) + 1}", 2)


async def test_several_tables_swap_together_or_not_at_all(store: Store) -> None:
    """One stale pointer among three leaves all three, whatever its place in the unit."""
    await store.write([make(name) for name in "abc"])
    a, b, c = [await get(store, name) for name in "abc"]
    stale = swap(b, "b-9", expected="b-stale")
    for unit in ([swap(a, "a-1"), stale, swap(c, "c-1")], [swap(c, "c-1"), swap(a, "a-1"), stale]):
        with pytest.raises(SwapLost):
            await store.write(unit)
        assert [(await get(store, name)).metadata_location for name in "abc"] == ["a-0", "b-0", "c-0"]
    await store.write([swap(c, "c-1"), swap(a, "a-1"), swap(b, "b-1")])
    assert [(await get(store, name)).metadata_location for name in "abc"] == ["a-1", "b-1", "c-1"]


async def test_commits_over_the_same_tables_in_any_order_never_fail_but_by_losing(store: Store) -> None:
    """Crossing multi-table commits neither deadlock nor surface a database error, and every success counts."""
    await store.write([make(name) for name in "abcd"])
    won = 0

    async def commit(turn: int) -> None:
        nonlocal won
        for attempt in range(40):
            tables = [await get(store, name) for name in "abcd"]
            order = tables[turn % 4 :] + tables[: turn % 4]
            order = order if turn % 2 else order[::-1]
            try:
                await store.write([swap(table, f"{table.name}-{turn}-{attempt}") for table in order[:3]])
            except SwapLost:
                await asyncio.sleep(0.001 * turn)
                continue
            won += 1
            return

    await asyncio.gather(*(commit(turn) for turn in range(12)))
    versions = [(await get(store, name)).version for name in "abcd"]
    assert won == 12
    assert sum(versions) == 4 + 3 * won


async def test_a_swap_may_move_the_table(store: Store) -> None:
    """A new location is stored in the client's spelling and guarded; the table does not overlap with itself."""
    await store.write([make("t", location="/w/t"), make("s", location="/w/s")])
    table = await get(store, "t")
    with pytest.raises(ValidationFailed, match=r"overlaps table n\.s at /w/s"):
        await store.write([swap(table, "t-1", location="/w/s/inner")])
    assert (await get(store, "t")).metadata_location == "t-0"
    await store.write([swap(table, "t-1", location="file:/w/t/inner")])
    assert (await get(store, "t")).location == "file:/w/t/inner"
    assert await store.locations_overlapping("/w/t/inner") == ("default.n.t",)
    await store.write([swap(await get(store, "t"), "t-2", location="/w/s/x", exclusive=False)])
    assert (await get(store, "t")).location == "/w/s/x"


async def test_an_overlap_that_was_there_before_does_not_block_commits(store: Store) -> None:
    """Only a changed location is compared, and another spelling of the same place is no change."""
    await store.write([make("t", location="/w/t"), make("x", location="/w/t/x", exclusive=False)])
    await store.write([swap(await get(store, "x"), "x-1")])
    await store.write([swap(await get(store, "x"), "x-2", location="file:///w/t/x")])
    assert (await get(store, "x")).location == "file:///w/t/x"


async def test_a_swap_may_change_the_uuid(store: Store) -> None:
    """Registering over a table replaces its identity; the old UUID is free again."""
    await store.write([make("t", uuid="old")])
    await store.write([swap(await get(store, "t"), "t-1", uuid="new")])
    assert (await get(store, "t")).uuid == "new"
    await store.write([make("x", uuid="old")])


# --- units ---------------------------------------------------------------------------------------------------------


async def test_a_unit_is_all_or_nothing(store: Store) -> None:
    """A failure in the last operation undoes every kind of operation before it."""
    await store.write([make("t")])
    table = await get(store, "t")
    with pytest.raises(AlreadyExists):
        await store.write(
            [
                space("fresh"),
                make("new", namespace=("fresh",)),
                swap(table, "t-1"),
                AppendJournal(event=created("t")),
                key("k"),
                SetPolicy(
                    warehouse=HOUSE,
                    namespace=("n",),
                    table_uuid=None,
                    code="ICE101",
                    severity=Severity.WARN,
                    set_by="me",
                    now_ms=NOW,
                ),
                UpdateNamespace(warehouse=HOUSE, levels=("n",), updates={"a": "b"}, removals=(), now_ms=NOW),
                space("n"),
            ]
        )
    assert await store.namespace(HOUSE, ("fresh",)) is None
    assert (await get(store, "t")) == table
    assert await store.journal() == ()
    assert await store.key(HOUSE, "k", NOW) is None
    assert await store.policy(HOUSE, ("n",), None) == ()


async def test_operations_of_a_unit_see_each_other(store: Store) -> None:
    """A namespace and the table in it can come in one unit, in order."""
    await store.write([space("a"), space("a", "b"), make("t", namespace=("a", "b"))])
    assert (await get(store, "t", ("a", "b"))).name == "t"
    with pytest.raises(NoSuchNamespace):
        await store.write([make("u", namespace=("c",)), space("c")])


async def test_an_empty_unit_is_nothing(store: Store) -> None:
    """It succeeds and changes nothing."""
    await store.write([])
    assert await everything(store) == ()


async def test_failing_units_do_not_disturb_their_neighbours(store: Store) -> None:
    """Good and bad units sent at the same moment each get their own outcome."""
    units: list[list[WriteOp]] = [
        [make(f"t{i}"), make(f"u{i}")] if i % 3 else [make(f"t{i}"), space("n")] for i in range(30)
    ]
    results = await race(store, *units)
    for i, result in enumerate(results):
        if i % 3:
            assert result is None
            assert (await get(store, f"u{i}")).name == f"u{i}"
        else:
            assert isinstance(result, AlreadyExists)
            assert await store.tabular(HOUSE, ("n",), f"t{i}") is None


async def test_another_server_sees_what_was_acknowledged(store: Store, url: str) -> None:
    """A write through one store is in the next read of a second one on the same database, and the other way round."""
    other = open_store(url)
    await other.open()
    try:
        await store.write([make("t")])
        assert (await get(other, "t")).metadata_location == "t-0"
        for i in range(1, 30):
            writer, reader = (store, other) if i % 2 else (other, store)
            await writer.write([swap(await get(writer, "t"), f"t-{i}")])
            assert (await get(reader, "t")).metadata_location == f"t-{i}"
    finally:
        await other.close()


async def test_data_survive_the_store(url: str) -> None:
    """What was written is there after close and open, removals included."""
    first = open_store(url)
    await first.open()
    await first.write([house(), space("n", only="one"), make("t"), make("gone")])
    await first.write(
        [
            drop(await get(first, "gone")),
            UpdateNamespace(warehouse=HOUSE, levels=("n",), updates={}, removals=("only",), now_ms=NOW),
        ]
    )
    await first.close()
    second = open_store(url)
    await second.open()
    try:
        assert await everything(second) == ("t",)
        assert (await get(second, "t")).namespace_properties == {}
    finally:
        await second.close()


async def test_a_closed_store_says_so(url: str) -> None:
    """Reads, writes and pings before `open` and after `close` are Unavailable; closing twice is fine."""
    closed = open_store(url)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await closed.tabular(HOUSE, ("n",), "t")
        with pytest.raises(Unavailable):
            await closed.pointer(HOUSE, ("n",), "t")
        with pytest.raises(Unavailable):
            await closed.write([space("x")])
        with pytest.raises(Unavailable):
            await closed.ping()
        await closed.open()
        await closed.ping()
        await closed.close()
        await closed.close()


async def test_a_cancelled_caller_leaves_a_whole_unit(store: Store) -> None:
    """Whatever moment the caller goes away, its unit is stored completely or not at all."""
    for i in range(20):
        task = asyncio.create_task(store.write([make(f"a{i}"), make(f"b{i}"), make(f"c{i}")]))
        await asyncio.sleep(0.0002 * i)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    # Closing waits for units in flight, so that nothing lands between two of the look-ups below.
    await store.close()
    await store.open()
    for i in range(20):
        there = [await store.tabular(HOUSE, ("n",), f"{name}{i}") is not None for name in "abc"]
        assert len(set(there)) == 1


# --- drop and rename -----------------------------------------------------------------------------------------------


async def test_a_drop_needs_the_expected_pointer(store: Store) -> None:
    """A commit in between makes it SwapLost, and so does a second drop."""
    await store.write([make("t")])
    stale = await get(store, "t")
    await store.write([swap(stale, "t-1")])
    with pytest.raises(SwapLost):
        await store.write([drop(stale)])
    await store.write([drop(stale, expected="t-1")])
    assert await store.tabular(HOUSE, ("n",), "t") is None
    with pytest.raises(SwapLost):
        await store.write([drop(stale, expected="t-1")])


async def test_a_dropped_table_takes_its_settings_waivers_and_observations_along(store: Store) -> None:
    """A table registered later with the same UUID starts without them; its neighbours keep theirs."""
    await store.write([make("t", uuid="u"), make("s", uuid="w")])
    for uuid in ("u", "w"):
        await store.write([AddWaiver(waiver=waiver(f"of {uuid}", uuid)), setting(table_uuid=uuid)])
        await store.note([seen(uuid)], [report(uuid)])
    await store.write([drop(await get(store, "t"))])
    await store.write([make("t", uuid="u")])
    assert await store.waivers("u") == () and await store.sightings("u") == () and await store.reports("u") == ()
    assert await store.policy(HOUSE, ("n",), "u") == ()
    assert len(await store.waivers("w")) == len(await store.sightings("w")) == len(await store.reports("w")) == 1
    assert len(await store.policy(HOUSE, ("n",), "w")) == 1


async def test_a_rename_moves_the_name_only(store: Store) -> None:
    """Within a namespace and into another one: UUID, location, pointer and version stay, the old name is free."""
    await store.write([space("m"), make("t")])
    before = await get(store, "t")
    await store.write([rename("t", "s")])
    await store.write([rename("s", (("m",), "t"))])
    after = await get(store, "t", ("m",))
    assert await store.tabular(HOUSE, ("n",), "t") is None and await store.tabular(HOUSE, ("n",), "s") is None
    assert (after.tabular_id, after.uuid, after.location) == (before.tabular_id, before.uuid, before.location)
    assert (after.metadata_location, after.version) == (before.metadata_location, before.version)
    await store.write([make("t", uuid="another", location="/another")])


async def test_a_rename_names_what_is_in_the_way(store: Store) -> None:
    """Taken by a table, taken by a view, source missing, source of the other kind, target namespace missing."""
    await store.write([make("a"), make("b"), make("v", kind="view"), make("w", kind="view")])
    for op, kind, message in (
        (rename("a", "b"), AlreadyExists, "^Cannot rename n.a to n.b. Table already exists$"),
        (rename("a", "v"), AlreadyExists, "^Cannot rename n.a to n.v. View already exists$"),
        (rename("v", "b", kind="view"), AlreadyExists, "^Cannot rename n.v to n.b. Table already exists$"),
        (rename("v", "w", kind="view"), AlreadyExists, "^Cannot rename n.v to n.w. View already exists$"),
        (rename("x", "y"), NoSuchTable, "^Table does not exist: n.x$"),
        (rename("v", "y"), NoSuchTable, "^Table does not exist: n.v$"),
        (rename("a", "y", kind="view"), NoSuchView, "^View does not exist: n.a$"),
        (rename("a", (("nope",), "a")), NoSuchNamespace, "^Namespace does not exist: nope$"),
        (rename((("nope",), "a"), "c"), NoSuchTable, "^Table does not exist: nope.a$"),
    ):
        with pytest.raises(kind, match=message):
            await store.write([op])
    assert await everything(store) == ("a", "b")
    assert await everything(store, kind="view") == ("v", "w")


async def test_a_rename_onto_itself_changes_nothing(store: Store) -> None:
    """It succeeds for a table that exists and fails for one that does not."""
    await store.write([make("t")])
    before = await get(store, "t")
    await store.write([rename("t", "t")])
    assert await get(store, "t") == before
    with pytest.raises(NoSuchTable):
        await store.write([rename("x", "x")])


async def test_of_two_renames_to_one_target_exactly_one_wins(store: Store) -> None:
    """The other one is told that the target exists and keeps its name."""
    for i in range(10):
        await store.write([make(f"a{i}"), make(f"b{i}")])
        results = await race(store, [rename(f"a{i}", f"c{i}")], [rename(f"b{i}", f"c{i}")])
        assert results.count(None) == 1
        (error,) = [one for one in results if one is not None]
        assert isinstance(error, AlreadyExists) and str(error).endswith("Table already exists")
        loser = f"a{i}" if results[0] is not None else f"b{i}"
        assert (await get(store, loser)).name == loser


async def test_a_rename_and_a_commit_do_not_disturb_each_other(store: Store) -> None:
    """Both succeed: the swap is by id, the rename by name."""
    for i in range(8):
        await store.write([make(f"t{i}")])
        table = await get(store, f"t{i}")
        assert await race(store, [rename(f"t{i}", f"r{i}")], [swap(table, "next")]) == [None, None]
        assert (await get(store, f"r{i}")).metadata_location == "next"


# --- idempotency keys ----------------------------------------------------------------------------------------------


async def test_a_key_is_found_in_any_case_until_it_expires(store: Store) -> None:
    """The record comes back as stored, per warehouse, and not at or after its expiry."""
    await store.write([key("AbC", lasts=100)])
    for spelling in ("AbC", "abc", "ABC"):
        found = await store.key(HOUSE, spelling, NOW + 99)
        assert found is not None
        assert (found.key, found.fingerprint, found.kind, found.outcome) == ("abc", "f", "done", b'{"x":1}')
        assert (found.created_at_ms, found.expires_at_ms) == (NOW, NOW + 100)
    assert await store.key(HOUSE, "abc", NOW + 100) is None
    assert await store.key("other", "abc", NOW) is None


@pytest.mark.parametrize("kind", ["done", "refused"])
async def test_a_key_tells_whether_its_request_took_effect(store: Store, kind: OutcomeKind) -> None:
    """The kind of the outcome comes back as it was recorded."""
    made = key("k").record
    await store.write([RecordKey(record=msgspec.structs.replace(made, kind=kind))])
    found = await store.key(HOUSE, "k", NOW)
    assert found is not None and found.kind == kind


async def test_a_used_key_undoes_the_whole_unit(store: Store) -> None:
    """KeyAlreadyUsed in any case of letters; the table of the same unit is not there."""
    await store.write([key("k")])
    with pytest.raises(KeyAlreadyUsed):
        await store.write([make("t"), key("K", at=NOW + 500)])
    assert await store.tabular(HOUSE, ("n",), "t") is None
    await store.write([house("other"), key("k", warehouse="other")])


async def test_an_expired_key_is_overwritten(store: Store) -> None:
    """From its expiry on the same key stands for a new request."""
    await store.write([key("k", lasts=100)])
    await store.write([key("k", at=NOW + 100, fingerprint="second")])
    found = await store.key(HOUSE, "k", NOW + 150)
    assert found is not None and found.fingerprint == "second"


async def test_of_many_requests_with_one_key_exactly_one_lands(store: Store) -> None:
    """Twenty at once, each with its own table: one table, nineteen KeyAlreadyUsed."""
    units: list[list[WriteOp]] = [[make(f"t{i}"), key("k", fingerprint=str(i))] for i in range(20)]
    results = await race(store, *units)
    assert results.count(None) == 1
    assert all(isinstance(error, KeyAlreadyUsed) for error in results if error is not None)
    assert await everything(store) == (f"t{results.index(None)}",)


async def test_expired_keys_are_swept(store: Store) -> None:
    """Only expired ones go, and their number is told."""
    await store.write([key("a", lasts=10), key("b", lasts=20), key("c", lasts=30)])
    assert await store.expire_keys(NOW + 20) == 2
    assert await store.expire_keys(NOW + 20) == 0
    assert await store.key(HOUSE, "c", NOW) is not None


# --- purge jobs ----------------------------------------------------------------------------------------------------


async def test_purge_jobs_wait_until_they_are_finished(store: Store) -> None:
    """Oldest first; progress is kept; those that failed step back behind the others; finishing twice is fine."""
    for name in ("a", "b", "c"):
        await store.write([purge_job(name, at=f"/w/{name}")])
    a, b, c = await store.purge_jobs(10)
    assert (a.name, a.table_uuid, a.location, a.metadata_location) == ("n.a", "ua", "/w/a", "/w/a/m")
    assert (a.warehouse, a.progress, a.created_at_ms, a.attempts, a.last_error) == (HOUSE, b"{}", NOW, 0, None)
    await store.write([UpdatePurgeJob(job_id=a.job_id, progress=b'{"n":1}', attempts=1, last_error="slow")])
    again = await store.purge_jobs(10)
    assert [job.name for job in again] == ["n.b", "n.c", "n.a"]
    assert (again[2].progress, again[2].attempts, again[2].last_error) == (b'{"n":1}', 1, "slow")
    assert [job.name for job in await store.purge_jobs(1)] == ["n.b"]
    await store.write([FinishPurgeJob(job_id=b.job_id)])
    await store.write([FinishPurgeJob(job_id=b.job_id)])
    await store.write([UpdatePurgeJob(job_id=b.job_id, progress=b"{}", attempts=9, last_error=None)])
    assert {job.job_id for job in await store.purge_jobs(10)} == {a.job_id, c.job_id}


# --- journal -------------------------------------------------------------------------------------------------------


def created(name: str, namespace: Levels = ("n",), uuid: str = "u", warehouse: str = HOUSE) -> AnyEvent:
    return Created(
        at_ms=NOW, by="me", client="test", warehouse=warehouse, namespace=namespace, name=name, uuid=uuid,
        kind="table", metadata_location="m",
    )  # fmt: skip


async def test_the_journal_keeps_events_as_they_are(store: Store) -> None:
    """Typed events with nested changes come back equal, newest first."""
    events: tuple[AnyEvent, ...] = (
        created("t"),
        SchemaChanged(
            at_ms=NOW, by="me", client="x", warehouse=HOUSE, namespace=("n",), name="t", uuid="u",
            metadata_location="m", from_schema_id=None, to_schema_id=1, last_column_id=2**31 - 1,
            changes=({"field-id": 1, "path": 'a."b"', "nul": "\x00", "list": [1, None, True]},),
        ),
        PolicyChanged(
            at_ms=NOW, by="me", client="x", warehouse=HOUSE, namespace=("n",), name="", uuid="",
            code="ICE101", severity=None,
        ),
    )  # fmt: skip
    for event in events:
        await store.write([AppendJournal(event=event)])
    entries = await store.journal()
    assert tuple(entry.event for entry in entries) == tuple(reversed(events))
    assert [entry.entry_id for entry in entries] == sorted((entry.entry_id for entry in entries), reverse=True)


async def test_the_journal_is_asked_by_table_warehouse_and_namespace(store: Store) -> None:
    """A namespace includes those below it and no sibling that only begins alike."""
    for name, levels, uuid, warehouse in (
        ("1", ("a",), "u", HOUSE), ("2", ("a", "b"), "v", HOUSE), ("3", ("a", "b", "c"), "u", HOUSE),
        ("4", ("ab",), "w", HOUSE), ("5", ("a.b",), "x", HOUSE), ("6", ("a",), "u", "other"),
    ):  # fmt: skip
        await store.write([AppendJournal(event=created(name, levels, uuid, warehouse))])

    async def names(
        table_uuid: str | None = None, warehouse: str | None = None, namespace: Levels | None = None
    ) -> str:
        entries = await store.journal(table_uuid=table_uuid, warehouse=warehouse, namespace=namespace)
        return "".join(entry.event.name for entry in entries)

    assert await names() == "654321"
    assert await names(table_uuid="u") == "631"
    assert await names(warehouse=HOUSE) == "54321"
    assert await names(warehouse=HOUSE, namespace=("a",)) == "321"
    assert await names(warehouse=HOUSE, namespace=("a", "b")) == "32"
    assert await names(warehouse=HOUSE, namespace=()) == "54321"
    assert await names(table_uuid="u", warehouse=HOUSE, namespace=("a",)) == "31"
    assert await names(table_uuid="u", warehouse="other") == "6"
    assert await names(namespace=("a",)) == "6321"
    assert await names(table_uuid="u", namespace=("a", "b")) == "3"


async def test_the_journal_pages_backwards(store: Store) -> None:
    """`before_id` continues where a page ended."""
    for i in range(5):
        await store.write([AppendJournal(event=created(str(i)))])
    first = await store.journal(limit=2)
    second = await store.journal(limit=2, before_id=first[-1].entry_id)
    third = await store.journal(limit=2, before_id=second[-1].entry_id)
    assert [entry.event.name for entry in (*first, *second, *third)] == ["4", "3", "2", "1", "0"]


# --- policy and waivers --------------------------------------------------------------------------------------------


def setting(
    namespace: Levels = ("n",), table_uuid: str | None = None, code: str = "ICE201",
    severity: Severity | None = Severity.WARN, by: str = "me",
) -> SetPolicy:  # fmt: skip
    return SetPolicy(
        warehouse=HOUSE, namespace=namespace, table_uuid=table_uuid, code=code, severity=severity, set_by=by, now_ms=NOW
    )


async def test_settings_reach_down_and_not_sideways(store: Store) -> None:
    """A table's own, its namespace's and every namespace's above are found, the nearest last; others are not."""
    await store.write([
        setting(("n", "m"), "u", severity=Severity.OFF), setting(("n", "m")), setting(("n",), severity=Severity.ERROR),
        setting(()), setting(("n", "x")), setting(("n", "m"), "other"), setting(("n.m",)),
    ])  # fmt: skip
    found = await store.policy(HOUSE, ("n", "m"), "u")
    assert [(one.namespace, one.table_uuid, one.severity) for one in found] == [
        ((), None, Severity.WARN),
        (("n",), None, Severity.ERROR),
        (("n", "m"), None, Severity.WARN),
        (("n", "m"), "u", Severity.OFF),
    ]
    assert (found[0].set_by, found[0].set_at_ms, found[0].warehouse, found[0].code) == ("me", NOW, HOUSE, "ICE201")
    assert [one.namespace for one in await store.policy(HOUSE, ("n",), None)] == [(), ("n",)]
    assert await store.policy("other", ("n",), "u") == ()


async def test_settings_of_a_very_deep_namespace_are_all_found(store: Store) -> None:
    """Thirty levels, a setting on each."""
    levels = tuple(f"l{i}" for i in range(30))
    await store.write([setting(levels[:depth]) for depth in range(31)])
    assert [len(one.namespace) for one in await store.policy(HOUSE, levels, None)] == list(range(31))


async def test_a_setting_is_replaced_and_removed(store: Store) -> None:
    """The last one holds; None takes it away; removing what is not there is fine."""
    await store.write([setting(), setting(code="ICE202")])
    await store.write([setting(severity=Severity.ERROR, by="you")])
    found = await store.policy(HOUSE, ("n",), None)
    assert [(one.code, one.severity, one.set_by) for one in found] == [
        ("ICE201", Severity.ERROR, "you"), ("ICE202", Severity.WARN, "me"),
    ]  # fmt: skip
    await store.write([setting(severity=None)])
    await store.write([setting(severity=None)])
    assert [one.code for one in await store.policy(HOUSE, ("n",), None)] == ["ICE202"]


async def test_a_tables_setting_follows_its_rename(store: Store) -> None:
    """It is found under the new namespace and is set once, not twice."""
    await store.write([space("m"), make("t", uuid="u"), setting(table_uuid="u")])
    await store.write([rename("t", (("m",), "t"))])
    await store.write([setting(("m",), "u", severity=Severity.OFF)])
    found = await store.policy(HOUSE, ("m",), "u")
    assert [(one.namespace, one.severity) for one in found] == [(("m",), Severity.OFF)]


async def test_a_recreated_namespace_has_no_settings(store: Store) -> None:
    """Dropping a namespace takes its settings along and nobody else's."""
    await store.write([space("a"), setting(("a",)), setting(("n",))])
    await store.write([no_space("a")])
    await store.write([space("a")])
    assert await store.policy(HOUSE, ("a",), None) == ()
    assert len(await store.policy(HOUSE, ("n",), None)) == 1


def waiver(waiver_id: str, table_uuid: str = "u") -> Waiver:
    return Waiver(
        waiver_id=waiver_id, table_uuid=table_uuid, code="ICE202", reason="agreed", granted_by="boss",
        granted_at_ms=NOW, expires_at_ms=NOW + 10,
    )  # fmt: skip


async def test_a_waiver_is_used_once(store: Store) -> None:
    """The second use is SwapLost and undoes its unit; the used one stays on record."""
    await store.write([AddWaiver(waiver=waiver("w")), AddWaiver(waiver=waiver("other", "v"))])
    assert await store.waivers("u") == (waiver("w"),)
    await store.write([UseWaiver(waiver_id="w", now_ms=NOW + 5)])
    (used,) = await store.waivers("u")
    assert used.used_at_ms == NOW + 5
    with pytest.raises(SwapLost):
        await store.write([make("t"), UseWaiver(waiver_id="w", now_ms=NOW + 6)])
    assert await store.tabular(HOUSE, ("n",), "t") is None


async def test_of_two_commits_with_one_waiver_exactly_one_lands(store: Store) -> None:
    """The other one is judged again."""
    for i in range(6):
        await store.write([AddWaiver(waiver=waiver(f"w{i}"))])
        results = await race(store, *([UseWaiver(waiver_id=f"w{i}", now_ms=NOW)] for _ in range(5)))
        assert results.count(None) == 1
        assert all(isinstance(error, SwapLost) for error in results if error is not None)


async def test_a_revoked_waiver_is_gone(store: Store) -> None:
    """It cannot be used; a used or unknown one cannot be revoked; an id is granted once."""
    await store.write([AddWaiver(waiver=waiver("w")), AddWaiver(waiver=waiver("x"))])
    with pytest.raises(AlreadyExists):
        await store.write([AddWaiver(waiver=waiver("w"))])
    await store.write([RevokeWaiver(waiver_id="w"), UseWaiver(waiver_id="x", now_ms=NOW)])
    assert [one.waiver_id for one in await store.waivers("u")] == ["x"]
    with pytest.raises(SwapLost):
        await store.write([UseWaiver(waiver_id="w", now_ms=NOW)])
    for gone in ("w", "x", "never"):
        with pytest.raises(NotFound):
            await store.write([RevokeWaiver(waiver_id=gone)])


# --- warehouses ----------------------------------------------------------------------------------------------------


async def test_a_warehouse_reads_back_as_it_was_put(store: Store) -> None:
    """Every field, secrets included; listed by name."""
    value = Warehouse(
        name="b", location="s3://b/w", allowed_locations=("s3://c", "/x"), properties={"p": "1"},
        storage={"s3.region": "eu"}, secrets={"s3.key": "k"}, version=7,
    )  # fmt: skip
    await store.write([PutWarehouse(warehouse=value, expected_version=None, now_ms=NOW), house("a")])
    found = await store.warehouse("b")
    assert found is not None and found.version == 1
    assert (found.location, found.allowed_locations, found.properties) == ("s3://b/w", ("s3://c", "/x"), {"p": "1"})
    assert (found.storage, found.secrets) == ({"s3.region": "eu"}, {"s3.key": "k"})
    assert [one.name for one in await store.warehouses()] == ["a", "b", HOUSE]
    assert await store.warehouse("nope") is None


async def test_secrets_are_unreadable_in_the_database(store: Store, url: str) -> None:
    """Nothing of a value is in the row, and no server reads it without the key; of several keys any may fit."""
    value = Warehouse(name="b", location="s3://b/w", secrets={"s3.secret-access-key": "hush-hush"})
    await store.write([PutWarehouse(warehouse=value, expected_version=None, now_ms=NOW)])
    (row,) = [one for one in await store.fetch(warehouses.ALL, {}) if one[0] == "b"]  # type: ignore[attr-defined]
    assert "hush" not in repr(row)
    for keys, fits in (((), False), ((OTHER_KEY,), False), ((OTHER_KEY, KEY), True)):
        server = open_store(url, secret_keys=keys)
        await server.open()
        try:
            if fits:
                found = await server.warehouse("b")
                assert found is not None and found.secrets == value.secrets
            else:
                with pytest.raises(BadSettings, match="ICEKEEL_SECRET_KEY"):
                    await server.warehouse("b")
            assert await server.warehouse(HOUSE) is not None
        finally:
            await server.close()


async def test_secrets_of_one_warehouse_do_not_open_as_those_of_another(store: Store) -> None:
    """Somebody who can write to the database cannot borrow keys by copying a row."""
    value = Warehouse(name="b", location="s3://b/w", secrets={"s3.secret-access-key": "hush"})
    sealed = secrets.sealed(PutWarehouse(warehouse=value, expected_version=None, now_ms=NOW), secrets.sealer([KEY]))
    copied = Warehouse(name="c", location="s3://c/w", secrets=sealed.warehouse.secrets)
    with pytest.raises(BadSettings, match="warehouse c"):
        secrets.opened(copied, secrets.sealer([KEY]))


async def test_secrets_are_not_stored_without_a_key(url: str) -> None:
    """The refusal names the setting and the options, never a value."""
    store = open_store(url)
    await store.open()
    try:
        with pytest.raises(BadRequest, match="ICEKEEL_SECRET_KEY") as refused:
            value = Warehouse(name="b", location="s3://b/w", secrets={"s3.secret-access-key": "hush"})
            await store.write([PutWarehouse(warehouse=value, expected_version=None, now_ms=NOW)])
        assert "s3.secret-access-key" in str(refused.value) and "hush" not in str(refused.value)
    finally:
        await store.close()


async def test_a_warehouse_is_replaced_only_at_the_expected_version(store: Store) -> None:
    """A taken name is AlreadyExists; a stale version is SwapLost, and so is a missing warehouse."""
    moved = Warehouse(name=HOUSE, location="/moved")
    with pytest.raises(AlreadyExists, match=HOUSE):
        await store.write([PutWarehouse(warehouse=moved, expected_version=None, now_ms=NOW)])
    await store.write([PutWarehouse(warehouse=moved, expected_version=1, now_ms=NOW)])
    found = await store.warehouse(HOUSE)
    assert found is not None and (found.location, found.version) == ("/moved", 2)
    for name in (HOUSE, "nope"):
        with pytest.raises(SwapLost):
            await store.write(
                [PutWarehouse(warehouse=Warehouse(name=name, location="/x"), expected_version=1, now_ms=NOW)]
            )


async def test_of_many_puts_of_one_warehouse_exactly_one_wins(store: Store) -> None:
    """Servers that start together each try to make the default warehouse."""
    results = await race(store, *([house("fresh")] for _ in range(10)))
    assert results.count(None) == 1
    assert all(isinstance(error, AlreadyExists) for error in results if error is not None)


async def test_only_an_empty_warehouse_is_dropped(store: Store) -> None:
    """With a namespace it stays; a missing one is told; its keys and settings go with it."""
    with pytest.raises(NamespaceNotEmpty):
        await store.write([DropWarehouse(name=HOUSE)])
    with pytest.raises(NoSuchWarehouse):
        await store.write([DropWarehouse(name="nope")])
    await store.write([no_space("n"), key("k"), setting(())])
    await store.write([DropWarehouse(name=HOUSE)])
    assert await store.warehouses() == ()
    await store.write([house()])
    assert await store.key(HOUSE, "k", NOW) is None
    assert await store.policy(HOUSE, (), None) == ()


# --- observations --------------------------------------------------------------------------------------------------


def seen(table_uuid: str = "u", client: str = "spark", version: str = "1", at: int = NOW) -> Sighting:
    return Sighting(table_uuid=table_uuid, client=client, client_version=version, action="load", last_seen_ms=at)


def report(table_uuid: str = "u", body: bytes = b"{}", at: int = NOW) -> Report:
    return Report(table_uuid=table_uuid, kind="scan-report", received_at_ms=at, body=body)


async def test_the_latest_sighting_of_a_client_is_kept(store: Store) -> None:
    """One row per client, version and action; an older sighting does not set it back; newest first."""
    await store.write([make("t", uuid="u")])
    await store.note([seen(at=NOW + 2), seen(at=NOW + 1), seen(version="2", at=NOW + 3), seen(client="trino")], [])
    await store.note([seen(at=NOW)], [])
    found = await store.sightings("u")
    assert [(one.client, one.client_version, one.last_seen_ms) for one in found] == [
        ("spark", "2", NOW + 3), ("spark", "1", NOW + 2), ("trino", "1", NOW),
    ]  # fmt: skip


async def test_observations_are_bounded_per_table(store: Store) -> None:
    """Whatever clients invent: two hundred sightings and fifty reports at most, the newest ones."""
    await store.write([make("t", uuid="u"), make("s", uuid="v")])
    await store.note([seen("v")], [report("v")])
    for start in range(0, 300, 60):
        await store.note(
            [seen(client=f"c{i}", at=NOW + i) for i in range(start, start + 60)],
            [report(body=str(i).encode(), at=NOW + i) for i in range(start, start + 60)],
        )
    sightings, reports = await store.sightings("u"), await store.reports("u")
    assert [one.client for one in sightings] == [f"c{i}" for i in range(299, 99, -1)]
    assert [one.body for one in reports] == [str(i).encode() for i in range(299, 249, -1)]
    assert len(await store.sightings("v")) == len(await store.reports("v")) == 1


async def test_nothing_is_kept_of_a_table_that_does_not_exist(store: Store) -> None:
    """Observations cannot be piled up under invented UUIDs."""
    await store.note([seen("invented")], [report("invented")])
    assert await store.sightings("invented") == () and await store.reports("invented") == ()


async def test_an_observation_that_cannot_be_stored_is_dropped_quietly(store: Store) -> None:
    """Best effort: the caller is not disturbed."""
    await store.write([make("t", uuid="u")])
    await store.note([seen(client="lone \ud800 surrogate")], [])
    await store.note([seen(client="fine")], [])
    assert [one.client for one in await store.sightings("u")] == ["fine"]


async def test_errors_keep_their_kind_across_the_store(store: Store) -> None:
    """Whatever two units do to each other, a caller never sees a database's own exception."""
    units: list[list[WriteOp]] = []
    for i in range(10):
        units += [[make("t", uuid=f"u{i}", location=f"/x{i}")], [space("s")], [rename("t", f"r{i}")], [no_space("s")]]
    for error in await race(store, *units):
        assert error is None or isinstance(error, IcekeelError)


# --- standings -----------------------------------------------------------------------------------------------------


async def test_tables_are_listed_by_their_columns_largest_first(store: Store) -> None:
    """Every order, ties by age, unknown values last; a namespace holds those below it, and views are left out."""
    await store.write([house("other"), space("n", "below"), space("m"), space("n", warehouse="other")])
    await store.write([
        make("a"), make("b", namespace=("n", "below")), make("c", namespace=("m",)), make("d", warehouse="other"),
        make("v", kind="view"),
    ])  # fmt: skip
    b = await get(store, "b", ("n", "below"))
    grown = Columns(
        format_version=2, last_column_id=9, current_schema_id=4, field_count=2, schema_count=5, schema_changed_at_ms=NOW
    )
    await store.write([swap(b, "b-1", columns=grown)])

    async def names(by: Standing, warehouse: str | None, levels: Levels | None, **more: object) -> list[str]:
        page = {"after": None, "limit": 10, **more}
        return [row.name for row in await store.standings(warehouse, levels, by, **page)]  # type: ignore[arg-type]

    assert await names("last-column-id", HOUSE, None) == ["b", "a", "c"]
    assert await names("field-count", HOUSE, None) == ["a", "c", "b"]
    assert await names("retired-ids", HOUSE, ("n",)) == ["b", "a"]
    assert await names("schema-count", HOUSE, ("m",)) == ["c"]
    assert await names("schema-changed", None, None) == ["b", "a", "c", "d"]
    assert await names("last-column-id", HOUSE, ("nope",)) == []
    assert await names("last-column-id", HOUSE, None, limit=1) == ["b"]
    assert await names("last-column-id", HOUSE, None, after=(9, b.tabular_id)) == ["a", "c"]
    assert (await get(store, "b", ("n", "below"))).columns == grown
    assert (await get(store, "a")).columns.schema_count is None
