"""The forty vectors of schema evolution over HTTP: each change is sent to a real server and accepted or refused.

The base table, unless a vector says otherwise: v2, last-column-id 11, current schema 1, main at a snapshot written
under schema 1. Schema 0 also had column 3, which was dropped; id 11 was burnt and is in no schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.cases.shorthand import find, plain, schema
from tests.cases.wire import (
    Catalog,
    Table,
    add_schema,
    add_snapshot,
    add_spec,
    assert_field_id,
    assert_schema,
    drop_ref,
    error_of,
    evolve,
    partition,
    set_ref,
    snapshot,
    use_schema,
)

Json = Any
Namespace = tuple[str, ...]

COLUMNS = {
    1: "1:id long!",
    2: "2:name string",
    4: "4:d date",
    5: "5:amt decimal(9,2)",
    6: "6:qty int",
    7: "7:tags list<8: string>",
    9: "9:addr struct<10:city string>",
}
S1, UPGRADE = 101, [{"action": "upgrade-format-version", "format-version": 3}]


def text(changes: dict[int, str | None] | None = None, *added: str) -> str:
    """The base columns with some changed or dropped (None), and columns added at the end."""
    chosen = {**COLUMNS, **(changes or {})}
    return ", ".join([*(part for part in chosen.values() if part is not None), *added])


def base(
    catalog: Catalog,
    ns: Namespace,
    *,
    version: int = 2,
    first: str = "3:cc string",
    now: str | None = None,
    written: int = 1,
    identifiers: Sequence[int] = (),
    extra: dict[int, dict[str, Json]] | None = None,
    spec: Sequence[Json] = (),
    other_spec: Sequence[Json] = (),
    refs: dict[str, Json] | None = None,
    last: int = 11,
) -> Table:
    """The base table: `first` is the column that only schema 0 had, `written` the schema of the snapshot."""
    rows = {"first-row-id": 0, "added-rows": 5} if version >= 3 else {}
    present = now or text()
    specs = [{"spec-id": 0, "fields": [{**f, "field-id": 1000 + n} for n, f in enumerate(spec)]}]
    if other_spec:
        specs.append({"spec-id": 1, "fields": [{**f, "field-id": 1010 + n} for n, f in enumerate(other_spec)]})
    return catalog.seed(
        ns,
        catalog.document(
            [schema(f"{present}, {first}", extra=extra), schema(present, identifiers=identifiers, extra=extra)],
            version=version,
            snapshots=[snapshot("", S1, None, 1, schema_id=written, **rows)],
            main=S1,
            refs=refs,
            last_column_id=last,
            partition_specs=specs,
            last_partition_id=1020 if spec or other_spec else 999,
        ),
    )


def accept(table: Table, columns: str, **parts: Any) -> Json:
    """The new current schema of a change that must be accepted."""
    metadata = table.commit(evolve(schema(columns, **parts)))
    return next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])


def refuse(table: Table, columns: str, **parts: Any) -> Json:
    """The error of a change that must be refused."""
    return table.refuse(evolve(schema(columns, **parts)))


@pytest.fixture
def v2(catalog: Catalog, ns: Namespace) -> Table:
    return base(catalog, ns)


@pytest.fixture
def v3(catalog: Catalog, ns: Namespace) -> Table:
    return base(catalog, ns, version=3)


# --- ids --------------------------------------------------------------------------------------------------------------


def test_01_a_fresh_column(v2: Table) -> None:
    """Id 12 is accepted; the counter follows and the snapshot is untouched."""
    before = v2.metadata()
    after = v2.commit(evolve(schema(text({}, "12:channel string"))))
    assert after["last-column-id"] == 12
    assert after["snapshots"] == before["snapshots"]


def test_02_a_burnt_id(v2: Table) -> None:
    """Id 11 is in no schema, so what files hold under it cannot be known."""
    assert "ICE1" in refuse(v2, text({}, "11:x string"))["message"]


def test_03_a_retired_id_of_another_type(v2: Table) -> None:
    """Id 3 was a string."""
    refuse(v2, text({}, "3:cc int"))


def test_04_undo_of_a_nullable_drop(v2: Table) -> None:
    """Column 3 may come back as schema 0 had it."""
    assert find(accept(v2, text({}, "3:cc string")), "cc")["id"] == 3


def test_05_undo_of_a_required_drop_after_a_write(catalog: Catalog, ns: Namespace) -> None:
    """A snapshot was written without the required column."""
    refuse(base(catalog, ns, first="3:cc string!"), text({}, "3:cc string!"))


def test_06_undo_of_a_required_drop_before_any_write(catalog: Catalog, ns: Namespace) -> None:
    """Nothing was written since the drop, on any branch."""
    accept(base(catalog, ns, first="3:cc string!", written=0), text({}, "3:cc string!"))


def test_07_an_element_id_that_is_taken(v2: Table) -> None:
    """A duplicate id in one schema."""
    refuse(v2, text({}, "12:l list<1: string>"))


@pytest.mark.parametrize("field_id", [2147483448, 0, -1, 2147483647])
def test_08_reserved_and_impossible_ids(v2: Table, field_id: int) -> None:
    """The reserved range starts above 2147483447, and ids are positive."""
    refuse(v2, text({}, f"{field_id}:x string"))


def test_08_the_last_id_below_the_reserved_range(v2: Table) -> None:
    """2147483447 is legal."""
    accept(v2, text({}, "2147483447:x string"))


# --- names, order, earlier schemas -----------------------------------------------------------------------------------


def test_09_rename_move_and_doc(catalog: Catalog, ns: Namespace) -> None:
    """Labels change, ids do not, and the name mapping is not touched by the server."""
    table = base(catalog, ns)
    mapping = '[{"field-id": 2, "names": ["name"]}]'
    table.commit([{"action": "set-properties", "updates": {"schema.name-mapping.default": mapping}}])
    moved = text({2: None}, "2:full_name string")
    after = table.commit(evolve(schema(moved, extra={2: {"doc": "both names"}})))
    assert after["properties"]["schema.name-mapping.default"] == mapping
    assert [f["id"] for f in after["schemas"][-1]["fields"]] == [1, 4, 5, 6, 7, 9, 2]


def test_10_back_to_an_earlier_schema(v2: Table) -> None:
    """One that differs by labels, and schema 0 that brings back the optional column 3, are accepted."""
    accept(v2, text({2: "2:label string"}))
    v2.commit([use_schema(1)])
    assert v2.commit([use_schema(0)])["current-schema-id"] == 0


def test_10_back_to_a_narrower_schema(v2: Table) -> None:
    """Where 6 is long and was written as long, int is a narrowing."""
    accept(v2, text({6: "6:qty long"}))
    v2.append(102, S1, 2, schema_id=2)
    v2.refuse([use_schema(1)])


# --- promotion --------------------------------------------------------------------------------------------------------


def test_11_int_to_long_under_a_bucket(catalog: Catalog, ns: Namespace) -> None:
    """int and long hash alike; long to int is refused."""
    table = base(catalog, ns, spec=[partition(6, "bucket[16]", "b")])
    accept(table, text({6: "6:qty long"}))
    table.append(102, S1, 2, schema_id=2)
    refuse(table, text({6: "6:qty int"}))


def test_12_decimals(v2: Table) -> None:
    """Precision may grow to 38, scale never changes."""
    for bad in ("decimal(12,4)", "decimal(39,2)", "decimal(8,2)"):
        refuse(v2, text({5: f"5:amt {bad}"}))
    accept(v2, text({5: "5:amt decimal(18,2)"}))


def test_13_date_to_timestamp(v2: Table, v3: Table) -> None:
    """Refused on v2, accepted on v3."""
    refuse(v2, text({4: "4:d timestamp"}))
    accept(v3, text({4: "4:d timestamp"}))


@pytest.mark.parametrize("where", ["spec", "other_spec"])
def test_14_date_to_timestamp_under_a_bucket(catalog: Catalog, ns: Namespace, where: str) -> None:
    """A bucket of 4 in any spec would change its values; under month alone the promotion is legal; never to tz."""
    bucketed = base(catalog, ns, version=3, **{where: [partition(4, "bucket[16]", "b")]})  # type: ignore[arg-type]
    refuse(bucketed, text({4: "4:d timestamp"}))
    monthly = base(catalog, ns, version=3, **{where: [partition(4, "month", "m")]})  # type: ignore[arg-type]
    refuse(monthly, text({4: "4:d timestamptz"}))
    accept(monthly, text({4: "4:d timestamp"}))


def test_15_unknown(catalog: Catalog, ns: Namespace) -> None:
    """unknown becomes an optional string, never a required one, and cannot be required itself."""
    table = base(catalog, ns, version=3, now=text({}, "12:u unknown"), last=12)
    refuse(table, text({}, "12:u string!"))
    refuse(table, text({}, "12:u unknown", "13:w unknown!"))
    accept(table, text({}, "12:u string"))


@pytest.mark.parametrize(
    "changes",
    [
        {2: "2:name binary"},
        {1: "1:id string!"},
        {2: "2:name struct<12:x string>"},
        {5: "5:amt double"},
        {6: "6:qty decimal(10,0)"},
        {4: "4:d string"},
    ],
)
def test_16_changes_that_no_version_allows(v2: Table, changes: dict[int, str | None]) -> None:
    """Each would misread stored values."""
    refuse(v2, text(changes))


def test_16_fixed_to_uuid(catalog: Catalog, ns: Namespace) -> None:
    """PyIceberg would send it; it is no promotion."""
    refuse(base(catalog, ns, now=text({}, "12:f fixed[16]"), last=12), text({}, "12:f uuid"))


# --- format gates and defaults ----------------------------------------------------------------------------------------


def test_17_v3_types(v2: Table) -> None:
    """timestamp_ns is 400 on v2, and fine once the same commit upgrades first."""
    refuse(v2, text({}, "12:t timestamp_ns"))
    v2.commit([*UPGRADE, *evolve(schema(text({}, "12:t timestamp_ns")))])


BOTH = {12: {"initial-default": "EU", "write-default": "EU"}}


def test_18_a_required_column_with_defaults(v2: Table, v3: Table) -> None:
    """Refused on v2, accepted on v3."""
    refuse(v2, text({}, "12:r string!"), extra=BOTH)
    accept(v3, text({}, "12:r string!"), extra=BOTH)


@pytest.mark.parametrize("extra", [{}, {12: {"initial-default": "EU"}}, {12: {"write-default": "EU"}}])
def test_19_a_required_column_without_both_defaults(v3: Table, extra: dict[int, dict[str, Json]]) -> None:
    """Old rows need the one, new rows the other."""
    refuse(v3, text({}, "12:r string!"), extra=extra)


def test_20_initial_defaults_are_frozen(catalog: Catalog, ns: Namespace) -> None:
    """Changed, introduced or dropped later it is refused; the write-default may change."""
    old = {12: {"initial-default": "web", "write-default": "web"}}
    table = base(catalog, ns, version=3, now=text({}, "12:src string"), extra=old, last=12)
    refuse(table, text({}, "12:src string"), extra={12: {"initial-default": "app", "write-default": "web"}})
    refuse(table, text({}, "12:src string"), extra={12: {"write-default": "web"}})
    refuse(table, text({}, "12:src string"), extra={**old, 2: {"initial-default": "x"}})
    accept(table, text({}, "12:src string"), extra={12: {"initial-default": "web", "write-default": "app"}})


@pytest.mark.parametrize(("value", "fine"), [(0.10000000149011612, True), (0.1, True), (0.2, False)])
def test_21_float_defaults_under_promotion(catalog: Catalog, ns: Namespace, value: float, fine: bool) -> None:
    """Java widens 0.1 to what the float32 holds, PyIceberg keeps 0.1: both are the same default; 0.2 is another."""
    table = base(catalog, ns, version=3, now=text({}, "12:f float"), extra={12: {"initial-default": 0.1}}, last=12)
    change = accept if fine else refuse
    change(table, text({}, "12:f double"), extra={12: {"initial-default": value}})


def test_22_struct_defaults(v3: Table, catalog: Catalog) -> None:
    """A filled default is illegal, and `{}` is refused because no Java reader can load it, unless that is lowered."""
    child = "12:p struct<13:x int>"
    refuse(v3, text({}, child), extra={12: {"initial-default": {"13": 1}}})
    error = refuse(v3, text({}, child), extra={12: {"initial-default": {}}})
    code = error["findings"][0]["code"]
    policy = f"/icekeel/v1/{catalog.prefix}/namespaces/{v3.namespace[0]}/tables/{v3.name}/evolution/policy"
    answer = catalog.http.put(policy, json={"code": code, "severity": "warn"})
    assert answer.status_code == 200, answer.text
    accept(v3, text({}, child), extra={12: {"initial-default": {}}})
    refuse(
        v3, text({}, child, "14:q struct<15:y int!>"), extra={12: {"initial-default": {}}, 14: {"initial-default": {}}}
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "34"),
        ("int", 2147483648),
        ("int", True),
        ("int", 1.5),
        ("decimal(9,2)", "14.2"),
        ("decimal(9,2)", "12345678.90"),
        ("timestamptz", "2017-11-16T22:31:08-08:00"),
        ("fixed[4]", "0001"),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e"),
        ("date", "2017-13-01"),
        ("boolean", 1),
        ("string", 5),
    ],
)
def test_23_defaults_that_do_not_fit_their_type(v3: Table, kind: str, value: Json) -> None:
    """Single-value JSON is checked against the type."""
    refuse(v3, text({}, f"12:x {kind}"), extra={12: {"initial-default": value}})


def test_23_a_bare_integer_for_a_float(v3: Table) -> None:
    """1 is accepted and stored as 1.0, which Java can read."""
    accept(v3, text({}, "12:x float"), extra={12: {"write-default": 1}})
    assert '"write-default":1.0' in v3.get().text.replace(" ", "")


@pytest.mark.parametrize("kind", ["variant", "geometry", "unknown", "geography"])
def test_24_types_whose_default_is_null(v3: Table, kind: str) -> None:
    """Anything else is refused; an explicit null is accepted and not written."""
    refuse(v3, text({}, f"12:x {kind}"), extra={12: {"initial-default": "x"}})
    found = find(accept(v3, text({}, f"12:x {kind}"), extra={12: {"initial-default": None}}), "x")
    assert "initial-default" not in found


# --- nullability, identifiers, names ----------------------------------------------------------------------------------


def test_25_nullability(catalog: Catalog, ns: Namespace, v2: Table) -> None:
    """Optional never becomes required; required becomes optional unless the column identifies rows."""
    refuse(v2, text({2: "2:name string!"}))
    accept(v2, text({1: "1:id long"}))
    refuse(base(catalog, ns, identifiers=[1]), text({1: "1:id long"}), identifiers=[1])


def test_26_dropping_an_identifier(catalog: Catalog, ns: Namespace) -> None:
    """Refused while it is listed, accepted with an empty list."""
    table = base(catalog, ns, identifiers=[1])
    refuse(table, text({1: None}), identifiers=[1])
    accept(table, text({1: None}))


@pytest.mark.parametrize("bad", [10, 8, 2, 12])
def test_27_identifiers_that_cannot_be(catalog: Catalog, ns: Namespace, bad: int) -> None:
    """Below an optional struct, in a list, optional, a double."""
    table = base(catalog, ns, now=text({}, "12:dbl double!"), last=12)
    refuse(table, text({}, "12:dbl double!"), identifiers=[bad])


def test_28_names_twice(v2: Table) -> None:
    """An exact duplicate is refused; another case is accepted with a finding in the header."""
    refuse(v2, text({}, "12:name string"))
    answer = v2.post([], evolve(schema(text({}, "12:NAME string"))))
    assert answer.status_code == 200
    assert "ICE7" in answer.headers["Icekeel-Findings"]


@pytest.mark.parametrize(
    "name", ["_row_id", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_last_updated_sequence_number"]
)
def test_29_metadata_columns(v2: Table, name: str) -> None:
    """Engines could not read such a table."""
    refuse(v2, text({}, f"12:{name} string"))


def test_30_the_name_of_a_partition_field(catalog: Catalog, ns: Namespace) -> None:
    """A column may not take the name of a partition field with another source."""
    table = base(catalog, ns, spec=[partition(4, "day", "d_day")])
    refuse(table, text({}, "12:d_day string"))


def test_31_dropping_a_partition_source(catalog: Catalog, ns: Namespace) -> None:
    """Refused while the default spec uses it, accepted with a switch in the same commit or in history alone."""
    table = base(catalog, ns, spec=[partition(4, "day", "d_day")])
    refuse(table, text({4: None}))
    table.commit([*add_spec(), *evolve(schema(text({4: None})))])
    accept(base(catalog, ns, other_spec=[partition(4, "day", "d_day")]), text({4: None}))


# --- structure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        text({2: None, 9: "9:addr struct<10:city string, 2:name string>"}),
        text({9: "9:addr struct<12:zip string>"}, "10:city string"),
    ],
)
def test_32_moving_a_field_to_another_parent(v2: Table, columns: str) -> None:
    """Into a struct or out of it, files would not be found there."""
    refuse(v2, columns)


@pytest.mark.parametrize("tags", ["list<12: string>", "list<8: binary>", "list<8: string!>"])
def test_33_list_elements(v2: Table, tags: str) -> None:
    """The element keeps its id, its type and its nullability."""
    refuse(v2, text({7: f"7:tags {tags}"}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("12:m map<13: struct<14:a string>, 15: int>", "12:m map<13: struct<14:a string, 16:b string>, 15: int>"),
        ("12:m map<13: int, 15: int>", "12:m map<13: long, 15: int>"),
    ],
)
def test_34_map_keys(catalog: Catalog, ns: Namespace, before: str, after: str) -> None:
    """A key changes in no way; a value widens."""
    table = base(catalog, ns, now=text({}, before), last=15)
    refuse(table, text({}, after))
    accept(table, text({}, before.replace("15: int", "15: long")))


# --- replace and refs -------------------------------------------------------------------------------------------------

REPLACED = "1:id string, 2:name string!"


def replace(table: Table, *, parent: int | None = None, remove_main: bool = True) -> list[Json]:
    """The updates of CREATE OR REPLACE AS SELECT."""
    removed = [drop_ref("main")] if remove_main else []
    return [
        *removed,
        *evolve(schema(REPLACED)),
        add_snapshot(table.snap(200, parent, 2, schema_id=2)),
        set_ref("main", 200),
    ]


def test_35_replace(v2: Table) -> None:
    """main loses its old lineage, so ids may change their type and nullability."""
    assert v2.commit(replace(v2))["current-snapshot-id"] == 200


def test_36_replace_without_removing_main(v2: Table) -> None:
    """main ends on a parentless snapshot of this commit, so nothing old stays reachable."""
    assert v2.commit(replace(v2, remove_main=False))["current-snapshot-id"] == 200


def test_36_what_is_no_replace(v2: Table) -> None:
    """The schema swap alone, an end at the old snapshot, and a child of it, are refused."""
    refuse(v2, REPLACED)
    v2.refuse([drop_ref("main"), *evolve(schema(REPLACED)), set_ref("main", S1)])
    v2.refuse(replace(v2, parent=S1))


def test_37_replace_under_a_branch_or_a_tag(catalog: Catalog, ns: Namespace) -> None:
    """Java reads every branch with the current schema, so another branch blocks and is named; a tag does not."""
    branched = base(catalog, ns, refs={"audit": {"snapshot-id": S1, "type": "branch"}})
    assert "audit" in branched.refuse(replace(branched))["message"]
    tagged = base(catalog, ns, refs={"v1": {"snapshot-id": S1, "type": "tag"}})
    tagged.commit(replace(tagged))


def test_38_back_to_a_snapshot_before_the_replace(v2: Table) -> None:
    """Alone it would be misread; together with its schema it is fine."""
    v2.commit(replace(v2))
    v2.refuse([set_ref("main", S1)])
    assert v2.commit([use_schema(1), set_ref("main", S1)])["current-snapshot-id"] == S1


def test_39_removing_schemas(catalog: Catalog, ns: Namespace) -> None:
    """Refused for the current one and for one that a retained snapshot names; a removed id is never used again."""
    table = base(catalog, ns, written=0)
    for needed in (0, 1):
        table.refuse([{"action": "remove-schemas", "schema-ids": [needed]}])
    accept(table, text({}, "12:x string"))
    table.commit([use_schema(1)])
    after = table.commit([{"action": "remove-schemas", "schema-ids": [2]}, *evolve(schema(text({}, "13:y string")))])
    current = next(s for s in after["schemas"] if s["schema-id"] == after["current-schema-id"])
    assert find(current, "y")["id"] == 13
    assert after["last-column-id"] == 13


def test_40_a_stale_client(catalog: Catalog, ns: Namespace) -> None:
    """Adding id 12 when it is taken is a lost race under a stale assertion, and illegal when all assertions match."""
    table = base(catalog, ns, now=text({}, "12:mine string"), last=12)
    updates = [add_schema(schema(text({}, "12:yours int"))), use_schema()]
    table.refuse(updates, [assert_field_id(11)], 409, "CommitFailedException")
    table.refuse(updates, [assert_schema(0)], 409, "CommitFailedException")
    table.refuse(updates, [assert_schema(1), assert_field_id(12)], 400, "SchemaEvolutionException")
    assert plain(table.metadata()["schemas"][-1]) == plain(schema(text({}, "12:mine string"), schema_id=1))
    error_of(table.post([], "nonsense"), 400)
