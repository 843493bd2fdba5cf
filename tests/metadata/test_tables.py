"""Whole commits on tables: creation, replacement, logs, and the agreement with what readers demand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import BadRequest, CommitFailed, IcekeelError, ValidationFailed
from app.iceberg.table import (
    TableMetadata,
    check_invariants,
    parse_table_metadata,
    render_table_metadata,
    verify_table_metadata,
)
from app.metadata.properties import RESERVED
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
from tests.metadata.folding import (
    BASE_FILE,
    CREATE,
    FRESH_UUID,
    LATER,
    add_schema,
    add_snapshot,
    add_spec,
    fold,
    remove_snapshots,
    result,
    set_current,
    set_partition_statistics,
    set_properties,
    set_ref,
    set_statistics,
    written,
)

BASE = parsed(document())


def without(*actions: str) -> list[dict[str, Any]]:
    return [update for update in CREATE if update["action"] not in actions]


def test_a_create_commit_builds_from_nothing() -> None:
    """What clients send after a staged create, with their first snapshot (O-24)."""
    applied = fold(None, *CREATE, add_snapshot(snapshot(1, number=1)), set_ref(1))
    table = applied.metadata
    assert applied.changed
    assert (table.table_uuid, table.location, table.format_version) == (CREATE[0]["uuid"], "s3://bucket/t", 2)
    assert (table.schemas.ids, table.current_schema_id, table.last_column_id) == ((0,), 0, 2)
    assert (table.default_spec_id, table.last_partition_id, table.default_sort_order_id) == (0, 999, 0)
    assert (len(table.metadata_log), table.last_updated_ms, table.current_snapshot_id) == (0, LATER, 1)
    assert parse_table_metadata(render_table_metadata(table)).properties == {"a": "b"}


def test_client_ids_are_kept_in_a_create_commit() -> None:
    """Only createTable reassigns column ids."""
    fields = schema(0, column(7, "id"), column(3, "name"))
    table = result(None, *without("add-schema")[:2], add_schema(fields), *CREATE[3:])
    assert ([field.field_id for field in table.schema.fields], table.last_column_id) == ([7, 3], 7)


@pytest.mark.parametrize(
    ("action", "what"),
    [("add-schema", "schema"), ("add-spec", "spec"), ("add-sort-order", "sort order"), ("set-location", "location")],
)
def test_a_create_commit_must_be_complete(action: str, what: str) -> None:
    """Each part is missed by name, never by a crash."""
    with pytest.raises(ValidationFailed, match=what):
        fold(None, *without(action, "set-current-schema", "set-default-spec", "set-default-sort-order"))
    with pytest.raises(BadRequest):
        fold(None)


def test_the_first_of_each_is_current_unless_chosen() -> None:
    """A client may leave the choice out."""
    table = result(None, *without("set-current-schema", "set-default-spec", "set-default-sort-order"))
    assert (table.current_schema_id, table.default_spec_id, table.default_sort_order_id) == (0, 0, 0)


def test_the_version_of_a_new_table() -> None:
    """The first upgrade names it, else the property, else it is 2; the property is never stored (O-29)."""
    bare = without("upgrade-format-version")
    one = {"action": "upgrade-format-version", "format-version": 1}
    assert result(None, *bare).format_version == 2
    assert result(None, *bare, one).format_version == 1
    table = result(None, *bare, {"action": "set-properties", "updates": {"format-version": "3", "k": "v"}})
    assert (table.format_version, table.properties) == (3, {"a": "b", "k": "v"})


def test_a_uuid_is_found_for_a_table_that_sends_none() -> None:
    """The one handed in."""
    assert result(None, *without("assign-uuid")).table_uuid == FRESH_UUID


def test_a_commit_without_effect_is_told() -> None:
    """The base comes back itself, so that no new file is written."""
    for updates in ([], [set_properties()], [set_current(0)], [remove_snapshots(5)]):
        applied = fold(BASE, *updates)
        assert (applied.changed, applied.metadata is BASE, applied.effective) == (False, True, ())


def test_effective_updates_are_those_that_changed_something() -> None:
    """In order."""
    applied = fold(BASE, set_current(0), set_properties(a="b"), set_properties(a="b"), add_schema(schema(1)))
    assert [type(update).__name__ for update in applied.effective] == ["SetProperties", "AddSchema"]


def test_unchanged_parts_are_shared() -> None:
    """A property commit on a long history copies none of it."""
    base = parsed(with_history(snapshot(1)))
    after = result(base, set_properties(a="b"))
    assert after.snapshots is base.snapshots
    assert after.schemas is base.schemas
    assert after.partition_specs is base.partition_specs


def test_each_file_names_its_predecessor() -> None:
    """With the time at which that was written."""
    table = result(BASE, set_properties(a="b"))
    assert [(entry.timestamp_ms, entry.metadata_file) for entry in table.metadata_log] == [(NOW, BASE_FILE)]


def test_the_metadata_log_is_trimmed() -> None:
    """The last n predecessors, read after the commit's own property updates; what fell out is told if asked (O-30)."""
    files = [{"timestamp-ms": at, "metadata-file": f"f{at}"} for at in range(5)]
    base = parsed(document(metadata_log=files))
    limit = {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "3"}}
    applied = fold(base, limit)
    assert [entry.metadata_file for entry in applied.metadata.metadata_log] == ["f3", "f4", BASE_FILE]
    assert applied.expired_metadata_files == ()
    deleting = fold(base, limit, set_properties(**{"write.metadata.delete-after-commit.enabled": "true"}))
    assert deleting.expired_metadata_files == ("f0", "f1", "f2")
    hundred = [{"timestamp-ms": at, "metadata-file": f"f{at}"} for at in range(120)]
    assert len(result(parsed(document(metadata_log=hundred)), set_properties(a="b")).metadata_log) == 100


def test_unknown_members_survive_a_commit() -> None:
    """At the top level and in what the commit did not touch."""
    value = with_history(snapshot(1) | {"x": 1}) | {"x-new": {"y": [1.0, None]}}
    out = written(result(parsed(value), set_properties(a="b")))
    assert (out["x-new"], out["snapshots"]) == (value["x-new"], value["snapshots"])


def test_a_replacement_keeps_what_was() -> None:
    """Same uuid, old schemas, specs and snapshots; properties merged, counters on (O-25)."""
    base = result(
        parsed(with_history(snapshot(1, number=1), properties={"old": "1"})), add_spec((2, "identity", "name"))
    )
    after = result(
        base,
        {"action": "set-default-spec", "spec-id": 0},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        add_schema(schema(1, column(1, "id", "string"), column(3, "new", required=True))),
        set_current(),
        set_properties(new="2"),
        add_snapshot(snapshot(2, None, 2) | {"schema-id": 1}),
        set_ref(2),
    )
    assert (after.table_uuid, after.schemas.ids, after.current_schema_id) == (base.table_uuid, (0, 1), 1)
    assert (after.properties, after.last_column_id, len(after.partition_specs)) == ({"old": "1", "new": "2"}, 3, 2)


def test_the_base_is_never_touched() -> None:
    """Two commits on one base do not see each other."""
    base = parsed(with_history(snapshot(1, number=1)))
    before = render_table_metadata(base)
    one = result(base, add_snapshot(snapshot(2, 1, 2)), set_ref(2), set_properties(a="1"), set_ref(1, "t", "tag"))
    two = result(base, add_snapshot(snapshot(3, 1, 2)), set_ref(3), set_properties(b="1"), add_schema(schema(1)))
    assert render_table_metadata(base) == before
    assert [item.snapshot_id for item in one.snapshots] == [1, 2]
    assert [item.snapshot_id for item in two.snapshots] == [1, 3]
    assert (one.properties, two.properties, one.schemas.ids) == ({"a": "1"}, {"b": "1"}, (0,))


IDS = st.integers(0, 6)
SOURCES = st.lists(st.integers(1, 3), min_size=1, max_size=2)
TRANSFORMS = st.sampled_from(["bucket[2]", "identity", "void", "zorder"])
NAMES = ["uuid", "snapshot-count", "current-schema", "write.metadata.compression-codec"]
ODDITIES = st.just({}) | st.sampled_from([
    {"summary": None},
    {"summary": {}},
    {"summary": {"added-records": "1"}},
    {"manifest-list": None},
    {"manifest-list": None, "manifests": ["s3://b/m.avro"]},
    {"manifests": []},
    {"timestamp-ms": -(2**63)},
    {"key-id": "k"},
    {"key-id": "j"},
])  # fmt: skip
SNAPSHOT_IDS = st.sampled_from([1, 2, 3, 4, 0, -1, -2, -(2**63), 2**63 - 1, 2**63])
FIELDS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from("abcd"), st.sampled_from(["int", "long", "string"])),
    max_size=3,
    unique_by=(lambda field: field[0], lambda field: field[1]),
)
UPDATES = st.one_of(
    st.builds(lambda i, fields: add_schema(schema(i, *(column(*field) for field in fields))), IDS, FIELDS),
    st.builds(set_current, st.integers(-1, 4)),
    st.builds(lambda ids: {"action": "remove-schemas", "schema-ids": ids}, st.lists(IDS, max_size=2)),
    st.builds(
        lambda fields: add_spec(*fields),
        st.lists(
            st.tuples(st.integers(1, 3), st.sampled_from(["identity", "bucket[2]", "void"]), st.sampled_from("pqr")),
            max_size=2,
            unique_by=lambda field: field[2],
        ),
    ),
    st.builds(lambda i: {"action": "set-default-spec", "spec-id": i}, st.integers(-1, 3)),
    st.builds(lambda ids: {"action": "remove-partition-specs", "spec-ids": ids}, st.lists(IDS, max_size=2)),
    st.builds(
        lambda i, parent, number, at, schema_id, row: add_snapshot(
            snapshot(i, parent, number, at) | {"schema-id": schema_id, "first-row-id": row, "added-rows": 3}
        ),
        SNAPSHOT_IDS, st.none() | SNAPSHOT_IDS, st.integers(-1, 5),
        st.integers(NOW - 10, NOW + 10**7) | st.sampled_from([-(2**63), 0, 2**63 - 1]), st.none() | st.integers(-1, 3),
        st.integers(0, 9),
    ),
    st.builds(set_ref, SNAPSHOT_IDS, st.sampled_from(["main", "x"]), st.sampled_from(["branch", "tag"])),
    st.builds(
        lambda i, **ages: set_ref(i, **{key.replace("_", "-"): age for key, age in ages.items()}),
        SNAPSHOT_IDS,
        max_ref_age_ms=st.integers(-1, 2) | st.none(),
        max_snapshot_age_ms=st.sampled_from([-1, 0, 1, 2**63 - 1, 2**63]),
        min_snapshots_to_keep=st.sampled_from([-1, 0, 1, 2**31 - 1, 2**31]),
    ),
    st.builds(lambda ids: remove_snapshots(*ids), st.lists(SNAPSHOT_IDS, max_size=3)),
    st.builds(set_statistics, SNAPSHOT_IDS, st.integers(-1, 2**63)),
    st.builds(set_partition_statistics, SNAPSHOT_IDS, st.integers(-1, 2**63)),
    st.builds(lambda uuid: {"action": "assign-uuid", "uuid": uuid}, st.sampled_from([UUID, UUID.upper(), "xx"])),
    st.builds(lambda place: {"action": "set-location", "location": place}, st.sampled_from(["", "/", "s3://b/", "a"])),
    st.builds(
        lambda key_id, by: {
            "action": "add-encryption-key",
            "encryption-key": {"key-id": key_id, "encrypted-key-metadata": "YQ==", "encrypted-by-id": by},
        },
        st.sampled_from(["", "k"]), st.none() | st.sampled_from(["k", ""]),
    ),
    st.builds(lambda name: {"action": "remove-snapshot-ref", "ref-name": name}, st.sampled_from(["main", "x"])),
    st.builds(lambda version: {"action": "upgrade-format-version", "format-version": version}, st.integers(1, 4)),
    st.builds(lambda value: set_properties(**{"write.metadata.previous-versions-max": value}), st.sampled_from("123x")),
    st.builds(
        lambda name, value: set_properties(**{name: value}),
        st.sampled_from(NAMES), st.sampled_from(["2", "zstd", "gzip"]),
    ),
    st.builds(lambda key_id: {"action": "remove-encryption-key", "key-id": key_id}, st.sampled_from(["k", "", "j"])),
    st.builds(
        lambda sources, transform: {
            "action": "add-spec",
            "spec": {"fields": [{"source-ids": sources, "transform": transform, "name": "s"}]},
        },
        SOURCES, TRANSFORMS,
    ),
    st.builds(
        lambda sources, transform: {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [
                    {"source-ids": sources, "transform": transform, "direction": "asc", "null-order": "nulls-last"}
                ],
            },
        },
        SOURCES, TRANSFORMS,
    ),
)  # fmt: skip


APPENDS = st.builds(
    lambda i, parent, number, name, at, odd: [
        add_snapshot(snapshot(i, parent, number, at) | {"first-row-id": 1000 * number, "added-rows": number} | odd),
        set_ref(i, name),
    ],
    SNAPSHOT_IDS,
    st.sampled_from([None, None, None, -1, 1, 2]),
    st.integers(0, 9),
    st.sampled_from(["main", "x"]),
    st.integers(NOW - 10, NOW + 10**7),
    ODDITIES,
)
COMMITS = st.lists(APPENDS | UPDATES.map(lambda update: [update]), min_size=1, max_size=3).map(
    lambda parts: [update for part in parts for update in part]
)


def held(table: TableMetadata) -> dict[str, Any]:
    """What a table holds, its lists as lists: two that were read and folded apart are equal in this or not at all."""
    members = {name: getattr(table, name) for name in table.__struct_fields__}
    for name in ("snapshots", "snapshot_log", "metadata_log", "statistics", "partition_statistics", "encryption_keys"):
        members[name] = [
            {key: getattr(item, key) for key in item.__struct_fields__ if key != "body"} | {"raw": bytes(item.body)}
            for item in members[name]
        ]
    members["schemas"] = [table.schemas.get(schema_id) for schema_id in table.schemas]
    members["extra"] = {key: bytes(text) for key, text in table.extra.items()}
    return members


def check_what_others_need(before: TableMetadata, after: TableMetadata) -> None:
    """Readers beside Java are stricter: what a commit brings has an operation, a list of manifests and its key."""
    keys = {key.key_id for key in after.encryption_keys}
    for item in after.snapshots:
        assert item.key_id is None or item.key_id in keys
        if before.format_version > 1 and before.snapshots.find(item.snapshot_id) != item:
            assert item.operation is not None
            assert item.manifest_list is not None and item.manifests is None
    assert not {*after.properties} & {*RESERVED}
    assert after.properties.get("write.metadata.compression-codec", "none") in ("none", "gzip")


def counters(table: TableMetadata) -> tuple[int, ...]:
    return (
        table.format_version,
        table.last_column_id,
        table.last_partition_id,
        table.last_sequence_number,
        table.next_row_id,
        table.last_updated_ms,
    )


@settings(max_examples=300, deadline=None)
@given(
    version=st.sampled_from([1, 2, 3]),
    commits=st.lists(st.tuples(COMMITS, st.integers(-1000, 1000)), max_size=6),
)
def test_whatever_is_accepted_can_be_read_again(version: int, commits: list[tuple[list[dict[str, Any]], int]]) -> None:
    """Any sequence of commits is refused as a bad request or conflict, or leaves a sound document.

    Sound means: every reader's demands hold, what is written reads as the same, no counter and no clock went back,
    ids keep their meaning, and the base is as it was.
    """
    table = parsed(document(version))
    meaning = {schema_id: table.schemas.get(schema_id) for schema_id in table.schemas}
    for updates, drift in commits:
        before = render_table_metadata(table)
        try:
            applied = fold(table, *updates, now_ms=LATER + drift)
        except (BadRequest, CommitFailed):
            assert render_table_metadata(table) == before
            continue
        except IcekeelError as error:
            raise AssertionError(f"neither a bad request nor a conflict: {error!r}") from error
        after = applied.metadata
        assert render_table_metadata(table) == before
        assert applied.changed == bool(applied.effective) == (after is not table)
        check_invariants(after)
        assert all(old <= new for old, new in zip(counters(table), counters(after), strict=True))
        text = render_table_metadata(after)
        assert written(after)["snapshots"] == [item.to_json() for item in after.snapshots]
        check_what_others_need(table, after)
        try:
            again = parse_table_metadata(text)
            verify_table_metadata(again)
            assert render_table_metadata(again) == text
            assert held(again) == held(after)
        except BadRequest as fault:
            # Whether specs and orders still fit the schema is the evolution rules' to judge.
            assert "partition-specs" in str(fault) or "sort-orders" in str(fault)
        for schema_id in after.schemas:
            kept = meaning.setdefault(schema_id, after.schemas.get(schema_id))
            if schema_id in table.schemas:
                assert after.schemas.get(schema_id) == kept
        meaning = {schema_id: after.schemas.get(schema_id) for schema_id in after.schemas}
        table = after
