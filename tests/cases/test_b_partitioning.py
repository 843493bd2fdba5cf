"""Group B of the public cases: partitioning and sorting (O-12 to O-14)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.shorthand import schema
from tests.cases.wire import (
    Catalog,
    Table,
    add_order,
    add_snapshot,
    add_spec,
    error_of,
    evolve,
    ok,
    partition,
    set_ref,
    sort,
)

Json = Any
Namespace = tuple[str, ...]
WIDE = schema("1:id long!, 2:v string")


# --- O-12 ---------------------------------------------------------------------------------------------------------


def test_o12_columns_that_only_history_uses_can_be_dropped(catalog: Catalog, ns: Namespace) -> None:
    """Sources of an old spec and an old order may go; the table still loads, grows and registers, history unchanged."""
    table = catalog.create(
        ns,
        schema("1:id long!, 2:trip string, 3:ts timestamp"),
        partition_spec={"fields": [partition(2, "bucket[8]", "trip_bucket")]},
        write_order={"order-id": 1, "fields": [sort(3)]},
    )
    first = table.append(1, None, 1)
    table.commit([*add_spec(), *add_order()])
    table.commit(evolve(schema("1:id long!")))
    table.commit([add_snapshot(table.snap(2, 1, 2, schema_id=1)), set_ref("main", 2)])
    short = table.metadata(snapshots="refs")
    assert [s["snapshot-id"] for s in short["snapshots"]] == [2]
    full = table.load()
    old_spec = first["partition-specs"][0]
    old_order = next(o for o in first["sort-orders"] if o["order-id"] == 1)
    assert old_spec in full["metadata"]["partition-specs"]
    assert old_order in full["metadata"]["sort-orders"]
    assert catalog.drop(table).status_code == 204
    again = ok(catalog.post_register(ns, "again", full["metadata-location"]))
    assert again["metadata"] == full["metadata"]


# --- O-13 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def active(catalog: Catalog, ns: Namespace) -> Table:
    """A table partitioned by region and sorted by ts, with one snapshot."""
    table = catalog.create(
        ns,
        schema("1:id long!, 2:region string, 3:ts timestamp"),
        partition_spec={"fields": [partition(2, "identity", "region")]},
        write_order={"order-id": 1, "fields": [sort(3)]},
    )
    table.append(1, None, 1)
    return table


@pytest.mark.parametrize("text", ["1:id long!, 3:ts timestamp", "1:id long!, 2:region string"])
def test_o13_an_active_source_cannot_be_dropped(active: Table, text: str) -> None:
    """Dropping the source of the default spec or of the default order is 400."""
    active.refuse(evolve(schema(text)))


def test_o13_an_active_source_can_be_renamed(active: Table) -> None:
    """A rename changes neither sources nor field ids, and makes no new spec or order."""
    before = active.metadata()
    after = active.commit(evolve(schema("1:id long!, 2:area string, 3:at timestamp")))
    for key in ("partition-specs", "sort-orders", "default-spec-id", "default-sort-order-id", "last-partition-id"):
        assert after[key] == before[key]


def test_o13_one_commit_may_switch_and_drop(active: Table) -> None:
    """A commit that changes the defaults away first may drop both columns."""
    after = active.commit([*add_spec(), *add_order(), *evolve(schema("1:id long!"))])
    assert len(after["partition-specs"]) == 2
    assert after["default-sort-order-id"] == 0


# --- O-14 ---------------------------------------------------------------------------------------------------------

_O14 = (
    "1:id long!, 2:s string, 3:d date, 4:o struct<5:i struct<6:x long>>, 7:l list<8: long>,"
    " 9:m map<10: string, 11: long>"
)


def named(catalog: Catalog, ns: Namespace, *fields: Json, **body: Json) -> Table:
    spec = {"fields": list(fields)}
    return catalog.create(ns, schema(_O14), partition_spec=spec, **body)


def test_o14_partition_fields_without_ids_count_from_1000(catalog: Catalog, ns: Namespace) -> None:
    """Two fields get 1000 and 1001, and the counter is the last of them."""
    metadata = named(catalog, ns, partition(1, "bucket[4]", "p"), partition(3, "day", "q")).metadata()
    assert [f["field-id"] for f in metadata["partition-specs"][0]["fields"]] == [1000, 1001]
    assert metadata["last-partition-id"] == 1001


def test_o14_an_unpartitioned_table_has_one_empty_spec(catalog: Catalog, ns: Namespace) -> None:
    """Spec 0 without fields, and the counter is 999."""
    metadata = catalog.create(ns, schema(_O14), partition_spec=None).metadata()
    assert metadata["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert metadata["last-partition-id"] == 999


def _ids(catalog: Catalog, ns: Namespace) -> dict[str, int]:
    """The ids that create gives to the columns of `_O14`, by name."""
    out: dict[str, int] = {}

    def walk(part: Json) -> None:
        if isinstance(part, str):
            return
        for field in part.get("fields", []):
            out[field["name"]] = field["id"]
            walk(field["type"])
        for slot in ("element", "key", "value"):
            if slot in part:
                out[slot] = part[f"{slot}-id"]
                walk(part[slot])

    walk(catalog.create(ns, schema(_O14)).metadata()["schemas"][0])
    return out


def test_o14_a_source_in_a_struct_in_a_struct_is_legal(catalog: Catalog, ns: Namespace) -> None:
    """Struct ancestors are no obstacle, and the source follows its column through renumbering."""
    metadata = named(catalog, ns, partition(6, "identity", "x_part")).metadata()
    assert metadata["partition-specs"][0]["fields"][0]["source-id"] == _ids(catalog, ns)["x"]


@pytest.mark.parametrize(
    "fields",
    [
        [partition(8, "identity", "p")],
        [partition(11, "identity", "p")],
        [partition(99, "identity", "p")],
        [partition(2, "year", "p")],
        [partition(1, "bucket[0]", "p")],
        [partition(1, "bucket[4]", "p"), partition(2, "identity", "p")],
    ],
    ids=["in-list", "map-value", "unknown-source", "year-of-string", "bucket-0", "duplicate-name"],
)
def test_o14_illegal_partition_fields(catalog: Catalog, ns: Namespace, fields: list[Json]) -> None:
    """Each is 400 and creates nothing."""
    error_of(catalog.post_create(ns, "bad", schema(_O14), partition_spec={"fields": fields}), 400)
    error_of(catalog.table(ns, "bad").get(), 404)


def test_o14_order_id_0_never_has_fields(catalog: Catalog, ns: Namespace) -> None:
    """A sorted order sent as 0 is refused or renumbered."""
    answer = catalog.post_create(ns, "sorted", schema(_O14), write_order={"order-id": 0, "fields": [sort(1)]})
    if answer.status_code == 200:
        orders = answer.json()["metadata"]["sort-orders"]
        assert [o["order-id"] for o in orders if o["fields"]] == [1]
    else:
        error_of(answer, 400)


def test_o14_a_null_write_order_is_unsorted(catalog: Catalog, ns: Namespace) -> None:
    """Order 0 without fields."""
    metadata = catalog.create(ns, schema(_O14), write_order=None).metadata()
    assert metadata["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert metadata["default-sort-order-id"] == 0


@pytest.mark.parametrize("version", [2, 3])
def test_a_transform_of_several_columns_says_what_it_needs(catalog: Catalog, ns: Namespace, version: int) -> None:
    """Version 3, and then a lowered rule: on creation and in commits, in specs and orders alike."""
    bucket = {"source-ids": [1, 2], "transform": "bucket[4]"}
    spec = {"fields": [bucket | {"name": "p"}]}
    order = {"order-id": 1, "fields": [bucket | {"direction": "asc", "null-order": "nulls-first"}]}
    why = "ICE512 transform-of-several-columns" if version == 3 else "needs format version 3, and the table has 2"
    table = catalog.create(ns, WIDE, version=version)
    body = {"schema": WIDE, "name": "several", "properties": {"format-version": str(version)}}
    for answer in (
        table.post([], [{"action": "add-spec", "spec": spec}]),
        table.post([], [{"action": "add-sort-order", "sort-order": order}]),
        catalog.http.post(f"{catalog.namespace_path(ns)}/tables", json=body | {"partition-spec": spec}),
        catalog.http.post(f"{catalog.namespace_path(ns)}/tables", json=body | {"write-order": order}),
    ):
        assert why in error_of(answer, 400)["message"]
