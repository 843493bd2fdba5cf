"""Updates as sent."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, SpecError
from app.iceberg import update as u
from app.iceberg.update import parse_table_updates, parse_view_updates
from tests.iceberg.documents import UUID, column, schema, snapshot

STATISTICS = {
    "snapshot-id": 1,
    "statistics-path": "p",
    "file-size-in-bytes": 1,
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [],
}
VIEW_VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": -1,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["a"],
}
TABLE: list[tuple[type[Any], dict[str, Any]]] = [
    (u.AssignUuid, {"action": "assign-uuid", "uuid": UUID}),
    (u.UpgradeFormatVersion, {"action": "upgrade-format-version", "format-version": 3}),
    (u.AddSchema, {"action": "add-schema", "schema": schema(0, column(1, "a")), "last-column-id": "ignored"}),
    (u.SetCurrentSchema, {"action": "set-current-schema", "schema-id": -1}),
    (u.AddPartitionSpec, {"action": "add-spec", "spec": {"fields": []}}),
    (u.SetDefaultSpec, {"action": "set-default-spec", "spec-id": 0}),
    (u.AddSortOrder, {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}),
    (u.SetDefaultSortOrder, {"action": "set-default-sort-order", "sort-order-id": 0}),
    (u.AddSnapshot, {"action": "add-snapshot", "snapshot": snapshot(1)}),
    (u.SetSnapshotRef, {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}),
    (u.RemoveSnapshots, {"action": "remove-snapshots", "snapshot-ids": [1, 1, 2**62]}),
    (u.RemoveSnapshotRef, {"action": "remove-snapshot-ref", "ref-name": "x"}),
    (u.SetLocation, {"action": "set-location", "location": "s3://x"}),
    (u.SetProperties, {"action": "set-properties", "updates": {"a": "b"}}),
    (u.RemoveProperties, {"action": "remove-properties", "removals": ["a"]}),
    (u.SetStatistics, {"action": "set-statistics", "statistics": STATISTICS, "snapshot-id": 9}),
    (u.RemoveStatistics, {"action": "remove-statistics", "snapshot-id": 1}),
    (u.SetPartitionStatistics, {"action": "set-partition-statistics", "partition-statistics": STATISTICS}),
    (u.RemovePartitionStatistics, {"action": "remove-partition-statistics", "snapshot-id": 1}),
    (u.RemovePartitionSpecs, {"action": "remove-partition-specs", "spec-ids": [1]}),
    (u.RemoveSchemas, {"action": "remove-schemas", "schema-ids": [1]}),
    (
        u.AddEncryptionKey,
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="}},
    ),
    (u.RemoveEncryptionKey, {"action": "remove-encryption-key", "key-id": "k"}),
]
VIEW: list[tuple[type[Any], dict[str, Any]]] = [
    *(item for item in TABLE if item[0] in (u.AssignUuid, u.UpgradeFormatVersion, u.AddSchema, u.SetLocation)),
    *(item for item in TABLE if item[0] in (u.SetProperties, u.RemoveProperties)),
    (u.AddViewVersion, {"action": "add-view-version", "view-version": VIEW_VERSION}),
    (u.SetCurrentViewVersion, {"action": "set-current-view-version", "view-version-id": -1}),
]


@pytest.mark.parametrize(("kind", "value"), TABLE)
def test_every_table_action_is_read(kind: type[Any], value: dict[str, Any]) -> None:
    """All 23 actions, in any letter case, with unknown members beside."""
    assert [type(item) for item in parse_table_updates([value | {"x-new": 1}])] == [kind]
    assert [type(item) for item in parse_table_updates([value | {"action": value["action"].upper()}])] == [kind]


@pytest.mark.parametrize(("kind", "value"), VIEW)
def test_every_view_action_is_read(kind: type[Any], value: dict[str, Any]) -> None:
    """All eight actions."""
    assert [type(item) for item in parse_view_updates([value])] == [kind]


@pytest.mark.parametrize(("kind", "value"), TABLE)
def test_a_missing_payload_is_refused(kind: type[Any], value: dict[str, Any]) -> None:
    """Each member that an action needs is missed when absent or null."""
    optional = {"action", "last-column-id"} | ({"snapshot-id"} if kind is u.SetStatistics else set())
    for key in value.keys() - optional:
        with pytest.raises(SpecError):
            parse_table_updates([value | {key: None}])
        with pytest.raises(SpecError):
            parse_table_updates([{name: item for name, item in value.items() if name != key}])


@pytest.mark.parametrize(
    "value",
    [{"action": "frobnicate"}, {"action": "add-partition-spec"}, {}, {"action": None}, {"action": 3}, 1, None, []],
)
def test_unknown_actions_are_refused(value: Any) -> None:
    """Half of a change is never stored."""
    good = {"action": "set-properties", "updates": {"a": "1"}}
    for parse in (parse_table_updates, parse_view_updates):
        with pytest.raises(BadRequest):
            parse([good, value])


def test_tables_and_views_do_not_share_all_actions() -> None:
    """The other kind's action is unknown."""
    with pytest.raises(BadRequest, match="set-current-view-version"):
        parse_table_updates([VIEW[-1][1]])
    with pytest.raises(BadRequest, match="set-current-schema"):
        parse_view_updates([TABLE[3][1]])


def test_historic_keys_of_property_updates_are_read() -> None:
    """Older Java clients send updated and removed; the present keys win."""
    both = {"action": "set-properties", "updated": {"a": "old"}, "updates": {"a": "new"}}
    assert parse_table_updates([both, {"action": "set-properties", "updated": {"b": "1"}, "updates": None}]) == (
        u.SetProperties({"a": "new"}),
        u.SetProperties({"b": "1"}),
    )
    assert parse_view_updates([{"action": "remove-properties", "removed": ["a"]}]) == (u.RemoveProperties(("a",)),)


@pytest.mark.parametrize("bad", [{"a": None}, {"a": 1}, ["a"], "a"])
def test_property_values_are_strings(bad: Any) -> None:
    """Null is no property value."""
    with pytest.raises(SpecError):
        parse_table_updates([{"action": "set-properties", "updates": bad}])


def test_faults_name_their_path() -> None:
    """The path leads through the list into the embedded document."""
    broken = {"action": "add-snapshot", "snapshot": snapshot(1) | {"timestamp-ms": "now"}}
    with pytest.raises(SpecError) as caught:
        parse_table_updates([TABLE[0][1], broken])
    assert caught.value.path == "$.updates[1].snapshot.timestamp-ms"


def test_a_uuid_must_be_one() -> None:
    """A table whose uuid is no UUID cannot be loaded by Python clients."""
    with pytest.raises(SpecError, match="Not a UUID"):
        parse_table_updates([{"action": "assign-uuid", "uuid": "mine"}])


def test_a_view_version_must_be_sql() -> None:
    """Readers know no other representation."""
    other = VIEW_VERSION | {"representations": [{"type": "plan", "bytes": "x"}]}
    with pytest.raises(SpecError, match="plan"):
        parse_view_updates([{"action": "add-view-version", "view-version": other}])


def test_the_schema_id_that_was_sent_is_remembered() -> None:
    """Absent is not the same as 0."""
    sent = [{"action": "add-schema", "schema": schema(item, column(1, "a"))} for item in (None, 0, 5)]
    assert [item.sent_id for item in parse_table_updates(sent) if isinstance(item, u.AddSchema)] == [None, 0, 5]


@pytest.mark.parametrize("operation", ["", "merge", "APPEND"])
def test_a_new_snapshot_says_what_was_done_in_the_words_of_the_spec(operation: str) -> None:
    """Any other operation is refused by its path; stored tables are read as they are."""
    sent = {"action": "add-snapshot", "snapshot": {**snapshot(1), "summary": {"operation": operation}}}
    with pytest.raises(SpecError, match=r"Unknown snapshot operation .*append, replace, overwrite, delete"):
        parse_table_updates([sent], "$.updates")


@pytest.mark.parametrize("operation", ["append", "replace", "overwrite", "delete"])
def test_the_four_operations_of_the_spec_are_taken(operation: str) -> None:
    """Each of them."""
    sent = {"action": "add-snapshot", "snapshot": {**snapshot(1), "summary": {"operation": operation}}}
    (update,) = parse_table_updates([sent], "$.updates")
    assert isinstance(update, u.AddSnapshot) and update.snapshot.operation == operation


REF = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
FILE = {"statistics-path": "s", "file-size-in-bytes": 1}
PUFFIN = {**FILE, "file-footer-size-in-bytes": 1, "blob-metadata": []}


def naming(snapshot_id: int) -> list[tuple[str, dict[str, Any]]]:
    """Every update that gives a snapshot ID a meaning, with the place of the ID."""
    return [
        ("snapshot.snapshot-id", {"action": "add-snapshot", "snapshot": snapshot(snapshot_id)}),
        ("snapshot-id", {**REF, "snapshot-id": snapshot_id}),
        ("statistics.snapshot-id", {"action": "set-statistics", "statistics": {**PUFFIN, "snapshot-id": snapshot_id}}),
        (
            "partition-statistics.snapshot-id",
            {"action": "set-partition-statistics", "partition-statistics": {**FILE, "snapshot-id": snapshot_id}},
        ),
    ]


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("snapshot_id", [-1, 2**63, -(2**63) - 1])
def test_no_snapshot_has_the_id_of_none_or_one_beyond_64_bits(at: int, snapshot_id: int) -> None:
    """Java reads -1 as no snapshot and cannot read what is no long; the error names the place."""
    place, update = naming(snapshot_id)[at]
    with pytest.raises(SpecError) as caught:
        parse_table_updates([update])
    assert caught.value.path == f"$.updates[0].{place}"


@pytest.mark.parametrize("snapshot_id", [0, -2, -(2**63), 2**63 - 1])
def test_every_other_long_is_a_snapshot_id(snapshot_id: int) -> None:
    """Zero and the other negative numbers included, as in Java."""
    assert len(parse_table_updates([update for _, update in naming(snapshot_id)])) == 4


def test_minus_one_is_legal_where_it_means_none() -> None:
    """As the snapshot of a statistics blob, and in what is to be removed."""
    blob = {"type": "t", "snapshot-id": -1, "sequence-number": -1, "fields": []}
    for update in (
        {"action": "set-statistics", "statistics": {**PUFFIN, "snapshot-id": 1, "blob-metadata": [blob]}},
        {"action": "remove-statistics", "snapshot-id": -1},
        {"action": "remove-snapshots", "snapshot-ids": [-1]},
    ):
        assert parse_table_updates([update])


@pytest.mark.parametrize("at", [-(2**63), -(2**62), 2**63 - 1])
def test_a_snapshot_of_no_possible_time_is_refused(at: int) -> None:
    """Readers compute with the time and overflow."""
    update = {"action": "add-snapshot", "snapshot": snapshot(1, at=at)}
    with pytest.raises(SpecError, match="Time out of range") as refusal:
        parse_table_updates([update])
    assert str(refusal.value.path).endswith(".snapshot.timestamp-ms")
