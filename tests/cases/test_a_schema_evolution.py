"""Group A of the public cases: schema evolution (O-01 to O-11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases.shorthand import every_id, find, highest_id, plain, schema
from tests.cases.wire import (
    Catalog,
    Table,
    add_schema,
    assert_field_id,
    assert_schema,
    error_of,
    evolve,
    ok,
    partition,
    set_properties,
    snapshot,
    sort,
    use_schema,
)

Json = Any
Namespace = tuple[str, ...]


def with_snapshot(catalog: Catalog, ns: Namespace, text: str, *, version: int = 2, **fields: Json) -> Table:
    """A table with these very ids and one snapshot on main."""
    rows = {"first-row-id": 0, "added-rows": 10} if version >= 3 else {}
    return catalog.seed(
        ns,
        catalog.document(
            schema(text), version=version, snapshots=[snapshot("", 100, None, 1, **rows)], main=100, **fields
        ),
    )


def refused(
    table: Table, text: str, *, extra: dict[int, dict[str, Json]] | None = None, identifiers: Sequence[int] = ()
) -> Json:
    return table.refuse(evolve(schema(text, extra=extra, identifiers=identifiers)))


def accepted(
    table: Table, text: str, *, extra: dict[int, dict[str, Json]] | None = None, identifiers: Sequence[int] = ()
) -> Json:
    return table.commit(evolve(schema(text, extra=extra, identifiers=identifiers)))


def current(metadata: Json) -> Json:
    return next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])


# --- O-01 ---------------------------------------------------------------------------------------------------------


def test_o01_last_column_id_counts_every_depth(catalog: Catalog, ns: Namespace) -> None:
    """The counter is the recursive maximum, and one struct column with two children moves it by three."""
    table = catalog.create(
        ns,
        schema(
            "1:id long!, 2:addr struct<3:city string, 4:geo list<5: struct<6:lat double, 7:lon double>>>,"
            " 8:attrs map<9: string, 10: long>"
        ),
    )
    before = table.metadata()
    last = before["last-column-id"]
    assert last == highest_id(current(before)) == 10
    grown = current(before)
    grown["fields"].append(
        {
            "id": last + 1,
            "name": "size",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": last + 2, "name": "w", "required": False, "type": "int"},
                    {"id": last + 3, "name": "h", "required": False, "type": "int"},
                ],
            },
        }
    )
    after = table.commit(evolve(grown), [assert_field_id(last)])
    assert after["last-column-id"] == last + 3


# --- O-02 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claimed", [4, None, 90])
def test_o02_dropping_the_newest_column_never_moves_the_counter(
    catalog: Catalog, ns: Namespace, claimed: int | None
) -> None:
    """The deprecated `last-column-id` of add-schema is ignored: the counter stays 5 and the next column gets 6."""
    table = catalog.create(ns, schema("1:a long, 2:b long, 3:c long, 4:d long, 5:e long"))
    extra = {} if claimed is None else {"last-column-id": claimed}
    dropped = table.commit([add_schema(schema("1:a long, 2:b long, 3:c long, 4:d long"), **extra), use_schema()])
    assert dropped["last-column-id"] == 5
    added = accepted(table, "1:a long, 2:b long, 3:c long, 4:d long, 6:f long")
    assert added["last-column-id"] == 6
    assert [f["id"] for f in current(added)["fields"]] == [1, 2, 3, 4, 6]


# --- O-03 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def retired(catalog: Catalog, ns: Namespace) -> Table:
    """A table whose column 2 was dropped."""
    table = catalog.create(ns, schema("1:id long!, 2:amount decimal(9,2)"))
    accepted(table, "1:id long!")
    return table


@pytest.mark.parametrize(
    "text",
    [
        "1:id long!, 2:note string",
        "1:id long!, 2147483448:far string",
        "1:id long!, 3:x int, 3:y int",
        "1:id long!, 3:x int, 4:x int",
    ],
    ids=["retired", "reserved", "duplicate-id", "duplicate-name"],
)
def test_o03_ids_that_cannot_name_a_new_column(retired: Table, text: str) -> None:
    """A retired, reserved or duplicate id, or a duplicate name, is refused with 400."""
    refused(retired, text)


def test_o03_the_highest_user_id_is_legal(retired: Table) -> None:
    """2147483447 is the last id below the reserved range."""
    assert accepted(retired, "1:id long!, 2147483447:far string")["last-column-id"] == 2147483447


def test_o03_undo_of_a_drop_is_legal(retired: Table) -> None:
    """The dropped optional column may come back exactly as it was."""
    assert current(accepted(retired, "1:id long!, 2:amount decimal(9,2)"))["schema-id"] == 0


# --- O-04 ---------------------------------------------------------------------------------------------------------

_O04 = {
    "id": "1:id long!",
    "price": "2:price decimal(9,2)",
    "n": "3:n int",
    "f": "4:f float",
    "d": "5:d date",
    "s": "6:s string",
}


def changed(name: str, text: str) -> str:
    return ", ".join({**_O04, name: text}.values())


@pytest.mark.parametrize(
    ("name", "text"),
    [("price", "2:price decimal(12,2)"), ("n", "3:n long"), ("f", "4:f double"), ("id", "1:id long")],
)
def test_o04_widening_is_accepted(catalog: Catalog, ns: Namespace, name: str, text: str) -> None:
    """Wider precision, int to long, float to double and required to optional keep old values readable."""
    table = with_snapshot(catalog, ns, changed("id", _O04["id"]))
    after = accepted(table, changed(name, text))
    assert plain(current(after)["fields"]) == plain(schema(changed(name, text))["fields"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("price", "2:price decimal(12,4)"),
        ("price", "2:price decimal(7,2)"),
        ("id", "1:id int!"),
        ("d", "5:d timestamp"),
        ("d", "5:d timestamptz"),
        ("s", "6:s string!"),
        ("s", "6:s struct<7:x string>"),
    ],
)
def test_o04_everything_else_is_refused(catalog: Catalog, ns: Namespace, name: str, text: str) -> None:
    """A lossy or unreadable change is a 400 of type SchemaEvolutionException that names column and field id."""
    table = with_snapshot(catalog, ns, changed("id", _O04["id"]))
    error = refused(table, changed(name, text))
    assert error["type"] == "SchemaEvolutionException"
    field = schema(text)["fields"][0]
    assert f"column {name} (field {field['id']})" in error["message"]
    found = error["findings"]
    assert any(f["field-id"] == field["id"] and f["severity"] == "error" for f in found)
    assert all(f["code"].startswith("ICE") and f["fix"] for f in found)


def test_o04_date_to_timestamp_is_legal_in_v3_only(catalog: Catalog, ns: Namespace) -> None:
    """The v3 promotion table adds date to timestamp; to timestamptz stays illegal."""
    table = with_snapshot(catalog, ns, changed("id", _O04["id"]), version=3)
    refused(table, changed("d", "5:d timestamptz"))
    assert find(current(accepted(table, changed("d", "5:d timestamp"))), "d")["type"] == "timestamp"


# --- O-05 ---------------------------------------------------------------------------------------------------------


def test_o05_create_renumbers_references_with_their_columns(catalog: Catalog, ns: Namespace) -> None:
    """After create every source id resolves to the column that the client meant by name."""
    table = catalog.create(
        ns,
        schema("7:id long!, 20:addr struct<21:city string>", identifiers=[7]),
        partition_spec={"fields": [partition(21, "identity", "city_part")]},
        write_order={"order-id": 1, "fields": [sort(7)]},
    )
    metadata = table.metadata()
    columns = current(metadata)
    assert sorted(every_id(columns)) == [1, 2, 3]
    assert metadata["partition-specs"][0]["fields"][0]["source-id"] == find(columns, "addr.city")["id"]
    order = next(o for o in metadata["sort-orders"] if o["order-id"] == metadata["default-sort-order-id"])
    assert order["fields"][0]["source-id"] == find(columns, "id")["id"]
    assert columns["identifier-field-ids"] == [find(columns, "id")["id"]]


def test_o05_add_schema_keeps_ids_as_sent(catalog: Catalog, ns: Namespace) -> None:
    """Data files already carry the client's ids, so a gap is kept and the counter becomes the highest."""
    table = catalog.create(ns, schema("1:a long, 2:b long"))
    after = accepted(table, "1:a long, 2:b long, 3:c long, 6:d long")
    assert [f["id"] for f in current(after)["fields"]] == [1, 2, 3, 6]
    assert after["last-column-id"] == 6


# --- O-06 ---------------------------------------------------------------------------------------------------------


def test_o06_defaults_survive_create(catalog: Catalog, ns: Namespace) -> None:
    """Renumbering on create keeps a column's defaults."""
    table = catalog.create(ns, schema("4:qty int", extra={4: {"write-default": 10}}), version=3)
    assert find(current(table.metadata()), "qty")["write-default"] == 10


def test_o06_a_required_addition_needs_defaults(catalog: Catalog, ns: Namespace) -> None:
    """On v3 a required column is refused without defaults and accepted with both."""
    table = with_snapshot(catalog, ns, "1:id long!, 4:qty int", version=3)
    refused(table, "1:id long!, 4:qty int, 5:src string!")
    defaults = {"initial-default": "web", "write-default": "web"}
    after = accepted(table, "1:id long!, 4:qty int, 5:src string!", extra={5: defaults})
    assert {k: find(current(after), "src")[k] for k in defaults} == defaults


@pytest.mark.parametrize("kind", ["timestamp_ns", "variant"])
def test_o06_v3_types_need_v3(catalog: Catalog, ns: Namespace, kind: str) -> None:
    """A v3 type on a v2 table is a 400 on create and on add-schema."""
    body = {"properties": {"format-version": "2"}}
    error = error_of(catalog.post_create(ns, "gated", schema(f"1:id long!, 2:v {kind}"), **body), 400)
    assert "not supported until v3" in error["message"]
    error_of(catalog.table(ns, "gated").get(), 404, "NoSuchTableException")
    table = catalog.create(ns, schema("1:id long!"), version=2)
    assert f"{kind} is not supported until v3" in refused(table, f"1:id long!, 2:v {kind}")["message"]


# --- O-07 ---------------------------------------------------------------------------------------------------------

_O07 = (
    "1:id long!, 2:opt string, 3:dbl double!, 4:os struct<5:s string!>, 6:l list<7: struct<8:s string!>!>!,"
    " 9:rs struct<10:k long!>!"
)


@pytest.mark.parametrize("bad", [2, 3, 5, 8, 77, 9])
def test_o07_impossible_identifier_fields(catalog: Catalog, ns: Namespace, bad: int) -> None:
    """Optional, floating, below an optional struct or a list, unknown or not primitive: 400, never 500."""
    refused(with_snapshot(catalog, ns, _O07), _O07, identifiers=[bad])


def test_o07_a_required_long_in_a_required_struct_identifies(catalog: Catalog, ns: Namespace) -> None:
    """The one legal form is stored; dropping the column while it is still listed is refused."""
    table = with_snapshot(catalog, ns, _O07)
    assert current(accepted(table, _O07, identifiers=[10]))["identifier-field-ids"] == [10]
    without = _O07.replace(", 9:rs struct<10:k long!>!", "")
    refused(table, without, identifiers=[10])
    assert "identifier-field-ids" not in current(accepted(table, without))


# --- O-08 ---------------------------------------------------------------------------------------------------------


def test_o08_going_back_to_an_earlier_schema(catalog: Catalog, ns: Namespace) -> None:
    """By id or by equal content the old schema is current again, without a copy, and the counter stays."""
    table = catalog.create(ns, schema("1:a long"))
    accepted(table, "1:a long, 2:b long")
    back = table.commit([use_schema(0)])
    assert (back["current-schema-id"], len(back["schemas"]), back["last-column-id"]) == (0, 2, 2)
    table.commit([use_schema(1)])
    again = table.commit([add_schema(schema("1:a long", schema_id=-1)), use_schema()])
    assert (again["current-schema-id"], len(again["schemas"]), again["last-column-id"]) == (0, 2, 2)


def test_o08_schema_ids_that_do_not_exist(catalog: Catalog, ns: Namespace) -> None:
    """-1 without an added schema and an unknown id are 400."""
    table = catalog.create(ns, schema("1:a long"))
    table.refuse([use_schema()])
    table.refuse([use_schema(77)])


# --- O-09 ---------------------------------------------------------------------------------------------------------


def test_o09_names_that_differ_only_by_case(catalog: Catalog, ns: Namespace) -> None:
    """Names are labels: such columns can be created, renamed and added, and the partition stays on its id."""
    table = catalog.create(
        ns, schema("1:Title string, 2:title string"), partition_spec={"fields": [partition(1, "identity", "Title")]}
    )
    metadata = table.metadata()
    assert [(f["id"], f["name"]) for f in current(metadata)["fields"]] == [(1, "Title"), (2, "title")]
    accepted(table, "1:Title string, 2:TITLE string")
    after = accepted(table, "1:Title string, 2:TITLE string, 3:tItLe string")
    assert [(f["id"], f["name"]) for f in current(after)["fields"]] == [(1, "Title"), (2, "TITLE"), (3, "tItLe")]
    assert after["partition-specs"] == metadata["partition-specs"]


# --- O-10 ---------------------------------------------------------------------------------------------------------

_MAPPING = json.dumps(
    [{"field-id": 1, "names": ["id", 'i"d\\', "größe"]}, {"field-id": 2, "names": []}, {"names": ["junk"]}],
    ensure_ascii=False,
)


def test_o10_the_name_mapping_comes_back_as_sent(catalog: Catalog, ns: Namespace) -> None:
    """The property is an opaque text; schema and property change together or not at all."""
    key = "schema.name-mapping.default"
    table = catalog.create(ns, schema("1:id long!, 2:b string"), properties={key: _MAPPING})
    assert table.metadata()["properties"][key] == _MAPPING
    assert table.stored()["properties"][key] == _MAPPING
    second = _MAPPING.replace("größe", "größer") + " "
    updates = [*evolve(schema("1:id long!, 2:c string")), set_properties(**{key: second})]
    table.refuse(updates, [table.uuid_ok(), assert_schema(7)], 409, "CommitFailedException")
    after = table.commit(updates, [table.uuid_ok(), assert_schema(0)])
    assert after["properties"][key] == second
    assert find(current(after), "c")["id"] == 2


def test_o10_a_mapping_that_is_no_json_is_not_refused(catalog: Catalog, ns: Namespace) -> None:
    """The server does not refuse a mapping that it dislikes."""
    table = catalog.create(ns, schema("1:id long!"))
    assert table.commit([set_properties(**{"schema.name-mapping.default": "[{"})])


# --- O-11 ---------------------------------------------------------------------------------------------------------


def test_o11_two_writers_add_a_column_at_once(catalog: Catalog, ns: Namespace) -> None:
    """Exactly one of two equal claims on id 4 wins, the other is told to refresh, and both columns end up there."""
    base = "1:a long, 2:b long, 3:c long"
    with ThreadPoolExecutor(2) as pool:
        for _ in range(50):
            table = catalog.create(ns, schema(base))
            checks = [table.uuid_ok(), assert_schema(0), assert_field_id(3)]
            texts = [f"{base}, 4:x int", f"{base}, 4:y string"]
            claims = [evolve(schema(text)) for text in texts]
            answers = list(pool.map(table.post, [checks, checks], claims))
            assert sorted(a.status_code for a in answers) == [200, 409]
            loser = next(n for n, a in enumerate(answers) if a.status_code == 409)
            error_of(answers[loser], 409, "CommitFailedException")
            refreshed = table.metadata()
            added = texts[loser].rsplit(" 4:", 1)[1]
            grown = {"type": "struct", "fields": [*current(refreshed)["fields"], *schema(f"5:{added}")["fields"]]}
            after = ok(table.post([table.uuid_ok(), assert_schema(1), assert_field_id(4)], evolve(grown)))["metadata"]
            assert [f["id"] for f in current(after)["fields"]] == [1, 2, 3, 4, 5]
            assert {f["name"] for f in current(after)["fields"]} == {"a", "b", "c", "x", "y"}
