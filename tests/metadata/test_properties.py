"""Table properties."""

from __future__ import annotations

import pytest

from app.errors import ValidationFailed
from app.metadata.properties import (
    deletes_previous_versions,
    integer,
    may_delete,
    previous_versions_kept,
)
from tests.iceberg.documents import document, parsed
from tests.metadata.folding import CREATE, fold, result, set_properties

BASE = parsed(document(properties={"a": "1"}))
LIMIT = "write.metadata.previous-versions-max"


def test_properties_are_merged_and_removed() -> None:
    """Also the last one stays gone (O-19); removing what is absent is no change."""
    assert result(BASE, set_properties(b="2")).properties == {"a": "1", "b": "2"}
    gone = result(BASE, {"action": "remove-properties", "removals": ["a", "zz"]})
    assert gone.properties == {}
    assert not fold(gone, {"action": "remove-properties", "removals": ["a"]}).changed
    assert BASE.properties == {"a": "1"}


def test_setting_what_holds_is_no_change() -> None:
    """No new document for it; an empty value is a value."""
    assert not fold(BASE, set_properties(a="1"), set_properties()).changed
    assert result(BASE, set_properties(b="")).properties["b"] == ""
    assert result(BASE, set_properties(b=""), {"action": "remove-properties", "removals": ["b"]}).properties == {
        "a": "1"
    }


@pytest.mark.parametrize("value", ["many", "", "1.5", " 5", "99999999999", "٣"])
def test_a_limit_that_is_no_integer_is_refused_when_it_is_set(value: str) -> None:
    """Later commits would all stumble over it; one that a document brings along counts as the default."""
    with pytest.raises(ValidationFailed, match=LIMIT):
        fold(BASE, {"action": "set-properties", "updates": {LIMIT: value}})
    assert previous_versions_kept({LIMIT: value}) == 100
    brought = parsed(document(properties={LIMIT: value}))
    assert fold(brought, set_properties(a="2")).changed


@pytest.mark.parametrize(("value", "kept"), [("3", 3), ("+7", 7), ("0", 1), ("-4", 1)])
def test_the_log_keeps_at_least_one_entry(value: str, kept: int) -> None:
    """Whatever the property says."""
    assert previous_versions_kept({LIMIT: value}) == kept


def test_deletion_is_off_unless_asked_for() -> None:
    """In any letter case."""
    key = "write.metadata.delete-after-commit.enabled"
    assert [deletes_previous_versions(item) for item in ({}, {key: "TRUE"}, {key: "yes"})] == [False, True, False]


def test_integers_are_read_as_java_does() -> None:
    """32 bits, a sign, ASCII digits, nothing else."""
    assert [integer(text) for text in ("+1", "-2147483648", "2147483648", "0x1", "1_0", None)] == [
        1, -(2**31), None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "may"), [(None, True), ("true", True), ("TRUE", True), ("false", False), ("False", False), ("no", False)]
)
def test_gc_enabled_as_java_reads_it(value: str | None, may: bool) -> None:
    """Absent means true; whatever is not `true` is false."""
    assert may_delete({} if value is None else {"gc.enabled": value}) is may


RESERVED_NAMES = [
    ("format-version", "upgrade-format-version"),
    ("uuid", "assign-uuid"),
    ("snapshot-count", "add-snapshot"),
    ("current-snapshot-id", "set-snapshot-ref"),
    ("current-snapshot-summary", "add-snapshot"),
    ("current-snapshot-timestamp-ms", "add-snapshot"),
    ("current-schema", "set-current-schema"),
    ("default-partition-spec", "set-default-spec"),
    ("default-sort-order", "set-default-sort-order"),
]


@pytest.mark.parametrize(("name", "update"), RESERVED_NAMES)
def test_reserved_names_are_no_properties(name: str, update: str) -> None:
    """Set on a table they are refused with the update that does what was meant; on creation they are not stored."""
    with pytest.raises(ValidationFailed, match=f"Cannot set property {name}: .* {update} "):
        fold(BASE, set_properties(**{"b": "2", name: "2"}))
    assert name not in result(None, *CREATE, set_properties(**{name: "2"})).properties


def test_a_reserved_name_that_a_file_brought_along_can_be_removed() -> None:
    """Other catalogs may have stored it."""
    base = parsed(document(properties={"snapshot-count": "2"}))
    assert result(base, {"action": "remove-properties", "removals": ["snapshot-count"]}).properties == {}


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_codec_that_is_not_written_is_refused_when_it_is_introduced(codec: str) -> None:
    """On creation too; a table that was registered with it takes other commits."""
    key = "write.metadata.compression-codec"
    for base, before in ((BASE, []), (None, CREATE)):
        with pytest.raises(ValidationFailed, match=key):
            fold(base, *before, set_properties(**{key: codec}))
    brought = parsed(document(properties={key: codec}))
    assert result(brought, set_properties(**{"a": "2", key: codec})).properties["a"] == "2"
