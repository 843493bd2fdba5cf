"""New views and commits on views."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import BadRequest, IllegalArgument, ValidationFailed
from app.iceberg.json.codec import encode
from app.iceberg.schema import parse_schema
from app.iceberg.update import parse_view_updates
from app.iceberg.view import (
    ViewMetadata,
    parse_view_metadata,
    render_view_metadata,
    view_version_from_json,
)
from app.metadata.views import AppliedView, apply, new_view
from tests.iceberg.documents import NOW, UUID, column, schema
from tests.iceberg.test_view import version, view

BASE = parse_view_metadata(encode(view()))
CURRENT = {"action": "set-current-view-version", "view-version-id": -1}


def fold(base: ViewMetadata, *updates: dict[str, Any], now_ms: int = NOW + 100) -> AppliedView:
    return apply(base, parse_view_updates(list(updates)), now_ms)


def result(base: ViewMetadata, *updates: dict[str, Any], now_ms: int = NOW + 100) -> ViewMetadata:
    return fold(base, *updates, now_ms=now_ms).metadata


def add(version_id: int, sql: str = "select 2", at: int = NOW + 50, **more: Any) -> dict[str, Any]:
    return {"action": "add-view-version", "view-version": version(version_id, sql, **{"timestamp-ms": at, **more})}


def log(made: ViewMetadata) -> list[tuple[int, int]]:
    return [(entry.timestamp_ms, entry.version_id) for entry in made.version_log]


def dialects(*names: str) -> list[dict[str, Any]]:
    return [{"type": "sql", "sql": "select 1", "dialect": name} for name in names]


def test_a_new_view_is_numbered_by_the_server() -> None:
    """Version 1, schema 0, column ids as sent, logged with the version's time but not later than now."""
    sent = view_version_from_json(version(9, **{"schema-id": 4, "timestamp-ms": NOW + 5}), "$")
    made = new_view(parse_schema(schema(4, column(17, "a"))), sent, "s3://bucket/v/", {"comment": "c"}, NOW, UUID)
    assert (made.current_version_id, made.current_version.schema_id, made.schemas.ids) == (1, 0, (0,))
    assert made.schema.fields[0].field_id == 17
    assert (log(made), made.location, made.properties) == ([(NOW, 1)], "s3://bucket/v", {"comment": "c"})
    assert parse_view_metadata(render_view_metadata(made)).current_version == made.current_version


def test_one_query_per_dialect() -> None:
    """In any letter case, on create and in a commit, under the name that suites expect."""
    twice = dialects("trino", "TRINO")
    message = "Invalid view version: Cannot add multiple queries for dialect trino"
    with pytest.raises(IllegalArgument) as caught:
        sent = view_version_from_json(version(1, representations=twice), "$")
        new_view(parse_schema(schema(0)), sent, "s3://b/v", {}, NOW, UUID)
    assert caught.value.message == message
    with pytest.raises(IllegalArgument, match=message):
        fold(BASE, add(2, representations=twice))


def test_going_back_to_an_earlier_text() -> None:
    """Two versions, not three; the log rises and ends near now (O-44)."""
    second = result(BASE, add(2), CURRENT, now_ms=NOW + 100)
    third = result(second, add(3, "select 1"), CURRENT, now_ms=NOW + 200)
    assert [item.version_id for item in third.versions] == [1, 2]
    assert log(third) == [(NOW, 1), (NOW + 50, 2), (NOW + 200, 1)]
    fourth = result(third, {"action": "set-properties", "updates": {"x": "y"}}, now_ms=NOW + 300)
    assert log(fourth) == log(third)
    fifth = result(fourth, CURRENT | {"view-version-id": 2}, now_ms=NOW + 400)
    assert log(fifth)[-1] == (NOW + 400, 2)


def test_log_times_stay_between_the_last_entry_and_now() -> None:
    """Whatever the client's clock says."""
    assert log(result(BASE, add(2, at=5), CURRENT))[-1] == (NOW, 2)
    assert log(result(BASE, add(2, at=NOW * 2), CURRENT))[-1] == (NOW + 100, 2)


def test_a_taken_version_id_is_replaced() -> None:
    """The next free one; -1 means it."""
    made = result(BASE, add(1), CURRENT)
    assert ([item.version_id for item in made.versions], made.current_version_id) == ([1, 2], 2)


def test_the_last_added_schema() -> None:
    """Also when it was listed already; -1 without one is refused, as are unknown ids."""
    wider = {"action": "add-schema", "schema": schema(0, column(1, "a"), column(2, "b"))}
    made = result(BASE, wider, add(2, **{"schema-id": -1}), CURRENT)
    assert (made.schemas.ids, made.current_version.schema_id) == ((0, 1), 1)
    same = {"action": "add-schema", "schema": schema(5, column(1, "a"))}
    assert result(BASE, same, add(2, **{"schema-id": -1}), CURRENT).current_version.schema_id == 0
    for schema_id in (-1, 9):
        with pytest.raises(ValidationFailed):
            fold(BASE, add(2, **{"schema-id": schema_id}))


def test_a_version_follows_its_schema_to_another_number() -> None:
    """A client that guessed 3 gets 1, and its version with it."""
    made = result(BASE, {"action": "add-schema", "schema": schema(3, column(2, "b"))}, add(2, **{"schema-id": 3}))
    assert [item.schema_id for item in made.versions] == [0, 1]


@pytest.mark.parametrize("version_id", [-1, 9])
def test_only_known_versions_can_be_current(version_id: int) -> None:
    """-1 without an added version and unknown ids are refused."""
    with pytest.raises(ValidationFailed):
        fold(BASE, CURRENT | {"view-version-id": version_id})


def test_a_dialect_is_not_lost_by_accident() -> None:
    """Unless the property allows it, also when the same commit sets the property."""
    both = result(BASE, add(2, representations=dialects("spark", "Trino")), CURRENT)
    narrower = [add(3, representations=dialects("SPARK")), CURRENT]
    with pytest.raises(ValidationFailed, match="loss of view dialects"):
        fold(both, *narrower)
    allow = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert result(both, *narrower, allow).current_version_id == 3


def test_history_is_bounded() -> None:
    """The newest stay, the current one always, and the log loses what came before a version that went."""
    made = BASE
    for version_id in range(2, 15):
        made = result(made, add(version_id, f"select {version_id}"), CURRENT, now_ms=NOW + 100 + version_id)
    assert [item.version_id for item in made.versions] == list(range(5, 15))
    assert [entry.version_id for entry in made.version_log] == list(range(5, 15))
    few = {"action": "set-properties", "updates": {"version.history.num-entries": "2"}}
    back = result(made, CURRENT | {"view-version-id": 6}, few, now_ms=NOW + 500)
    assert [item.version_id for item in back.versions] == [6, 14]
    assert [entry.version_id for entry in back.version_log] == [14, 6]


def test_versions_of_the_commit_stay_whatever_the_size() -> None:
    """A commit may add more versions than the history keeps."""
    few = {"action": "set-properties", "updates": {"version.history.num-entries": "1"}}
    made = result(BASE, few, add(2, "a"), add(3, "b"), CURRENT)
    assert [item.version_id for item in made.versions] == [2, 3]


@pytest.mark.parametrize("size", ["0", "-1", "x", ""])
def test_a_history_size_must_be_positive(size: str) -> None:
    """Refused when it is set; one that a document brings along counts as the default."""
    with pytest.raises(ValidationFailed):
        fold(BASE, {"action": "set-properties", "updates": {"version.history.num-entries": size}})
    brought = parse_view_metadata(encode(view(properties={"version.history.num-entries": size})))
    assert fold(brought, add(2), CURRENT).changed


def test_a_view_keeps_its_uuid_and_version() -> None:
    """The same again is no change."""
    keep = [{"action": "assign-uuid", "uuid": UUID.upper()}, {"action": "upgrade-format-version", "format-version": 1}]
    assert not fold(BASE, *keep).changed
    other = {"action": "assign-uuid", "uuid": "99999999-2222-4333-8444-555555555555"}
    for update in (other, keep[1] | {"format-version": 2}, keep[1] | {"format-version": 0}):
        with pytest.raises(ValidationFailed):
            fold(BASE, update)


def test_location_and_properties() -> None:
    """As for tables: slash stripped, merged, and no change when nothing differs."""
    made = result(
        BASE,
        {"action": "set-location", "location": "s3://bucket/w/"},
        {"action": "set-properties", "updates": {"x": "y"}},
        {"action": "remove-properties", "removals": ["comment", "zz"]},
    )
    assert (made.location, made.properties) == ("s3://bucket/w", {"x": "y"})
    idle = fold(
        BASE,
        {"action": "set-location", "location": "s3://bucket/v/"},
        {"action": "remove-properties", "removals": ["z"]},
    )
    assert (idle.changed, idle.metadata) == (False, BASE)
    with pytest.raises(BadRequest):
        fold(BASE, {"action": "set-location", "location": ""})


def test_unknown_members_survive_a_commit() -> None:
    """At the top and inside versions."""
    base = parse_view_metadata(encode(view(x=1, versions=[version(1, y=2)])))
    made = result(base, add(2), CURRENT)
    assert made.extra.keys() == {"x"}
    assert made.versions[0].extra == {"y": 2}


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_codec_that_is_not_written_is_refused(codec: str) -> None:
    """For views as for tables, on creation and in a commit."""
    properties = {"write.metadata.compression-codec": codec}
    with pytest.raises(ValidationFailed, match="compression-codec"):
        fold(BASE, {"action": "set-properties", "updates": properties})
    first = parse_view_metadata(encode(view())).versions[0]
    with pytest.raises(ValidationFailed, match="compression-codec"):
        new_view(parse_schema(schema(0)), first, "s3://b/v", properties, NOW, UUID)
