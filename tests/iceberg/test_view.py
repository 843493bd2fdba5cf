"""View metadata."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.json.codec import encode
from app.iceberg.view import (
    parse_view_metadata,
    render_view_metadata,
    view_version_from_json,
)
from tests.iceberg.documents import NOW, UUID, column, schema


def version(version_id: int, sql: str = "select 1", **more: Any) -> dict[str, Any]:
    return {
        "version-id": version_id,
        "timestamp-ms": NOW,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "default-namespace": ["a", "b"],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        **more,
    }


def view(**more: Any) -> dict[str, Any]:
    return {
        "view-uuid": UUID,
        "format-version": 1,
        "location": "s3://bucket/v",
        "properties": {"comment": "c"},
        "schemas": [schema(0, column(1, "a"))],
        "current-version-id": 1,
        "versions": [version(1)],
        "version-log": [{"timestamp-ms": NOW, "version-id": 1}],
        **more,
    }


def test_a_view_survives_a_round_trip() -> None:
    """Unknown members at every level, and representations of unknown type, come out as they went in."""
    value = view(x={"y": None})
    value["versions"] = [
        version(1, **{"default-catalog": "c", "x": 1}),
        version(2, representations=[{"type": "plan", "bytes": "x", "n": None}]),
    ]
    value["version-log"][0]["x"] = 1
    value["versions"][0]["representations"][0]["x"] = [1]
    assert msgspec.json.decode(render_view_metadata(parse_view_metadata(encode(value)))) == value


def test_properties_are_optional() -> None:
    """Absent and null read as none, and none are not written."""
    value = view(properties=None)
    parsed = parse_view_metadata(encode(value))
    assert parsed.properties == {}
    assert b"properties" not in render_view_metadata(parsed)


@pytest.mark.parametrize(
    "change",
    [
        {"format-version": 2},
        {"format-version": 0},
        {"current-version-id": 9},
        {"location": None},
        {"view-uuid": None},
        {"versions": None},
        {"version-log": None},
        {"schemas": None},
        {"versions": [version(1), version(1)]},
        {"versions": [version(1, summary={"a": 1})]},
        {"versions": [version(1, representations=[{"type": "sql", "sql": "x"}])]},
        {"versions": [version(1, representations=[{}])]},
        {"versions": [version(1, **{"default-namespace": None})]},
        {"version-log": [{"timestamp-ms": 1}]},
    ],
)
def test_what_no_reader_loads_is_refused(change: dict[str, Any]) -> None:
    """One fault each."""
    with pytest.raises(SpecError):
        parse_view_metadata(encode(view() | change))


def test_a_missing_schema_is_found_only_when_asked_for() -> None:
    """Readers load such a view and fail when they use it."""
    parsed = parse_view_metadata(encode(view(schemas=[schema(5)])))
    with pytest.raises(SpecError, match="schema with id 0"):
        _ = parsed.schema


def test_dialects_are_compared_in_lower_case() -> None:
    """Trino and TRINO are one dialect."""
    sql = {"type": "SQL", "sql": "x", "dialect": "TRINO"}
    assert view_version_from_json(version(1, representations=[sql]), "$").dialects == {"trino"}


def test_a_version_that_says_nothing_is_taken_from_stored_views_alone() -> None:
    """No engine can expand a view without a representation, so none is made; one that is there still loads."""
    with pytest.raises(SpecError, match="without specifying a query"):
        view_version_from_json(version(1, representations=[]), "$")
    assert parse_view_metadata(encode(view(versions=[version(1, representations=[])]))).current_version_id == 1


def test_two_versions_may_behave_alike() -> None:
    """Only id and time of creation do not count."""
    one = view_version_from_json(version(1), "$")
    assert one.behaves_like(view_version_from_json(version(7, **{"timestamp-ms": 1}), "$"))
    for other in (version(1, "select 2"), version(1, **{"schema-id": 1}), version(1, summary={})):
        assert not one.behaves_like(view_version_from_json(other, "$"))
