"""Reading table metadata."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.iceberg.json.codec import encode
from app.iceberg.ref import SnapshotRef
from app.iceberg.table import (
    parse_table_metadata,
    render_table_metadata,
    verify_table_metadata,
)
from tests.iceberg.documents import (
    NOW,
    UUID,
    column,
    document,
    parsed,
    schema,
    snapshot,
    with_history,
)

LEGACY = {
    "format-version": 1,
    "location": "s3://bucket/t",
    "last-updated-ms": NOW,
    "last-column-id": 3,
    "schema": schema(None, column(1, "x"), column(2, "y"), column(3, "z")),
    "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1}],
}


def test_the_legacy_form_of_version_1() -> None:
    """Schema, partition-spec and nothing else: ids and lists are what readers always took for granted."""
    table = parsed(LEGACY)
    assert (table.table_uuid, table.current_schema_id, table.schemas.ids) == (None, 0, (0,))
    assert (table.default_spec_id, table.last_partition_id) == (0, 1000)
    assert [part.field_id for part in table.default_spec.fields] == [1000]
    assert (table.default_sort_order_id, table.default_sort_order.fields) == (0, ())
    assert (table.last_sequence_number, table.next_row_id, table.refs) == (0, 0, {})


def test_the_legacy_schema_may_have_an_id() -> None:
    """Then it is the current one."""
    assert parsed(LEGACY | {"schema": schema(4, column(1, "x"))}).current_schema_id == 4


def test_lists_win_over_legacy_members() -> None:
    """Writers repeat schema and partition-spec beside the lists; then only the lists count."""
    table = parsed(document(1) | {"schema": {"type": "broken"}, "partition-spec": "broken"})
    assert table.current_schema_id == 0


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("none", [{"current-snapshot-id": -1}, {"current-snapshot-id": None}, {}])
def test_three_spellings_of_no_current_snapshot(version: int, none: dict[str, Any]) -> None:
    """-1, null and absence all read as none, and then there is no main."""
    table = parsed(document(version) | none)
    assert table.current_snapshot_id is None
    assert table.current_snapshot is None
    assert table.refs == {}


@pytest.mark.parametrize("version", [1, 2])
def test_without_refs_the_current_snapshot_is_main(version: int) -> None:
    """Documents from before refs have a branch main all the same."""
    table = parsed(with_history(snapshot(7), version=version, refs=None))
    assert table.refs == {"main": SnapshotRef(snapshot_id=7, kind="branch")}


def test_large_integers_are_exact() -> None:
    """Ids above 2^53 and at both ends of 64 bits survive reading and writing, wherever they stand."""
    big, low = 2**63 - 1, -(2**63)
    value = with_history(
        snapshot(9007199254740993),
        snapshot(low, 9007199254740993),
        snapshot(8103159149723679873, low) | {"first-row-id": 0, "added-rows": big - 1},
        version=3,
        next_row_id=big,
        last_sequence_number=big,
    )
    value["snapshot-log"][-1]["x"] = big
    assert msgspec.json.decode(render_table_metadata(parsed(value)))["snapshots"] == value["snapshots"]
    again = msgspec.json.decode(render_table_metadata(parsed(value)))
    for key in ("snapshot-log", "refs", "current-snapshot-id", "next-row-id", "last-sequence-number"):
        assert again[key] == value[key]


@pytest.mark.parametrize(
    "key", ["location", "last-updated-ms", "last-column-id", "last-sequence-number", "schemas", "current-schema-id",
            "partition-specs", "default-spec-id", "last-partition-id", "sort-orders", "default-sort-order-id",
            "table-uuid", "next-row-id", "format-version"],
)  # fmt: skip
def test_required_members_of_version_3(key: str) -> None:
    """Absent or null, the document cannot be read, and the message names the member."""
    value = document(3)
    value[key] = None
    with pytest.raises(SpecError, match=key if key != "table-uuid" else "UUID"):
        parsed(value)


@pytest.mark.parametrize("version", [0, -1, 4, 42])
def test_unknown_versions_are_refused(version: int) -> None:
    """With a clear message."""
    with pytest.raises(SpecError, match=f"unsupported format version {version}"):
        parsed(document(2) | {"format-version": version})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"current-schema-id": 5}, "$.schemas"),
        ({"default-spec-id": 5}, "$"),
        ({"default-sort-order-id": 5}, "$"),
        ({"partition-specs": []}, "$.partition-specs"),
        ({"sort-orders": []}, "$.sort-orders"),
        ({"properties": {"a": 1}}, "$.properties.a"),
        ({"snapshots": {}}, "$.snapshots"),
        ({"refs": {"x": {"snapshot-id": 1, "type": "branch"}}}, "$.refs.x"),
        ({"refs": {"x": {"snapshot-id": 1}}}, "$.refs.x"),
        ({"current-snapshot-id": 9}, "$.refs.main"),
        ({"last-updated-ms": 1.5}, "$.last-updated-ms"),
        ({"statistics": [{"snapshot-id": 1}]}, "$.statistics[0]"),
        ({"location": ""}, "$.location"),
    ],
)
def test_what_no_reader_loads_is_refused_with_its_path(change: dict[str, Any], path: str) -> None:
    """One fault each, named by its JSON path."""
    with pytest.raises(SpecError) as caught:
        parsed(document() | change)
    assert caught.value.path == path


def test_the_default_spec_must_fit_the_current_schema() -> None:
    """Readers bind it when they load; a historical spec may have lost its source."""
    gone = {"spec-id": 1, "fields": [{"source-id": 9, "field-id": 1000, "name": "p", "transform": "identity"}]}
    specs = [{"spec-id": 0, "fields": []}, gone]
    assert parsed(document(partition_specs=specs)).spec(1) is not None
    with pytest.raises(SpecError, match="partition-specs"):
        parsed(document(partition_specs=specs, default_spec_id=1))


def test_the_default_order_must_fit_the_current_schema() -> None:
    """As for specs."""
    field = {"source-id": 9, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    orders = [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [field]}]
    assert parsed(document(sort_orders=orders)).sort_order(1) is not None
    with pytest.raises(SpecError, match="sort-orders"):
        parsed(document(sort_orders=orders, default_sort_order_id=1))


def test_a_partition_name_that_belongs_to_another_column_is_refused() -> None:
    """Also in a historical spec, because readers check it for all; unless its source is gone."""
    clash = {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "name", "transform": "bucket[2]"}]}
    specs = [{"spec-id": 0, "fields": []}, clash]
    with pytest.raises(SpecError, match="name"):
        parsed(document(partition_specs=specs))
    clash["fields"][0]["source-id"] = 77  # type: ignore[index]
    parsed(document(partition_specs=specs))


def test_unsorted_need_not_be_listed() -> None:
    """Order 0 has one meaning whether or not a document lists it."""
    field = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    table = parsed(document(sort_orders=[{"order-id": 3, "fields": [field]}]))
    assert table.default_sort_order.fields == ()


def test_the_trailing_slash_of_a_location_does_not_count() -> None:
    """As in the reference reader."""
    assert parsed(document(location="s3://bucket/t//")).location == "s3://bucket/t"


def test_verification_reaches_what_parsing_left_alone() -> None:
    """Historical schemas and summaries are text until somebody asks; a registration asks."""
    broken_schema = document(schemas=[schema(0, column(1, "id")), schema(1, column(1, "a"), column(1, "b"))])
    with pytest.raises(SpecError, match=r"schemas\[1\]"):
        verify_table_metadata(parsed(broken_schema))
    odd_summary = with_history(snapshot(1) | {"summary": {"operation": "append", "n": 1}})
    with pytest.raises(SpecError, match=r"snapshots\[0\]"):
        verify_table_metadata(parsed(odd_summary))
    verify_table_metadata(parsed(with_history(snapshot(1))))


@given(st.data())
def test_damaged_documents_are_refused_or_read_never_crash(data: st.DataObject) -> None:
    """Whatever single member is replaced by whatever JSON value, the answer is a table or a SpecError."""
    value = with_history(snapshot(1, number=1), snapshot(2, 1, number=2), version=data.draw(st.sampled_from([1, 2, 3])))
    value |= {"table-uuid": UUID, "metadata-log": [{"timestamp-ms": 1, "metadata-file": "f"}], "statistics": []}
    junk = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "x"]), inner),
        max_leaves=4,
    )
    target: Any = value
    key = data.draw(st.sampled_from(sorted(value)))
    while isinstance(target[key], (dict, list)) and target[key] and data.draw(st.booleans()):
        target = target[key]
        key = data.draw(st.sampled_from(sorted(target) if isinstance(target, dict) else list(range(len(target)))))
    target[key] = data.draw(junk)
    text = msgspec.json.encode(value) if _fits(target[key]) else b"{}"
    try:
        table = parse_table_metadata(text)
        verify_table_metadata(table)
    except SpecError:
        return
    assert parse_table_metadata(render_table_metadata(table)).format_version == table.format_version


def _fits(value: Any) -> bool:
    try:
        encode(value)
    except SpecError:
        return False
    return True


SORTED = {"fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}
FAR = -(2**63)
TIMED = with_history(snapshot(1, number=1))


def with_default(name: str, kind: Any, value: Any) -> dict[str, Any]:
    return document(3, schemas=[schema(0, column(1, "id"), column(2, "name", kind, **{name: value}))])


@pytest.mark.parametrize("order", [{"fields": []}, SORTED])
def test_a_stored_sort_order_has_an_id(order: dict[str, Any]) -> None:
    """Only a requested one may leave it out."""
    with pytest.raises(SpecError) as refusal:
        parsed(document(sort_orders=[{"order-id": 0, "fields": []}, order]))
    assert refusal.value.path == "$.sort-orders[1]"
    with pytest.raises(SpecError, match="Sort order ID 0 is reserved"):
        parsed(document(sort_orders=[{"order-id": 0, **SORTED}]))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (with_default("initial-default", "int", "34"), "$.schemas[0]"),
        (with_default("write-default", "int", 2**31), "$.schemas[0]"),
        (with_default("initial-default", "decimal(9, 2)", "14.2"), "$.schemas[0]"),
        (with_default("initial-default", "variant", 1), "$.schemas[0]"),
        (with_default("initial-default", {"type": "struct", "fields": []}, 3), "$.schemas[0]"),
        (document(table_uuid="xx"), "$.table-uuid"),
        (document(1, table_uuid=""), "$.table-uuid"),
        (with_history(snapshot(1, number=1), snapshots=[snapshot(1, number=1, at=FAR)]), "$.snapshots[0].timestamp-ms"),
        (TIMED | {"last-updated-ms": 2**63 - 1}, "$.last-updated-ms"),
        (TIMED | {"snapshot-log": [{"timestamp-ms": FAR, "snapshot-id": 1}]}, "$.snapshot-log[0].timestamp-ms"),
        (document(metadata_log=[{"timestamp-ms": FAR, "metadata-file": "f"}]), "$.metadata-log[0].timestamp-ms"),
    ],
)
def test_what_other_readers_cannot_load_is_found_by_the_close_look(value: dict[str, Any], path: str) -> None:
    """With its place. Reading alone lets it pass, so that a table that has it can be cured."""
    table = parsed(value)
    with pytest.raises(SpecError) as refusal:
        verify_table_metadata(table)
    assert refusal.value.path == path


@pytest.mark.parametrize(
    "value",
    [
        document(1, table_uuid=None),
        document(table_uuid=UUID.upper()),
        LEGACY,
        with_default("initial-default", "int", 34),
        with_default("initial-default", "int", None),
        with_default("write-default", "double", 1),
        TIMED | {"snapshot-log": [{"timestamp-ms": 0, "snapshot-id": 1}]},
    ],
)
def test_the_close_look_passes_what_is_legal(value: dict[str, Any]) -> None:
    """Version 1 may lack a uuid; times may be old."""
    verify_table_metadata(parsed(value))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("transform", ["bucket[4]", "zorder"])
def test_transforms_of_several_columns_are_version_3(version: int, transform: str) -> None:
    """Known or unknown, in specs and orders alike."""
    several = {"source-ids": [1, 2], "transform": transform}
    spec = {"spec-id": 0, "fields": [several | {"name": "p", "field-id": 1000}]}
    order = {"order-id": 1, "fields": [several | {"direction": "asc", "null-order": "nulls-last"}]}
    for value, path in (
        (document(version, partition_specs=[spec], last_partition_id=1000), "$.partition-specs[0]"),
        (document(version, sort_orders=[order], default_sort_order_id=1), "$.sort-orders[0]"),
    ):
        table = parsed(value)
        if version == 3:
            verify_table_metadata(table)
            continue
        with pytest.raises(SpecError, match="needs format version 3") as refusal:
            verify_table_metadata(table)
        assert refusal.value.path == path
