"""The bookshop's orders table: PyIceberg renames, drops, re-adds and promotes columns against a real server.

Every figure of the story is asserted: field ids, schema ids, row counts, column orders, the last column id, and what is
refused. The tests run in the order in which the story is told and share its table.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import BadRequestError, ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from tests.server import Server

NAME = ("bookshop", "orders")
TITLES = ("Dune", "Emma", "Ulysses", "Middlemarch")
COUNTRIES = ("GB", "IE", "FR", "DE")
EPOCH = datetime.fromisoformat("2026-01-01T00:00:00")
FIRST = ["order_id", "customer_id", "title", "country", "quantity", "amount", "status", "ordered_at"]
LAST = [
    "status",
    "order_id",
    "customer_id",
    "book_title",
    "channel",
    "quantity",
    "amount",
    "ordered_at",
    "region",
    "country",
]

ORDERS = Schema(
    NestedField(1, "order_id", LongType(), required=True),
    NestedField(2, "customer_id", LongType(), required=True),
    NestedField(3, "title", StringType(), required=False),
    NestedField(4, "country", StringType(), required=False),
    NestedField(5, "quantity", IntegerType(), required=False),
    NestedField(6, "amount", DoubleType(), required=False),
    NestedField(7, "status", StringType(), required=False),
    NestedField(8, "ordered_at", TimestampType(), required=True),
)


def hundred(start: int) -> pa.Table:
    """One hundred orders with ids from `start`."""
    numbers = range(start, start + 100)
    return pa.table(
        {
            "order_id": pa.array(numbers, pa.int64()),
            "customer_id": pa.array([n % 37 for n in numbers], pa.int64()),
            "title": [TITLES[n % 4] for n in numbers],
            "country": [COUNTRIES[n % 4] for n in numbers],
            "quantity": pa.array([n % 5 + 1 for n in numbers], pa.int32()),
            "amount": [n * 1.25 for n in numbers],
            "status": [("paid", "sent", "returned")[n % 3] for n in numbers],
            "ordered_at": [EPOCH + timedelta(minutes=n) for n in numbers],
        },
        schema=pa.schema(
            [
                pa.field("order_id", pa.int64(), False),
                pa.field("customer_id", pa.int64(), False),
                pa.field("title", pa.string()),
                pa.field("country", pa.string()),
                pa.field("quantity", pa.int32()),
                pa.field("amount", pa.float64()),
                pa.field("status", pa.string()),
                pa.field("ordered_at", pa.timestamp("us"), False),
            ]
        ),
    )


@pytest.fixture(scope="module")
def orders(catalog: Catalog) -> Table:
    catalog.create_namespace(NAME[0])
    table = catalog.create_table(NAME, ORDERS)
    for start in (1, 101, 201):
        table.append(hundred(start))
    return table


def files(table: Table) -> set[str]:
    return {task.file.file_path for task in table.scan().plan_files()}


def local(location: str) -> Path:
    return Path(unquote(urlsplit(location).path))


def names(table: Table) -> list[str]:
    return [field.name for field in table.schema().fields]


def ids(table: Table) -> list[int]:
    return [field.field_id for field in table.schema().fields]


def field(table: Table, name: str) -> tuple[int, str, bool]:
    found = table.schema().find_field(name)
    return found.field_id, str(found.field_type), found.required


def refusal(change: Callable[[], object], code: str, *fragments: str) -> str:
    """The message of a change that the server refuses with this rule."""
    with pytest.raises(BadRequestError) as caught:
        change()
    message = str(caught.value)
    assert message.startswith("SchemaEvolutionException: " + code), message
    for fragment in fragments:
        assert fragment in message, message
    return message


# --- the orders table, step by step -------------------------------------------------------------------------------


def test_01_names_are_not_identity(orders: Table) -> None:
    """Eight columns have the ids 1 to 8, in the table and in the metadata of every Parquet file."""
    assert [(f.field_id, f.name, str(f.field_type), f.required) for f in orders.schema().fields] == [
        (1, "order_id", "long", True),
        (2, "customer_id", "long", True),
        (3, "title", "string", False),
        (4, "country", "string", False),
        (5, "quantity", "int", False),
        (6, "amount", "double", False),
        (7, "status", "string", False),
        (8, "ordered_at", "timestamp", True),
    ]
    assert len(files(orders)) == 3
    for path in files(orders):
        columns = pq.read_schema(local(path))
        assert [(c.name, c.metadata[b"PARQUET:field_id"]) for c in columns] == [
            (name, str(number).encode()) for number, name in enumerate(FIRST, 1)
        ]


def test_02_adding_a_column_changes_no_data(orders: Table) -> None:
    """`channel` gets id 9 and schema 1; the same three files serve 300 rows with None."""
    before = files(orders)
    with orders.update_schema() as update:
        update.add_column("channel", StringType(), doc="web / app / phone")
    assert field(orders, "channel") == (9, "string", False)
    assert orders.schema().find_field("channel").doc == "web / app / phone"
    assert files(orders) == before and len(before) == 3
    rows = orders.scan().to_arrow()
    assert rows.num_rows == 300
    assert set(rows["channel"].to_pylist()) == {None}
    assert orders.metadata.current_schema_id == 1
    assert sorted(orders.schemas()) == [0, 1]


def test_03_a_rename_keeps_the_id_and_the_files(orders: Table) -> None:
    """`title` becomes `book_title` with id 3 while the files go on saying title; the old name is gone for callers."""
    with orders.update_schema() as update:
        update.rename_column("title", "book_title")
    assert field(orders, "book_title") == (3, "string", False)
    rows = orders.scan().to_arrow()
    assert rows.num_rows == 300
    assert "Dune" in rows["book_title"].to_pylist()
    for path in files(orders):
        assert pq.read_schema(local(path)).names == FIRST
    assert names(orders) == [*FIRST[:2], "book_title", *FIRST[3:], "channel"]
    with pytest.raises(ValueError, match="Could not find field with name title, case_sensitive=True"):
        orders.scan(row_filter="title = 'Dune'").to_arrow()
    with pytest.raises(ValueError, match="PyArrow table contains more columns: title"):
        orders.append(hundred(301))


def test_04_promotion_widens_only(orders: Table) -> None:
    """`quantity` becomes long (schema 3), `amount` already is double, and every narrowing is refused in the client."""
    with orders.update_schema() as update:
        update.update_column("quantity", field_type=LongType())
    assert orders.metadata.current_schema_id == 3
    with orders.update_schema() as update:
        update.update_column("amount", field_type=DoubleType())
    assert orders.metadata.current_schema_id == 3
    for name, wanted, message in (
        ("quantity", IntegerType(), "quantity: long -> int"),
        ("amount", FloatType(), "amount: double -> float"),
        ("order_id", StringType(), "order_id: long -> string"),
        ("status", LongType(), "status: string -> long"),
    ):
        with (
            pytest.raises(ValidationError, match=f"Cannot change column type: {message}"),
            orders.update_schema() as update,
        ):
            update.update_column(name, field_type=wanted)


def test_05_required_to_optional_is_always_safe(orders: Table) -> None:
    """`customer_id` becomes optional (schema 4); the way back is refused in the client."""
    with orders.update_schema() as update:
        update.update_column("customer_id", required=False)
    assert field(orders, "customer_id") == (2, "long", False)
    assert orders.metadata.current_schema_id == 4
    with (
        pytest.raises(ValueError, match="Cannot change column nullability: country: optional -> required"),
        orders.update_schema() as update,
    ):
        update.update_column("country", required=True)


def test_06_a_required_column_is_refused_and_an_optional_one_added(orders: Table) -> None:
    """`region` cannot be added as required; as optional it gets id 10 (schema 5)."""
    with (
        pytest.raises(ValueError, match="Incompatible change: cannot add required column: region"),
        orders.update_schema() as update,
    ):
        update.add_column("region", StringType(), required=True)
    with orders.update_schema() as update:
        update.add_column("region", StringType())
    assert field(orders, "region") == (10, "string", False)
    assert orders.metadata.current_schema_id == 5


def test_07_a_dropped_column_stays_in_the_files(orders: Table) -> None:
    """Without `country` (schema 6) 300 rows remain, and field 4 is still in all three files."""
    with orders.update_schema() as update:
        update.delete_column("country")
    assert names(orders) == [
        "order_id",
        "customer_id",
        "book_title",
        "quantity",
        "amount",
        "status",
        "ordered_at",
        "channel",
        "region",
    ]
    assert orders.scan().to_arrow().num_rows == 300
    assert all("country" in pq.read_schema(local(path)).names for path in files(orders))


def test_08_a_re_added_column_is_a_new_column(orders: Table) -> None:
    """`country` comes back as field 11 (schema 7) without the old values."""
    with orders.update_schema() as update:
        update.add_column("country", StringType())
    assert field(orders, "country") == (11, "string", False)
    assert 4 not in ids(orders)
    assert set(orders.scan().to_arrow()["country"].to_pylist()) == {None}


def test_09_reordering_is_cosmetic(orders: Table) -> None:
    """Schema 8 has another order, the scan follows it, and the ids are undisturbed."""
    with orders.update_schema() as update:
        update.move_first("status")
        update.move_after("channel", "book_title")
    assert names(orders) == LAST
    assert orders.scan().to_arrow().column_names == LAST
    assert ids(orders) == [7, 1, 2, 3, 9, 5, 6, 8, 10, 11]


def test_10_time_travel_across_the_rename(orders: Table) -> None:
    """The first snapshot reads under schema 0: 100 rows, `title`, no `channel`, and `quantity` as int."""
    log = sorted(orders.metadata.snapshots, key=lambda s: s.sequence_number or 0)
    assert [s.schema_id for s in log] == [0, 0, 0]
    old = orders.scan(snapshot_id=log[0].snapshot_id).to_arrow()
    assert old.column_names == FIRST
    assert old.num_rows == 100
    assert old.schema.field("quantity").type == pa.int32()
    assert [orders.scan(snapshot_id=s.snapshot_id).to_arrow().num_rows for s in log] == [100, 200, 300]


def test_11_the_metadata_carries_it_all(orders: Table, catalog: Catalog) -> None:
    """Nine schemas, 0 to 8, current 8, and a last column id of 11: also for a client that loads afresh."""
    fresh = catalog.load_table(NAME)
    metadata = fresh.metadata
    assert metadata == orders.metadata
    assert [s.schema_id for s in metadata.schemas] == list(range(9))
    assert metadata.current_schema_id == 8
    assert metadata.last_column_id == 11
    by_id = {s.schema_id: [f.name for f in s.fields] for s in metadata.schemas}
    assert by_id[0] == FIRST
    assert by_id[8] == LAST


def test_12_the_old_id_brings_the_values_back(orders: Table, server: Server, catalog: Catalog) -> None:
    """A raw commit that restores field 4 of the nullable column, as it was, makes its 300 values readable again."""
    metadata = httpx.get(f"{server.url}/v1/namespaces/{NAME[0]}/tables/{NAME[1]}").json()["metadata"]
    now = next(s for s in metadata["schemas"] if s["schema-id"] == 8)
    restored = {
        "type": "struct",
        "fields": [*now["fields"], {"id": 4, "name": "old_country", "required": False, "type": "string"}],
    }
    answer = httpx.post(
        f"{server.url}/v1/namespaces/{NAME[0]}/tables/{NAME[1]}",
        json={
            "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 8}],
            "updates": [
                {"action": "add-schema", "schema": restored},
                {"action": "set-current-schema", "schema-id": -1},
            ],
        },
    )
    assert answer.status_code == 200, answer.text
    rows = catalog.load_table(NAME).scan().to_arrow()
    assert rows.num_rows == 300
    assert sorted(rows["old_country"].to_pylist()) == sorted(COUNTRIES[n % 4] for n in range(1, 301))
    assert set(rows["country"].to_pylist()) == {None}


# --- the throw-away tables ----------------------------------------------------------------------------------------


def small(
    catalog: Catalog, name: str, schema: pa.Schema, rows: list[dict[str, Any]] | None = None, version: int = 2
) -> Table:
    catalog.create_namespace_if_not_exists(NAME[0])
    table = catalog.create_table((NAME[0], name), schema, properties={"format-version": str(version)})
    if rows:
        table.append(pa.Table.from_pylist(rows, schema=schema))
    return table


def test_promotion_works_across_the_seam(catalog: Catalog) -> None:
    """An int32 file and an int64 file, each holding its type's maximum, read as one int64 column."""
    schema = pa.schema([("id", pa.int32()), ("qty", pa.int32())])
    table = small(catalog, "seam", schema, [{"id": 1, "qty": 2147483647}, {"id": 2, "qty": 3}])
    with table.update_schema() as update:
        update.update_column("qty", field_type=LongType())
    assert table.scan().to_arrow().schema.field("qty").type == pa.int64()
    table.append(pa.table({"id": pa.array([3], pa.int32()), "qty": pa.array([9223372036854775807], pa.int64())}))
    rows = table.scan().to_arrow()
    assert sorted(rows.to_pylist(), key=lambda r: int(r["id"])) == [
        {"id": 1, "qty": 2147483647},
        {"id": 2, "qty": 3},
        {"id": 3, "qty": 9223372036854775807},
    ]
    assert len(files(table)) == 2


def test_decimal_scale_is_not_the_clients_to_change(catalog: Catalog) -> None:
    """decimal(9,2) to (12,2) is accepted; the change of scale that PyIceberg lets through is refused by the server."""
    schema = pa.schema([("id", pa.int32()), ("price", pa.decimal128(9, 2))])
    rows = [{"id": 1, "price": Decimal("12.50")}, {"id": 2, "price": Decimal("7.99")}]
    table = small(catalog, "prices", schema, rows)

    def change(precision: int, scale: int) -> None:
        with table.update_schema() as update:
            update.update_column("price", field_type=DecimalType(precision, scale))

    refusal(lambda: change(12, 4), "ICE2", "column price (field 2)", "decimal(9, 2)", "decimal(12, 4)")
    change(12, 2)
    assert str(table.schema().find_field("price").field_type) == "decimal(12, 2)"
    with pytest.raises(ValidationError, match=r"price: decimal\(12, 2\) -> decimal\(9, 2\)"):
        change(9, 2)
    assert table.scan().to_arrow()["price"].to_pylist() == [Decimal("12.50"), Decimal("7.99")]


def test_incompatible_changes_are_refused_by_the_server(catalog: Catalog) -> None:
    """`allow_incompatible_changes` sends optional to required and long to string; both are refused, the table reads."""
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    table = small(catalog, "lies", schema, [{"id": 1, "note": "x"}, {"id": 2, "note": None}])

    def require_note() -> None:
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.update_column("note", required=True)

    def retype_id() -> None:
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.update_column("id", field_type=StringType())

    refusal(require_note, "ICE3", "column note (field 2)")
    refusal(retype_id, "ICE2", "column id (field 1)", "long", "string")
    table.refresh()
    assert [(f.name, str(f.field_type), f.required) for f in table.schema().fields] == [
        ("id", "long", False),
        ("note", "string", False),
    ]
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "note": "x"}, {"id": 2, "note": None}]


def test_defaults_are_refused_before_v3(catalog: Catalog) -> None:
    """A required column with `default_value` on a v2 table is refused, and the message says to upgrade first."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = small(catalog, "defaults2", schema, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])

    def add() -> None:
        with table.update_schema() as update:
            update.add_column("region", StringType(), required=True, default_value="EU")

    assert "v3" in refusal(add, "ICE", "column region (field 3)")
    table.refresh()
    assert names(table) == ["id", "name"]


def test_defaults_are_accepted_on_v3(catalog: Catalog) -> None:
    """On a v3 table the same call is stored with both defaults."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = small(catalog, "defaults3", schema, version=3)
    with table.update_schema() as update:
        update.add_column("region", StringType(), required=True, default_value="EU")
    assert [(f.field_id, f.name, f.required, f.initial_default, f.write_default) for f in table.schema().fields] == [
        (1, "id", False, None, None),
        (2, "name", False, None, None),
        (3, "region", True, "EU", "EU"),
    ]
    assert table.metadata.format_version == 3


# --- nested types and the rest of the surface -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(catalog: Catalog) -> Table:
    catalog.create_namespace_if_not_exists(NAME[0])
    table = catalog.create_table(
        (NAME[0], "nested"),
        Schema(
            NestedField(1, "order_id", LongType(), required=False),
            NestedField(
                2,
                "addr",
                StructType(
                    NestedField(3, "city", StringType(), required=False),
                    NestedField(4, "postcode", StringType(), required=False),
                ),
                required=False,
            ),
        ),
    )
    table.append(
        pa.Table.from_pylist(
            [
                {"order_id": 1, "addr": {"city": "Bath", "postcode": "BA1"}},
                {"order_id": 2, "addr": {"city": "Ely", "postcode": "CB7"}},
            ],
            schema=pa.schema(
                [("order_id", pa.int64()), ("addr", pa.struct([("city", pa.string()), ("postcode", pa.string())]))]
            ),
        )
    )
    return table


def test_nested_1_paths_instead_of_names(nested: Table) -> None:
    """A struct gains field 5 and renames field 4; the rows read with both."""
    with nested.update_schema() as update:
        update.add_column(("addr", "country"), StringType())
        update.rename_column(("addr", "postcode"), "postal_code")
    addr = nested.schema().find_field("addr").field_type
    assert str(addr) == (
        "struct<3: city: optional string, 4: postal_code: optional string, 5: country: optional string>"
    )
    assert nested.scan().to_arrow().to_pylist() == [
        {"order_id": 1, "addr": {"city": "Bath", "postal_code": "BA1", "country": None}},
        {"order_id": 2, "addr": {"city": "Ely", "postal_code": "CB7", "country": None}},
    ]


def test_nested_2_union_by_name_only_adds(nested: Table) -> None:
    """A producer's schema adds `gift_message` and `promo_code` as 6 and 7 and drops nothing."""
    with nested.update_schema() as update:
        update.union_by_name(
            pa.schema([("order_id", pa.int64()), ("gift_message", pa.string()), ("promo_code", pa.string())])
        )
    assert names(nested) == ["order_id", "addr", "gift_message", "promo_code"]
    assert ids(nested) == [1, 2, 6, 7]


def test_nested_3_names_must_stay_unique(nested: Table) -> None:
    """A rename onto an existing name is refused and tells the colliding ids."""
    with pytest.raises((ValueError, BadRequestError), match="promo_code"), nested.update_schema() as update:
        update.rename_column("gift_message", "promo_code")
    nested.refresh()
    assert names(nested) == ["order_id", "addr", "gift_message", "promo_code"]


def test_names_that_differ_by_case_are_accepted(catalog: Catalog) -> None:
    """`title` next to `Title` is legal, if unwise."""
    table = small(catalog, "cases", pa.schema([("id", pa.int64()), ("Title", pa.string())]))
    with table.update_schema() as update:
        update.add_column("title", StringType())
    assert names(table) == ["id", "Title", "title"]
