"""The forty vectors of the evolution semantics, as commits on one base table.

The base: v2, last-column-id 11 (11 was given out and is in no schema), schema 0 had column 3 which schema 1 lacks,
main stands at snapshot 1, written under schema 1.
"""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, CommitFailed
from app.iceberg.requirement import parse_table_requirements
from app.iceberg.table import TableMetadata
from app.metadata.requirements import check_table
from app.rules import Severity
from tests.evolution.tables import (
    Json,
    add_schema,
    add_snapshot,
    branch,
    commit,
    evolve,
    field,
    judged,
    list_of,
    map_of,
    part,
    refusals,
    remove_ref,
    schema,
    set_ref,
    set_schema,
    snapshot,
    sort_by,
    struct,
    table,
    tag,
    upgrade,
    warnings,
)

ID = field(1, "id", "long", True)
NAME = field(2, "name", "string")
CC = field(3, "cc", "string")
D = field(4, "d", "date")
AMT = field(5, "amt", "decimal(9,2)")
QTY = field(6, "qty", "int")
TAGS = field(7, "tags", list_of(8, "string"))
ADDR = field(9, "addr", struct(field(10, "city", "string")))
ALL = (ID, NAME, D, AMT, QTY, TAGS, ADDR)
REPLACED = (field(1, "id", "string"), field(2, "name", "string", True))


def base(cc: Json = CC, **more: Any) -> TableMetadata:
    """The base table; keyword arguments replace parts of it."""
    more.setdefault("snapshots", [snapshot(1, 1)])
    more.setdefault("refs", {"main": branch(1)})
    more.setdefault("last_column_id", 11)
    return table(schema(*ALL[:2], cc, *ALL[2:], schema_id=0), schema(*ALL, schema_id=1), **more)


def swapped(*changed: Json, also: tuple[Json, ...] = (), without: tuple[int, ...] = ()) -> list[Json]:
    """The current columns with some replaced by ID, some dropped, some appended, set as current schema."""
    by_id = {f["id"]: f for f in changed}
    return evolve(*(by_id.get(f["id"], f) for f in ALL if f["id"] not in without), *also)


def test_01_adding_a_fresh_optional_column_is_accepted() -> None:
    """A column under the next free ID is accepted, the counter follows, old snapshots stay as they are."""
    updates = swapped(also=(field(12, "channel", "string"),))
    assert refusals(base(), updates) == []
    after = commit(base(), updates)
    assert after.last_column_id == 12
    kept = after.snapshots.get(1)
    assert kept is not None and kept.schema_id == 1


def test_02_a_burnt_id_is_refused() -> None:
    """An ID that the counter covers and no schema knows is refused."""
    assert refusals(base(), swapped(also=(field(11, "channel", "string"),))) == ["ICE104"]


def test_03_a_dropped_id_under_another_type_is_refused() -> None:
    """The ID of a dropped string column cannot come back as an int."""
    assert refusals(base(), swapped(also=(field(3, "cc", "int"),))) == ["ICE103"]


def test_04_a_dropped_optional_column_comes_back() -> None:
    """Undoing the drop of an optional column is accepted, even after writes."""
    assert refusals(base(), swapped(also=(CC,))) == []


def test_05_a_dropped_required_column_written_without_is_refused() -> None:
    """A required column cannot come back once a snapshot was written without it."""
    required = field(3, "cc", "string", True)
    assert refusals(base(required), swapped(also=(required,))) == ["ICE105"]


def test_06_a_dropped_required_column_comes_back_if_nothing_was_written() -> None:
    """With the only snapshot from before the drop, the required column comes back; with another branch after, not."""
    required = field(3, "cc", "string", True)
    before = base(required, snapshots=[snapshot(1, 0)])
    assert refusals(before, swapped(also=(required,))) == []
    other = base(required, snapshots=[snapshot(1, 0), snapshot(2, 1, 1)], refs={"main": branch(1), "b": branch(2)})
    assert refusals(other, swapped(also=(required,))) == ["ICE105"]


def test_07_an_id_used_twice_in_a_schema_is_refused() -> None:
    """A new list whose element-id is the ID of another column cannot be read at all."""
    with pytest.raises(BadRequest, match="field id 1 is used"):
        commit(base(), swapped(also=(field(12, "l", list_of(1, "string")),)))


@pytest.mark.parametrize(
    ("field_id", "codes"), [(2147483448, ["ICE101"]), (2147483447, []), (0, ["ICE102"]), (-1, ["ICE102"])]
)
def test_08_reserved_and_non_positive_ids_are_refused(field_id: int, codes: list[str]) -> None:
    """The last legal ID is 2147483447 and the first is 1."""
    found = refusals(base(), swapped(also=(field(field_id, "x", "string"),)))
    assert [code for code in found if code in ("ICE101", "ICE102")] == codes
    assert bool(found) is bool(codes)


def test_09_rename_move_and_comment_are_accepted_and_the_name_mapping_is_left_alone() -> None:
    """A rename, a move to the end and a new comment keep the IDs and do not touch the mapping property."""
    mapping = '[{"field-id": 2, "names": ["name"]}]'
    stored = base(properties={"schema.name-mapping.default": mapping})
    renamed = field(2, "full_name", "string", doc="as printed")
    updates = evolve(*(f for f in ALL if f["id"] != 2), renamed)
    assert refusals(stored, updates) == []
    after = commit(stored, updates)
    assert after.properties["schema.name-mapping.default"] == mapping
    assert after.schema.name_of(2) == "full_name"


def test_10_going_back_to_an_older_schema() -> None:
    """Back to a schema that differs in names, order and comments is fine, and so is bringing optional 3 back; back
    to one with a narrower type is refused once something was written under the wider one."""
    older = schema(field(2, "label", "string", doc="old"), *(f for f in ALL if f["id"] != 2), schema_id=0)
    cosmetic = table(older, schema(*ALL, schema_id=1), snapshots=[snapshot(1, 1)], refs={"main": branch(1)})
    assert refusals(cosmetic, [set_schema(0)]) == []
    assert refusals(base(), [set_schema(0)]) == []
    wide = tuple(field(6, "qty", "long") if f["id"] == 6 else f for f in ALL)
    narrow, widened = schema(*ALL, schema_id=0), schema(*wide, schema_id=1)
    written = table(narrow, widened, snapshots=[snapshot(1, 0), snapshot(2, 1, 1)], refs={"main": branch(2)})
    assert refusals(written, [set_schema(0)]) == ["ICE201"]
    unwritten = table(narrow, widened, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    assert refusals(unwritten, [set_schema(0)]) == []


def test_11_int_to_long_under_bucket() -> None:
    """An int bucket source may become long, because both hash alike; the way back is refused."""
    partitioned = base(specs=[[part(6, "bucket[16]", "qty_bucket")]])
    assert refusals(partitioned, swapped(field(6, "qty", "long"))) == []
    wide = tuple(field(6, "qty", "long") if f["id"] == 6 else f for f in ALL)
    stored = table(schema(*wide), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    assert refusals(stored, evolve(*ALL)) == ["ICE201"]


def test_12_decimals_widen_in_precision_only() -> None:
    """decimal(9,2) may become decimal(18,2), not decimal(12,4), and decimal(39,2) does not exist."""
    assert refusals(base(), swapped(field(5, "amt", "decimal(18,2)"))) == []
    assert refusals(base(), swapped(field(5, "amt", "decimal(12,4)"))) == ["ICE202"]
    with pytest.raises(BadRequest):
        commit(base(), swapped(field(5, "amt", "decimal(39,2)")))


def test_13_date_to_timestamp_needs_v3() -> None:
    """The promotion is refused on v2 and accepted on an unpartitioned v3 table, with a warning about readers."""
    updates = swapped(field(4, "d", "timestamp"))
    assert refusals(base(), updates) == ["ICE203"]
    assert refusals(base(version=3), updates) == []
    assert "ICE604" in warnings(base(version=3), updates)


def test_14_date_to_timestamp_under_partition_transforms() -> None:
    """Refused with bucket or identity of the column in any spec, accepted with month alone; a zone never."""
    updates = swapped(field(4, "d", "timestamp"))
    bucketed = [[part(4, "bucket[16]", "d_bucket")], []]
    assert refusals(base(version=3, specs=bucketed, default_spec=1), updates) == ["ICE206"]
    assert refusals(base(version=3, specs=[[part(4, "identity", "d")]]), updates) == ["ICE206"]
    assert refusals(base(version=3, specs=[[part(4, "month", "d_month")]]), updates) == []
    for zoned in ("timestamptz", "timestamptz_ns"):
        assert refusals(base(version=3), swapped(field(4, "d", zoned))) == ["ICE201"]


def test_15_unknown_becomes_anything_optional() -> None:
    """An unknown column may become string, not a required one, and may not be required itself."""
    extra = field(12, "u", "unknown")
    stored = table(schema(*ALL, extra), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    assert refusals(stored, swapped(also=(field(12, "u", "string"),))) == []
    assert refusals(stored, swapped(also=(field(12, "u", struct(field(13, "x", "int", True))),))) == []
    assert refusals(stored, swapped(also=(field(12, "u", "string", True),))) == ["ICE301"]
    with pytest.raises(BadRequest, match="must be optional"):
        commit(base(version=3), swapped(also=(field(12, "u", "unknown", True),)))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (field(2, "name", "binary"), "ICE201"),
        (field(1, "id", "string", True), "ICE201"),
        (field(2, "name", struct(field(12, "first", "string"))), "ICE204"),
    ],
)
def test_16_other_type_changes_are_refused(changed: Json, code: str) -> None:
    """No other change of type is legal, whatever clients offer."""
    assert refusals(base(), swapped(changed)) == [code]


def test_16_fixed_to_uuid_is_refused() -> None:
    """fixed[16] to uuid, which PyIceberg sends, is refused."""
    stored = table(schema(*ALL, field(12, "f", "fixed[16]")), snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    assert refusals(stored, swapped(also=(field(12, "f", "uuid"),))) == ["ICE201"]


def test_17_v3_types_need_an_upgrade_first() -> None:
    """timestamp_ns on v2 is refused in Java's words; after an upgrade in the same commit it is accepted."""
    updates = swapped(also=(field(12, "t", "timestamp_ns"),))
    verdict = judged(base(), updates)
    assert [f.code for f in verdict.findings if f.refuses] == ["ICE209"]
    assert "timestamp_ns is not supported until v3" in verdict.findings[0].message
    assert refusals(base(), [upgrade(), *updates]) == []


def test_18_required_column_with_defaults_needs_v3() -> None:
    """A required column with both defaults is refused on v2 and accepted on v3."""
    updates = swapped(also=(field(12, "region", "string", True, initial="EU", write="EU"),))
    assert refusals(base(), updates) == ["ICE304"]
    assert refusals(base(version=3), updates) == []


def test_19_required_column_needs_both_defaults() -> None:
    """Without initial-default, or without write-default, the required column is refused."""
    assert refusals(base(version=3), swapped(also=(field(12, "r", "string", True),))) == ["ICE302"]
    assert refusals(base(version=3), swapped(also=(field(12, "r", "string", True, initial="EU"),))) == ["ICE302"]


def test_20_initial_default_is_frozen() -> None:
    """The initial-default can neither change nor come nor go; the write-default may change."""

    def stored(**defaults: Any) -> TableMetadata:
        column = field(12, "channel", "string", **defaults)
        return table(schema(*ALL, column), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})

    web = stored(initial="web", write="web")
    assert refusals(web, swapped(also=(field(12, "channel", "string", initial="app", write="web"),))) == ["ICE303"]
    assert refusals(web, swapped(also=(field(12, "channel", "string", write="web"),))) == ["ICE303"]
    assert refusals(stored(), swapped(also=(field(12, "channel", "string", initial="x"),))) == ["ICE303"]
    assert refusals(web, swapped(also=(field(12, "channel", "string", initial="web", write="app"),))) == []


def test_21_promoted_defaults_are_compared_by_value() -> None:
    """float 0.1 is the same default as double 0.1 and as its float32 expansion, but not as 0.2."""
    column = field(12, "f", "float", initial=0.1)
    stored = table(schema(*ALL, column), version=3, snapshots=[snapshot(1, 0)], refs={"main": branch(1)})
    for same in (0.10000000149011612, 0.1):
        assert refusals(stored, swapped(also=(field(12, "f", "double", initial=same),))) == []
    assert refusals(stored, swapped(also=(field(12, "f", "double", initial=0.2),))) == ["ICE303"]


def test_22_struct_defaults() -> None:
    """Values in a struct's default are refused; {} is refused until the rule is lowered; {} over a required child
    without default always."""
    child = field(13, "x", "int", initial=0, write=0)
    lowered = {"ICE307": Severity.WARN}

    def point(default: Any, inner: Json = child) -> list[Json]:
        return swapped(also=(field(12, "point", struct(inner), initial=default),))

    assert refusals(base(version=3), point({"13": 1})) == ["ICE308"]
    assert refusals(base(version=3), point({})) == ["ICE307"]
    assert refusals(base(version=3), point({}), lowered=lowered) == []
    hole = point({}, field(13, "x", "int", True))
    assert refusals(base(version=3), hole, lowered=lowered) == ["ICE309"]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", "34"),
        ("int", 2147483648),
        ("decimal(9,2)", "14.2"),
        ("decimal(9,2)", "12345678.90"),
        ("timestamptz", "2017-11-16T22:31:08-08:00"),
        ("fixed[4]", "0001"),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e"),
        ("date", "2017-13-01"),
    ],
)
def test_23_a_default_must_be_a_value_of_its_type(type_: str, default: Any) -> None:
    """Each default that is no single-value JSON of the column's type is refused."""
    assert refusals(base(version=3), swapped(also=(field(12, "x", type_, initial=default),))) == ["ICE306"]


def test_23_a_bare_integer_is_a_float() -> None:
    """1 as default of a float column is accepted and stored as 1.0."""
    updates = swapped(also=(field(12, "x", "float", initial=1),))
    assert refusals(base(version=3), updates) == []
    assert b'"initial-default":1.0' in (commit(base(version=3), updates).schemas.text(2) or b"")


@pytest.mark.parametrize("type_", ["variant", "geometry", "unknown"])
def test_24_types_that_default_to_null(type_: str) -> None:
    """A default other than null is refused; an explicit null is accepted and not written."""
    wrong = swapped(also=(field(12, "x", type_, initial="POINT (1 1)"),))
    assert refusals(base(version=3), wrong) == ["ICE305"]
    null = swapped(also=(field(12, "x", type_, initial=None, write=None),))
    assert refusals(base(version=3), null) == []
    assert b"default" not in (commit(base(version=3), null).schemas.text(2) or b"default")


def test_25_optional_and_required() -> None:
    """Optional to required is refused, the other way accepted, except for an identifier field."""
    assert refusals(base(), swapped(field(2, "name", "string", True))) == ["ICE301"]
    assert refusals(base(), swapped(field(1, "id", "long"))) == []
    with pytest.raises(BadRequest, match="not a required field"):
        commit(base(), evolve(field(1, "id", "long"), *ALL[1:], identifiers=[1]))


def test_26_dropping_an_identifier_field() -> None:
    """Dropping 1 while it identifies rows is refused; with the set emptied it is accepted."""
    with pytest.raises(BadRequest, match="does not exist"):
        commit(base(), evolve(*ALL[1:], identifiers=[1]))
    assert refusals(base(), evolve(*ALL[1:], identifiers=[])) == []


@pytest.mark.parametrize("field_id", [10, 8, 2, 12])
def test_27_impossible_identifier_fields(field_id: int) -> None:
    """Optional fields, fields under optional structs or lists, and doubles cannot identify rows."""
    with pytest.raises(BadRequest, match="as an identifier field"):
        commit(base(), evolve(*ALL, field(12, "w", "double", True), identifiers=[field_id]))


def test_28_duplicate_names() -> None:
    """The same name twice is refused; the same name in other case is a warning."""
    with pytest.raises(BadRequest, match="multiple fields for name name"):
        commit(base(), swapped(also=(field(12, "name", "string"),)))
    updates = swapped(also=(field(12, "NAME", "string"),))
    assert refusals(base(), updates) == []
    assert "ICE702" in warnings(base(), updates)


@pytest.mark.parametrize("name", ["_row_id", "_file"])
def test_29_metadata_column_names(name: str) -> None:
    """A column may not have the name of a metadata column."""
    assert refusals(base(), swapped(also=(field(12, name, "long"),))) == ["ICE701"]


def test_30_partition_name_clash() -> None:
    """A column may not be called like a partition field of another source."""
    partitioned = base(specs=[[part(4, "day", "d_day")]])
    assert refusals(partitioned, swapped(also=(field(12, "d_day", "date"),))) == ["ICE704"]


def test_31_dropping_a_partition_source() -> None:
    """Refused while the default spec uses the column, accepted with a new default spec or for an old one."""
    default = base(specs=[[part(4, "day", "d_day")]])
    drop = swapped(without=(4,))
    assert refusals(default, drop) == ["ICE501"]
    away: list[Json] = [
        {"action": "add-spec", "spec": {"spec-id": -1, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    assert refusals(default, [*away, *drop]) == []
    assert refusals(default, [*drop, *away]) == []
    historical = base(specs=[[part(4, "day", "d_day")], []], default_spec=1)
    assert refusals(historical, drop) == []
    assert refusals(base(orders=[[sort_by(4)]], default_order=1), drop) == ["ICE502"]


def test_32_moving_between_parents() -> None:
    """A column cannot move into a struct, nor out of one."""
    into = swapped(field(9, "addr", struct(field(10, "city", "string"), NAME)), without=(2,))
    assert refusals(base(), into) == ["ICE401"]
    out = swapped(field(9, "addr", struct(field(12, "zip", "string"))), also=(field(10, "city", "string"),))
    assert refusals(base(), out) == ["ICE401"]


@pytest.mark.parametrize(
    ("element", "code"),
    [(list_of(12, "string"), "ICE402"), (list_of(8, "binary"), "ICE201"), (list_of(8, "string", True), "ICE301")],
)
def test_33_list_elements(element: Json, code: str) -> None:
    """The element keeps its ID, its type and its optionality."""
    assert refusals(base(), swapped(field(7, "tags", element))) == [code]


@pytest.mark.parametrize("key", [struct(field(14, "a", "int"), field(15, "b", "int")), struct(field(14, "a", "long"))])
def test_34_map_keys(key: Json) -> None:
    """A struct key can neither gain a field nor have one promoted."""
    keyed = field(12, "m", map_of(13, struct(field(14, "a", "int")), 16, "int"))
    stored = table(schema(*ALL, keyed), snapshots=[snapshot(1, 0)], refs={"main": branch(1)}, last_column_id=16)
    key = {**key, "fields": [{**f, "id": 17} if f["id"] == 15 else f for f in key["fields"]]}
    assert refusals(stored, swapped(also=(field(12, "m", map_of(13, key, 16, "int")),))) == ["ICE205"]


def test_34_primitive_map_keys() -> None:
    """An int key cannot become long."""
    stored = table(
        schema(*ALL, field(12, "m", map_of(13, "int", 14, "string"))),
        snapshots=[snapshot(1, 0)],
        refs={"main": branch(1)},
    )
    assert refusals(stored, swapped(also=(field(12, "m", map_of(13, "long", 14, "string")),))) == ["ICE205"]


def replaced(parent: int | None = None, last: tuple[Json, ...] = ()) -> list[Json]:
    """What CREATE OR REPLACE TABLE AS SELECT sends."""
    return [
        remove_ref("main"),
        *evolve(*REPLACED),
        add_snapshot(2, -1, parent),
        set_ref("main", 2),
        *last,
    ]


def test_35_replace_is_free() -> None:
    """A replacement may give the same IDs other types and requiredness."""
    assert refusals(base(), replaced()) == []


def test_36_what_makes_a_replacement_safe() -> None:
    """It is the parentless snapshot: without the removal of main it is accepted, with old snapshots it is not."""
    assert refusals(base(), replaced()[1:]) == []
    assert refusals(base(), evolve(*REPLACED)) != []
    assert refusals(base(), replaced(last=(set_ref("main", 1),))) != []
    assert refusals(base(), [remove_ref("main"), *evolve(*REPLACED), set_ref("main", 1)]) != []
    assert refusals(base(), replaced(parent=1)) != []


def test_37_replace_with_other_refs() -> None:
    """A branch on the old data blocks the replacement and is named; a tag does not."""
    verdict = judged(base(refs={"main": branch(1), "audit": branch(1)}), replaced())
    assert verdict.refused
    assert "Drop branch audit" in verdict.findings[0].message
    assert refusals(base(refs={"main": branch(1), "v1": tag(1)}), replaced()) == []
    both = base(refs={"main": branch(1), "audit": branch(1)})
    assert refusals(both, [remove_ref("audit"), *replaced()]) == []


def test_38_going_back_across_a_replacement() -> None:
    """Setting main to a snapshot from before is refused alone, and accepted together with its schema."""
    after = commit(base(), replaced())
    assert refusals(after, [set_ref("main", 1)]) == ["ICE503"]
    assert refusals(after, [set_ref("main", 1), set_schema(1)]) == []


def test_39_removing_schemas() -> None:
    """A schema that a snapshot names, or that is current, stays; a removed ID is not given out again."""
    stored = base(snapshots=[snapshot(1, 0), snapshot(2, 1, 1)], refs={"main": branch(2)})
    removal: Json = {"action": "remove-schemas", "schema-ids": [0]}
    assert refusals(stored, [removal]) == ["ICE504"]
    expired = [{"action": "remove-snapshots", "snapshot-ids": [1]}, removal]
    assert refusals(stored, expired) == []
    with pytest.raises(BadRequest, match="current schema"):
        commit(stored, [{"action": "remove-schemas", "schema-ids": [1]}])
    back = commit(base(snapshots=[], refs={}), [set_schema(0)])
    again = [
        {"action": "remove-schemas", "schema-ids": [1]},
        add_schema(*ALL, field(12, "z", "int")),
        set_schema(),
    ]
    assert refusals(back, again) == []
    assert commit(back, again).current_schema_id == 2


def test_40_a_stale_client() -> None:
    """An ID that is taken meanwhile is a lost race when an assertion is stale, and illegal when all match."""
    moved = commit(base(), swapped(also=(field(12, "x", "int"),)))
    late = swapped(also=(field(12, "y", "string"),))
    for stale in (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 11},
        {"type": "assert-current-schema-id", "current-schema-id": 1},
    ):
        with pytest.raises(CommitFailed):
            check_table(parse_table_requirements([stale], "$"), moved)
    check_table(parse_table_requirements([{"type": "assert-current-schema-id", "current-schema-id": 2}], "$"), moved)
    assert refusals(moved, late) == ["ICE201"]
